// Requests to the service; every failure is an Error with one sentence.

const HINTS = {
  400: "Change the settings above, then try again.",
  401: "The token is the one that muster serve was started with (--token-file).",
  429: "The service is busy; try again in a moment.",
  503: "The service is busy or being stopped; try again in a moment.",
  504: "Choose a smaller environment or fewer rollouts, or start muster serve with a larger --time-limit.",
};

let token = sessionStorage.getItem("muster-token") || "";

/** The JSON answer to a GET, or to a POST where there is a body; an Error with the service's sentence otherwise. */
export async function ask(path, body) {
  const headers = { ...(body ? { "Content-Type": "application/json" } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined });
  } catch {
    throw failed("The service does not answer.", "Is muster serve still running? Start it again, then try again.");
  }
  if (answer.status === 401) {
    const entered = prompt("This service needs its token:");
    if (entered) {
      token = entered.trim();
      sessionStorage.setItem("muster-token", token);
      return ask(path, body);
    }
  }
  let content;
  try {
    content = await answer.json();
  } catch {
    throw failed(`The service answered with ${answer.status} and no sentence.`, HINTS[answer.status]);
  }
  if (!answer.ok) throw failed(content.error || `The service answered with ${answer.status}.`, HINTS[answer.status]);
  return content;
}

function failed(text, hint) {
  return Object.assign(new Error(text), { hint });
}

/** A function that runs `work`; calls while it runs become one more run after it. */
export function latest(work) {
  let [running, again] = [false, false];
  return async function call() {
    again = running;
    if (running) return;
    running = true;
    try {
      await work();
    } finally {
      running = false;
      if (again) call();
    }
  };
}

/** Download a text as a file. */
export function download(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
