/** One row of the list: its mark, title, age and what happens; beside it what can be done with it. */

import { root } from "../root";
import { counted } from "../conversation/pieces";
import { make, makeButton } from "../page";
import { v1 } from "../v1";
import { type Entry, moves, type State } from "./entries";
import { icon, type Icon } from "../icons";
import { elapsed, when } from "../time";

export const MARKS: Record<State, [icon: Icon, look: string, word: string]> = {
  need: ["need", "need", "Needs you"],
  ask: ["ask", "need", "Asks you"],
  work: ["work", "work", "Working"],
  queued: ["todo", "", "Queued"],
  interrupted: ["interrupted", "", "Interrupted"],
  stopped: ["stop", "", "Stopped"],
  failed: ["failed", "bad", "Failed"],
  done: ["done", "", "Done"],
};

export function mark(state: State, unread = false): HTMLElement {
  const [name, look, word] = MARKS[state];
  const found = make("span", `mark ${look || (state === "done" && unread ? "ok" : "")}`);
  found.append(icon(name, state === "work" ? "spin" : ""), make("span", "vh", word));
  return found;
}

export class RowView {
  readonly element = make("div", "entry-row");
  entry: Entry | undefined;
  private readonly link = make("a", "entry");
  private readonly acts = make("div", "row-acts");
  private shown = "";
  private readonly age = make("span", "age-text");

  constructor(
    open: (entry: Entry) => void,
    private readonly pin: (entry: Entry) => void,
    /** The user acts on the row, so it may move. */
    private readonly release: () => void,
    private readonly nameOf: (agent: string) => string,
  ) {
    this.element.append(this.link, this.acts);
    this.link.addEventListener("click", (event) => {
      if (!this.entry || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(this.entry);
    });
  }

  select(on: boolean): void {
    if (on) this.link.setAttribute("aria-current", "true");
    else this.link.removeAttribute("aria-current");
  }

  update(entry: Entry, pinned: boolean): void {
    this.entry = entry;
    const { since: _since, time: _time, words: _words, ...rest } = entry;
    const shown = JSON.stringify([rest, pinned, this.nameOf(entry.agent)]);
    if (shown === this.shown) return this.tick(Date.now());
    this.shown = shown;
    const { link } = this;
    link.href = `${root}/app/${entry.kind === "job" ? "j" : "s"}/${encodeURIComponent(entry.id)}`;
    link.dataset["key"] = entry.key;
    link.className = `entry ${entry.state} ${entry.unread ? "unread" : ""}`;
    const age = make("span", "age");
    if (entry.unread) {
      const dot = make("i", "dot");
      dot.setAttribute("role", "img");
      dot.setAttribute("aria-label", "new");
      age.append(dot);
    }
    age.append(this.age);
    const sub = make("span", "sub");
    const act = make("span", "act", entry.line);
    act.title = entry.line;
    if (entry.changes) act.append(" ", counted(entry.changes.additions, entry.changes.deletions));
    const where = make("span", "where", entry.folder);
    where.title = entry.cwd;
    where.append(make("span", "agent-name", ` · ${this.nameOf(entry.agent)}`));
    sub.append(act, where);
    link.replaceChildren(mark(entry.state, entry.unread), make("span", "t", entry.title), age, sub);
    if (entry.steps?.length) link.append(steps(entry.steps));
    this.acts.replaceChildren(...this.actions(entry, pinned));
    this.tick(Date.now());
  }

  /** Beside the row, under the pointer or with the focus; on a phone behind a swipe. Nothing that answers: cards do that. */
  private actions(entry: Entry, pinned: boolean): HTMLElement[] {
    const act = (text: string, name: Icon, run: (button: HTMLElement) => unknown) => {
      const button = makeButton("icon", "", () => {
        this.release();
        run(button);
      });
      button.append(icon(name));
      button.setAttribute("aria-label", `${text} ${entry.title}`);
      button.title = text;
      return button;
    };
    const quiet = (work: Promise<unknown>) => work.catch(() => undefined); // who may only read sees that nothing changes
    const more = act("More of", "more", (button) => void this.openMore(button));
    more.classList.add("row-more");
    more.title = "More (.)";
    more.setAttribute("aria-haspopup", "menu");
    more.setAttribute("aria-expanded", "false");
    const all = [act(pinned ? "Unpin" : "Pin", pinned ? "unpin" : "pin", () => this.pin(entry))];
    if (entry.kind === "job") return [...all, more];
    if (entry.state === "interrupted") all.unshift(act("Resume", "resume", () => quiet(v1.resume(entry.id))));
    if (moves(entry)) return [...all, more];
    return [...all, act(entry.archived ? "Unarchive" : "Archive", entry.archived ? "unarchive" : "archive", () => quiet(v1.change(entry.id, { archived: !entry.archived }))), more];
  }

  /** Its code is loaded with its first use. */
  private async openMore(button: HTMLElement): Promise<void> {
    const { openRowMenu } = await import("./rowMenu");
    if (this.entry) openRowMenu(this.entry, button, () => this.link.focus());
  }

  tick(now: number): void {
    if (!this.entry) return;
    const { since, time, state } = this.entry;
    const text = since === undefined ? when(time, now) : state === "work" || state === "queued" || now - since < 60_000 ? elapsed(now - since) : when(since, now);
    if (this.age.textContent !== text) this.age.textContent = text;
  }
}

function steps(all: NonNullable<Entry["steps"]>): HTMLElement {
  const bar = make("span", "steps");
  bar.setAttribute("aria-hidden", "true");
  bar.append(...all.slice(0, 20).map((state) => make("b", state)));
  return bar;
}
