// Watch: one or two policies on the same episode, and why they do what they do.
import { fill, make } from "./viewer/dom.js";
import { Player } from "./viewer/player.js";
import { ask } from "./api.js";
import { alertLine, field, firstPolicy, policySelect } from "./forms.js";
import { Understand } from "./understand.js";

export async function watchView(options, remember) {
  const { environments } = await ask("watch/environments");
  const view = new Watch(environments, options, remember);
  view.load();
  return view;
}

class Watch {
  constructor(environments, options, remember) {
    this.environments = environments;
    this.remember = remember;
    this.player = null;
    this.alert = alertLine();
    this.stage = make("div", { class: "theatre" });
    this.panel = make("aside", { class: "panel", "aria-live": "polite" });
    this.size = make("input", { list: "sizes", value: options.get("env") || "rescue:8x15", spellcheck: "false", class: "env" });
    this.sizes = make("datalist", { id: "sizes" });
    this.seed = make("input", { type: "number", min: 0, max: 2147483647, value: options.get("seed") || 0, class: "seed" });
    this.first = make("span");
    this.second = make("span");
    this.ahead = make("select", { title: "Candidates that the first policy tries on copies of the environment before each decision" });
    for (const count of [0, 4, 8, 16]) this.ahead.append(make("option", { value: count, text: count || "none" }));
    this.kind = make("select", {});
    for (const environment of environments) this.kind.append(make("option", { value: environment.kind, text: environment.kind }));
    this.kind.addEventListener("change", () => this.choose(this.kind.value, true));
    this.size.addEventListener("change", () => this.choose(kindOf(this.size.value), false));
    this.button = make("button", { class: "main", text: "Watch" });
    this.form = make("form", { class: "bar" }, field("World", this.kind), field("Size and settings", this.size), this.sizes,
      field("Seed", this.seed), field("Policy", this.first), field("Look-ahead", this.ahead), field("Beside", this.second), this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    this.element = make("div", {}, this.form, this.alert, make("div", { class: "split" }, this.stage, this.panel));
    const [a, ahead] = lookAhead(options.get("a"));
    if ([...this.ahead.options].some((option) => option.value === ahead)) this.ahead.value = ahead;
    this.choose(kindOf(this.size.value), false, a, options.get("b"));
  }

  /** Offer the sizes and policies of a kind of environment. */
  choose(kind, resize, a, b) {
    const environment = this.environments.find((each) => each.kind === kind) || this.environments[0];
    this.kind.value = environment.kind;
    fill(this.sizes, ...environment.examples.map((text) => make("option", { value: text })));
    if (resize) this.size.value = environment.examples[Math.min(2, environment.examples.length - 1)];
    const baseline = environment.policies.find((policy) => policy.kind === "baseline");
    this.one = policySelect(environment, a ?? firstPolicy(environment));
    this.two = policySelect(environment, b ?? (baseline ? baseline.name : ""), "nobody");
    const offer = () => {
      this.ahead.disabled = environment.policies.some((policy) => policy.name === this.one.value && policy.kind === "baseline");
    };
    this.one.addEventListener("change", offer);
    offer();
    fill(this.first, this.one);
    fill(this.second, this.two);
    this.alert.say(environment.error);
  }

  async load() {
    const ahead = !this.ahead.disabled && Number(this.ahead.value);
    const policies = [this.one.value + (ahead ? `, ${ahead} rollouts` : ""), this.two.value].filter(Boolean);
    const wanted = { env: this.size.value.trim(), seed: Number(this.seed.value), policies };
    this.button.disabled = true;
    this.stage.setAttribute("aria-busy", "true");
    try {
      const packed = await ask("watch/episode", wanted);
      if (this.player) this.player.close();
      this.understand = new Understand(this.panel, packed);
      this.player = await Player.of(packed, {
        onPick: (screen, thing) => this.understand.pick(screen, thing, this.player.row),
        onStep: (step) => this.understand.step(step),
      });
      fill(this.stage, this.player.element);
      this.alert.say("");
      this.remember("watch", { env: packed.env, seed: packed.seed, a: policies[0], b: policies[1] || "" });
    } catch (error) {
      this.alert.say(error.message);
    } finally {
      this.button.disabled = false;
      this.stage.removeAttribute("aria-busy");
    }
  }

  close() {
    if (this.player) this.player.close();
  }
}

/** A policy's own name, and how many candidates it tries. */
function lookAhead(name) {
  const found = /^(.*), (\d+) rollouts$/.exec(name || "");
  return found ? [found[1], found[2]] : [name, "0"];
}

function kindOf(env) {
  const family = env.split(":")[0];
  return /^(rescue|battle|pursuit|fleet)$/.test(family) ? family : env.split(",")[0];
}
