/** The rows of a session, kept in step with its state. */

import { make } from "../page";
import { takesClicks } from "../settle";
import { CallRow, LookRow } from "./callRows";
import { kindOf } from "./calls";
import type { Actions } from "./pieces";
import { EndRow, endOf, MessageRow, messageOf, QuestionRow, TextRow } from "./rows";
import { type LogRecord, type Part, type SessionState, type Turn, waits } from "./state";
import { type Row, Transcript } from "./transcript";
import { addClientNames } from "./words";
import { TRANSCRIPT } from "../texts/conversation";

const ID_FIELDS = ["part", "call", "question"];
/** The story was cut or copied: everything is shown again. */
const REWRITES = new Set(["session.truncated", "history.copied"]);

export class Conversation {
  private readonly transcript: Transcript;
  private state: SessionState | undefined;
  private readonly empty = make("div", "empty");
  /** Calls that are shown in the row of another one. */
  private readonly looks = new Map<string, LookRow>();
  /** The last row, if it takes more looks around. */
  private look: LookRow | undefined;
  /** Something came while its reader was elsewhere. */
  private fresh = false;

  constructor(
    private readonly view: HTMLElement,
    private readonly end: HTMLButtonElement,
    private readonly acts: Actions,
  ) {
    this.transcript = new Transcript(view);
    view.addEventListener("scroll", () => this.showEnd(), { passive: true });
    end.addEventListener("click", () => this.toEnd());
    this.empty.append(
      make("h2", "", TRANSCRIPT.noMessagesYet),
      make("p", "", TRANSCRIPT.writeBelowWhatYouWant),
    );
  }

  open(state: SessionState): void {
    this.state = state;
    addClientNames(state.client_names);
    this.transcript.clear();
    this.looks.clear();
    this.look = undefined;
    this.transcript.append(...(state.turns ?? []).flatMap((turn) => this.rowsOf(turn)));
    this.transcript.settle();
    this.renderEmpty();
    this.showEnd();
  }

  move(state: SessionState, events: LogRecord["event"][]): void {
    if (events.some(({ type }) => REWRITES.has(type))) return this.open(state);
    this.state = state;
    const turns = new Set(events.map((event) => event["turn"]));
    for (const turn of (state.turns ?? []).slice(-turns.size)) if (turns.has(turn.id)) this.grow(turn, events);
    for (const key of new Set(events.flatMap((event) => this.touched(event)).map((id) => this.rowKey(id)))) this.transcript.update(key);
    this.renderEmpty();
    this.transcript.follow();
    this.fresh ||= !this.end.hidden;
    this.showEnd();
  }

  private touched(event: LogRecord["event"]): string[] {
    const named = ID_FIELDS.map((name) => event[name]).filter((id) => typeof id === "string");
    if (event.type !== "approval.answered") return named;
    const parts = this.state?.turns?.at(-1)?.parts ?? [];
    const call = parts.findLast((part) => part.part === "call" && part.approvals?.some(({ id }) => id === event["approval"]));
    return call ? [call.id] : [];
  }

  /** A turn grows at its end: new parts, then the line with its outcome. */
  private grow(turn: Turn, events: LogRecord["event"][]): void {
    const reports = events.some(({ type }) => type === "turn.resumed" || type === "usage");
    if (this.transcript.has(endOf(turn)) && reports && turn === this.state?.turns?.at(-1)) this.transcript.pop();
    const { parts = [] } = turn;
    let known = parts.length;
    while (known > 0 && !this.has(parts[known - 1]?.id ?? "")) known--;
    const message = this.transcript.has(messageOf(turn)) ? [] : [new MessageRow(turn, this.acts)];
    if (message.length > 0) this.look = undefined;
    const fresh = parts.slice(known).flatMap((part) => this.rowsOfPart(part));
    const end = turn.outcome && !this.transcript.has(endOf(turn)) ? [this.endOf(turn)] : [];
    this.transcript.append(...message, ...fresh, ...end);
  }

  private rowsOf(turn: Turn): Row[] {
    this.look = undefined;
    return [new MessageRow(turn, this.acts), ...(turn.parts ?? []).flatMap((part) => this.rowsOfPart(part)), ...(turn.outcome ? [this.endOf(turn)] : [])];
  }

  private rowKey(part: string): string {
    return this.looks.get(part)?.key ?? part;
  }

  private has(part: string): boolean {
    return this.transcript.has(part) || this.looks.has(part);
  }

  /** None: it joined the row before. */
  private rowsOfPart(part: Part): Row[] {
    if (part.part !== "call" || kindOf(part) !== "look" || waits(part) || part.approvals?.length) {
      this.look = undefined;
      return [this.rowOf(part)];
    }
    if (this.look) {
      this.look.calls.push(part);
      this.looks.set(part.id, this.look);
      this.transcript.update(this.look.key);
      return [];
    }
    this.look = new LookRow(part, this.acts);
    return [this.look];
  }

  private endOf(turn: Turn): Row {
    this.look = undefined;
    return new EndRow(turn, () => turn === this.state?.turns?.at(-1), this.acts);
  }

