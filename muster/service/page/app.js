// Which view is shown: the part of the address behind # says, and carries what a view needs to be shared.
import { fill, make } from "./viewer/dom.js";
import { assignView } from "./assign.js";
import { alertLine, failure, waiting } from "./forms.js";
import { learnView } from "./learn.js";
import { playView } from "./play.js";
import { watchView } from "./watch.js";

const VIEWS = {
  watch: { title: "Watch", open: watchView },
  play: { title: "Play", open: playView },
  learn: { title: "Learn", open: learnView },
  assign: { title: "Assign", open: assignView },
};
let shown = null;
let current = "";
let turns = 0;

/** {name, options, lost} of an address such as #watch?env=rescue:8x15&seed=3; `lost` is a view that there is none of. */
function address() {
  const [name, query] = location.hash.slice(1).split("?");
  const known = Object.hasOwn(VIEWS, name);
  return { name: known ? name : "watch", options: new URLSearchParams(query || ""), lost: known ? "" : name };
}

async function open() {
  const { name, options, lost } = address();
  const turn = ++turns;
  current = location.hash;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown && shown.close) shown.close();
  shown = null;
  document.title = `${VIEWS[name].title} – muster`;
  const view = document.getElementById("view");
  const heading = make("h1", { text: VIEWS[name].title });
  fill(view, heading, waiting("Loading …"));
  try {
    // A view that is no longer wanted neither shows itself nor changes the address.
    const next = await VIEWS[name].open(options, (own, kept) => turn === turns && remember(own, kept));
    if (turn !== turns) return next.close && next.close();
    shown = next;
    const told = alertLine();
    told.say(lost && `There is no view “${lost}” here; this is ${VIEWS[name].title}.`);
    fill(view, told, shown.element);
  } catch (error) {
    if (turn === turns) fill(view, heading, failure(error, open));
  }
}

/** Put what a view shows into the address without showing it anew. */
function remember(name, options) {
  current = `#${name}?${new URLSearchParams(options)}`;
  history.replaceState(null, "", current);
}

addEventListener("hashchange", () => location.hash !== current && open());
open();
