// Which view is shown: the part of the address behind # says, and carries what a view needs to be shared.
import { fill, make } from "./viewer/dom.js";
import { assignView } from "./assign.js";
import { learnView } from "./learn.js";
import { playView } from "./play.js";
import { watchView } from "./watch.js";

const VIEWS = { watch: watchView, play: playView, learn: learnView, assign: assignView };
let shown = null;
let current = "";

/** {view, options} of an address such as #watch?env=rescue:8x15&seed=3 */
function address() {
  const [name, query] = location.hash.slice(1).split("?");
  return { name: VIEWS[name] ? name : "watch", options: new URLSearchParams(query || "") };
}

async function show() {
  const { name, options } = address();
  if (location.hash === current) return;
  current = location.hash;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#${name}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown && shown.close) shown.close();
  const view = document.getElementById("view");
  fill(view, make("p", { class: "about", text: "…" }));
  try {
    shown = await VIEWS[name](options, remember);
    fill(view, shown.element);
  } catch (error) {
    fill(view, make("p", { class: "alert", role: "alert", text: error.message }));
  }
}

/** Put what a view shows into the address without showing it anew. */
function remember(name, options) {
  current = `#${name}?${new URLSearchParams(options)}`;
  history.replaceState(null, "", current);
}

addEventListener("hashchange", show);
show();
