/** A terminal on a page: its screen, a status line, and keys for devices without a keyboard. */

import { explain } from "../api";
import { folder } from "../conversation/words";
import { make, makeButton } from "../page";
import type { Terminal } from "../v1";
import type { TerminalView } from "./screen";
import { PANE } from "../texts/terminal";

export interface Owner {
  /** What is known of the terminal has changed. */
  changed(terminal: Terminal): void;
  /** It is no more; its last screen stays to be read. */
  gone(): void;
}

const KEYS: [name: string, data: string][] = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["Ctrl+C", "\x03"],
  ["Ctrl+D", "\x04"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
];

export class TerminalPane {
  readonly element = make("section", "shell");
  private readonly holder = make("div", "shell-screen");
  private readonly status = make("p", "shell-status soft");
  private view: TerminalView | undefined;
  /** The latest call of `show`: one that another overtook while the screen's code was loaded shows nothing. */
  private latest: symbol | undefined;

  constructor(private readonly owner: Owner) {
    this.element.setAttribute("aria-label", PANE.terminal);
    this.status.setAttribute("role", "status");
    const keys = make("div", "shell-keys");
    // A button takes the focus, and with it the keyboard of a phone goes: so the focus stays where it is.
    keys.addEventListener("pointerdown", (event) => event.preventDefault());
    keys.append(...KEYS.map(([name, data]) => makeButton("quiet", name, () => this.view?.type(data))));
    // Tab belongs to the shell, so the way out has to be readable (WCAG 2.1.2).
    const leave = make("p", "shell-leave soft");
    leave.append(make("kbd", "", "Shift"), "+", make("kbd", "", "Esc"), PANE.leaves);
    const foot = make("footer", "shell-foot");
    foot.append(this.status, leave, keys);
    this.element.append(this.holder, foot);
  }

  async open(id: string, focus = true): Promise<void> {
    this.leave();
    const call = (this.latest = Symbol(id));
    this.report(PANE.connecting);
    try {
      const { TerminalView } = await import("./screen");
      if (this.latest !== call) return;
      this.view = new TerminalView(this.holder, id, {
        changed: (terminal) => {
          this.report(wordsOf(terminal), terminal.exited);
          this.owner.changed(terminal);
        },
        gone: (how) => {
          this.report(how === "closed" ? PANE.thisShellWasClosed : PANE.thisShellHasEnded, true);
          this.owner.gone();
        },
        refused: (reason) => this.report(reason, true),
      });
      if (focus) this.view.focus();
    } catch (error) {
      this.report(explain(error), true);
    }
  }

  focus(): void {
    this.view?.focus();
  }

  leave(): void {
    this.latest = undefined;
    this.view?.leave();
    this.view = undefined;
    this.report("");
  }

  private report(text: string, ended = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("ended", ended);
  }
}

/** What a person wants to know of a terminal in one line. */
export function wordsOf({ cwd, cols, rows, exited, code, held }: Terminal): string {
  if (exited) return PANE.ended(code);
  const facts = [folder(cwd), `${cols} × ${rows}`];
  return [...facts, ...(held ? [PANE.anEditorOrAnAgent] : [])].join(" · ");
}
