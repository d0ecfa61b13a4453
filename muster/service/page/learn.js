// Learn: the curves of runs in the service's folder, live while they train.
import { ownColour } from "./viewer/colours.js";
import { fill, make } from "./viewer/dom.js";
import { ask } from "./api.js";
import { cardOf } from "./card.js";
import { chart } from "./chart.js";
import { alertLine, field } from "./forms.js";

const EVERY = 2000; // milliseconds
const QUANTITIES = { outcome: "in training", validation: "on validation episodes", reward: "reward", fitness: "fitness", value_loss: "loss of the critic" };
const UNITS = { rescue: "steps (fewer is better)", pursuit: "steps (fewer is better)", battle: "win rate (more is better)", fleet: "profit (more is better)" };
const SMOOTHING = { 0: "none", 0.6: "some", 0.9: "much" }; // weight of the mean so far against each new value
const MOST_AT_ONCE = 8;

export async function learnView(options) {
  const view = new Learn((options.get("runs") || "").split(",").filter(Boolean));
  await view.read();
  view.timer = setInterval(() => view.refresh(), EVERY);
  return view;
}

class Learn {
  constructor(names) {
    this.chosen = new Set(names);
    this.began = names.length > 0;
    this.curves = new Map();
    this.alert = alertLine();
    this.list = make("div", { class: "runs" });
    this.plot = make("div", { class: "plot" });
    this.quantity = make("select", {});
    this.smooth = make("select", {});
    for (const [value, text] of Object.entries(SMOOTHING)) this.smooth.append(make("option", { value, text }));
    this.smooth.value = "0.6";
    this.axis = make("select", {});
    for (const [value, text] of [["steps", "environment steps"], ["cpu_seconds", "CPU minutes"]]) this.axis.append(make("option", { value, text }));
    // A chart is drawn at its final width, so that its text keeps its size.
    this.resized = new ResizeObserver(() => this.plot.clientWidth && this.room() !== this.drawn && this.runs && this.draw());
    this.resized.observe(this.plot);
    for (const select of [this.quantity, this.axis, this.smooth]) select.addEventListener("change", () => this.draw());
    this.empty = make("div", { class: "state" });
    this.charts = make("div", {}, make("div", { class: "bar" }, field("Show", this.quantity, { class: "field wide" }), field("Over", this.axis), field("Smoothing", this.smooth)),
      make("div", { class: "split" }, this.plot, make("aside", { class: "panel" }, make("h2", { text: "Runs" }), this.list)));
    this.element = make("div", {}, make("h1", { text: "Learn" }), make("p", { class: "about", text: "Training runs, live. Point at the chart to compare them." }),
      this.alert, this.empty, this.charts);
  }

  close() {
    clearInterval(this.timer);
    this.resized.disconnect();
  }

  async refresh() {
    try {
      await this.read();
      this.alert.say("");
    } catch (error) {
      this.alert.say(error.message);
    }
  }

  /** Read the runs that changed, and show them. */
  async read() {
    const { command, folder, runs } = await ask("watch/runs");
    if (!this.began && runs.length) {
      this.began = true;
      // One chart shows one unit: the latest runs of one environment.
      this.chosen = new Set(runs.filter(({ env }) => env === runs[0].env).slice(0, 4).map((run) => run.name));
    }
    // Once a minute anyway: a run that logs nothing for long is shown as stopped.
    const state = JSON.stringify([runs, [...this.chosen], Math.floor(Date.now() / 60000)]);
    if (state === this.state) return;
    [this.runs, this.folder, this.command] = [runs, folder, command];
    for (const run of runs.filter(({ name }) => this.chosen.has(name)).slice(0, MOST_AT_ONCE)) {
      const before = this.curves.get(run.name);
      if (!before || before.updated !== run.updated || before.finished !== run.finished) this.curves.set(run.name, await ask("watch/curve", { run: run.name }));
    }
    this.state = state;
    this.showList();
    this.draw();
  }

