// Lines over time, as SVG, with a ruler that follows the pointer and compares them.
import { digits, fill, make, svg } from "./viewer/dom.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [48, 14, 14, 40]; // margins for the labels
const EARLY = 0.1; // share of a line's points that do not count for the range of values

/**
 * A chart of lines [{name, colour, points: [[x, y], …], raw: [[x, y], …]}] with words on its axes, `wide` pixels wide.
 * `raw` is drawn faintly behind its line; `levels` [{name, value}] are dashed lines across.
 */
export function chart(lines, levels, xLabel, yLabel, wide) {
  const high = Math.round(Math.max(260, Math.min(wide / 2, innerHeight - 300)));
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, class: "chart", role: "img", "aria-label": `${yLabel} over ${xLabel}` });
  const points = lines.flatMap((line) => [...line.points, ...line.raw]);
  const [x0, x1] = span(points.map(([x]) => x), true);
  // The first, untrained results would squeeze all that follows: they may leave the chart.
  const later = lines.flatMap((line) => [line.points, line.raw].flatMap((own) => own.slice(Math.floor(EARLY * own.length))));
  const [y0, y1] = span([...later.map(([, y]) => y), ...levels.map(({ value }) => value)], false);
  const at = ([x, y]) => [LEFT + ((wide - LEFT - RIGHT) * (x - x0)) / (x1 - x0), high - BOTTOM - ((high - TOP - BOTTOM) * (y - y0)) / (y1 - y0)];
  for (const [y, text] of ticks(y0, y1)) {
    const [, level] = at([x0, y]);
    picture.append(svg("line", { x1: LEFT, x2: wide - RIGHT, y1: level, y2: level, class: "rule" }));
    picture.append(svg("text", { x: LEFT - 8, y: level + 4, "text-anchor": "end" }, text));
  }
  for (const [x, text] of ticks(x0, x1)) {
    const [place] = at([x, y0]);
    picture.append(svg("text", { x: place, y: high - BOTTOM + 18, "text-anchor": "middle" }, text));
  }
  picture.append(svg("text", { x: (LEFT + wide - RIGHT) / 2, y: high - 4, "text-anchor": "middle" }, xLabel));
  for (const { name, value } of levels) {
    const [, level] = at([x0, value]);
    picture.append(svg("line", { x1: LEFT, x2: wide - RIGHT, y1: level, y2: level, class: "level" }));
    picture.append(svg("text", { x: wide - RIGHT, y: level - 5, "text-anchor": "end" }, `${name} ${digits(value)}`));
  }
  picture.append(svg("clipPath", { id: "plot" }, svg("rect", { x: LEFT, y: TOP, width: wide - LEFT - RIGHT, height: high - TOP - BOTTOM })));
  const path = (own) => own.map((point) => at(point).map((value) => value.toFixed(1)).join(",")).join(" ");
  for (const { name, colour, points: own, raw } of lines) {
    if (!own.length) continue;
    if (raw.length) picture.append(svg("polyline", { points: path(raw), fill: "none", stroke: colour, "stroke-width": 1, opacity: 0.3, class: "raw", "clip-path": "url(#plot)" }));
    const [x, y] = at(own[own.length - 1]);
    picture.append(svg("polyline", { points: path(own), fill: "none", stroke: colour, "stroke-width": 2, class: "line", "clip-path": "url(#plot)" }, svg("title", {}, name)),
      svg("circle", { cx: x, cy: y, r: 3.5, fill: colour }));
  }
  return make("div", { class: "chart-box" }, make("strong", { text: yLabel }), picture, ...ruler(picture, lines, xLabel, { wide, high, x0, x1 }));
}

/** A vertical line under the pointer, and beside it the value of every line there. */
function ruler(picture, lines, xLabel, { wide, high, x0, x1 }) {
  const line = svg("line", { y1: TOP, y2: high - BOTTOM, class: "ruler", visibility: "hidden" });
  picture.append(line);
  const box = make("div", { class: "compare", hidden: true });
  picture.addEventListener("pointermove", (event) => {
    const { left, width } = picture.getBoundingClientRect();
    const place = ((event.clientX - left) * wide) / width;
    const x = x0 + ((place - LEFT) * (x1 - x0)) / (wide - LEFT - RIGHT);
    box.hidden = x < x0 || x > x1;
    line.setAttribute("visibility", box.hidden ? "hidden" : "visible");
    for (const end of ["x1", "x2"]) line.setAttribute(end, place);
    fill(box, make("strong", { text: `${short(x)} ${xLabel}` }), ...lines.filter((each) => each.points.length).map(({ name, colour, points }) => {
      const dot = make("i", { class: "dot" });
      dot.style.background = colour;
      return make("span", {}, dot, `${name} `, make("b", { text: digits(nearest(points, x)[1]) }));
    }));
    box.style[place > wide / 2 ? "left" : "right"] = "auto";
    box.style[place > wide / 2 ? "right" : "left"] = `${place > wide / 2 ? width * (1 - place / wide) + 10 : (width * place) / wide + 10}px`;
  });
  picture.addEventListener("pointerleave", () => {
    box.hidden = true;
    line.setAttribute("visibility", "hidden");
  });
  return [box];
}

function nearest(points, x) {
  return points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
}

function span(values, fromZero) {
  if (!values.length) return [0, 1];
  let low = values.reduce((a, b) => Math.min(a, b));
  let high = values.reduce((a, b) => Math.max(a, b));
  if (fromZero) low = Math.min(low, 0);
  if (high === low) high = low + (Math.abs(low) || 1);
  const margin = fromZero ? 0 : 0.06 * (high - low);
  return [low - margin, high + margin];
}

/** [value, text] of round values between two, with as many decimals as tell them apart. */
function ticks(low, high) {
  const rough = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= rough);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const marks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) {
    marks.push([k * step, Math.abs(high) >= 1e4 ? short(k * step) : (k * step).toFixed(decimals).replace("-", "−")]);
  }
  return marks;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3))).replace("-", "−");
}
