/** The session's shells in the panel: the one it has for people, or a new one. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { Stand } from "../terminal/stand";
import { type Terminal, terminalAddress, v1 } from "../v1";
import type { SessionView } from "./sessionView";

export class TerminalTab {
  readonly element = make("div", "terminal-tab");
  private readonly bar = make("div", "ph");
  private readonly stand = new Stand({ changed: () => undefined, gone: () => void this.list() });
  private current = "";
  private terminals: Terminal[] = [];

  constructor(
    private readonly view: SessionView,
    focus: boolean,
  ) {
    this.element.id = "terminal-panel";
    this.element.append(this.bar, this.stand.element);
    void this.begin(focus);
  }

  private async begin(focus: boolean): Promise<void> {
    try {
      this.terminals = await v1.terminals(this.view.id);
      const found = this.terminals.findLast(({ exited, held }) => !exited && !held) ?? (await v1.openTerminal(this.view.id));
      await this.show(found.id, focus);
    } catch (error) {
      this.bar.replaceChildren(make("p", "bad", explain(error)));
    }
  }

  private async show(id: string, focus = true): Promise<void> {
    this.current = id;
    await this.list();
    await this.stand.show(id, focus);
  }

  private async list(): Promise<void> {
    this.terminals = await v1.terminals(this.view.id);
    const choice = make("select", "pick");
    choice.setAttribute("aria-label", "Which terminal");
    choice.append(...this.terminals.map(({ id, title, held }) => new Option(`${title || id}${held ? " (watch)" : ""}`, id)));
    choice.value = this.current;
    choice.addEventListener("change", () => void this.show(choice.value));
    const link = make("a", "", "On a page of its own");
    link.href = terminalAddress(this.current);
    link.target = "_blank";
    const open = async () => {
      try {
        await this.show((await v1.openTerminal(this.view.id)).id);
      } catch (error) {
        this.view.say(explain(error));
      }
    };
    this.bar.replaceChildren(choice, make("span", "spring"), link, makeButton("", "New terminal", () => void open()));
  }

  leave(): void {
    this.stand.leave();
  }
}
