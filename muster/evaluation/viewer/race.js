// The race: in each film the tasks left, or the reward so far, up to the present moment.
import { filmColour } from "./colours.js";
import { digits, make, svg } from "./dom.js";

export class Race {
  constructor(packed, films) {
    this.films = films;
    this.words = packed.left || `${packed.unit} so far`;
    this.series = films.map((film) => (packed.left ? tasksLeft(film) : rewardSoFar(film)));
    this.last = Math.max(1, ...films.map((film) => film.last));
    const all = this.series.flat();
    [this.low, this.high] = [Math.min(0, ...all), Math.max(...all)];
    if (this.high === this.low) this.high += 1;
    this.lines = films.map((_, k) => svg("polyline", { stroke: filmColour(k) }));
    this.svg = svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img" }, ...this.lines);
    this.ends = films.map((_, k) => {
      const dot = make("i", { class: "end-dot", hidden: true });
      dot.style.background = filmColour(k);
      return dot;
    });
    this.now = make("i", { class: "now" });
    this.standing = films.map((film, k) => {
      const dot = make("i", {});
      dot.style.background = filmColour(k);
      const value = make("b", {});
      return { row: make("span", {}, dot, value, ` ${film.label}`), value };
    });
    this.element = make("div", { class: "race" },
      make("div", { class: "race-words" }, make("strong", { text: this.words }), ...this.standing.map(({ row }) => row)),
      make("div", { class: "race-plot" }, make("span", { class: "race-scale", text: digits(this.high, 3) }),
        make("div", { class: "race-lines" }, this.svg, this.now, ...this.ends), make("span", { class: "race-scale low", text: digits(this.low, 3) })));
  }

  /** Draw the lines up to a time. */
  at(time) {
    this.series.forEach((values, k) => {
      const until = Math.min(time, values.length - 1);
      const row = Math.floor(until);
      const points = values.slice(0, row + 1).map((value, step) => [step, value]);
      if (until > row) points.push([until, values[row] + (values[row + 1] - values[row]) * (until - row)]);
      this.lines[k].setAttribute("points", points.map(([step, value]) => `${this.x(step)},${this.y(value)}`).join(" "));
      const [step, value] = points[points.length - 1];
      this.ends[k].hidden = false;
      this.ends[k].style.left = `${this.x(step)}%`;
      this.ends[k].style.top = `${this.y(value)}%`;
      this.standing[k].value.textContent = digits(values[row], 3);
    });
    this.now.style.left = `${this.x(Math.min(time, this.last))}%`;
    const values = this.films.map((film, k) => `${film.label} ${this.standing[k].value.textContent}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.words}: ${values}`);
  }

  x(step) {
    return (100 * step) / this.last;
  }

  y(value) {
    return (100 * (this.high - value)) / (this.high - this.low);
  }
}

function tasksLeft(film) {
  const { rows, columns, values } = film.fields.task_alive;
  return Array.from({ length: rows }, (_, row) => values.subarray(row * columns, (row + 1) * columns).reduce((sum, there) => sum + (there ? 1 : 0), 0));
}

function rewardSoFar(film) {
  let sum = 0;
  return [0, ...film.rewards.map((reward) => (sum += reward))];
}
