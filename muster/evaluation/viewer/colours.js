// Colours that the canvas shares with the style sheet, and one for each agent.

const OWN = ["#3f83e8", "#2f9e6e", "#8e6ac8", "#dd8a1c", "#1d91a8", "#c25f8f", "#7d8f24", "#a1674a"];
const NAMES = ["ground", "line", "zone", "busy", "ink", "quiet", "over", "good", "fair", "poor", "shot", "select"];

/** The colour of an agent or task whose look has none. */
export function ownColour(number) {
  return OWN[number % OWN.length];
}

/** The colour of the first or the second film in the race. */
export function filmColour(number) {
  return number ? "var(--second)" : "var(--first)";
}

/** The colours of the present scheme, light or dark. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** One hue, from faint (0) to full (1), as good on light as on dark ground. */
export function heat(share) {
  const at = Math.max(0, Math.min(1, share));
  return `hsl(214 75% 54% / ${(0.1 + 0.8 * at).toFixed(2)})`;
}
