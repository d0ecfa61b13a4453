// The part of the stage shown at a time: all of it if it has bounds, otherwise the camera follows the living.

const SEEN = 3; // steps before and after a moment whose places are shown in it
const SMOOTH = 6; // steps before and after over which the camera moves evenly
const MARGIN = 0.09; // round what is shown, as a share of the picture

/** A function from time to bounds [left, top, right, bottom] of the shape `share` (height by width). */
export function cameraOf(film, stage, share) {
  if (!stage.follows) return () => stage.bounds;
  const least = (stage.bounds[2] - stage.bounds[0]) / 5;
  const boxes = Array.from({ length: film.last + 1 }, (_, row) => boxAt(film, row));
  const wide = boxes.map((_, row) => {
    const near = boxes.slice(Math.max(0, row - SEEN), row + SEEN + 1).filter(Boolean);
    return near.length ? union(near) : stage.bounds;
  });
  const smooth = wide.map((_, row) => {
    const near = wide.slice(Math.max(0, row - SMOOTH), row + SMOOTH + 1);
    return shaped([0, 1, 2, 3].map((side) => near.reduce((sum, box) => sum + box[side], 0) / near.length), share, least);
  });
  return (time) => {
    const row = Math.min(Math.floor(time), film.last);
    const next = smooth[Math.min(row + 1, film.last)];
    return smooth[row].map((side, k) => side + (next[k] - side) * (time - row));
  };
}

function boxAt(film, row) {
  const places = [];
  for (const [name, place] of [["agent", film.agent], ["task", film.task]]) {
    const alive = film.fields[`${name}_alive`];
    for (let k = 0; k < alive.columns; k++) if (alive.at(row, k)) places.push(place(row, k));
  }
  return places.length ? union(places.map(([x, y]) => [x, y, x, y])) : null;
}

function union(boxes) {
  const side = (k, pick) => boxes.reduce((best, box) => pick(best, box[k]), boxes[0][k]);
  return [side(0, Math.min), side(1, Math.min), side(2, Math.max), side(3, Math.max)];
}

/** The box with a margin, no narrower than `least`, made wider or higher to be of the shape. */
function shaped([left, top, right, bottom], share, least) {
  const wide = Math.max((right - left) * (1 + 2 * MARGIN), ((bottom - top) * (1 + 2 * MARGIN)) / share, least);
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  return [x - wide / 2, y - (wide * share) / 2, x + wide / 2, y + (wide * share) / 2];
}
