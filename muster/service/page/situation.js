// A situation as text, checked when it is read.

const MOST = 400;

export function toText({ env, policy, agents, tasks, capacities }) {
  return `${JSON.stringify({ format: "muster-situation-1", env, policy, agents, tasks, capacities })}\n`;
}

/** For the address of a link: base64 without the letters that have a meaning in addresses. */
export function toLink(situation) {
  return btoa(unescape(encodeURIComponent(toText(situation).trim()))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** The situation in a text; an Error with one sentence for anything else. */
export function readSituation(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error("a situation is a JSON file as this page saves it; this is no JSON");
  }
  if (!data || data.format !== "muster-situation-1") throw new Error('a situation has "format": "muster-situation-1"; this has not');
  for (const name of ["env", "policy"]) if (typeof data[name] !== "string") throw new Error(`${name} of a situation is a text`);
  for (const name of ["agents", "tasks"]) {
    const list = data[name];
    if (!Array.isArray(list) || list.length < 1 || list.length > MOST) throw new Error(`${name} of a situation are 1 to ${MOST} places`);
    list.forEach((place, k) => {
      if (!Array.isArray(place) || place.length !== 2 || !place.every(Number.isFinite)) throw new Error(`${name}[${k}] must be x and y`);
    });
  }
  const { capacities } = data;
  if (!Array.isArray(capacities) || capacities.length !== data.tasks.length || !capacities.every((c) => Number.isFinite(c) && c >= 0)) {
    throw new Error("capacities of a situation are a number from 0 for each task");
  }
  return { env: data.env, policy: data.policy, agents: data.agents, tasks: data.tasks, capacities };
}
