// One moment of a film on a canvas, drawn from the film alone.
import { heat, ownColour, theme } from "./colours.js";
import { drawArrow, drawShape } from "./shapes.js";
import { HUNDREDTHS } from "./unpack.js";

const SMALLEST = [2.5, 5.5]; // pixels: least radius of an object among many, and among few
const LARGEST = 20;
const NEAR = 8; // pixels: least radius at which health bars are drawn
const FANNED = 5; // most agents in one place that are fanned; for more, their number is drawn
const GOING = 0.7; // share of a step after which an object that dies in it is gone

const EDGE = 8; // pixels kept free round the bounds, for rings and names

/** From the stage's unit to pixels of a canvas, and back. */
export function fit(bounds, width, height) {
  const [left, top, right, bottom] = bounds;
  const scale = Math.min((width - 2 * EDGE) / (right - left || 1), (height - 2 * EDGE) / (bottom - top || 1));
  const x0 = (width - scale * (right - left)) / 2;
  const y0 = (height - scale * (bottom - top)) / 2;
  return {
    scale,
    to: ([x, y]) => [x0 + (x - left) * scale, y0 + (y - top) * scale],
    from: ([x, y]) => [left + (x - x0) / scale, top + (y - y0) / scale],
    bounds,
    box: [x0, y0, scale * (right - left), scale * (bottom - top)],
  };
}

/** The agents, tasks and shots of a film at a time, in pixels. */
export function momentOf(film, stage, time, view) {
  const row = Math.min(Math.floor(time), film.last);
  const next = Math.min(row + 1, film.last);
  const into = row === film.last ? 0 : time - row;
  const { fields } = film;
  const blend = (a, b) => a + (b - a) * into;
  const span = [stage.bounds[2] - stage.bounds[0], stage.bounds[3] - stage.bounds[1]];

  function glide(a, b) {
    return a.map((from, axis) => {
      let way = b[axis] - from;
      // Where the environment wraps, moves take the shorter way.
      if (stage.wraps) way -= span[axis] * Math.round(way / span[axis]);
      return from + way * into;
    });
  }

  function side(name, count, place) {
    const alive = fields[`${name}_alive`];
    const optional = (what, none) => (k) => {
      const field = fields[`${name}_${what}`];
      return field ? field.at(row, k) / HUNDREDTHS : none;
    };
    const health = fields[`${name}_health`];
    return Array.from({ length: count }, (_, k) => {
      const stays = alive.at(next, k) && !(fields[`${name}_new`] && fields[`${name}_new`].at(next, k) && next !== row);
      const here = place(row, k);
      const there = Boolean(alive.at(row, k)) && (stays || into < GOING);
      return {
        there,
        at: view.to(stays ? glide(here, place(next, k)) : here),
        fades: there && !stays ? 1 - into / GOING : 1,
        look: stage.looks[fields[`${name}_looks`].at(row, k)],
        health: health ? blend(health.at(row, k), stays ? health.at(next, k) : 0) / HUNDREDTHS : null,
        turn: optional("angles", 0)(k),
        load: optional("load", 0)(k),
        crowded: name === "task" ? Boolean(fields.task_crowded.at(row, k)) : optional("load", 0)(k) >= 1.5,
        was: wasThere(film, name, row, k),
      };
    });
  }

  const agents = side("agent", fields.agent_alive.columns, film.agent);
  const tasks = side("task", fields.task_alive.columns, film.task);
  const radius = radiusIn(stage, view, agents.length + tasks.length);
  for (const thing of [...agents, ...tasks]) thing.r = radius(thing.look);
  const [here, there] = [stacksAt(film, row), stacksAt(film, next)];
  // All lines would hide a battle: each is drawn when it is new, and fades.
  const fading = Boolean(fields.agent_health);
  agents.forEach((agent, k) => {
    agent.task = fields.assignment.at(row, k);
    agent.fading = fading;
    agent.fresh = !fading ? 1 : row === 0 || agent.task !== fields.assignment.at(row - 1, k) ? 0.5 * (1 - into) : 0;
    agent.stack = here[k].of > FANNED ? here[k] : null;
    const aside = [0, 1].map((axis) => blend(here[k].aside[axis], there[k].aside[axis]));
    agent.at = agent.at.map((pixel, axis) => pixel + aside[axis] * agent.r);
  });
  if (fields.task_targets) tasks.forEach((task, k) => (task.target = fields.task_targets.at(row, k)));
  if (film.end) tasks.forEach((task, k) => (task.end = view.to(film.end(row, k))));
  // In motion, the shots of this step, each at its time; at rest, those of the step before.
  const shots = into ? film.shots[next] || [] : (film.shots[row] || []).map((shot) => ({ ...shot, rests: true }));
  return { row, into, agents, tasks, shots };
}

