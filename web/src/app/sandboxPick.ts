/** The sandbox of a session: a field of the start form, and a menu of the composer. The host remembers the choice for the folder. */

import { make } from "../page";
import type { SandboxChoice } from "../rest";
import type { Scope } from "../scope";
import { SANDBOX as TEXTS } from "../texts/sandbox";
import { ask, v1 } from "../v1";
import { openMenu } from "./floatingMenu";

const SETTLE_MS = 250;

/** The field of the start form. It follows the folder and the agent. */
export class SandboxField {
  readonly element = make("select", "pick");
  /** Asks the host again; called when the folder or the agent has changed. */
  readonly refresh: (wait?: number) => void;
  private choice: SandboxChoice | undefined;

  constructor(scope: Scope, where: () => { cwd: string; agent: string }) {
    this.element.id = "sandbox";
    this.element.hidden = true;
    this.element.setAttribute("aria-label", TEXTS.name);
    this.element.addEventListener("change", () => this.explain());
    // A host that does not answer this has no sandbox to choose.
    this.refresh = scope.latest((signal) => ask("GET /sandbox", {}, { query: where(), signal }), (choice) => this.take(choice), { failed: () => (this.element.hidden = true), debounceMs: SETTLE_MS });
  }

  /** What to send: nothing where the host's own choice stays. */
  get config(): { sandbox?: string } {
    const { value, hidden } = this.element;
    return hidden || !this.choice || value === this.choice.mode ? {} : { sandbox: value };
  }

  private take(choice: SandboxChoice): void {
    this.choice = choice;
    this.element.replaceChildren(...choice.modes.map(({ id, name }) => new Option(TEXTS.option(id, name), id)));
    this.element.value = choice.mode;
    this.element.disabled = choice.modes.length < 2;
    this.element.hidden = choice.modes.length === 0;
    this.explain();
  }

  private explain(): void {
    const about = this.choice?.modes.find(({ id }) => id === this.element.value)?.description ?? "";
    this.element.title = [about, this.choice?.problem || TEXTS.remembered].filter(Boolean).join(" ");
  }
}

/** The menu of the composer. */
export async function openSandboxMenu(session: string, beside: HTMLElement, attempt: (work: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
  await attempt(async () => {
    const { mode, modes, problem } = await ask("GET /sandbox", {}, { query: { session } });
    const change = (sandbox: string) => void attempt(() => v1.change(session, { config: { sandbox } }));
    const choices = modes.map(({ id, name, description }) => ({ id: `sandbox-${id}`, text: id === mode ? TEXTS.current(name) : name, about: modes.length > 1 ? description : [description, problem].filter(Boolean).join(" "), run: () => id !== mode && change(id) }));
    openMenu(beside, TEXTS.name, choices, () => beside.focus());
  });
}
