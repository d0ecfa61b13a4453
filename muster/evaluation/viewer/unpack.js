// Unpacks the films of muster/evaluation/packing.py into arrays.

export const HUNDREDTHS = 100; // health, loads and angles are counted in these
const STEPS_ACROSS = 4096; // places are counted in this fraction of the longer side

/** A film's fields as {rows, columns, at(row, column)}, its places in the unit of the stage. */
export async function unpack(film, stage) {
  const numbers = varints(await inflate(film.data));
  const fields = {};
  let begin = 0;
  for (const [name, rows, columns] of film.fields) {
    const values = new Int32Array(rows * columns);
    for (let k = 0; k < values.length; k++) {
      values[k] = numbers[begin + k] + (k >= columns ? values[k - columns] : 0);
    }
    begin += values.length;
    fields[name] = { rows, columns, values, at: (row, column) => values[row * columns + column] };
  }
  const [left, top, right, bottom] = stage.bounds;
  const step = Math.max(right - left, bottom - top) / STEPS_ACROSS;
  const place = (name) => (row, k) => {
    const { values, columns } = fields[name];
    return [left + step * values[row * columns + 2 * k], top + step * values[row * columns + 2 * k + 1]];
  };
  return {
    ...film,
    fields,
    last: fields.agents.rows - 1,
    agent: place("agents"),
    task: place("tasks"),
    end: fields.task_ends && place("task_ends"),
    shots: shotsByRow(fields),
  };
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function varints(bytes) {
  const numbers = [];
  for (let k = 0; k < bytes.length; ) {
    let value = 0;
    // Products, not shifts: those end at 32 bits.
    for (let unit = 1; ; unit *= 128) {
      value += (bytes[k] & 127) * unit;
      if (bytes[k++] < 128) break;
    }
    numbers.push(value % 2 ? -(value + 1) / 2 : value / 2);
  }
  return numbers;
}

function shotsByRow(fields) {
  if (!fields.shots) return [];
  const all = fields.shots.values;
  let next = 0;
  return Array.from({ length: fields.shot_counts.rows }, (_, row) =>
    Array.from({ length: fields.shot_counts.at(row, 0) }, () => {
      const [from, to, when] = all.subarray(next, (next += 3));
      return { from, to, when: when / HUNDREDTHS };
    }),
  );
}
