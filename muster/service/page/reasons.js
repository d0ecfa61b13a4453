// An explained decision (the service's `explain`) as lists: what an agent could do, who could do a task.
import { heat } from "./viewer/colours.js";
import { digits, make } from "./viewer/dom.js";

export const METHODS = [
  { value: "amax", text: "AMAX", title: "Each agent its best task; capacities are not looked at" },
  { value: "lp", text: "LP", title: "The best within capacities" },
  { value: "quad", text: "QUAD", title: "With what pairs of tasks are worth" },
  { value: "routes", text: "Routes", title: "Routes through all tasks" },
];

/** Scores of a row or a column as shares, 0 to 1 of those that are there; null for what cannot be. */
export function shares(scores) {
  const there = scores.filter((score) => score !== null);
  const low = Math.min(...there);
  const high = Math.max(...there);
  return scores.map((score) => (score === null ? null : high > low ? (score - low) / (high - low) : 1));
}

/** The scores of an agent over tasks, or of a task over agents. */
export function scoresOf(answer, thing) {
  if (thing.kind === "agent") return answer.scores[thing.index];
  return answer.scores.map((row) => row[thing.index]);
}

const MOST_ROWS = 40;

/** What a place costs. Where everyone must be assigned and places are short, all prices share what being left out costs. */
export function priceOf(answer, task) {
  if (!answer.assign_all) return answer.prices[task];
  return answer.prices[task] - Math.min(...answer.prices.filter((_, k) => answer.task_alive[k]));
}

/** What an agent could do: the tasks by score, with prices and what each would cost in all. */
export function agentList(answer, agent, nameTask, nameAgent) {
  const scores = answer.scores[agent];
  const has = answer.assignment[agent];
  const scale = shares(scores);
  const order = scores.map((score, task) => [score, task]).filter(([score]) => score !== null).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const known = new Map((answer.alternatives || []).map((each) => [each.task, each]));
  const runnerUp = order.map(([, task]) => task).find((task) => task !== has);
  const rows = order.map(([score, task]) =>
    heatRow({
      share: scale[task], value: digits(score, 4), name: nameTask(task), chosen: task === has,
      note: [
        task === has ? "assigned" : task === runnerUp ? "runner-up" : "",
        priceOf(answer, task) > 1e-9 ? `price ${digits(priceOf(answer, task), 3)}` : "",
        loadText(answer, task),
      ].filter(Boolean).join(" · "),
      why: task === has ? "" : whyNot(known.get(task), nameTask, nameAgent),
      test: `task-${task}`,
    }),
  );
  const idle = known.get(null);
  if (idle) rows.push(heatRow({ share: null, value: "", name: "nothing to do", note: "", why: whyNot(idle, nameTask, nameAgent), test: "idle" }));
  return heatList(rows);
}

function heatList(rows) {
  const left = rows.length - MOST_ROWS;
  const more = left > 0 ? make("li", { class: "about", text: `and ${left} more with lower scores` }) : null;
  return make("ol", { class: "heat" }, ...rows.slice(0, MOST_ROWS), more);
}

/** Who could do a task, who does, and how much of its capacity is used. */
export function taskList(answer, task, nameAgent) {
  const scores = answer.scores.map((row) => row[task]);
  const scale = shares(scores);
  const order = scores.map((score, agent) => [score, agent]).filter(([score]) => score !== null).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const rows = order.map(([score, agent]) =>
    heatRow({
      share: scale[agent], value: digits(score, 4), name: nameAgent(agent), chosen: answer.assignment[agent] === task,
      note: [
        answer.assignment[agent] === task ? "does it" : "",
        answer.contributions ? `gives ${digits(answer.contributions[agent][task], 3)}` : "",
      ].filter(Boolean).join(" · "),
      why: "", test: `agent-${agent}`,
    }),
  );
  return heatList(rows);
}

/** How full a task is, as a bar and in words. */
export function capacityBar(answer, task) {
  const [load, room] = [answer.loads[task], answer.capacities[task]];
  const bar = make("i", {});
  bar.style.width = `${room ? Math.min(100, (100 * load) / room) : 0}%`;
  if (room !== null && load > room * 1.000001) bar.className = "over";
  const text = `${digits(load, 3)} of ${room === null ? "any number" : digits(room, 3)} used`;
  return make("div", { class: "capacity" }, make("span", { class: "track" }, bar), make("span", { text }));
}

/** Why an alternative was not taken: what it would cost, and who would have to move. */
export function whyNot(other, nameTask, nameAgent) {
  if (!other) return "";
  if (other.loss === null) return "cannot be compared";
  const moves = other.moves.slice(0, 3).map(([agent, from, to]) => `${nameAgent(agent)} ${place(from, nameTask)} → ${place(to, nameTask)}`);
  const more = other.moves.length > 3 ? ` and ${other.moves.length - 3} more` : "";
  const who = moves.length ? `; ${moves.join(", ")}${more}` : "";
  if (Math.abs(other.loss) < 1e-9) return `just as good in all${who}`;
  if (other.loss < 0) return `${digits(-other.loss, 3)} better in all, which this procedure did not find${who}`;
  return `costs ${digits(other.loss, 3)} in all${who}`;
}

function place(task, nameTask) {
  return task === null ? "nothing" : nameTask(task);
}

function loadText(answer, task) {
  const room = answer.capacities[task];
  if (room === null) return "";
  return room === 1 && answer.loads[task] <= 1 ? (answer.loads[task] ? "taken" : "free") : `${digits(answer.loads[task], 3)} of ${digits(room, 3)}`;
}

function heatRow({ share, value, name, note, why, chosen, test }) {
  const bar = make("i", { class: "bar" });
  if (share !== null) {
    bar.style.width = `${4 + 96 * share}%`;
    bar.style.background = heat(share);
  }
  return make(
    "li",
    { class: chosen ? "chosen" : "", "data-test": test },
    make("div", { class: "row" }, make("strong", { text: name }), make("span", { class: "note", text: note }), make("span", { class: "value", text: value })),
    share === null ? null : make("div", { class: "track" }, bar),
    why ? make("div", { class: "why", text: why }) : null,
  );
}

/** Who has another task under this procedure than was played. */
export function changes(answer, nameAgent, nameTask) {
  const moved = answer.assignment.flatMap((task, agent) => (task !== answer.played[agent] ? [[agent, answer.played[agent], task]] : []));
  if (!moved.length) return make("p", { class: "changes", text: `${answer.method.toUpperCase()} decides just what was played.` });
  const some = moved.slice(0, 6).map(([agent, from, to]) => `${nameAgent(agent)}: ${place(from, nameTask)} → ${place(to, nameTask)}`);
  const more = moved.length > 6 ? `, and ${moved.length - 6} more` : "";
  return make("p", { class: "changes", text: `${answer.method.toUpperCase()} differs from what was played for ${moved.length}: ${some.join(", ")}${more}.` });
}