/** A function from looks to radii in pixels: the size in the stage, within limits. */
export function radiusIn(stage, view, count) {
  const each = Math.sqrt((view.box[2] * view.box[3]) / Math.max(count, 1));
  const least = Math.max(SMALLEST[0], Math.min(SMALLEST[1], 0.3 * each));
  return (look) => Math.max(least, Math.min(LARGEST, (look.size || 0.018 * extent(stage)) * view.scale));
}

/** For each agent the number in its place (`of`), its index among them, and its offset in radii. */
function stacksAt(film, row) {
  film.stacks ??= new Map();
  if (!film.stacks.has(row)) film.stacks.set(row, findStacks(film, row));
  return film.stacks.get(row);
}

function findStacks(film, row) {
  const { columns, at } = film.fields.agent_alive;
  const places = new Map();
  for (let k = 0; k < columns; k++) {
    if (!at(row, k)) continue;
    const place = film.agent(row, k).join();
    if (!places.has(place)) places.set(place, []);
    places.get(place).push(k);
  }
  const stacks = Array.from({ length: columns }, () => ({ of: 1, number: 0, aside: [0, 0] }));
  for (const members of places.values()) {
    const of = members.length;
    members.forEach((k, number) => {
      const turn = (2 * Math.PI * number) / of + Math.PI;
      const away = of > 1 && of <= FANNED ? 0.45 + 0.12 * of : 0;
      stacks[k] = { of, number, aside: [away * Math.cos(turn), 0.8 * away * Math.sin(turn)] };
    });
  }
  return stacks;
}

function wasThere(film, name, row, k) {
  const alive = film.fields[`${name}_alive`];
  if (film.fields[`${name}_new`]) return false;
  for (let before = row; before >= 0; before--) if (alive.at(before, k)) return true;
  return false;
}

/** Draw a moment: objects have `at`, `r`, `look` and the properties of `momentOf`. `show`: lines, names, selected {kind, index}, scores (of the selected, 0 to 1, by index). */
export function drawMoment(pen, stage, moment, view, show) {
  const colours = theme();
  const colour = (thing, k) => thing.look.colour || ownColour(k);
  pen.save();
  pen.lineJoin = "round";
  drawGround(pen, stage, view, colours);
  if (stage.wraps) {
    pen.beginPath();
    pen.rect(...view.box);
    pen.clip();
  }
  for (const things of [moment.tasks, moment.agents]) {
    for (const thing of things) if (!thing.there && thing.was && thing.look.remains) drawRemains(pen, thing, thing.r, colours);
  }
  moment.tasks.forEach((task, k) => {
    if (task.there && task.end) {
      pen.globalAlpha = 0.55;
      drawArrow(pen, task.at, task.end, colour(task, k), Math.max(1, 0.14 * task.r));
      pen.globalAlpha = 1;
    }
  });
  if (show.lines) drawLines(pen, stage, moment, view, show, colours, colour);
  for (const [kind, things] of [["task", moment.tasks], ["agent", moment.agents]]) {
    things.forEach((thing, k) => {
      if (!thing.there) return;
      const { r } = thing;
      const picked = show.selected && show.selected.kind === kind && show.selected.index === k;
      pen.globalAlpha = thing.fades;
      const scored = show.scores && show.selected && show.selected.kind !== kind ? show.scores[k] : undefined;
      if (scored !== undefined && scored !== null) drawHalo(pen, thing.at, r * 1.9, heat(scored));
      if (picked) drawHalo(pen, thing.at, r * 1.8, colours.select);
      drawShape(pen, thing.look.shape, ...thing.at, r, thing.turn, colour(thing, k), colours.ground);
      if (thing.health !== null && (picked || (r >= NEAR && thing.health < 1))) drawHealth(pen, thing, r, colours);
      if (thing.crowded) drawCrowd(pen, thing, r, kind, colours);
      if (thing.stack && thing.stack.number === thing.stack.of - 1) drawCount(pen, thing, colours);
      pen.globalAlpha = 1;
    });
  }
  drawShots(pen, moment, colours);
  if (show.names) drawNames(pen, stage, moment, colours);
  pen.restore();
}

