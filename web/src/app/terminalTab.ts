/** The session's shells in the panel: the one it has for people, or a button that starts one. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { TerminalPane } from "../terminal/pane";
import { type Terminal, terminalAddress, v1 } from "../v1";
import type { OpenSession } from "./view";
import { TERMINAL_TAB } from "../texts/terminal";

export class TerminalTab {
  readonly element = make("div", "terminal-tab");
  private readonly bar = make("div", "ph");
  private readonly pane = new TerminalPane({ changed: () => undefined, gone: () => void this.list() });
  private readonly empty = make("div", "empty");
  private current = "";
  private terminals: Terminal[] = [];

  /** `wanted`: a person has opened the tab. One that comes with another session starts no shell, and takes no keys. */
  constructor(
    private readonly view: OpenSession,
    wanted: boolean,
  ) {
    this.element.id = "terminal-panel";
    this.element.append(this.bar, this.pane.element);
    void this.begin(wanted);
  }

  private async begin(wanted: boolean): Promise<void> {
    try {
      this.terminals = await v1.terminals(this.view.id);
      const found = this.terminals.findLast(({ exited, held }) => !exited && !held) ?? (wanted ? await v1.openTerminal(this.view.id) : undefined);
      if (found) await this.openTerminal(found.id, wanted);
      else this.offer();
    } catch (error) {
      this.bar.replaceChildren(make("p", "bad", explain(error)));
    }
  }

  private offer(): void {
    const start = makeButton("btn primary", TERMINAL_TAB.startATerminal, () => {
      this.empty.remove();
      void this.begin(true);
    });
    this.empty.replaceChildren(make("p", "soft", TERMINAL_TAB.noTerminalIsOpen), start);
    this.element.append(this.empty);
  }

  private async openTerminal(id: string, focus = true): Promise<void> {
    this.current = id;
    await this.list();
    await this.pane.open(id, focus);
  }

  private async list(): Promise<void> {
    this.terminals = await v1.terminals(this.view.id);
    const choice = make("select", "pick");
    choice.setAttribute("aria-label", TERMINAL_TAB.whichTerminal);
    choice.append(...this.terminals.map(({ id, title, held }) => new Option(`${title || id}${held ? " (watch)" : ""}`, id)));
    choice.value = this.current;
    choice.addEventListener("change", () => void this.openTerminal(choice.value));
    const link = make("a", "", TERMINAL_TAB.openInANewTab);
    link.href = terminalAddress(this.current);
    link.target = "_blank";
    const open = async () => {
      try {
        await this.openTerminal((await v1.openTerminal(this.view.id)).id);
      } catch (error) {
        this.view.report(explain(error));
      }
    };
    this.bar.replaceChildren(choice, make("span", "spring"), link, makeButton("", TERMINAL_TAB.newTerminal, () => void open()));
  }

  leave(): void {
    this.pane.leave();
  }
}
