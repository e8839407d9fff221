/** What can answer on this host, and what the others need. */

import { explain } from "./api";
import { commandsOf, commandView } from "./commands";
import { price } from "./conversation/words";
import { byId, make } from "./page";
import { shortcuts } from "./shortcuts";
import { type Agent, v1 } from "./v1";
import { plural } from "./texts/plural";
import { AGENTS } from "./texts/host";

const CAPABILITIES: Record<string, string> = {
  tools: AGENTS.takesTheSessionsTools,
  steer: AGENTS.canBeSteeredWhileIt,
  resume: AGENTS.resumesAfterARestart,
  fork: "forks",
  attachments: "reads attachments",
};

function card(agent: Agent): HTMLElement {
  const found = make("section", agent.missing ? "panel agent lacking" : "panel agent");
  const head = make("header");
  head.append(make("h2", "", agent.name), make("span", agent.missing ? "status waiting" : "status idle", agent.missing ? AGENTS.notReady : AGENTS.ready));
  if (agent.label) head.append(make("span", "tag", agent.label));
  found.append(head);
  if (agent.description) found.append(make("p", "", agent.description));
  if (agent.missing) found.append(make("p", "note", agent.missing), ...commandsOf(agent.missing).map(commandView));
  const can = Object.entries(agent.capabilities ?? {}).flatMap(([name, yes]) => (yes && CAPABILITIES[name] ? [CAPABILITIES[name]] : []));
  if (can.length > 0) found.append(make("p", "soft", AGENTS.can(can)));
  const models = agent.models ?? [];
  if (models.length > 0) found.append(modelList(models));
  if (!agent.missing) {
    const start = make("a", "button", AGENTS.newSession);
    start.href = `./app/new?${new URLSearchParams({ agent: agent.id })}`;
    start.setAttribute("aria-label", AGENTS.newSessionNamed(agent.name));
    found.append(start);
  }
  return found;
}

function modelList(models: NonNullable<Agent["models"]>): HTMLElement {
  const details = make("details");
  details.open = models.length <= 4;
  details.append(make("summary", "", plural(models.length, "model")));
  const list = make("ul", "models");
  for (const { id, name, multiplier } of models) {
    const row = make("li");
    row.append(make("span", "", name), make("code", "soft", id));
    if (price(multiplier)) row.append(make("span", "soft", price(multiplier)));
    list.append(row);
  }
  details.append(list);
  return details;
}

shortcuts([{ key: "s", text: AGENTS.allSessions, run: () => window.location.assign("./app") }]);

try {
  // Who is ready comes first; among themselves they stay in the host's order.
  const agents = (await v1.agents()).sort((one, other) => Number(Boolean(one.missing)) - Number(Boolean(other.missing)));
  byId("agents").replaceChildren(...agents.map(card));
  const empty = byId("empty");
  empty.hidden = agents.length > 0;
  empty.append(
    make("h2", "", AGENTS.noAgentHere),
    make("p", "", AGENTS.startTheHost),
    commandView(AGENTS.porticoServeAgentDemo),
    make("p", "", AGENTS.thisCommandLists),
    commandView("portico doctor"),
  );
} catch (error) {
  const trouble = byId("trouble");
  trouble.textContent = explain(error);
  trouble.hidden = false;
}
