// Watch: one or two policies on the same episode, which did better, and the scores behind their decisions.
import { fill, make } from "./viewer/dom.js";
import { movesFreely, Player } from "./viewer/player.js";
import { ask } from "./api.js";
import { cardOf, measured } from "./card.js";
import { alertLine, failure, field, firstPolicy, policySelect, waiting } from "./forms.js";
import { Understand } from "./understand.js";

const FIRST = "rescue:8x15";
const MUCH = 5; // times as many agents: the size that is offered next

export async function watchView(options, remember) {
  const { environments } = await ask("watch/environments");
  const view = new Watch(environments, options, remember);
  view.load();
  return view;
}

class Watch {
  constructor(environments, options, remember) {
    [this.environments, this.remember, this.player] = [environments, remember, null];
    this.alert = alertLine();
    this.title = make("h1", { text: "Watch" });
    this.about = make("p", { class: "about" });
    this.stage = make("div", { class: "stage" });
    this.side = make("div", { class: "side" });
    this.panel = make("aside", { class: "panel", "aria-live": "polite", "aria-label": "Understand" });
    this.size = make("input", { value: options.get("env") || FIRST, spellcheck: "false", class: "env" });
    this.sizes = make("nav", { class: "sizes", "aria-label": "Sizes" });
    this.seed = make("input", { type: "number", min: 0, max: 2147483647, value: options.get("seed") || 0, class: "seed" });
    this.first = make("span");
    this.second = make("span");
    this.ahead = make("select", { title: "Candidates that the first policy tries on copies of the environment before each decision" });
    for (const count of [0, 4, 8, 16]) this.ahead.append(make("option", { value: count, text: count || "none" }));
    this.kind = make("select", {});
    for (const environment of environments) this.kind.append(make("option", { value: environment.kind, text: environment.title || environment.kind }));
    this.kind.addEventListener("change", () => this.choose(this.kind.value, true));
    this.size.addEventListener("change", () => this.choose(kindOf(this.size.value), false));
    this.button = make("button", { class: "main", text: "Run" });
    this.form = make("form", { class: "bar" }, field("Environment", this.kind), field("Size and settings", this.size),
      field("Policy", this.first, { class: "field wide" }), field("Compare with", this.second, { class: "field wide" }),
      field("Look-ahead", this.ahead), field("Seed", this.seed), this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    this.choices = make("details", { class: "choices" }, make("summary", { text: "Change environment, seed or policies" }), this.form);
    this.choices.open = !matchMedia("(max-width: 759px)").matches;
    this.element = make("div", {}, make("div", { class: "title" }, this.title, this.sizes), this.about, this.choices, this.alert,
      make("div", { class: "split" }, this.stage, this.side));
    this.step = options.get("step");
    const [a, ahead] = lookAhead(options.get("a"));
    if ([...this.ahead.options].some((option) => option.value === ahead)) this.ahead.value = ahead;
    this.choose(kindOf(this.size.value), false, a, options.get("b"));
  }

  /** Offer the policies of a kind of environment; an alert names those of a link that do not exist. */
  choose(kind, resize, a, b) {
    const known = this.environments.find((each) => each.kind === kind);
    const environment = (this.environment = known || this.environments[0]);
    this.kind.value = environment.kind;
    if (resize) this.size.value = environment.examples[Math.min(2, environment.examples.length - 1)];
    const learned = firstPolicy(environment, this.size.value);
    const baseline = environment.policies.find((policy) => policy.kind === "baseline" && policy.name !== learned);
    const fixed = baseline ? baseline.name : "";
    this.one = policySelect(environment, a ?? learned, null, learned);
    this.two = policySelect(environment, b ?? fixed, "none", fixed);
    const offer = () => {
      this.ahead.disabled = environment.policies.some((policy) => policy.name === this.one.value && policy.kind === "baseline");
    };
    this.one.addEventListener("change", offer);
    offer();
    fill(this.first, this.one);
    fill(this.second, this.two);
    const unknown = [[a, this.one], [b, this.two]].filter(([name, select]) => name && select.value !== name);
    const warnings = unknown.map(([name, select]) => `The link names the policy ${name}, which does not exist${known ? ` for ${environment.kind}` : ""}; shown is ${select.value || "none"}.`);
    this.alert.say(environment.error || warnings.join(" "));
  }

  async load() {
    const ahead = !this.ahead.disabled && Number(this.ahead.value);
    const policies = [this.one.value + (ahead ? `, ${ahead} rollouts` : ""), this.two.value].filter(Boolean);
    const request = { env: this.size.value.trim(), seed: Number(this.seed.value), policies };
    this.button.disabled = true;
    if (this.player) this.player.pause();
    fill(this.stage, waiting(`Running ${request.env} …`));
    try {
      this.show(await ask("watch/episode", request), policies);
    } catch (error) {
      this.title.textContent = "Watch";
      this.about.textContent = "";
      this.choices.open = true;
      fill(this.side);
      fill(this.stage, failure(error, () => this.load()));
    } finally {
      this.button.disabled = false;
    }
  }

  async show(packed, policies) {
    if (this.player) this.player.close();
    this.understand = new Understand(this.panel, packed);
    this.player = await Player.of(packed, {
      onPick: (screen, thing) => this.understand.pick(screen, thing, this.player.row),
      onStep: (step) => this.understand.step(step),
      onRest: () => this.link(packed, policies),
      next: () => this.next(packed, policies),
    });
    fill(this.title, packed.title, make("small", { text: `${packed.env}, seed ${packed.seed}` }));
    this.about.textContent = [packed.about, packed.films.length > 1 && "Both policies start alike.", unseenSize(packed)].filter(Boolean).join(" ");
    fill(this.sizes, ...this.sizeLinks(packed, policies));
    fill(this.stage, this.player.element);
    fill(this.side, this.player.finish, this.panel);
    this.link(packed, policies);
    const step = this.step === null ? null : Number(this.step);
    this.step = null;
    if (step !== null && Number.isInteger(step) && step >= 0) this.player.jump(step);
    else if (movesFreely()) this.player.play();
    this.addCard(packed, policies);
  }

  /** Put the episode, the policies and, while paused, the step into the address. */
  link(packed, policies) {
    const options = { env: packed.env, seed: packed.seed, a: policies[0], b: policies[1] || "" };
    const rests = this.player && !this.player.playing && this.player.time < this.player.last;
    this.remember("watch", rests ? { ...options, step: Math.floor(this.player.time) } : options);
  }

  /** Links to the sizes of the environment, by the same policies where these know its kind of unit. */
  sizeLinks({ env, seed }, [a, b = ""]) {
    const { examples } = this.environment;
    if (examples.length < 2) return [];
    return examples.map((each) => make("a", {
      class: "button", "aria-current": each === env && "true", text: sizeOf(each),
      href: address("watch", { env: each, seed, ...(unitsAndCount(each)[0] === unitsAndCount(env)[0] ? { a, b } : {}) }),
    }));
  }

  /** The links of an end card: a much larger size, a situation to drag, another episode. */
  next({ env, seed }, [a, b = ""]) {
    const larger = largerThan(env, this.environment.examples);
    const steps = [];
    if (larger) steps.push(["Now " + sizeOf(larger), address("watch", { env: larger, seed, a, b }), "main"]);
    if (this.environment.arranges) steps.push(["Your turn: drag one", address("play", { env, seed, policy: lookAhead(a)[0] }), larger ? "" : "main"]);
    steps.push(["Another episode", address("watch", { env, seed: seed + 1, a, b }), ""]);
    return steps.map(([text, href, kind]) => make("a", { class: `button ${kind}`, href, text }));
  }

  /** Add the first policy's card, and its mean over many episodes. */
  async addCard(packed, policies) {
    const [name] = lookAhead(policies[0]);
    const { kind } = this.environment.policies.find((policy) => policy.name === name) || {};
    if (!["learned", "run"].includes(kind)) return;
    const source = kind === "run" ? ask("watch/curve", { run: name }) : ask("policies").then(({ policies: served }) => served.find((policy) => policy.name === name));
    const { card } = (await source.catch(() => null)) || {};
    const mean = measured(card, packed, policies);
    if (mean) this.player.card.querySelector("p").append(` ${mean}`);
    this.understand.card = cardOf(card, packed.films[0].label);
    if (!this.understand.thing) this.understand.hint();
  }

  close() {
    if (this.player) this.player.close();
  }
}

function address(view, options) {
  return `#${view}?${new URLSearchParams(options)}`;
}

/** A policy's own name and its number of rollouts. */
function lookAhead(name) {
  const match = /^(.*), (\d+) rollouts$/.exec(name || "");
  return match ? [match[1], match[2]] : [name, "0"];
}

function kindOf(env) {
  const family = env.split(":")[0];
  return /^(rescue|battle|pursuit|fleet)$/.test(family) ? family : env.split(",")[0];
}

/** "8x15" of "rescue:8x15,grid=32", "24 vehicles" of "fleet:24,city=small" */
function sizeOf(env) {
  const [kind, rest = ""] = env.split(":");
  return rest.split(",")[0] + (kind === "fleet" ? " vehicles" : "");
}

/** ["w", 15] of "battle:w15v17", ["", 8] of "rescue:8x15" */
function unitsAndCount(env) {
  const [, units, count] = /^([a-z]*)(\d+)/.exec(sizeOf(env)) || ["", "", "0"];
  return [units, Number(count)];
}

/** Of environments with the same kind of unit the first that is much larger, or else the largest. */
function largerThan(env, examples) {
  const [units, count] = unitsAndCount(env);
  const larger = examples.filter((each) => unitsAndCount(each)[0] === units && unitsAndCount(each)[1] > count);
  return larger.find((each) => unitsAndCount(each)[1] >= MUCH * count) || larger[larger.length - 1];
}

/** A sentence, if the first policy was trained on another size than it is shown on. */
function unseenSize({ env, films: [{ label }] }) {
  const [, size] = /^learned on (.*?)(, looking ahead)?$/.exec(label) || [];
  return size && size !== sizeOf(env) && `The one learned on ${size} was never trained on ${sizeOf(env)}.`;
}
