/** Announcements for screen readers: a card immediately when it opens, texts by the finished paragraph. */

import { plain } from "../conversation/pieces";
import type { SessionState, TextPart } from "../conversation/state";
import { make } from "../page";
import { FRAME } from "../texts/list";

/** More of one text at a time would be read for minutes. */
const MOST_CHARS = 600;

export class Announcer {
  readonly element = make("div", "vh");
  private readonly urgent = make("p");
  private readonly polite = make("p");
  /** Of the last text, so much has been read. */
  private read = 0;
  private part = "";
  private card = "";

  constructor() {
    this.urgent.setAttribute("aria-live", "assertive");
    this.polite.setAttribute("aria-live", "polite");
    this.element.append(this.urgent, this.polite);
  }

  /** What is there already is for the reader to find. */
  begin(state: SessionState): void {
    const last = lastText(state);
    this.part = last?.id ?? "";
    this.read = last?.text?.length ?? 0;
  }

  announceText(state: SessionState): void {
    const last = lastText(state);
    if (!last) return;
    if (last.id !== this.part) [this.part, this.read] = [last.id, 0];
    const text = last.text ?? "";
    const end = last.done ? text.length : text.lastIndexOf("\n\n");
    if (end <= this.read) return;
    this.polite.textContent = plain(text.slice(this.read, end)).slice(-MOST_CHARS);
    this.read = end;
  }

  announceCard(view: HTMLElement): void {
    const cards = [...view.querySelectorAll<HTMLElement>("#transcript .card:not(:has(dl))")];
    const title = cards.at(-1)?.querySelector("h2");
    const id = title?.id ?? "";
    if (id && id !== this.card) this.urgent.textContent = FRAME.announced(title?.textContent ?? "");
    if (!id) this.urgent.textContent = "";
    this.card = id;
  }
}

function lastText(state: SessionState): TextPart | undefined {
  return state.turns?.at(-1)?.parts?.findLast((part): part is TextPart => part.part === "text" && part.kind !== "reasoning");
}
