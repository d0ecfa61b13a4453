// Lines over time, as SVG.

const SPACE = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 14, 14, 40]; // room for words round the lines

function draw(tag, properties, text) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** A chart of lines [{name, colour, points: [[x, y], …]}] with words on its axes, `wide` pixels wide. */
export function chart(lines, xLabel, yLabel, wide) {
  const high = Math.round(Math.max(260, wide / 2));
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${high}`, class: "chart", role: "img", "aria-label": `${yLabel} over ${xLabel}` });
  const points = lines.flatMap((line) => line.points);
  const [x0, x1] = span(points.map(([x]) => x), true);
  const [y0, y1] = span(points.map(([, y]) => y), false);
  const at = ([x, y]) => [LEFT + ((wide - LEFT - RIGHT) * (x - x0)) / (x1 - x0), high - BOTTOM - ((high - TOP - BOTTOM) * (y - y0)) / (y1 - y0)];
  for (const y of ticks(y0, y1)) {
    const [, level] = at([x0, y]);
    svg.append(draw("line", { x1: LEFT, x2: wide - RIGHT, y1: level, y2: level, class: "rule" }));
    svg.append(draw("text", { x: LEFT - 8, y: level + 4, "text-anchor": "end" }, short(y)));
  }
  for (const x of ticks(x0, x1)) {
    const [place] = at([x, y0]);
    svg.append(draw("text", { x: place, y: high - BOTTOM + 18, "text-anchor": "middle" }, short(x)));
  }
  svg.append(draw("text", { x: (LEFT + wide - RIGHT) / 2, y: high - 4, "text-anchor": "middle" }, xLabel));
  svg.append(draw("text", { x: 14, y: (TOP + high - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(TOP + high - BOTTOM) / 2})` }, yLabel));
  for (const { name, colour, points: own } of lines) {
    if (!own.length) continue;
    const line = draw("polyline", { points: own.map((point) => at(point).map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none", stroke: colour, "stroke-width": 2 });
    line.append(draw("title", {}, name));
    const [x, y] = at(own[own.length - 1]);
    svg.append(line, draw("circle", { cx: x, cy: y, r: 3.5, fill: colour }));
  }
  return svg;
}

function span(values, fromZero) {
  if (!values.length) return [0, 1];
  let low = values.reduce((a, b) => Math.min(a, b));
  let high = values.reduce((a, b) => Math.max(a, b));
  if (fromZero) low = Math.min(low, 0);
  if (high === low) high = low + (Math.abs(low) || 1);
  const room = fromZero ? 0 : 0.06 * (high - low);
  return [low - room, high + room];
}

function ticks(low, high) {
  const rough = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return found;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3))).replace("-", "−");
}
