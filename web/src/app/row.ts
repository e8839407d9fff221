/** One row of the list: its mark, title, age and what happens; beside it what can be done with it. */

import { root } from "../root";
import { countsOf } from "../conversation/pieces";
import { make } from "../page";
import { html, iconOf, nothing, render, type TemplateResult } from "../render";
import { LIST } from "../texts/list";
import { v1 } from "../v1";
import { type Entry, moves, type State } from "./entries";
import type { Icon } from "../icons";
import { elapsed, when } from "../time";

export const MARKS: Record<State, [icon: Icon, look: string]> = {
  need: ["need", "need"],
  ask: ["ask", "need"],
  work: ["work", "work"],
  queued: ["todo", ""],
  interrupted: ["interrupted", ""],
  stopped: ["stop", ""],
  failed: ["failed", "bad"],
  done: ["done", ""],
};

export function mark(state: State, unread = false): TemplateResult {
  const [name, look] = MARKS[state];
  return html`<span class=${`mark ${look || (state === "done" && unread ? "ok" : "")}`}>${iconOf(name, state === "work" ? "spin" : "")}<span class="vh">${LIST.states[state]}</span></span>`;
}

export class RowView {
  readonly element = make("div", "entry-row");
  entry: Entry | undefined;
  private pinned = false;
  private selected = false;
  private age = "";

  constructor(
    private readonly open: (entry: Entry) => void,
    private readonly pin: (entry: Entry) => void,
    /** The user acts on the row, so it may move. */
    private readonly release: () => void,
    private readonly nameOf: (agent: string) => string,
    /** Selects the row, or the range to it. False: nothing is selected, and the row opens. */
    private readonly pick: (entry: Entry, range: boolean, begin: boolean) => boolean = () => false,
  ) {}

  select(on: boolean): void {
    if (on === this.selected) return;
    this.selected = on;
    this.render();
  }

  private picked = false;

  update(entry: Entry, pinned: boolean, picked = false): void {
    Object.assign(this, { entry, pinned, picked, age: ageOf(entry, Date.now()) });
    this.render();
  }

  /** Once a second. */
  tick(now: number): void {
    if (!this.entry) return;
    const age = ageOf(this.entry, now);
    if (age === this.age) return;
    this.age = age;
    this.render();
  }

  private render(): void {
    const { entry } = this;
    if (!entry) return;
    const click = (event: MouseEvent) => {
      if (!this.entry || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (!this.pick(this.entry, event.shiftKey, event.shiftKey)) this.open(this.entry);
    };
    const href = `${root}/app/${entry.kind === "job" ? "j" : "s"}/${encodeURIComponent(entry.id)}`;
    const changes = entry.changes ? html` ${countsOf(entry.changes.additions, entry.changes.deletions)}` : nothing;
    const agent = entry.kind === "job" ? nothing : html`<span class="agent-name"> · ${this.nameOf(entry.agent)}</span>`;
    render(
      html`<a class=${`entry ${entry.state} ${entry.unread ? "unread" : ""} ${this.picked ? "picked" : ""}`} href=${href} data-key=${entry.key} aria-current=${this.selected ? "true" : nothing} @click=${click}
          >${mark(entry.state, entry.unread)}<span class="t">${this.picked ? html`<span class="vh">${LIST.selected}</span>` : nothing}${entry.title}</span
          ><span class="age">${entry.unread ? html`<i class="dot" role="img" aria-label=${LIST.unread}></i>` : nothing}<span class="age-text">${this.age}</span></span
          ><span class="sub"><span class="act" title=${entry.line}>${entry.line}${changes}</span><span class="where" title=${entry.cwd}>${entry.folder}${agent}</span></span
          >${entry.steps?.length ? html`<span class="steps" aria-hidden="true">${entry.steps.slice(0, 20).map((state) => html`<b class=${state}></b>`)}</span>` : nothing}</a
        ><div class="row-acts">${this.actions(entry)}</div>`,
      this.element,
    );
  }

  /** Beside the row, under the pointer or with the focus; on a phone behind a swipe. Nothing that answers: cards do that. */
  private actions(entry: Entry): TemplateResult[] {
    const actions = LIST.actions;
    const act = (text: string, name: Icon, run: () => unknown) => html`<button type="button" class="icon" aria-label=${`${text} ${entry.title}`} title=${text} @click=${() => (this.release(), void run())}>${iconOf(name)}</button>`;
    const quiet = (work: Promise<unknown>) => work.catch(() => undefined); // who may only read sees that nothing changes
    const openMore = (event: Event) => {
      this.release();
      void this.openMore(event.currentTarget as HTMLElement);
    };
    const more = html`<button type="button" class="icon row-more" aria-label=${`${actions.more} ${entry.title}`} title=${LIST.moreKey} aria-haspopup="menu" aria-expanded="false" @click=${openMore}>${iconOf("more")}</button>`;
    const all = [act(this.pinned ? actions.unpin : actions.pin, this.pinned ? "unpin" : "pin", () => this.pin(entry))];
    if (entry.kind === "job") return [...all, more];
    if (entry.state === "interrupted") all.unshift(act(actions.resume, "resume", () => quiet(v1.resume(entry.id))));
    if (moves(entry)) return [...all, more];
    return [...all, act(entry.archived ? actions.unarchive : actions.archive, entry.archived ? "unarchive" : "archive", () => quiet(v1.change(entry.id, { archived: !entry.archived }))), more];
  }

  /** Its code is loaded with its first use. */
  private async openMore(button: HTMLElement): Promise<void> {
    const { openRowMenu } = await import("./rowMenu");
    if (this.entry) openRowMenu(this.entry, button, () => this.element.querySelector<HTMLElement>(".entry")?.focus(), (entry) => this.pick(entry, false, true));
  }
}

function ageOf({ since, time, state }: Entry, now: number): string {
  if (since === undefined) return when(time, now);
  return state === "work" || state === "queued" || now - since < 60_000 ? elapsed(now - since) : when(since, now);
}
