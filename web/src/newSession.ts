/** The form that starts a session: which agent, which model, where, and the first message. */

import { price } from "./conversation/words";
import { byId, make } from "./page";
import { type Agent, sessionAddress, v1 } from "./v1";

export class NewSession {
  private readonly form = byId("new-form", HTMLFormElement);
  private readonly toggle = byId("new", HTMLButtonElement);
  private readonly agent = byId("agent", HTMLSelectElement);
  private readonly model = byId("model", HTMLSelectElement);
  private readonly folder = byId("folder", HTMLInputElement);
  private readonly missing = byId("missing");
  private readonly start = byId("start", HTMLButtonElement);
  private agents: Agent[] | undefined;

  constructor(private readonly say: (error: unknown) => void) {
    this.toggle.addEventListener("click", () => (this.form.hidden ? this.open() : this.close()));
    this.agent.addEventListener("change", () => this.choose());
    byId("first").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.begin();
    });
    const wanted = new URLSearchParams(window.location.search).get("agent");
    if (wanted) this.open(wanted);
  }

  open(wanted?: string): void {
    this.form.hidden = false;
    this.toggle.setAttribute("aria-expanded", "true");
    void this.load(wanted);
    byId("first").focus();
  }

  private close(): void {
    this.form.hidden = true;
    this.toggle.setAttribute("aria-expanded", "false");
  }

  private async load(wanted?: string): Promise<void> {
    try {
      const [{ agents, default: first }, about] = await Promise.all([v1.offers(), v1.about()]);
      if (!this.agents) {
        // Those that work come first: the form is then right as it stands.
        this.agents = [...agents].sort((one, other) => Number(Boolean(one.missing)) - Number(Boolean(other.missing)));
        this.agent.replaceChildren(...this.agents.map(agentOption));
        if (wanted ?? first) this.agent.value = (wanted ?? first)!;
      }
      if (!this.folder.value) this.folder.value = about.workspaces[0] ?? "";
      this.choose();
    } catch (error) {
      this.say(error);
    }
  }

  private choose(): void {
    const agent = this.agents?.find(({ id }) => id === this.agent.value);
    this.model.replaceChildren(...(agent?.models ?? []).map(({ id, name, multiplier }) => new Option(price(multiplier) ? `${name} (${price(multiplier)})` : name, id)));
    const hint = agent?.missing ?? (agent ? "" : "This host has no agent. See Agents for what there could be.");
    this.missing.replaceChildren(hint, ...(agent?.missing ? [" ", moreAbout()] : []));
    this.missing.hidden = !hint;
    this.start.disabled = Boolean(hint);
  }

  private async begin(): Promise<void> {
    this.start.disabled = true;
    try {
      const cwd = this.folder.value.trim();
      const session = await v1.start({ agent: this.agent.value, ...(this.model.value ? { model: this.model.value } : {}), ...(cwd ? { cwd } : {}) });
      const text = byId("first", HTMLTextAreaElement).value;
      if (text.trim()) await v1.send(session.id, text, "queue");
      window.location.assign(sessionAddress(session.id));
    } catch (error) {
      this.start.disabled = false;
      this.say(error);
    }
  }
}

function agentOption(agent: Agent): HTMLOptionElement {
  const label = agent.label ? ` (${agent.label})` : "";
  return new Option(`${agent.name}${agent.label && agent.label.toLowerCase() !== agent.name.toLowerCase() ? label : ""}${agent.missing ? " — not ready" : ""}`, agent.id);
}

function moreAbout(): HTMLElement {
  const anchor = make("a", "", "More about agents");
  anchor.href = "./agents.html";
  return anchor;
}
