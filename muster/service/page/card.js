// The card of a learned policy: its training, its results on many episodes, its weights.
import { digits, make } from "./viewer/dom.js";

const MOST_FEATURES = 12;

/** A policy's card as a list that opens; null if there is none or it is unreadable. */
export function cardOf(card, label) {
  try {
    return card ? list(card, label) : null;
  } catch {
    return null;
  }
}

function list(card, label) {
  const facts = [
    ["trained on", (card.trained_on || []).join(", ")],
    ["learner", [card.learner, card.cpu_minutes ? `${digits(card.cpu_minutes, 2)} CPU minutes` : ""].filter(Boolean).join(", ")],
    ["model", card.model ? `${card.model.kind}, ${card.model.numbers} parameters` : ""],
    ["inference", card.inference ? card.inference.method.toUpperCase() : ""],
    ["where it stops winning", card.stops_winning],
  ].filter(([, value]) => value);
  return make("details", { class: "card" }, make("summary", { text: `About “${label}”` }),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })])),
    weights(card), results(card.results || []));
}

/** "Mean steps over 1,000 episodes: learned on 2x4 8.35, nearest first 12.3.", if the first policy's card has it; or an empty text. */
export function measured(card, packed, [first, second]) {
  const result = card && card.policy === first && Array.isArray(card.results) && card.results.find((each) => each.env === packed.env);
  const other = result && second && result.baselines[second];
  if (!Number.isFinite(other)) return "";
  const rate = result.unit === "win rate";
  const [one, two] = [result.mean, other].map((mean) => (rate ? `${digits(100 * mean, 3)} %` : digits(mean, 3)));
  const [label, another] = packed.films.map((film) => film.label);
  return `${rate ? "Win rate" : `Mean ${result.unit}`} over ${result.episodes.toLocaleString("en")} episodes: ${label} ${one}, ${another} ${two}.`;
}

function results(rows) {
  if (!rows.length) return null;
  const line = ({ env, mean, best_baseline: best, baselines }) => [env, digits(mean, 3), best ? `${digits(baselines[best], 3)} by ${best}` : "–"];
  return table(["environment", rows[0].unit, "best baseline"], rows.map(line));
}

/** The weights of a linear policy: a sentence, and a table by effect. */
function weights({ weights: rows, weights_in_words: words }) {
  if (!rows || !rows.length) return null;
  const line = ({ feature, kind, weight, effect }) => [`${feature} (${kind})`, weight === null ? "–" : digits(weight, 3), digits(effect, 2)];
  return make("div", {}, make("p", { text: words }), table(["feature", "weight", "effect"], rows.slice(0, MOST_FEATURES).map(line)),
    make("p", { class: "about", text: "Effect: change of the score, in standard deviations of the prior, for one standard deviation of the feature." }));
}

function table(head, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { text, scope: "col" })))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text) => make("td", { text }))))));
}
