// One or two films of the same episode, side by side under one clock: play, pause, step, scrub, speed, keys.
import { ownColour } from "./colours.js";
import { fill, make } from "./dom.js";
import { Race } from "./race.js";
import { Screen } from "./screen.js";
import { drawShape } from "./shapes.js";
import { unpack } from "./unpack.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

export class Player {
  /** `packed` as muster/evaluation/packing.py writes it; `options`: onPick(screen, thing), onStep(step), onRest(), next(): elements of the end card. */
  static async of(packed, options = {}) {
    const films = await Promise.all(packed.films.map((film) => unpack(film, packed.stage)));
    return new Player(packed, films, options);
  }

  constructor(packed, films, options) {
    this.packed = packed;
    this.options = options;
    this.time = 0;
    this.playing = false;
    this.speed = 1;
    this.screens = films.map((film, k) => new Screen(film, packed, k, (screen, thing) => this.pick(screen, thing)));
    this.race = new Race(packed, films);
    this.card = make("section", { class: "end-card", "aria-live": "polite", hidden: true });
    this.last = Math.max(...films.map((film) => film.last));
    /** The race and the end card: below the legend, unless they are put elsewhere. */
    this.finish = make("div", { class: "finish" }, this.race.element, this.card);
    this.element = make("section", { class: "player" },
      make("div", { class: `screens${films.length > 1 ? " two" : ""}` }, ...this.screens.map((screen) => screen.element)),
      this.controls(), this.legend(), this.finish);
    this.fillCard();
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
    // The colour scheme may change while the page is open.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    this.at(0);
  }

  /** Stop playing and remove the key listener. */
  close() {
    this.playing = false;
    document.removeEventListener("keydown", this.keys);
    this.element.remove();
  }

  controls() {
    const button = (text, label, action, extra = {}) =>
      make("button", { type: "button", text, title: label, "aria-label": label, onclick: action, ...extra });
    this.button = button("▶", "Play (space)", () => this.toggle(), { class: "main" });
    this.slider = make("input", { type: "range", min: 0, max: this.last, step: "any", value: 0, "aria-label": "Step" });
    this.slider.addEventListener("input", () => {
      this.pause();
      this.at(Number(this.slider.value));
    });
    // Released, it goes to a whole step, where a decision is made.
    this.slider.addEventListener("change", () => this.at(Math.round(Number(this.slider.value))));
    this.output = make("output", { class: "clock" });
    this.pace = make("select", { "aria-label": "Speed", title: "Speed (+ and −)" });
    for (const speed of SPEEDS) this.pace.append(make("option", { value: speed, text: `${speed}×` }));
    this.pace.value = "1";
    this.pace.addEventListener("change", () => (this.speed = Number(this.pace.value)));
    this.lines = make("input", { type: "checkbox", checked: true });
    this.names = make("input", { type: "checkbox" });
    for (const box of [this.lines, this.names]) box.addEventListener("change", () => this.redraw());
    return make(
      "div",
      { class: "controls" },
      make("div", { class: "buttons" }, button("|◀", "To the start (Home)", () => this.jump(0)),
        button("‹", "One step back (←)", () => this.step(-1)), this.button,
        button("›", "One step on (→)", () => this.step(1)), button("▶|", "To the end (End)", () => this.jump(this.last))),
      this.slider,
      this.output,
      this.pace,
      make("label", { class: "tick", title: "Who is assigned to whom (L)" }, this.lines, "lines"),
      make("label", { class: "tick", title: "Names (N)" }, this.names, "names"),
    );
  }

  legend() {
    const { looks, zones } = this.packed.stage;
    const { fields } = this.screens[0].film;
    const entries = looks.filter((look) => look.name).map((look) => {
      const icon = make("canvas", { width: 36, height: 36, "aria-hidden": "true" });
      drawShape(icon.getContext("2d"), look.shape, 18, 18, 13, 0, look.colour || ownColour(0), "transparent");
      return make("span", {}, icon, look.name);
    });
    entries.push(make("span", { title: "It would have enough even with one agent less" }, make("i", { class: "ring" }), "more agents than it needs"));
    const notes = [
      fields.task_ends && "arrow: destination",
      zones.some((zone) => zone.shade) && "stronger zone colour: more requests start there",
      fields.agent_health && "blue line: new target; yellow line: shot; health bars when near (zoom: Ctrl and wheel)",
    ];
    return make("div", { class: "legend" }, ...entries, ...notes.filter(Boolean).map((text) => make("span", { text })));
  }