function extent(stage) {
  const [left, top, right, bottom] = stage.bounds;
  return Math.max(right - left, bottom - top);
}

function drawGround(pen, stage, view, colours) {
  pen.fillStyle = colours.ground;
  pen.fillRect(0, 0, pen.canvas.width, pen.canvas.height);
  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  for (const zone of stage.zones) {
    pen.beginPath();
    for (const corner of zone.corners) pen.lineTo(...view.to(corner));
    pen.closePath();
    pen.fillStyle = colours.zone;
    pen.fill();
    pen.globalAlpha = zone.shade;
    pen.fillStyle = colours.busy;
    pen.fill();
    pen.globalAlpha = 1;
    pen.stroke();
    if (zone.label) drawZoneLabel(pen, zone, view, colours);
  }
  if (!stage.grid || stage.grid * view.scale < 6) {
    if (stage.grid) pen.strokeRect(...view.box);
    return;
  }
  const [left, top, right, bottom] = view.bounds;
  pen.beginPath();
  for (let x = Math.ceil(left / stage.grid) * stage.grid; x <= right; x += stage.grid) {
    pen.moveTo(...view.to([x, top]));
    pen.lineTo(...view.to([x, bottom]));
  }
  for (let y = Math.ceil(top / stage.grid) * stage.grid; y <= bottom; y += stage.grid) {
    pen.moveTo(...view.to([left, y]));
    pen.lineTo(...view.to([right, y]));
  }
  pen.stroke();
}

function drawZoneLabel(pen, zone, view, colours) {
  const places = zone.corners.map(view.to);
  const middle = places.reduce((sum, [x]) => sum + x, 0) / places.length;
  const top = Math.min(...places.map(([, y]) => y));
  const size = Math.max(9, Math.min(13, 0.12 * view.scale));
  write(pen, zone.label, [middle, top + size * 0.8], { font: `${size}px`, colour: colours.quiet });
}

/** Text at a place; `edge` is the colour of its outline. */
function write(pen, text, place, { font, colour, edge, align = "center", baseline = "top" }) {
  Object.assign(pen, { font: `${font} system-ui, sans-serif`, textAlign: align, textBaseline: baseline, lineWidth: 3 });
  if (edge) {
    pen.strokeStyle = edge;
    pen.strokeText(text, ...place);
  }
  pen.fillStyle = colour;
  pen.fillText(text, ...place);
}

function drawRemains(pen, thing, r, colours) {
  const [x, y] = thing.at;
  const side = 0.7 * r;
  Object.assign(pen, { strokeStyle: colours.quiet, globalAlpha: 0.55, lineWidth: Math.max(1, 0.14 * r) });
  pen.stroke(new Path2D(`M${x - side / 2} ${y - side / 2} l${side} ${side} m0 ${-side} l${-side} ${side}`));
  pen.globalAlpha = 1;
}

function drawLines(pen, stage, moment, view, show, colours, colour) {
  const crowd = moment.tasks.map(() => 0);
  for (const agent of moment.agents) if (agent.there && agent.task >= 0) crowd[agent.task] += 1;
  const chosen = show.selected;
  moment.tasks.forEach((task, k) => {
    const target = task.target >= 0 ? moment.agents[task.target] : null;
    const mine = chosen && (chosen.kind === "agent" ? chosen.index === task.target : chosen.index === k);
    if (mine && task.there && target && target.there) {
      pen.globalAlpha = 0.5;
      strokeWay(pen, stage, view, task.at, target.at, task.look.colour || colours.quiet, 1);
    }
  });
  moment.agents.forEach((agent, k) => {
    const task = agent.task >= 0 ? moment.tasks[agent.task] : null;
    if (!agent.there || !task || !task.there) return;
    const mine = chosen && (chosen.kind === "agent" ? chosen.index === k : chosen.index === agent.task);
    pen.globalAlpha = mine ? 0.85 : (chosen ? 0.18 : 0.85) * agent.fresh;
    if (!pen.globalAlpha) return;
    // Thicker where several agents have the same task.
    strokeWay(pen, stage, view, agent.at, task.at, colour(agent, k), mine ? 3 : agent.fading ? 1 : 1.4 + Math.min(crowd[agent.task] / 6, 1.2));
  });
  pen.globalAlpha = 1;
}