  private rowOf(part: Part): Row {
    if (part.part === "text") return new TextRow(part);
    return part.part === "call" ? new CallRow(part, this.acts) : new QuestionRow(part, this.acts);
  }

  /**
   * Answers the first approval that waits; false when none does. A key does not answer a card that was not visible: a card out of
   * sight is shown first, and one that has only just come does not take the key that was meant for the one before.
   */
  press(key: "y" | "n"): boolean {
    const part = this.state?.turns?.at(-1)?.parts?.find((each) => each.part === "call" && waits(each));
    const card = part && this.transcript.element(this.rowKey(part.id))?.querySelector<HTMLElement>(".approval");
    if (!part || !card) return false;
    if (!this.inSight(card)) this.transcript.reveal(this.rowKey(part.id));
    else if (takesClicks(card)) card.querySelector<HTMLButtonElement>(`button[data-answer="${key}"]:enabled`)?.click();
    return true;
  }

  /** Chooses an answer of the question that waits, by its number. */
  choose(number: string): boolean {
    const part = this.state?.turns?.at(-1)?.parts?.find((each) => each.part === "question" && waits(each));
    const card = part && this.transcript.element(this.rowKey(part.id))?.querySelector<HTMLElement>(".question");
    const button = card?.querySelector<HTMLButtonElement>(`button[data-answer="${number}"]:enabled`);
    if (!part || !card || !button) return false;
    if (!this.inSight(card)) this.transcript.reveal(this.rowKey(part.id));
    else if (takesClicks(card)) button.click();
    return true;
  }

  private inSight(card: HTMLElement): boolean {
    const [inner, outer] = [card.querySelector(".answers")?.getBoundingClientRect(), this.view.getBoundingClientRect()];
    return inner !== undefined && inner.top >= outer.top && inner.top <= outer.bottom;
  }

  goToWaiting(): boolean {
    const part = this.state?.turns?.at(-1)?.parts?.find(waits);
    if (!part) return false;
    this.transcript.reveal(this.rowKey(part.id));
    this.transcript.element(this.rowKey(part.id))?.querySelector<HTMLElement>(".card :is(input, .answers button)")?.focus();
    return true;
  }

  /** Opens or folds the block with the focus, else the last one that can be. */
  toggle(): boolean {
    const focused = document.activeElement?.closest<HTMLElement>("#transcript .row");
    const found = (focused ?? this.view).querySelectorAll<HTMLDetailsElement>("details.call, .reasoning details");
    const block = [...found].at(-1);
    if (block) block.open = !block.open;
    return block !== undefined;
  }

  /** The message of a person before or after what is in view. */
  stepMessage(by: 1 | -1): boolean {
    const turns = this.state?.turns ?? [];
    const top = this.view.getBoundingClientRect().top + 8;
    const shown = turns.findLastIndex((turn) => {
      const element = this.transcript.built(messageOf(turn));
      return element !== undefined && element.getBoundingClientRect().top < top + 80;
    });
    const turn = turns[Math.min(Math.max((shown < 0 ? turns.length : shown) + by, 0), turns.length - 1)];
    if (!turn) return false;
    this.transcript.reveal(messageOf(turn), "start");
    return true;
  }

  /** The turn whose message was the last to leave the view at its top. */
  passed(): Turn | undefined {
    const turns = this.state?.turns ?? [];
    const top = this.view.getBoundingClientRect().top + 8;
    let [low, high] = [0, turns.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.transcript.bottomOf(messageOf(turns[middle] as Turn)) ?? top) < top) low = middle + 1;
      else high = middle;
    }
    return turns[low - 1];
  }

  /** Shows the row of a part, or of the turn's message, and returns it. */
  reveal(turn: Turn, part?: string): HTMLElement | undefined {
    const key = part === undefined ? messageOf(turn) : this.rowKey(part);
    this.transcript.reveal(key, "start");
    return this.transcript.element(key);
  }

  goToMessage(turn: Turn): void {
    this.transcript.reveal(messageOf(turn), "start");
  }

  /** What a part shows has come from elsewhere. */
  refresh(part: string): void {
    this.transcript.update(this.rowKey(part));
  }

  /** By the page, not by a key: there is no outline until a key is pressed. */
  focus(): void {
    const { view } = this;
    view.dataset["quiet"] = "";
    const loud = () => delete view.dataset["quiet"];
    view.addEventListener("keydown", loud, { once: true });
    view.addEventListener("blur", loud, { once: true });
    view.focus({ preventScroll: true });
  }

  toEnd(): void {
    this.transcript.toEnd();
    this.showEnd();
  }

  private showEnd(): void {
    this.end.hidden = this.view.scrollHeight - this.view.scrollTop - this.view.clientHeight < 200;
    if (this.end.hidden) this.fresh = false;
    const text = this.fresh ? TRANSCRIPT.newBelow : TRANSCRIPT.jumpToLatest;
    if (this.end.textContent !== text) this.end.textContent = text;
  }

  private renderEmpty(): void {
    if (this.transcript.size === 0) this.view.append(this.empty);
    else this.empty.remove();
  }
}
