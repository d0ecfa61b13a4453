// Understand: the scores and alternatives behind a decision, for the agent or task that was clicked.
import { fill, make } from "./viewer/dom.js";
import { nameOf } from "./viewer/player.js";
import { ask, latest } from "./api.js";
import { agentList, capacityBar, changes, methodChoice, scoresOf, sentence, shares, taskList } from "./reasons.js";

export class Understand {
  constructor(panel, packed) {
    [this.panel, this.packed, this.method, this.thing, this.card] = [panel, packed, null, null, null];
    this.refresh = latest(() => this.load());
    this.hint();
  }

  hint() {
    fill(this.panel, make("h2", { text: "Understand" }),
      make("p", { class: "about", text: "Click an agent on a board to see its scores and why it gets its task; click a task to see which agents could do it." }), this.card);
  }

  pick(screen, thing, row) {
    [this.screen, this.thing, this.row] = [screen, thing, row];
    if (thing) this.refresh();
    else this.hint();
  }

  /** Explain another step. */
  step(row) {
    this.row = row;
    if (this.thing) this.refresh();
  }

  async load() {
    const { thing, screen } = this;
    if (!thing) return;
    const step = Math.min(this.row, screen.film.last - 1);
    const request = { env: this.packed.env, seed: this.packed.seed, policy: screen.film.policy, step };
    if (this.method) request.method = this.method;
    if (thing.kind === "agent") request.agent = thing.index;
    try {
      const answer = await ask("watch/understand", request);
      if (thing === this.thing) this.show(answer, step);
    } catch (error) {
      if (thing === this.thing) fill(this.panel, this.head(this.method), make("p", { class: "alert", role: "alert", text: error.message }));
    }
  }

  head(method, own) {
    const title = `${this.name(this.thing)}, by ${this.screen.film.label}`;
    const choose = (value) => {
      this.method = value;
      this.refresh();
    };
    return make("div", {}, make("h2", { text: title }), methodChoice(method, own, choose));
  }

  name(thing) {
    return nameOf(this.packed.stage, thing);
  }

  show(answer, step) {
    const { thing, screen } = this;
    const nameAgent = (index) => this.name({ kind: "agent", index });
    const nameTask = (index) => this.name({ kind: "task", index });
    const gone = thing.kind === "agent" ? !answer.agent_alive[thing.index] : !answer.task_alive[thing.index];
    const body = gone
      ? [make("p", { text: `It is no longer there at step ${step}.` })]
      : thing.kind === "agent"
        ? [agentList(answer, thing.index, nameTask, nameAgent)]
        : [capacityBar(answer, thing.index), taskList(answer, thing.index, nameAgent)];
    const route = answer.routes && thing.kind === "agent" ? answer.routes[thing.index] : null;
    fill(
      this.panel,
      this.head(answer.method, answer.own_method),
      make("p", { class: "about", text: `Step ${step}: ${answer.source}.` }),
      changes(answer, nameAgent, nameTask),
      thing.kind === "agent" && !gone ? make("p", { class: "sentence", text: sentence(answer, thing.index, nameTask, nameAgent) }) : null,
      route && route.length ? make("p", { class: "changes", text: `Its route: ${route.map(nameTask).join(" → ")}.` }) : null,
      ...body,
    );
    screen.show = { ...screen.show, scores: gone ? null : shares(scoresOf(answer, thing)) };
    screen.draw();
  }
}
