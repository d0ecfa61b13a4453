// Parts of forms that several views have.
import { make } from "./viewer/dom.js";

/** A labelled control. */
export function field(label, control, extra = {}) {
  return make("label", { class: "field", ...extra }, make("span", { text: label }), control);
}

/** A choice of policies for an environment, in groups, by their labels; `otherwise` replaces an unknown `chosen`. */
export function policySelect(environment, chosen, none, otherwise = chosen) {
  const select = make("select", {});
  if (none) select.append(make("option", { value: "", text: none }));
  for (const [kind, label] of [["learned", "Learned"], ["run", "Your runs"], ["baseline", "Baselines"]]) {
    const members = environment.policies.filter((policy) => policy.kind === kind);
    if (!members.length) continue;
    const group = make("optgroup", { label });
    for (const { name, label } of members) group.append(make("option", { value: name, text: label === name || kind === "run" ? label : `${label} · ${name}` }));
    select.append(group);
  }
  const known = (name) => name !== undefined && [...select.options].some((option) => option.value === name);
  const first = [chosen, otherwise].find(known);
  if (first !== undefined) select.value = first;
  return select;
}

/** The learned policy offered first, for the kind of unit in `env`; or the first baseline. */
export function firstPolicy(environment, env) {
  const learned = environment.policies.filter((policy) => policy.kind === "learned");
  const units = /:([a-z]+)\d/.exec(env || "");
  const fitting = units ? learned.filter((policy) => policy.name.includes(`-${units[1]}`)) : learned;
  const from = fitting.length ? fitting : learned;
  const best = from.find((policy) => policy.name.includes("quad")) || from[0] || environment.policies[0];
  return best ? best.name : "";
}

/** One of several, as a row of buttons. */
export function switcher(options, chosen, onChange) {
  const row = make("div", { class: "switcher", role: "group" });
  for (const { value, text, title, disabled } of options) {
    row.append(
      make("button", { type: "button", text, title, disabled, "data-value": value, "aria-pressed": String(value === chosen), onclick: () => onChange(value) }),
    );
  }
  return row;
}

/** An alert for one sentence; hidden without one. */
export function alertLine() {
  const line = make("p", { class: "alert", role: "alert", hidden: true });
  line.say = (text) => {
    line.hidden = !text;
    line.textContent = text || "";
  };
  return line;
}

/** The state while something loads. */
export function waiting(text) {
  return make("div", { class: "state", role: "status" }, make("i", { class: "spinner" }), make("p", { text }));
}

/** The state after a failure: the sentence, a remedy, and a button to try again. */
export function failure(error, retry) {
  return make("div", { class: "state failed", role: "alert" }, make("h2", { text: "This did not work" }), make("p", { text: error.message }),
    error.hint ? make("p", { class: "about", text: error.hint }) : null, make("button", { type: "button", class: "main", text: "Try again", onclick: retry }));
}
