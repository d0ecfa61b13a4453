// An explained decision (the service's `explain`) as lists: the tasks of an agent, the agents of a task.
import { heat } from "./viewer/colours.js";
import { digits, make } from "./viewer/dom.js";
import { switcher } from "./forms.js";

export const METHODS = [
  { value: "amax", text: "AMAX", title: "Each agent takes its best task by itself; several may take the same." },
  { value: "lp", text: "LP", title: "The best sum of scores with no task beyond its capacity." },
  { value: "quad", text: "QUAD", title: "As LP, plus a score for each pair of tasks that are chosen together." },
  { value: "routes", text: "Routes", title: "Every agent gets a route through tasks, not just the next one." },
];

/** A choice of inference methods, the policy's own with a dot, and a line on the chosen one. */
export function methodChoice(method, own, onChange) {
  const options = METHODS.map((each) => ({ ...each, text: each.value === own ? `${each.text} •` : each.text }));
  const chosen = METHODS.find((each) => each.value === method);
  return make("div", {}, switcher(options, method, onChange), chosen ? make("p", { class: "method", text: `${chosen.text}: ${chosen.title}` }) : null);
}

/** Scores of a row or a column scaled to 0 to 1; null for forbidden pairs. */
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

/** Price of a task's capacity; with assign_all, less the least price, which is the price of being left out. */
function priceOf(answer, task) {
  if (!answer.assign_all) return answer.prices[task];
  return answer.prices[task] - Math.min(...answer.prices.filter((_, k) => answer.task_alive[k]));
}

