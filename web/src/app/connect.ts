/** How a host without a coding agent gets one: install an agent, connect a model, or try the demo. */

import { explain } from "../api";
import { commandView } from "../commands";
import { make, makeButton } from "../page";
import { ask, type KnownAgent } from "../v1";
import { CONNECT } from "../texts/settings";

/** `changed`: an agent or a model has come, and the page asks for them again. `demo`: leads to the demo, where there is one. */
export function connectCards(known: KnownAgent[], changed: () => Promise<unknown>, demo?: () => void): HTMLElement {
  const cards = make("div", "connect-cards");
  cards.append(agentCard(known, changed), modelCard(changed), ...(demo ? [demoCard(demo)] : []));
  return cards;
}

function card(title: string, about: string): HTMLElement {
  const found = make("section", "connect-card");
  const heading = make("h3", "", title);
  heading.id = `connect-${title.split(" ").at(-1)?.toLowerCase()}`;
  found.setAttribute("aria-labelledby", heading.id);
  found.append(heading, make("p", "soft", about));
  return found;
}

function agentCard(known: KnownAgent[], changed: () => Promise<unknown>): HTMLElement {
  const found = card(CONNECT.connectAnAgent, CONNECT.runOneOfThese);
  const list = make("ul", "connect-list");
  list.append(
    ...known.map(({ name, add }) => {
      const item = make("li");
      item.append(make("b", "", name), commandView(add));
      return item;
    }),
  );
  const status = make("p", "soft");
  status.setAttribute("role", "status");
  const again = makeButton("btn", CONNECT.checkAgain, async () => {
    again.disabled = true;
    status.textContent = CONNECT.lookingForAgents;
    try {
      const { added } = await ask("POST /agents/find");
      status.textContent = added.length ? CONNECT.found(added) : CONNECT.noNewAgentWasFound;
      if (added.length) await changed();
    } catch (error) {
      status.textContent = explain(error);
    }
    again.disabled = false;
  });
  found.append(list, again, status);
  return found;
}

function modelCard(changed: () => Promise<unknown>): HTMLElement {
  const found = card(CONNECT.connectAModel, CONNECT.theBuiltInAgentWorks);
  const form = make("form", "stack");
  const field = (name: string, text: string, type: string, placeholder: string) => {
    const [label, input] = [make("label", "", text), make("input")];
    Object.assign(input, { name, type, placeholder, autocomplete: "off", required: type === "url" });
    label.append(input);
    form.append(label);
    return input;
  };
  const address = field("base_url", CONNECT.address, "url", "https://models.example.org/v1");
  const key = field("api_key", CONNECT.keyOptional, "password", "");
  const [button, told] = [make("button", "btn", CONNECT.connect), make("p", "soft")];
  told.setAttribute("role", "status");
  form.append(button, told);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void connect();
  });
  const connect = async () => {
    button.disabled = true;
    told.textContent = CONNECT.checking;
    try {
      const { status, detail } = await ask("POST /agents/loop/model", {}, { body: { base_url: address.value.trim(), api_key: key.value } });
      told.textContent = status === "ready" ? CONNECT.connected : (detail ?? CONNECT.theEndpointDoesNotAnswer);
      if (status === "ready") await changed();
    } catch (error) {
      told.textContent = explain(error);
    }
    button.disabled = false;
  };
  found.append(form);
  return found;
}

function demoCard(demo: () => void): HTMLElement {
  const found = card(CONNECT.tryTheDemo, CONNECT.scriptedRepliesNoAiIt);
  found.append(makeButton("btn", CONNECT.tryTheDemo, demo));
  return found;
}
