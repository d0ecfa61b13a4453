// What is known of a learned policy beyond one episode: its card, in short.
import { digits, make } from "./viewer/dom.js";

const MOST_FEATURES = 12;

/** The card of a served policy as a closed list that opens; null for one that has none. */
export function cardOf(served, label) {
  if (!served) return null;
  const { card } = served;
  const facts = [
    ["trained on", (card.trained_on || []).join(", ")],
    ["by", [card.learner, card.cpu_minutes ? `${digits(card.cpu_minutes, 2)} CPU minutes` : ""].filter(Boolean).join(", ")],
    ["model", card.model ? `${card.model.kind}, ${card.model.numbers} numbers` : ""],
    ["inference", card.inference ? card.inference.method.toUpperCase() : ""],
    ["where it stops winning", card.stops_winning],
  ].filter(([, value]) => value);
  return make("details", { class: "card" }, make("summary", { text: `About “${label}”` }),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })])),
    results(card.results || []), weights(card.weights));
}

/** "Over 1,000 episodes: 8.35 against 12.32 steps on average", where the first policy's card has it; or an empty text. */
export function measured(served, packed, [first, second]) {
  const found = served.find((policy) => policy.name === first);
  const result = found && (found.card.results || []).find((each) => each.env === packed.env);
  const other = result && second && result.baselines[second];
  if (other === undefined || other === null || other === "") return "";
  return `Over ${result.episodes.toLocaleString("en")} episodes: ${digits(result.mean, 3)} against ${digits(other, 3)} ${result.unit} on average.`;
}

function results(rows) {
  if (!rows.length) return null;
  const line = ({ env, mean, unit, best_baseline: best, baselines }) =>
    [env, `${digits(mean, 3)} ${unit}`, best ? `${digits(baselines[best], 3)} by ${best}` : "–"];
  return table(["environment", "mean", "best baseline"], rows.map(line));
}

/** A linear policy's weights: which feature counts how much, the largest effect first. */
function weights(rows) {
  if (!Array.isArray(rows) || !rows.length) return null;
  return table(["feature", "weight", "effect"], rows.slice(0, MOST_FEATURES).map(({ feature, weight, effect }) => [feature, digits(weight, 3), digits(effect, 3)]));
}

function table(head, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { text, scope: "col" })))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text) => make("td", { text }))))));
}
