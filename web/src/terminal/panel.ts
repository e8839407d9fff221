/** The terminal of a session, below its conversation. */

import { byId, make, makeButton } from "../page";
import { terminalAddress, v1 } from "../v1";
import { Stand } from "./stand";

export class TerminalPanel {
  private readonly panel = byId("terminal-panel");
  private readonly title = make("h2", "", "Terminal");
  private readonly link = make("a", "", "On a page of its own");
  private readonly stand = new Stand({
    changed: ({ title }) => (this.title.textContent = title || "Terminal"),
    gone: () => undefined,
  });

  constructor(
    private readonly session: string,
    private readonly attempt: (work: () => Promise<unknown>) => Promise<boolean>,
  ) {
    const head = make("header");
    head.append(this.title, this.link, makeButton("quiet", "Hide", () => this.hide()));
    this.panel.append(head, this.stand.element);
  }

  toggle(): void {
    if (this.panel.hidden) void this.attempt(() => this.open());
    else this.hide();
  }

  /** The one that the session has for people, or a new one. */
  private async open(): Promise<void> {
    const found = (await v1.terminals(this.session)).findLast(({ exited, held }) => !exited && !held);
    const { id } = found ?? (await v1.openTerminal(this.session));
    this.link.href = terminalAddress(id);
    this.panel.hidden = false;
    await this.stand.show(id);
  }

  /** The shell goes on. */
  private hide(): void {
    this.panel.hidden = true;
    this.stand.leave();
  }
}
