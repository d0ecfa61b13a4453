// The views: the part of the address behind # names one and has its state, so that a link can be shared.
import { fill, make } from "./viewer/dom.js";
import { assignView } from "./assign.js";
import { alertLine, failure, waiting } from "./forms.js";
import { learnView } from "./learn.js";
import { playView } from "./play.js";
import { capital } from "./reasons.js";
import { watchView } from "./watch.js";

const VIEWS = { watch: watchView, play: playView, learn: learnView, assign: assignView };
let shown = null;
let current = "";
let turns = 0;

/** {name, options, lost} of an address such as #watch?env=rescue:8x15&seed=3; `lost` is an unknown view. */
function address() {
  const [name, query] = location.hash.slice(1).split("?");
  const known = Object.hasOwn(VIEWS, name);
  return { name: known ? name : "watch", options: new URLSearchParams(query || ""), lost: known ? "" : name };
}

async function open() {
  const { name, options, lost } = address();
  const turn = ++turns;
  current = location.hash;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown && shown.close) shown.close();
  shown = null;
  document.title = `${capital(name)} – muster`;
  const view = document.getElementById("view");
  const heading = make("h1", { text: capital(name) });
  fill(view, heading, waiting("Loading …"));
  try {
    // A view that was left while it loaded neither shows itself nor changes the address.
    const next = await VIEWS[name](options, (own, kept) => turn === turns && remember(own, kept));
    if (turn !== turns) return next.close && next.close();
    shown = next;
    const notice = alertLine();
    notice.say(lost && `There is no view “${lost}” here; this is ${capital(name)}.`);
    fill(view, notice, shown.element);
  } catch (error) {
    if (turn === turns) fill(view, heading, failure(error, open));
  }
}

/** Put the state of a view into the address without reloading the view. */
function remember(name, options) {
  current = `#${name}?${new URLSearchParams(options)}`;
  history.replaceState(null, "", current);
}

addEventListener("hashchange", () => location.hash !== current && open());
open();
