// Parts of forms that several views have.
import { make } from "./viewer/dom.js";

/** A labelled control. */
export function field(label, control, extra = {}) {
  return make("label", { class: "field", ...extra }, make("span", { text: label }), control);
}

/** A choice of policies for a environment, in groups. */
export function policySelect(environment, chosen, none) {
  const select = make("select", {});
  if (none) select.append(make("option", { value: "", text: none }));
  for (const [kind, label] of [["learned", "Learned"], ["run", "Your runs"], ["baseline", "Baselines"]]) {
    const members = environment.policies.filter((policy) => policy.kind === kind);
    if (!members.length) continue;
    const group = make("optgroup", { label });
    for (const { name } of members) group.append(make("option", { value: name, text: name }));
    select.append(group);
  }
  if (chosen !== undefined && [...select.options].some((option) => option.value === chosen)) select.value = chosen;
  return select;
}

/** A learned policy to begin with, or the first baseline. */
export function firstPolicy(environment) {
  const learned = environment.policies.filter((policy) => policy.kind === "learned");
  const best = learned.find((policy) => policy.name.includes("quad")) || learned[0] || environment.policies[0];
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

/** A sentence that is seen and read out; empty, it is not there. */
export function alertLine() {
  const line = make("p", { class: "alert", role: "alert", hidden: true });
  line.say = (text) => {
    line.hidden = !text;
    line.textContent = text || "";
  };
  return line;
}