  showList() {
    this.empty.hidden = this.runs.length > 0;
    this.charts.hidden = !this.empty.hidden;
    if (this.charts.hidden) {
      fill(this.empty, make("h2", { text: "No runs yet" }), make("p", { text: `The folder ${this.folder} has none. This command trains a policy for a minute; its curve appears here:` }),
        make("code", { text: this.command }));
      return;
    }
    fill(this.list, ...this.runs.map((run) => {
      const box = make("input", { type: "checkbox" });
      box.checked = this.chosen.has(run.name);
      box.addEventListener("change", () => {
        if (box.checked) this.chosen.add(run.name);
        else this.chosen.delete(run.name);
        this.refresh();
      });
      const dot = make("i", { class: "dot" });
      dot.style.background = this.colour(run.name);
      const learns = !run.finished && Date.now() / 1000 - run.updated < 120;
      const state = run.finished ? "finished" : learns ? "learning" : "stopped";
      const curve = this.curves.get(run.name);
      return make("div", {}, make("label", { class: "run" }, box, dot, make("span", {}, make("strong", { text: run.name }),
        make("span", { class: "about", text: [run.env, run.learner, run.inference, state].filter(Boolean).join(" · ") }))), cardOf(curve && curve.card, run.name));
    }));
  }

  /** Width of the chart in pixels; estimated from the window before the view is shown. */
  room() {
    return Math.max(300, Math.min(900, (this.plot.clientWidth || innerWidth - 24) - 28));
  }

  colour(name) {
    return ownColour(this.runs.findIndex((run) => run.name === name));
  }

  /** The unit of the outcomes shown, or "outcome" if the runs have different ones. */
  unit() {
    const kinds = new Set(this.runs.filter((run) => this.chosen.has(run.name)).map((run) => run.env.split(":")[0]));
    return kinds.size === 1 ? UNITS[[...kinds][0]] || "return (more is better)" : "outcome";
  }

  /** Name the quantities by the unit of the chosen runs. */
  offer() {
    const words = Object.entries(QUANTITIES).map(([value, text]) => [value, ["outcome", "validation"].includes(value) ? `${this.unit()}, ${text}` : text]);
    const { value: chosen } = this.quantity;
    fill(this.quantity, ...words.map(([value, text]) => make("option", { value, text })));
    this.quantity.value = chosen || "outcome";
  }

  draw() {
    this.offer();
    this.drawn = this.room();
    const [key, axis] = [this.quantity.value, this.axis.value];
    const unit = axis === "cpu_seconds" ? 1 / 60 : 1;
    const shown = [...this.curves].filter(([name]) => this.chosen.has(name));
    const lines = shown.map(([name, curve]) => {
      const raw = curve.rows.filter((row) => row[key] !== undefined && row[axis] !== undefined).map((row) => [row[axis] * unit, row[key]]);
      const smooth = smoothed(raw, Number(this.smooth.value));
      return { name, colour: this.colour(name), points: smooth, raw: Number(this.smooth.value) ? raw : [] };
    });
    const quantity = this.quantity.selectedOptions[0].text;
    if (!lines.some((line) => line.points.length)) {
      const text = lines.length ? `Nothing has been logged yet: ${quantity}.` : "Choose a run to see its curve.";
      fill(this.plot, make("p", { class: "about", text }));
      return;
    }
    const levels = ["outcome", "validation"].includes(key) ? bestBaseline(shown.map(([, curve]) => curve)) : [];
    fill(this.plot, chart(lines, levels, this.axis.selectedOptions[0].text, quantity, this.drawn));
  }
}

/** Points with exponential smoothing: `weight` of the mean so far, without the lag of its beginning. */
function smoothed(points, weight) {
  let [sum, total] = [0, 0];
  return points.map(([x, y]) => {
    [sum, total] = [weight * sum + y, weight * total + 1];
    return [x, sum / total];
  });
}

/** The best baseline on the validation episodes of the runs' environment, if they share one and it was measured. */
function bestBaseline(curves) {
  const envs = new Set(curves.map((curve) => curve.env));
  const baselines = curves.flatMap((curve) => Object.entries(curve.baselines));
  if (envs.size !== 1 || !baselines.length) return [];
  const fewer = /^(rescue|pursuit):/.test(curves[0].env);
  const [name, value] = baselines.reduce((best, each) => ((fewer ? each[1] < best[1] : each[1] > best[1]) ? each : best));
  return [{ name: `best baseline: ${name},`, value }];
}
