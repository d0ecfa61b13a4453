// The canvas of Play: a situation that can be dragged, drawn by the viewer.
import { drawMoment, fit, radiusIn } from "./viewer/canvas.js";
import { make, assignmentText } from "./viewer/dom.js";

const REACH = 18; // pixels round an object that still hit it
const AROUND = 300; // pixels of a window's height beside the board

export class Board {
  constructor({ onMove, onPick }) {
    [this.onMove, this.onPick] = [onMove, onPick];
    [this.dragging, this.selected, this.decision, this.scores] = [true, null, null, null];
    this.canvas = make("canvas", { class: "board", tabindex: 0, role: "img", "aria-label": "The situation; drag agents and tasks" });
    this.element = this.canvas;
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.up(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(situation, stage) {
    [this.situation, this.stage, this.decision, this.scores] = [situation, stage, null, null];
    this.resize();
  }

  /** Show a decision of the service, and scores of the selected agent or task, 0 to 1. */
  answer(decision, scores = null) {
    [this.decision, this.scores] = [decision, scores];
    this.canvas.setAttribute("aria-label", `The situation; drag agents and tasks. ${decision ? assignmentText(decision.assignment) : "No answer"}`);
    this.draw();
  }

  resize() {
    const wide = this.canvas.clientWidth;
    if (!wide || !this.stage) return;
    const [left, top, right, bottom] = this.stage.bounds;
    const high = Math.round(Math.min((wide * (bottom - top)) / (right - left || 1), Math.max(280, innerHeight - AROUND)));
    const density = devicePixelRatio || 1;
    this.canvas.style.height = `${high}px`;
    [this.canvas.width, this.canvas.height] = [Math.round(wide * density), Math.round(high * density)];
    this.view = fit(this.stage.bounds, wide, high);
    this.draw();
  }

  things() {
    const { agents, tasks } = this.situation;
    const { looks } = this.stage;
    // Until the service has answered, agents have the first look and tasks the last.
    const look = (kind, k, otherwise) => looks[this.decision && this.decision[`${kind}_looks`][k]] || otherwise;
    const radius = radiusIn(this.stage, this.view, agents.length + tasks.length);
    const thing = (place, look) => ({ there: true, at: this.view.to(place), r: radius(look), fades: 1, fresh: 1, look, health: null, turn: 0, load: 0, crowded: false });
    const own = {
      agents: agents.map((place, k) => thing(place, look("agent", k, looks[0]))),
      tasks: tasks.map((place, k) => thing(place, look("task", k, looks[looks.length - 1]))),
    };
    own.agents.forEach((agent, k) => {
      const task = this.decision && this.decision.assignment.length === agents.length ? this.decision.assignment[k] : null;
      agent.task = task === null || task >= tasks.length ? -1 : task;
    });
    if (this.decision && this.decision.loads.length === tasks.length) {
      own.tasks.forEach((task, k) => {
        const capacity = this.decision.capacities[k];
        task.load = capacity ? this.decision.loads[k] / capacity : 0;
        task.crowded = capacity !== null && this.decision.loads[k] > capacity * 1.000001;
      });
    }
    return own;
  }

  draw() {
    if (!this.view || !this.situation) return;
    const pen = this.canvas.getContext("2d");
    const density = this.canvas.width / this.canvas.clientWidth;
    pen.setTransform(density, 0, 0, density, 0, 0);
    const show = { lines: true, names: true, selected: this.selected, scores: this.scores };
    drawMoment(pen, { ...this.stage, agent_names: [], task_names: [] }, { ...this.things(), shots: [], into: 0 }, this.view, show);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  thingAt([x, y]) {
    let best = null;
    let nearest = REACH;
    const { agents, tasks } = this.things();
    for (const [kind, things] of [["task", tasks], ["agent", agents]]) {
      things.forEach((thing, index) => {
        const away = Math.hypot(thing.at[0] - x, thing.at[1] - y);
        if (away <= nearest) [best, nearest] = [{ kind, index }, away];
      });
    }
    return best;
  }

  down(event) {
    if (!this.view) return;
    this.held = this.dragging ? this.thingAt(this.place(event)) : null;
    [this.began, this.moved] = [this.place(event), false];
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.held || !event.buttons) return;
    const here = this.place(event);
    if (!this.moved && Math.hypot(here[0] - this.began[0], here[1] - this.began[1]) < 4) return;
    this.moved = true;
    this.put(this.held, this.view.from(here));
  }

  up(event) {
    if (!this.began) return;
    const here = this.place(event);
    if (!this.moved) this.onPick(this.thingAt(here), this.inside(this.view.from(here)));
    [this.held, this.began] = [null, null];
  }

  /** Select the next agent or task. */
  next(kind) {
    const count = (kind === "agent" ? this.situation.agents : this.situation.tasks).length;
    const index = this.selected && this.selected.kind === kind ? (this.selected.index + 1) % count : 0;
    this.onPick({ kind, index }, this.list({ kind })[index]);
  }

  /** A and T select; the arrow keys move the selected object by a cell, or by a fiftieth. */
  key(event) {
    if (event.key === "a" || event.key === "t") return this.next(event.key === "a" ? "agent" : "task");
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!this.selected || !ways[event.key]) return;
    event.preventDefault();
    const step = this.stage.grid || (this.stage.bounds[2] - this.stage.bounds[0]) / 50;
    const [x, y] = this.list(this.selected)[this.selected.index];
    this.put(this.selected, [x + step * ways[event.key][0], y + step * ways[event.key][1]]);
  }

  list(thing) {
    return thing.kind === "agent" ? this.situation.agents : this.situation.tasks;
  }

  put(thing, place) {
    this.list(thing)[thing.index] = this.inside(place);
    this.onMove();
  }

  /** Within bounds, and on a grid in the middle of a cell. */
  inside([x, y]) {
    const [left, top, right, bottom] = this.stage.bounds;
    const cell = this.stage.grid === 1;
    const keep = (value, low, high) => {
      const bounded = Math.max(low, Math.min(high, value));
      return cell ? Math.min(Math.floor(bounded), high - 1) + 0.5 : Number(bounded.toFixed(3));
    };
    return [keep(x, left, right), keep(y, top, bottom)];
  }
}