/** Why an agent has its task, in a sentence or two. */
export function sentence(answer, agent, nameTask, nameAgent) {
  const has = answer.assignment[agent];
  const who = capital(nameAgent(agent));
  if (has === null) return `${who} has no task${answer.reasons[String(agent)] ? `: ${answer.reasons[String(agent)]}` : ""}.`;
  const best = byScore(answer.scores[agent])[0][1];
  const higher = answer.scores[agent][best] > answer.scores[agent][has];
  const [more, most] = answer.sign === -1 ? ["would cost less", "the task with its lowest cost"] : ["has a higher score", "the task with its highest score"];
  const first = higher
    ? `${who} gets ${nameTask(has)}. ${capital(nameTask(best))} ${more} for it, but the whole assignment is better this way.`
    : `${who} gets ${nameTask(has)}, ${most}.`;
  const next = (answer.alternatives || []).filter((each) => each.task !== null && each.loss !== null).sort((a, b) => a.loss - b.loss)[0];
  return next ? `${first} The next best is ${nameTask(next.task)}: it ${whyNot(next, nameTask, nameAgent)}.` : first;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** [score, index] of the allowed pairs, the highest first. */
function byScore(scores) {
  return scores.map((score, index) => [score, index]).filter(([score]) => score !== null).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
}

/** The tasks of an agent by score, with prices and the loss of the objective if it had each instead. */
export function agentList(answer, agent, nameTask, nameAgent) {
  const scores = answer.scores[agent];
  const has = answer.assignment[agent];
  const scale = shares(scores);
  const order = byScore(scores);
  const known = new Map((answer.alternatives || []).map((each) => [each.task, each]));
  const runnerUp = order.map(([, task]) => task).find((task) => task !== has);
  const rows = order.map(([score, task]) => ({
    share: scale[task], value: digits(score * (answer.sign || 1), 3), name: nameTask(task), chosen: task === has,
    note: [
      task === has ? "assigned" : task !== runnerUp ? "" : task === order[0][1] ? "highest score" : "runner-up",
      priceOf(answer, task) > 1e-9 ? `price ${digits(priceOf(answer, task), 3)}` : "",
      task === has && answer.capacities[task] === 1 ? "" : loadText(answer, task),
    ].filter(Boolean).join(" · "),
    why: task === has ? "" : whyNot(known.get(task), nameTask, nameAgent),
    test: `task-${task}`,
  }));
  const idle = known.get(null);
  if (idle) rows.push({ share: null, value: "", name: "no task", note: "", why: whyNot(idle, nameTask, nameAgent), test: "idle" });
  return heatList(rows);
}

/** Rows in which neighbours with the same score and words are one. */
function grouped(rows) {
  const groups = [];
  for (const row of rows) {
    const last = groups[groups.length - 1];
    if (last && !last.chosen && !row.chosen && last.value === row.value && last.why === row.why && last.same === row.note) {
      last.name = `${last.name}, ${row.name}`;
      last.many += 1;
      last.note = [row.note, `${last.many} with the same score`].filter(Boolean).join(" · ");
    } else groups.push({ ...row, same: row.note, many: 1 });
  }
  return groups;
}

function heatList(rows) {
  const all = grouped(rows);
  const left = all.slice(MOST_ROWS).reduce((sum, row) => sum + row.many, 0);
  const more = left > 0 ? make("li", { class: "about", text: `and ${left} more with lower scores` }) : null;
  return make("ol", { class: "heat" }, ...all.slice(0, MOST_ROWS).map(heatRow), more);
}

/** The agents that could do a task, by score, those assigned to it marked. */
export function taskList(answer, task, nameAgent) {
  const scores = answer.scores.map((row) => row[task]);
  const scale = shares(scores);
  const rows = byScore(scores).map(([score, agent]) => ({
    share: scale[agent], value: digits(score * (answer.sign || 1), 3), name: nameAgent(agent), chosen: answer.assignment[agent] === task,
    note: [
      answer.assignment[agent] === task ? "assigned" : "",
      answer.contributions ? `contributes ${digits(answer.contributions[agent][task], 3)}` : "",
    ].filter(Boolean).join(" · "),
    why: "", test: `agent-${agent}`,
  }));
  return heatList(rows);
}

/** How full a task is, as a bar and in words. */
export function capacityBar(answer, task) {
  const [load, capacity] = [answer.loads[task], answer.capacities[task]];
  const bar = make("i", {});
  bar.style.width = `${capacity ? Math.min(100, (100 * load) / capacity) : 0}%`;
  if (capacity !== null && load > capacity * 1.000001) bar.className = "over";
  const text = `${digits(load, 3)} of ${capacity === null ? "any number" : digits(capacity, 3)} used`;
  return make("div", { class: "capacity" }, make("span", { class: "track" }, bar), make("span", { text }));
}

/** The loss of an alternative and the agents that would change, as the end of a sentence: "would cost 0.2 in all …". */
function whyNot(other, nameTask, nameAgent) {
  if (!other) return "";
  if (other.loss === null) return "cannot be compared";
  const moves = other.moves.slice(0, 3).map(([agent, from, to]) => `${nameAgent(agent)} would get ${place(to, nameTask)} instead of ${place(from, nameTask)}`);
  const more = other.moves.length > 3 ? ` and ${other.moves.length - 3} more would change` : "";
  const who = moves.length ? `; ${moves.join(", ")}${more}` : "";
  if (Math.abs(other.loss) < 1e-9) return `would be just as good in all${who}`;
  if (other.loss < 0) return `would be ${digits(-other.loss, 3)} better in all, which this procedure did not find${who}`;
  return `would cost ${digits(other.loss, 3)} in all${who}`;
}

function place(task, nameTask) {
  return task === null ? "no task" : nameTask(task);
}

function loadText(answer, task) {
  const capacity = answer.capacities[task];
  if (capacity === null) return "";
  return capacity === 1 && answer.loads[task] <= 1 ? (answer.loads[task] ? "taken" : "free") : `${digits(answer.loads[task], 3)} of ${digits(capacity, 3)}`;
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

/** The agents that this method assigns otherwise than the policy did. */
export function changes(answer, nameAgent, nameTask) {
  const method = answer.method.toUpperCase();
  const moved = answer.assignment.flatMap((task, agent) => (task !== answer.played[agent] ? [[agent, answer.played[agent], task]] : []));
  if (!moved.length) return make("p", { class: "changes", text: answer.method === answer.own_method ? "This is the policy's decision." : `${method} decides the same.` });
  const some = moved.slice(0, 6).map(([agent, from, to]) => `${nameAgent(agent)} to ${place(to, nameTask)} instead of ${place(from, nameTask)}`);
  const more = moved.length > 6 ? `, and ${moved.length - 6} more` : "";
  return make("p", { class: "changes", text: `${method} assigns ${moved.length} of ${answer.assignment.length} agents otherwise: ${some.join(", ")}${more}.` });
}
