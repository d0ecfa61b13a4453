// Assign: a table of scores in, the plan with prices and reasons out.
import { heat } from "./viewer/colours.js";
import { digits, fill, make } from "./viewer/dom.js";
import { ask, download } from "./api.js";
import { readScores, writeCsv } from "./csv.js";
import { alertLine, field, switcher } from "./forms.js";
import { agentList, capacityBar, METHODS, sentence, shares, taskList } from "./reasons.js";

const EXAMPLE = `,north,east,south
Ada,7.5,4.1,3.0
Ben,7.1,5.2,
Cem,6.8,2.9,2.2
capacity,1,1,2
`;
const LEAST = "The least sum of costs with no task beyond its capacity.";
const MOST_SHOWN = 40; // rows and columns of the table that are drawn

export async function assignView() {
  return new Assign();
}

class Assign {
  constructor() {
    this.method = "lp";
    this.alert = alertLine();
    this.text = make("textarea", { rows: 9, spellcheck: "false", "aria-label": "Scores as CSV", placeholder: "Paste a table, or drop a file here" });
    this.text.value = EXAMPLE;
    this.text.addEventListener("input", () => this.later());
    this.assignAll = make("input", { type: "checkbox" });
    this.assignAll.addEventListener("change", () => this.solve());
    this.costs = make("input", { type: "checkbox" });
    this.costs.addEventListener("change", () => {
      // The cheapest plan assigns no agent: with costs, all are assigned unless this is switched off.
      this.assignAll.checked = this.costs.checked;
      this.solve();
    });
    this.file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", hidden: true });
    this.file.addEventListener("change", () => this.take(this.file.files[0]));
    this.methods = make("div");
    this.result = make("div", { class: "result" });
    this.panel = make("aside", { class: "panel", "aria-live": "polite" });
    const open = make("button", { type: "button", text: "Open a file", onclick: () => this.file.click() });
    this.drop = make("div", { class: "drop" }, this.text, make("div", { class: "bar" }, open, this.file, this.methods,
      make("label", { class: "tick", title: "The numbers are costs: the least sum is the best" }, this.costs, "costs: less is better"),
      make("label", { class: "tick", title: "Every agent that fits somewhere gets a task, however bad" }, this.assignAll, "every agent gets a task")));
    this.drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("over");
    });
    this.drop.addEventListener("dragleave", () => this.drop.classList.remove("over"));
    this.drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.drop.classList.remove("over");
      const file = event.dataTransfer.files[0];
      if (file) this.take(file);
      else this.put(event.dataTransfer.getData("text"));
    });
    this.element = make("div", {}, make("h1", { text: "Assign" }),
      make("p", { class: "about", text: "Scores or costs as a table: a row for each agent, a column for each task. An empty cell forbids a pair; a row named “capacity” says how many a task takes." }),
      this.alert, make("div", { class: "split" }, make("div", {}, this.drop, this.result), this.panel));
    this.solve();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.solve(), 350);
  }

  async take(file) {
    if (!file) return;
    if (file.size > 8e6) return this.alert.say(`a table has at most 8 MB here, got ${digits(file.size / 1e6, 3)} MB; use muster solve`);
    this.put(await file.text());
    this.file.value = "";
  }

  put(text) {
    this.text.value = text;
    this.solve();
  }

  async solve() {
    const offered = METHODS.filter((each) => ["amax", "lp"].includes(each.value));
    fill(this.methods, switcher(offered, this.method, (value) => {
      this.method = value;
      this.solve();
    }), make("span", { class: "method", text: this.costs.checked && this.method === "lp" ? LEAST : offered.find((each) => each.value === this.method).title }));
    try {
      const table = readScores(this.text.value);
      const request = { scores: table.scores, method: this.method, assign_all: this.assignAll.checked, sense: this.costs.checked ? "min" : "max" };
      if (table.capacities) request.capacities = table.capacities;
      const answer = await ask("solve", request);
      this.show(table, request, answer);
      this.alert.say("");
    } catch (error) {
      this.alert.say(error.message);
      fill(this.result);
      fill(this.panel);
    }
  }

  show(table, request, answer) {
    const idle = answer.assignment.filter((task) => task === null).length;
    const least = request.sense === "min";
    const proven = answer.bound !== null && Math.abs(answer.bound - answer.objective) <= 1e-9 * Math.max(1, Math.abs(answer.bound));
    const bound = proven ? ", proven best" : answer.bound === null ? "" : `, ${least ? "no less than" : "at most"} ${digits(answer.bound)} is possible`;
    const words = `${least ? "Costs" : "Worth"} ${digits(answer.objective)} in all${bound}${idle ? `; ${idle} without a task` : ""}.`;
    const button = (text, onclick) => make("button", { type: "button", text, onclick });
    fill(this.result, make("p", { class: "verdict", text: words }),
      make("div", { class: "buttons" }, button("Download CSV", () => download("plan.csv", writeCsv(planRows(table, answer)), "text/csv")),
        button("Download JSON", () => download("plan.json", JSON.stringify({ agents: table.agents, tasks: table.tasks, ...answer }, null, 1), "application/json"))),
      this.table(table, request, answer));
    fill(this.panel, make("h2", { text: "Why" }), make("p", { class: "about", text: "Click an agent or a task in the table." }));
  }

  table(table, request, answer) {
    // Better scores have a stronger colour.
    const scale = shares(table.scores.flat()).map((share) => (share === null || request.sense === "max" ? share : 1 - share));
    const pick = (thing) => this.explain(table, request, thing);
    const head = table.tasks.slice(0, MOST_SHOWN).map((name, k) => make("th", {}, make("button", { type: "button", class: "plain", text: name, onclick: () => pick({ kind: "task", index: k }) })));
    const rows = table.agents.slice(0, MOST_SHOWN).map((name, i) =>
      make("tr", {}, make("th", { class: "name" }, make("button", { type: "button", class: "plain", text: name, onclick: () => pick({ kind: "agent", index: i }) })),
        ...table.scores[i].slice(0, MOST_SHOWN).map((value, j) => {
          const cell = make("td", { text: value === null ? "·" : digits(value), class: answer.assignment[i] === j ? "chosen" : "" });
          const share = scale[i * table.tasks.length + j];
          if (share !== null) cell.style.setProperty("--heat", heat(share));
          return cell;
        }),
        make("td", { class: "plan", text: answer.assignment[i] === null ? `– ${answer.unassigned[i] || ""}` : table.tasks[answer.assignment[i]] })));
    const foot = (label, values) => make("tr", { class: "foot" }, make("th", { class: "name", text: label }), ...values.slice(0, MOST_SHOWN).map((value) => make("td", { text: value })), make("td"));
    const capacity = table.capacities || table.tasks.map(() => 1);
    const left = Math.max(0, table.agents.length - MOST_SHOWN, table.tasks.length - MOST_SHOWN);
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The table and the plan" }, make("table", { class: "scores" }, make("thead", {}, make("tr", {}, make("td", { class: "name" }), ...head, make("th", { class: "plan", text: "plan" }))),
      make("tbody", {}, ...rows, foot("used", answer.loads.map((load, j) => `${digits(load, 3)} of ${capacity[j] === null ? "∞" : digits(capacity[j], 3)}`)), foot("price", answer.prices.map((price) => digits(price, 3))))),
    left ? make("p", { class: "about", text: `The table shows ${MOST_SHOWN} rows and columns; downloads have all.` }) : null);
  }

  async explain(table, request, thing) {
    try {
      const { sense, ...rest } = request;
      const sign = sense === "min" ? -1 : 1;
      const scores = request.scores.map((row) => row.map((value) => (value === null ? null : sign * value)));
      const answer = await ask("watch/explain", { ...rest, scores, ...(thing.kind === "agent" ? { agent: thing.index } : {}) });
      answer.sign = sign;
      const nameAgent = (k) => table.agents[k];
      const nameTask = (k) => table.tasks[k];
      const price = answer.prices[thing.index];
      fill(this.panel, make("h2", { text: thing.kind === "agent" ? nameAgent(thing.index) : nameTask(thing.index) }),
        ...(thing.kind === "agent"
          ? [make("p", { class: "sentence", text: sentence(answer, thing.index, nameTask, nameAgent) }), agentList(answer, thing.index, nameTask, nameAgent)]
          : [capacityBar(answer, thing.index), price ? make("p", { class: "changes", text: `One more place here would be worth ${digits(price, 3)}.` }) : null, taskList(answer, thing.index, nameAgent)]));
    } catch (error) {
      this.alert.say(error.message);
    }
  }
}

function planRows(table, answer) {
  const rows = table.agents.map((name, i) => {
    const task = answer.assignment[i];
    return [name, task === null ? "" : table.tasks[task], task === null ? "" : table.scores[i][task], answer.unassigned[i] || ""];
  });
  return [["agent", "task", "score", "why none"], ...rows];
}
