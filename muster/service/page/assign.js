// Assign: a table of scores in, the plan with prices and reasons out.
import { heat } from "./viewer/colours.js";
import { digits, fill, make } from "./viewer/dom.js";
import { ask, download } from "./api.js";
import { readScores, writeCsv } from "./csv.js";
import { alertLine, field, switcher } from "./forms.js";
import { agentList, capacityBar, METHODS, shares, taskList } from "./reasons.js";

const EXAMPLE = `,north,east,south
Ada,7.5,4.1,3.0
Ben,7.1,5.2,
Cem,6.8,2.9,2.2
capacity,1,1,2
`;
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
    this.file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", hidden: true });
    this.file.addEventListener("change", () => this.take(this.file.files[0]));
    this.methods = make("div");
    this.result = make("div", { class: "result" });
    this.panel = make("aside", { class: "panel", "aria-live": "polite" });
    const open = make("button", { type: "button", text: "Open a file", onclick: () => this.file.click() });
    this.drop = make("div", { class: "drop" }, this.text, make("div", { class: "bar" }, open, this.file, this.methods,
      make("label", { class: "tick", title: "Everyone who fits somewhere gets a task, however bad" }, this.assignAll, "nobody idle")));
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
    this.element = make("div", {},
      make("p", { class: "about", text: "Scores as a table: a row for each agent, a column for each task, more is better. An empty cell forbids a pair; a row named “capacity” says how many a task takes." }),
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
    fill(this.methods, switcher(METHODS.filter((each) => ["amax", "lp"].includes(each.value)), this.method, (value) => {
      this.method = value;
      this.solve();
    }));
    try {
      const table = readScores(this.text.value);
      const wanted = { scores: table.scores, method: this.method, assign_all: this.assignAll.checked };
      if (table.capacities) wanted.capacities = table.capacities;
      const answer = await ask("solve", wanted);
      this.show(table, wanted, answer);
      this.alert.say("");
    } catch (error) {
      this.alert.say(error.message);
      fill(this.result);
      fill(this.panel);
    }
  }

  show(table, wanted, answer) {
    const idle = answer.assignment.filter((task) => task === null).length;
    const bound = answer.bound === null ? "" : answer.bound - answer.objective <= 1e-9 * Math.max(1, Math.abs(answer.bound)) ? ", proven best" : `, at most ${digits(answer.bound)} is possible`;
    const words = `Worth ${digits(answer.objective)}${bound}${idle ? `; ${idle} without a task` : ""}.`;
    const button = (text, onclick) => make("button", { type: "button", text, onclick });
    fill(this.result, make("p", { class: "verdict", text: words }),
      make("div", { class: "buttons" }, button("Download CSV", () => download("plan.csv", writeCsv(planRows(table, answer)), "text/csv")),
        button("Download JSON", () => download("plan.json", JSON.stringify({ agents: table.agents, tasks: table.tasks, ...answer }, null, 1), "application/json"))),
      this.table(table, wanted, answer));
    fill(this.panel, make("h2", { text: "Why" }), make("p", { class: "about", text: "Click an agent or a task in the table." }));
  }

  table(table, wanted, answer) {
    const scale = shares(table.scores.flat());
    const pick = (thing) => this.explain(table, wanted, thing);
    const head = table.tasks.slice(0, MOST_SHOWN).map((name, k) => make("th", {}, make("button", { type: "button", class: "plain", text: name, onclick: () => pick({ kind: "task", index: k }) })));
    const rows = table.agents.slice(0, MOST_SHOWN).map((name, i) =>
      make("tr", {}, make("th", {}, make("button", { type: "button", class: "plain", text: name, onclick: () => pick({ kind: "agent", index: i }) })),
        ...table.scores[i].slice(0, MOST_SHOWN).map((value, j) => {
          const cell = make("td", { text: value === null ? "·" : digits(value), class: answer.assignment[i] === j ? "chosen" : "" });
          const share = scale[i * table.tasks.length + j];
          if (share !== null) cell.style.setProperty("--heat", heat(share));
          return cell;
        }),
        make("td", { class: "plan", text: answer.assignment[i] === null ? `– ${answer.unassigned[i] || ""}` : table.tasks[answer.assignment[i]] })));
    const foot = (label, values) => make("tr", { class: "foot" }, make("th", { text: label }), ...values.slice(0, MOST_SHOWN).map((value) => make("td", { text: value })), make("td"));
    const capacity = table.capacities || table.tasks.map(() => 1);
    const left = Math.max(0, table.agents.length - MOST_SHOWN, table.tasks.length - MOST_SHOWN);
    return make("div", { class: "scroll" }, make("table", { class: "scores" }, make("thead", {}, make("tr", {}, make("td"), ...head, make("th", { text: "plan" }))),
      make("tbody", {}, ...rows, foot("used", answer.loads.map((load, j) => `${digits(load, 3)} of ${capacity[j] === null ? "∞" : digits(capacity[j], 3)}`)), foot("price", answer.prices.map((price) => digits(price, 3))))),
    left ? make("p", { class: "about", text: `The table shows ${MOST_SHOWN} rows and columns; what is downloaded has all.` }) : null);
  }

  async explain(table, wanted, thing) {
    try {
      const answer = await ask("watch/explain", { ...wanted, ...(thing.kind === "agent" ? { agent: thing.index } : {}) });
      const nameAgent = (k) => table.agents[k];
      const nameTask = (k) => table.tasks[k];
      const price = answer.prices[thing.index];
      fill(this.panel, make("h2", { text: thing.kind === "agent" ? nameAgent(thing.index) : nameTask(thing.index) }),
        ...(thing.kind === "agent"
          ? [agentList(answer, thing.index, nameTask, nameAgent)]
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
