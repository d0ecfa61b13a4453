// A table of scores from text: commas, semicolons or tabs; names or none; an empty cell forbids a pair.

const MOST = 250000; // cells

/** {agents, tasks, scores, capacities} of a text; an Error with one sentence if it is not a table of scores. */
export function readScores(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).filter((line) => line.trim());
  if (!lines.length) throw new Error("a table of scores has a row for each agent and a column for each task; this is empty");
  const separator = ["\t", ";", ","].find((letter) => lines[0].includes(letter)) || ",";
  const rows = lines.map((line) => cells(line, separator));
  if (rows.length * rows[0].length > MOST) throw new Error(`a table has at most ${MOST} cells here; solve larger ones with muster solve`);
  rows.forEach((row, k) => {
    if (row.length !== rows[0].length) throw new Error(`row ${k + 1} has ${row.length} cells, but the first has ${rows[0].length}`);
  });
  const number = (cell) => toNumber(cell, separator);
  const header = rows[0].slice(1).some((cell) => cell.trim() && number(cell) === undefined) || (rows[0].length > 1 && number(rows[0][0]) === undefined && rows[0].slice(1).every((cell) => number(cell) === undefined));
  const body = header ? rows.slice(1) : rows;
  const named = body.some((row) => row[0].trim() && number(row[0]) === undefined) || (header && !rows[0][0].trim());
  const from = named ? 1 : 0;
  const width = rows[0].length - from;
  if (!body.length || width < 1) throw new Error("a table of scores needs at least one agent (row) and one task (column) beside the names");
  const tasks = Array.from({ length: width }, (_, k) => (header && rows[0][from + k].trim()) || `task ${k}`);
  const table = { agents: [], tasks, scores: [], capacities: null };
  body.forEach((row, k) => {
    const name = named ? row[0].trim() || `agent ${table.agents.length}` : `agent ${table.agents.length}`;
    const values = row.slice(from).map((cell, column) => score(cell, number, k + (header ? 2 : 1), tasks[column]));
    if (named && /^capacit(y|ies)$/i.test(name)) table.capacities = capacities(values, tasks);
    else {
      table.agents.push(name);
      table.scores.push(values);
    }
  });
  if (!table.agents.length) throw new Error("a table of scores needs at least one agent beside the capacities");
  return table;
}

function score(cell, number, line, task) {
  const text = cell.trim();
  if (!text || text === "-" || text === "–") return null;
  const value = number(cell);
  if (value === undefined) throw new Error(`line ${line}, ${task}: a score is a number or empty (forbidden), got "${text.slice(0, 40)}"`);
  return value;
}

function capacities(values, tasks) {
  values.forEach((value, k) => {
    if (value !== null && value < 0) throw new Error(`the capacity of ${tasks[k]} must not be negative, got ${value}`);
  });
  return values; // null: unlimited
}

function toNumber(cell, separator) {
  let text = cell.trim();
  // Where commas do not separate cells they may be decimal commas.
  if (separator !== ",") text = text.replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** The cells of a line; quotes keep separators, and two quotes are one. */
function cells(line, separator) {
  const row = [];
  let cell = "";
  let quoted = false;
  for (let k = 0; k < line.length; k++) {
    const letter = line[k];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (line[k + 1] === '"') cell += line[++k];
      else quoted = false;
    } else if (letter === '"' && !cell.trim()) [cell, quoted] = ["", true];
    else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else cell += letter;
  }
  return [...row, cell];
}

/** A table as text; formulas of a spreadsheet are escaped. */
export function writeCsv(rows) {
  const safe = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return rows.map((row) => row.map(safe).join(",")).join("\n") + "\n";
}
