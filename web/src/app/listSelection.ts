/** Several rows of the list at once: archive, resume, mark as read, delete. */

import { explain } from "../failure";
import { make } from "../page";
import { html, nothing, render } from "../render";
import { page } from "../scope";
import { askFirst } from "../shortcuts";
import { SELECTION as TEXTS } from "../texts/selection";
import { v1 } from "../v1";
import { type Entry, moves } from "./entries";

export interface Rows {
  /** All rows that can be seen, in their order. */
  order(): Entry[];
  /** The row that is open: a range begins there if nothing is selected. */
  current(): string;
  changed(): void;
  markJobRead(id: string): void;
}

const stopped = ({ state }: Entry) => state === "interrupted" || state === "failed" || state === "stopped";
const isSession = ({ kind }: Entry) => kind === "session";

export class Selection {
  readonly element = make("div", "selection");
  private readonly keys = new Set<string>();
  private last = "";
  private trouble = "";
  private working = false;

  constructor(private readonly rows: Rows) {
    this.element.setAttribute("role", "toolbar");
    this.element.setAttribute("aria-label", TEXTS.name);
    page.on(document, "keydown", (event) => {
      if (event.key !== "Escape" || !this.active || document.querySelector("dialog[open], .menu.floating")) return;
      event.stopPropagation();
      this.clear();
    }, { capture: true });
  }

  get active(): boolean {
    return this.keys.size > 0;
  }

  has(key: string): boolean {
    return this.keys.has(key);
  }

  /** `range`: everything from the row that was selected last. */
  pick(entry: Entry, range: boolean): void {
    const order = this.rows.order().map(({ key }) => key);
    const from = order.indexOf(this.last || this.rows.current());
    const to = order.indexOf(entry.key);
    if (range && from >= 0 && to >= 0) for (const key of order.slice(Math.min(from, to), Math.max(from, to) + 1)) this.keys.add(key);
    else if (!this.keys.delete(entry.key)) this.keys.add(entry.key);
    this.last = this.active ? entry.key : "";
    this.trouble = "";
    this.notify();
  }

  clear(): void {
    this.keys.clear();
    this.last = this.trouble = "";
    this.notify();
  }

  private get entries(): Entry[] {
    return this.rows.order().filter(({ key }) => this.keys.has(key));
  }

  private notify(): void {
    this.rows.changed();
  }

  /** The rows have changed: what can be done with them follows. */
  render(): void {
    const entries = this.entries;
    const quiet = entries.filter((entry) => isSession(entry) && !moves(entry));
    const archived = quiet.length > 0 && quiet.every((entry) => entry.archived);
    const button = (text: string, found: Entry[], work: (entry: Entry) => Promise<unknown>) => (found.length ? html`<button type="button" ?disabled=${this.working} @click=${() => void this.all(found, work)}>${text}</button>` : nothing);
    render(
      html`<b role="status">${TEXTS.count(this.keys.size)}</b>
        ${button(archived ? TEXTS.unarchive : TEXTS.archive, quiet, ({ id }) => v1.change(id, { archived: !archived }))}
        ${button(TEXTS.resume, entries.filter(stopped), ({ id, kind }) => (kind === "job" ? v1.resumeJob(id) : v1.resume(id)))}
        ${button(TEXTS.read, entries.filter(({ unread }) => unread), async ({ id, kind }) => (kind === "job" ? this.rows.markJobRead(id) : v1.change(id, { read: true })))}
        ${quiet.length ? html`<button type="button" class="danger" ?disabled=${this.working} @click=${() => askFirst(TEXTS.deleteTitle(quiet.length), TEXTS.deleteText, TEXTS.deleteAction, () => this.all(quiet, ({ id }) => v1.remove(id)))}>${TEXTS.delete}</button>` : nothing}
        <button type="button" class="quiet" @click=${() => this.clear()}>${TEXTS.done}</button>
        ${this.trouble ? html`<p class="bad" role="alert">${this.trouble}</p>` : nothing}`,
      this.element,
    );
  }

  /** One after the other. Those that fail stay selected. */
  private async all(entries: Entry[], work: (entry: Entry) => Promise<unknown>): Promise<void> {
    this.working = true;
    this.trouble = "";
    this.render();
    let [failed, reason] = [0, ""];
    for (const entry of entries) {
      try {
        await work(entry);
        this.keys.delete(entry.key);
      } catch (error) {
        [failed, reason] = [failed + 1, explain(error)];
      }
    }
    this.working = false;
    if (failed) this.trouble = TEXTS.failed(failed, entries.length, reason);
    this.last = "";
    this.notify();
  }
}