function strokeWay(pen, stage, view, a, b, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  const [, , wide, high] = view.box;
  const shift = stage.wraps ? [wide * Math.round((a[0] - b[0]) / wide), high * Math.round((a[1] - b[1]) / high)] : [0, 0];
  pen.beginPath();
  pen.moveTo(...a);
  pen.lineTo(b[0] + shift[0], b[1] + shift[1]);
  if (shift[0] || shift[1]) {
    // The other half of a line that wraps.
    pen.moveTo(a[0] - shift[0], a[1] - shift[1]);
    pen.lineTo(...b);
  }
  pen.stroke();
}

function drawHalo(pen, [x, y], r, colour) {
  pen.fillStyle = colour;
  const before = pen.globalAlpha;
  pen.globalAlpha = before * 0.5;
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  pen.fill();
  pen.globalAlpha = before;
}

function drawHealth(pen, thing, r, colours) {
  const [x, y] = thing.at;
  const wide = Math.max(2 * r, 12);
  const high = Math.max(2.5, 0.28 * r);
  const top = y - 1.35 * r - high - 1;
  pen.fillStyle = colours.line;
  pen.fillRect(x - wide / 2, top, wide, high);
  pen.fillStyle = thing.health > 0.6 ? colours.good : thing.health > 0.3 ? colours.fair : colours.poor;
  pen.fillRect(x - wide / 2, top, wide * Math.max(0, thing.health), high);
}

/** The number of agents in one place. */
function drawCount(pen, thing, colours) {
  const [x, y] = [thing.at[0] + 0.9 * thing.r, thing.at[1] - 0.9 * thing.r];
  pen.fillStyle = colours.ink;
  pen.beginPath();
  pen.arc(x, y, 8, 0, 2 * Math.PI);
  pen.fill();
  write(pen, thing.stack.of, [x, y + 0.5], { font: "700 11px", colour: colours.ground, baseline: "middle" });
}

/** Over-assigned: a ring, and for tasks the load as a multiple of the capacity. */
function drawCrowd(pen, thing, r, kind, colours) {
  const [x, y] = thing.at;
  pen.strokeStyle = colours.over;
  pen.lineWidth = kind === "task" ? Math.max(2, 0.2 * r) : 1.2;
  pen.beginPath();
  pen.arc(x, y, 1.55 * r + 1, 0, 2 * Math.PI);
  pen.stroke();
  if (kind !== "task" || r < 5) return;
  const text = `${thing.load < 9.95 ? Number(thing.load.toFixed(1)) : Math.round(thing.load)}×`;
  const font = `600 ${Math.max(10, Math.min(14, r))}px`;
  write(pen, text, [x + 1.7 * r + 2, y], { font, colour: colours.over, edge: colours.ground, align: "left", baseline: "middle" });
}

function drawShots(pen, moment, colours) {
  const all = [...moment.agents, ...moment.tasks];
  for (const shot of moment.shots) {
    const from = all[shot.from];
    const to = all[shot.to];
    const age = moment.into - shot.when;
    if (!from || !to || (!shot.rests && (age < 0 || age > 0.35))) continue;
    pen.globalAlpha = shot.rests ? 0.35 : 1 - age / 0.4;
    pen.strokeStyle = colours.shot;
    pen.lineWidth = shot.rests ? 1.2 : 2;
    pen.beginPath();
    pen.moveTo(...from.at);
    pen.lineTo(...to.at);
    pen.stroke();
    pen.fillStyle = colours.shot;
    pen.beginPath();
    pen.arc(...to.at, 0.4 * to.r, 0, 2 * Math.PI);
    pen.fill();
    pen.globalAlpha = 1;
  }
}

function drawNames(pen, stage, moment, colours) {
  for (const [things, names] of [[moment.tasks, stage.task_names], [moment.agents, stage.agent_names]]) {
    things.forEach((thing, k) => {
      const place = [thing.at[0], thing.at[1] + 1.1 * thing.r + 1];
      if (thing.there) write(pen, names[k] ?? k, place, { font: "600 11px", colour: colours.ink, edge: colours.ground });
    });
  }
}
