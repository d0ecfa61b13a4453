// Asking the service, and what it says when it cannot: always one sentence.

let token = sessionStorage.getItem("muster-token") || "";

/** The JSON answer to a GET, or to a POST where there is a body; an Error with the service's sentence otherwise. */
export async function ask(path, body) {
  const headers = { ...(body ? { "Content-Type": "application/json" } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined });
  } catch {
    throw new Error("the service does not answer; is muster serve still running?");
  }
  if (answer.status === 401) {
    const given = prompt("This service needs its token:");
    if (given) {
      token = given.trim();
      sessionStorage.setItem("muster-token", token);
      return ask(path, body);
    }
  }
  let found;
  try {
    found = await answer.json();
  } catch {
    throw new Error(`the service answered with ${answer.status} and no sentence`);
  }
  if (!answer.ok) throw new Error(found.error || `the service answered with ${answer.status}`);
  return found;
}

/** Calls `work` with the latest arguments only: while one runs, those in between are forgotten. */
export function latest(work) {
  let running = false;
  let waiting = null;
  return async function call(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await work(...given);
    } finally {
      running = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        call(...next);
      }
    }
  };
}

/** Let the reader keep a text as a file. */
export function download(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
