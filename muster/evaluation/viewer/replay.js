// The page of a replay, with the film in it.
import { make } from "./dom.js";
import { movesFreely, nameOf, Player } from "./player.js";

const packed = JSON.parse(document.getElementById("film").textContent);
const root = document.getElementById("replay");

const hint = `${packed.about} One episode of seed ${packed.seed}; click an agent or a task.`;
const about = make("p", { class: "about", text: hint });
root.append(make("h1", {}, packed.title, make("small", { text: packed.env })), about);

function onPick(screen, thing) {
  about.textContent = thing ? describe(screen, thing) : hint;
}

function describe(screen, thing) {
  const { moment } = screen;
  const named = (kind, index) => nameOf(packed.stage, { kind, index });
  const who = `${screen.film.label}: ${named(thing.kind, thing.index)}`;
  if (thing.kind === "agent") {
    const { task } = moment.agents[thing.index];
    return task < 0 ? `${who} has no task at this step.` : `${who} is assigned to ${named("task", task)} at this step.`;
  }
  const agents = moment.agents.flatMap((agent, k) => (agent.there && agent.task === thing.index ? [named("agent", k)] : []));
  const full = `${Math.round(100 * moment.tasks[thing.index].load)} % of its capacity`;
  return agents.length ? `${who} gets ${agents.join(", ")}: ${full}.` : `${who} gets no agent at this step.`;
}

const player = await Player.of(packed, { onPick });
root.append(player.element);
if (movesFreely()) player.play();
