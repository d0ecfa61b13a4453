// A film on its own canvas, with a caption.
import { cameraOf } from "./camera.js";
import { drawMoment, fit, momentOf } from "./canvas.js";
import { filmColour } from "./colours.js";
import { digits, make, assignmentText } from "./dom.js";
import { Zoom } from "./zoom.js";

const REACH = 14; // pixels round an object that still hit it
const AROUND = 360; // pixels of a window's height beside the picture: headings, controls, legend

export class Screen {
  /** `number` of the film among those side by side: its colour in the race. */
  constructor(film, packed, number, onPick) {
    this.film = film;
    this.stage = packed.stage;
    this.counts = Boolean(packed.left);
    this.time = 0;
    this.show = { lines: true, names: false, selected: null, scores: null };
    this.canvas = make("canvas", { tabindex: -1, role: "img", "aria-label": `The environment as ${film.label} acts in it` });
    this.status = make("span", { class: "status" });
    const dot = make("i", { class: "dot" });
    dot.style.background = filmColour(number);
    this.element = make(
      "figure",
      { class: "screen" },
      make("figcaption", {}, make("span", { class: "policy" }, dot, make("strong", { text: film.label }),
        film.label === film.policy ? null : make("small", { text: film.policy })), this.status),
      this.canvas,
    );
    this.zoom = new Zoom(this.canvas, () => this.draw());
    this.canvas.addEventListener("click", (event) => {
      if (onPick && !this.zoom.dragged) onPick(this, this.thingAt(event));
    });
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  resize() {
    const { bounds } = this.stage;
    const wide = this.canvas.clientWidth;
    if (!wide) return;
    const share = this.stage.follows ? 1 : (bounds[3] - bounds[1]) / (bounds[2] - bounds[0] || 1);
    // A tall stage must not push the controls off the screen.
    const high = Math.round(Math.min(wide * share, Math.max(260, window.innerHeight - AROUND)));
    const density = window.devicePixelRatio || 1;
    this.canvas.style.height = `${high}px`;
    this.canvas.width = Math.round(wide * density);
    this.canvas.height = Math.round(high * density);
    this.size = [wide, high];
    this.camera = cameraOf(this.film, this.stage, high / wide);
    this.draw();
  }

  at(time) {
    this.time = Math.min(time, this.film.last);
    this.draw();
  }

  draw() {
    if (!this.camera) return;
    const pen = this.canvas.getContext("2d");
    const density = this.canvas.width / this.canvas.clientWidth;
    pen.setTransform(density, 0, 0, density, 0, 0);
    this.view = this.zoom.apply(fit(this.camera(this.time), ...this.size));
    this.moment = momentOf(this.film, this.stage, this.time, this.view);
    drawMoment(pen, this.stage, this.moment, this.view, this.show);
    this.status.textContent = this.words();
    if (this.described === this.moment.row) return;
    this.described = this.moment.row;
    const tasks = assignmentText(this.moment.agents.map((agent) => agent.task));
    this.canvas.setAttribute("aria-label", `The environment as ${this.film.label} acts in it, step ${this.described}: ${tasks}`);
  }

  words() {
    const { row } = this.moment;
    if (row === this.film.last && (this.counts || !this.film.texts[row])) return this.film.ending;
    const sum = this.film.rewards.slice(0, row).reduce((total, reward) => total + reward, 0);
    return this.film.texts[row] || `reward ${digits(sum, 3)}`;
  }

  /** The agent or task under the pointer: {kind, index}, or null. */
  thingAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let nearest = REACH;
    for (const [kind, things] of [["agent", this.moment.agents], ["task", this.moment.tasks]]) {
      things.forEach((thing, index) => {
        const away = Math.hypot(thing.at[0] - x, thing.at[1] - y);
        if (thing.there && away < nearest) [best, nearest] = [{ kind, index }, away];
      });
    }
    return best;
  }
}
