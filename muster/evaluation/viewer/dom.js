// Elements without HTML: names from users stay text.

/** An element with properties (class, text, on… handlers, anything else an attribute) and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Replace an element's children. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const MOST_AGENTS = 20;

/** An assignment as text, for screen readers: "0 → 3, 1 → none". */
export function assignmentText(assignment) {
  const some = assignment.slice(0, MOST_AGENTS).map((task, agent) => `${agent} → ${task === null || task < 0 ? "none" : task}`);
  return some.join(", ") + (assignment.length > MOST_AGENTS ? ", …" : "");
}

/** A number in few digits. */
export function digits(value, most = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return String(Number(value.toPrecision(most))).replace("-", "−");
}
