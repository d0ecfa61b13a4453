// Play: a situation of one's own. Drag, add, remove, change capacities; the policy assigns again at once.
import { digits, fill, make } from "./viewer/dom.js";
import { ask, download, latest } from "./api.js";
import { Board } from "./board.js";
import { alertLine, failure, field, firstPolicy, policySelect, switcher } from "./forms.js";
import { agentList, capacityBar, capital, methodChoice, scoresOf, sentence, shares, taskList } from "./reasons.js";
import { readSituation, toLink, toText } from "./situation.js";

const TOOLS = [
  { value: "move", text: "Move", title: "Drag agents and tasks; click one to see its scores" },
  { value: "agent", text: "+ Agent", title: "Click where an agent should be" },
  { value: "task", text: "+ Task", title: "Click where a task should be" },
  { value: "remove", text: "Remove", title: "Click an agent or a task to remove it" },
];

export async function playView(options, remember) {
  const { environments } = await ask("watch/environments");
  const view = new Play(environments.filter((environment) => environment.arranges), remember);
  await view.begin(options);
  return view;
}

class Play {
  constructor(environments, remember) {
    [this.environments, this.remember] = [environments, remember];
    [this.tool, this.method, this.selected, this.answer] = ["move", null, null, null];
    this.alert = alertLine();
    this.tools = make("div", {});
    this.panel = make("aside", { class: "panel", "aria-live": "polite" });
    this.status = make("p", { class: "status-line" });
    this.stateOf = make("div", {});
    this.board = new Board({ onMove: () => this.changed(), onPick: (thing, place) => this.click(thing, place) });
    this.env = make("select", {});
    for (const environment of environments) {
      const group = make("optgroup", { label: environment.title });
      for (const text of environment.examples) group.append(make("option", { value: text, text }));
      this.env.append(group);
    }
    this.env.addEventListener("change", () => this.anew(this.env.value));
    this.policies = make("span");
    const button = (text, title, onclick) => make("button", { type: "button", text, title, onclick });
    this.file = make("input", { type: "file", accept: ".json,application/json", hidden: true });
    this.file.addEventListener("change", async () => {
      if (this.file.files[0]) this.open(await this.file.files[0].text());
      this.file.value = "";
    });
    const bar = make("div", { class: "bar" }, field("Start from", this.env), field("Policy", this.policies, { class: "field wide" }),
      make("div", { class: "field" }, make("span", { text: "Share" }), make("div", { class: "buttons" },
        button("Link", "Copy a link to this situation", () => this.copyLink()),
        button("Save", "Keep this situation as a JSON file", () => download("situation.json", toText(this.situation), "application/json")),
        button("Open", "Open a JSON file", () => this.file.click()), this.file,
        button("Copy /act", "Copy this situation as a request to the service's /act", () => this.copyAct()))));
    this.split = make("div", { class: "split" }, make("div", {}, make("div", { class: "screen" }, this.tools, this.board.element), this.status), this.panel);
    this.element = make("div", {}, make("h1", { text: "Play" }), make("p", { class: "about", text: "Drag an agent or a task, and the policy assigns again at once." }),
      bar, this.alert, this.stateOf, this.split);
    this.decide = latest(() => this.load());
    this.showTools();
    this.board.element.addEventListener("dragover", (event) => event.preventDefault());
    this.board.element.addEventListener("drop", async (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.open(await event.dataTransfer.files[0].text());
    });
  }

  async begin(options) {
    const shared = options.get("s");
    if (shared) {
      try {
        return await this.take(readSituation(decodeURIComponent(escape(atob(shared.replace(/-/g, "+").replace(/_/g, "/"))))));
      } catch (error) {
        this.alert.say(`the link holds no situation (${error.message}); this is another one`);
      }
    }
    await this.anew(options.get("env") || "rescue:5x10", Number(options.get("seed") || 0), options.get("policy") || "");
  }

  /** Begin with the start of an episode. */
  async anew(env, seed = 0, policy = "") {
    try {
      const { stage, ...start } = await ask("watch/begin", { env, seed });
      await this.take({ env: start.env, policy, agents: start.agents, tasks: start.tasks, capacities: start.capacities }, stage);
      if (policy && this.policy.value !== policy) this.alert.say(`The link names the policy ${policy}, which does not exist; shown is ${this.policy.value}.`);
    } catch (error) {
      fill(this.stateOf, failure(error, () => this.anew(env, seed, policy)));
      this.split.hidden = true;
    }
  }

  /** Show a situation and let the policy assign in it. */
  async take(situation, stage) {
    fill(this.stateOf);
    this.split.hidden = false;
    this.situation = situation;
    this.stage = stage || (await ask("watch/begin", { env: situation.env, seed: 0 })).stage;
    const environment = this.environments.find((each) => situation.env === each.kind || situation.env.startsWith(each.kind + ":") || situation.env.startsWith(each.kind + ","));
    const known = environment || this.environments[0];
    this.policy = policySelect(known, situation.policy || firstPolicy(known, situation.env), null, firstPolicy(known, situation.env));
    this.policy.addEventListener("change", () => {
      this.method = null;
      this.changed();
    });
    fill(this.policies, this.policy);
    if ([...this.env.options].some((option) => option.value === situation.env)) this.env.value = situation.env;
    this.selected = null;
    this.board.show(this.situation, this.stage);
    this.changed();
  }

