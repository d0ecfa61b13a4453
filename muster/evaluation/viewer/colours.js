// Colours that the canvas shares with the style sheet, and one for each agent.

const OWN = ["#3f83e8", "#2f9e6e", "#8e6ac8", "#dd8a1c", "#1d91a8", "#c25f8f", "#7d8f24", "#a1674a"];
const NAMES = ["ground", "line", "zone", "busy", "ink", "quiet", "over", "good", "fair", "poor", "shot", "select"];

/** A colour for the agent or task of that number, where its look has none. */
export function ownColour(number) {
  return OWN[number % OWN.length];
}

/** The theme's colours as they are now: they change with the reader's light or dark. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** From cold (0) to hot (1), as good on light as on dark ground. */
export function heat(share) {
  const at = Math.max(0, Math.min(1, share));
  return `hsl(${Math.round(225 - 205 * at)} ${Math.round(35 + 50 * at)}% ${Math.round(58 - 4 * at)}%)`;
}
