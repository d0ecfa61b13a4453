// Learn: the curves of runs in the service's folder, live while they train.
import { ownColour } from "./viewer/colours.js";
import { fill, make } from "./viewer/dom.js";
import { ask } from "./api.js";
import { chart } from "./chart.js";
import { alertLine, field } from "./forms.js";

const EVERY = 2000; // milliseconds
const QUANTITIES = { validation: "validation", outcome: "outcome in training", reward: "reward", fitness: "fitness", value_loss: "loss of the critic" };
const MOST_AT_ONCE = 8;

export async function learnView(options) {
  const view = new Learn((options.get("runs") || "").split(",").filter(Boolean));
  await view.refresh();
  return view;
}

class Learn {
  constructor(wanted) {
    this.chosen = new Set(wanted);
    this.began = wanted.length > 0;
    this.curves = new Map();
    this.alert = alertLine();
    this.list = make("div", { class: "runs" });
    this.plot = make("div", { class: "plot" });
    this.quantity = make("select", {});
    for (const [value, text] of Object.entries(QUANTITIES)) this.quantity.append(make("option", { value, text }));
    this.axis = make("select", {});
    for (const [value, text] of [["steps", "environment steps"], ["cpu_seconds", "CPU minutes"]]) this.axis.append(make("option", { value, text }));
    for (const select of [this.quantity, this.axis]) select.addEventListener("change", () => this.draw());
    this.element = make("div", {}, make("div", { class: "bar" }, field("Show", this.quantity), field("Over", this.axis)), this.alert,
      make("div", { class: "split" }, this.plot, make("aside", { class: "panel" }, make("h2", { text: "Runs" }), this.list)));
    this.timer = setInterval(() => this.refresh(), EVERY);
  }

  close() {
    clearInterval(this.timer);
  }

  async refresh() {
    try {
      const { folder, runs } = await ask("watch/runs");
      if (!this.began && runs.length) {
        this.began = true;
        this.chosen = new Set(runs.slice(0, 4).map((run) => run.name));
      }
      this.runs = runs;
      this.folder = folder;
      const names = runs.map((run) => run.name).filter((name) => this.chosen.has(name)).slice(0, MOST_AT_ONCE);
      for (const name of names) {
        const before = this.curves.get(name);
        const { updated } = runs.find((run) => run.name === name);
        if (!before || before.updated !== updated) this.curves.set(name, await ask("watch/curve", { run: name }));
      }
      this.alert.say("");
      this.showList();
      this.draw();
    } catch (error) {
      this.alert.say(error.message);
    }
  }

  showList() {
    if (!this.runs.length) {
      fill(this.list, make("p", { class: "about", text: `No run in the folder ${this.folder} yet. Begin one there, such as` }),
        make("code", { text: `muster train rescue:2x4 --minutes 5 --out ${this.folder}/first` }));
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
      return make("label", { class: "run" }, box, dot, make("span", {}, make("strong", { text: run.name }),
        make("span", { class: "about", text: [run.env, run.learner, run.inference, state].filter(Boolean).join(" · ") })));
    }));
  }

  /** Pixels that a chart can be wide; before the view is shown, about what the window gives. */
  room() {
    return Math.max(300, Math.min(900, (this.plot.clientWidth || innerWidth - 24) - 28));
  }

  colour(name) {
    return ownColour(this.runs.findIndex((run) => run.name === name));
  }

  draw() {
    const [key, axis] = [this.quantity.value, this.axis.value];
    const unit = axis === "cpu_seconds" ? 1 / 60 : 1;
    const lines = [...this.curves].filter(([name]) => this.chosen.has(name)).map(([name, curve]) => ({
      name, colour: this.colour(name),
      points: curve.rows.filter((row) => row[key] !== undefined && row[axis] !== undefined).map((row) => [row[axis] * unit, row[key]]),
    }));
    if (!lines.some((line) => line.points.length)) {
      const text = lines.length ? `No ${QUANTITIES[key]} has been logged yet.` : "Choose a run to see its curve.";
      fill(this.plot, make("p", { class: "about", text }));
      return;
    }
    fill(this.plot, chart(lines, this.axis.selectedOptions[0].text, QUANTITIES[key], this.room()));
  }
}