  open(text) {
    try {
      this.take(readSituation(text)).catch((error) => this.alert.say(error.message));
    } catch (error) {
      this.alert.say(error.message);
    }
  }

  showTools() {
    fill(this.tools, switcher(TOOLS, this.tool, (value) => {
      this.tool = value;
      this.board.dragging = value === "move";
      this.showTools();
    }));
    this.tools.className = "tools";
  }

  click(thing, place) {
    const { agents, tasks, capacities } = this.situation;
    if (this.tool === "agent") agents.push(place);
    else if (this.tool === "task") {
      tasks.push(place);
      capacities.push(capacities.length ? capacities[capacities.length - 1] : 1);
    } else if (this.tool === "remove") {
      if (!thing) return;
      const list = thing.kind === "agent" ? agents : tasks;
      if (list.length === 1) return this.alert.say(`a situation needs at least one ${thing.kind}`);
      list.splice(thing.index, 1);
      if (thing.kind === "task") capacities.splice(thing.index, 1);
      this.selected = null;
    } else this.selected = thing;
    this.alert.say("");
    this.changed();
  }

  changed() {
    this.situation.policy = this.policy.value;
    this.board.selected = this.selected;
    this.board.draw();
    this.decide();
  }

  async load() {
    const { env, policy, agents, tasks, capacities } = this.situation;
    const request = { env, policy, agents, tasks, capacities };
    if (this.method) request.method = this.method;
    if (this.selected && this.selected.kind === "agent") request.agent = this.selected.index;
    const began = performance.now();
    try {
      const answer = await ask("watch/situation", request);
      this.answer = answer;
      this.alert.say("");
      this.board.answer(answer, this.selected && this.scoresNow(answer));
      const idle = answer.assignment.filter((task) => task === null).length;
      this.status.textContent = `${agents.length} agents, ${tasks.length} tasks, ${idle ? `${idle} without a task, ` : ""}answered in ${Math.round(performance.now() - began)} ms`;
      this.showPanel(answer);
      this.remember("play", { s: toLink(this.situation) });
    } catch (error) {
      this.alert.say(error.message);
      this.board.answer(null);
    }
  }

  scoresNow(answer) {
    return shares(scoresOf(answer, this.selected));
  }

  showPanel(answer) {
    const choose = (value) => {
      this.method = value;
      this.decide();
    };
    const nameAgent = (index) => `agent ${index}`;
    const nameTask = (index) => `task ${index}`;
    const { selected } = this;
    const rule = answer.played.some((task, agent) => task !== answer.assignment[agent]);
    const body = !selected
      ? [make("p", { class: "about", text: "Click an agent or a task to see its scores; drag it to see them change." })]
      : selected.kind === "agent"
        ? [make("p", { class: "sentence", text: sentence(answer, selected.index, nameTask, nameAgent) }), agentList(answer, selected.index, nameTask, nameAgent)]
        : [this.capacityInput(selected.index), capacityBar(answer, selected.index), taskList(answer, selected.index, nameAgent)];
    const title = selected ? `${selected.kind} ${selected.index}` : "The decision";
    fill(this.panel, make("h2", { text: title }), methodChoice(answer.method, answer.own_method, choose),
      make("p", { class: "about", text: `${capital(answer.source)}. Objective ${digits(answer.objective)}, ${answer.status.replaceAll("_", " ")}.` }),
      rule ? make("p", { class: "changes", text: `${this.situation.policy} itself decides otherwise for some agents; this is ${answer.method.toUpperCase()} on these scores.` }) : null,
      ...body);
  }

  capacityInput(task) {
    const input = make("input", { type: "number", min: 0, step: "any", value: this.situation.capacities[task], "aria-label": "Capacity" });
    input.addEventListener("change", () => {
      const value = Number(input.value);
      if (!(value >= 0) || input.value === "") return this.alert.say(`a capacity is a number from 0, got ${input.value || "nothing"}`);
      this.situation.capacities[task] = value;
      this.changed();
    });
    return field("Capacity", input, { class: "field inline" });
  }

  async copyLink() {
    await this.copy(`${location.origin}${location.pathname}#play?s=${encodeURIComponent(toLink(this.situation))}`, "the link");
  }

  async copyAct() {
    if (!this.answer || !this.answer.act) return this.alert.say("/act is for the learned policies that are served; choose one");
    await this.copy(JSON.stringify(this.answer.act, null, 1), "the request");
  }

  async copy(text, name) {
    try {
      await navigator.clipboard.writeText(text);
      this.status.textContent = `${name} is in the clipboard`;
    } catch {
      prompt(`Copy ${name}:`, text);
    }
  }
}