  /** Fill the end card: the winner, the margin and links to the next episodes. */
  fillCard() {
    const { title, detail } = this.packed.verdict;
    const next = this.options.next ? this.options.next() : [];
    fill(this.card, make("h2", { text: title }), make("p", { text: detail }), make("div", { class: "buttons" }, ...next));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.element.isConnected) return;
    if (/^(input|select|textarea)$/i.test(event.target.tagName) && event.target !== this.slider) return;
    const keys = {
      " ": () => this.toggle(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      Home: () => this.jump(0), End: () => this.jump(this.last), "+": () => this.faster(1), "-": () => this.faster(-1),
      l: () => this.flip(this.lines), n: () => this.flip(this.names),
      a: () => this.next("agent"), t: () => this.next("task"), Escape: () => this.pick(this.screens[0], null),
    };
    const action = keys[event.key];
    if (!action || (event.key === " " && event.target.tagName === "BUTTON")) return;
    event.preventDefault();
    action();
  }

  flip(box) {
    box.checked = !box.checked;
    this.redraw();
  }

  faster(by) {
    const place = Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(this.speed) + by));
    this.speed = SPEEDS[place];
    this.pace.value = String(this.speed);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.time >= this.last) this.at(0);
    this.playing = true;
    this.setButton("❚❚", "Pause (space)");
    let before = null;
    const tick = (now) => {
      if (!this.playing) return;
      const passed = before === null ? 0 : (now - before) / 1000;
      before = now;
      this.at(this.time + (passed * this.speed) / this.packed.seconds);
      if (this.time >= this.last) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    this.setButton("▶", "Play (space)");
    if (this.options.onRest) this.options.onRest();
  }

  setButton(text, label) {
    this.button.textContent = text;
    this.button.title = label;
    this.button.setAttribute("aria-label", label);
  }

  jump(time) {
    this.pause();
    this.at(time);
  }

  /** To the next whole step. */
  step(by) {
    this.jump(by > 0 ? Math.floor(this.time + 1) : Math.ceil(this.time - 1));
  }

  at(time) {
    this.time = Math.max(0, Math.min(time, this.last));
    this.slider.value = String(this.time);
    const row = Math.floor(this.time);
    this.output.textContent = `step ${row} of ${this.last}`;
    this.race.at(this.time);
    this.card.hidden = this.time < this.last;
    this.redraw();
    if (row !== this.row) {
      this.row = row;
      if (this.options.onStep) this.options.onStep(row);
    }
  }

  redraw() {
    for (const screen of this.screens) {
      screen.show = { ...screen.show, lines: this.lines.checked, names: this.names.checked };
      screen.at(this.time);
    }
  }

  /** Select the next agent or task that is there, for those without a mouse. */
  next(kind) {
    const [screen] = this.screens;
    const things = kind === "agent" ? screen.moment.agents : screen.moment.tasks;
    const { selected } = screen.show;
    const from = selected && selected.kind === kind ? selected.index + 1 : 0;
    const order = things.map((_, k) => (from + k) % things.length);
    const index = order.find((k) => things[k].there);
    if (index !== undefined) this.pick(screen, { kind, index });
  }

  /** Select an agent or task, or nothing, and call the listener. */
  pick(screen, thing) {
    // An explanation is of one step.
    if (thing) this.pause();
    const same = thing && screen.show.selected && thing.kind === screen.show.selected.kind && thing.index === screen.show.selected.index;
    for (const each of this.screens) each.show = { ...each.show, selected: same ? null : thing, scores: null };
    this.redraw();
    if (this.options.onPick) this.options.onPick(screen, same ? null : thing);
  }
}

/** Whether the system allows motion. */
export function movesFreely() {
  return !matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** The name of an agent or task. */
export function nameOf(stage, { kind, index }) {
  const name = (kind === "agent" ? stage.agent_names : stage.task_names)[index];
  return name ?? `${kind} ${index}`;
}
