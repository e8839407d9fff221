/** What waits for a person in a session: a card for each, until it is answered, here or elsewhere. */

import { explain, type LiveElement } from "./api";
import { approvalCard } from "./conversation/approval";
import type { CardActions } from "./conversation/pieces";
import { questionCard } from "./conversation/question";
import { active, type Part, waitingApproval, waits } from "./conversation/state";
import { v1 } from "./v1";

export class AskedView {
  /** What waits, by its id, with its card once that is known. */
  private readonly cards = new Map<string, HTMLElement | undefined>();
  private cwd = "";
  private readonly acts: CardActions;

  constructor(
    private readonly sessionId: string,
    private readonly part: HTMLElement,
    private readonly complain: (text: string) => void,
  ) {
    this.acts = { cwd: () => this.cwd, attempt: (work) => this.attempt(work) };
  }

  take({ callback, askId }: LiveElement): void {
    if (callback === "onPersonAsked") this.cards.set(String(askId), undefined);
    if (callback === "onPersonAnswered") this.forget(String(askId));
    if (callback === "onIdle") this.clear();
  }

  clear(): void {
    for (const id of [...this.cards.keys()]) this.forget(id);
  }

  /** After a list was taken: most of what it asked may be answered in it as well. */
  render(): void {
    this.part.hidden = this.cards.size === 0;
    if ([...this.cards.values()].includes(undefined)) void this.attempt(() => this.load());
  }

  private async load(): Promise<void> {
    const state = await v1.session(this.sessionId);
    this.cwd = state.cwd ?? "";
    for (const part of active(state)?.parts?.filter(waits) ?? []) this.add(part);
  }

  private add(part: Part): void {
    const approval = part.part === "call" ? waitingApproval(part) : undefined;
    const id = approval?.id ?? part.id;
    if (!this.cards.has(id) || this.cards.get(id)) return;
    const card = part.part === "call" && approval ? approvalCard(approval, part, this.acts) : part.part === "question" ? questionCard(part, this.acts) : undefined;
    if (!card) return;
    this.cards.set(id, card);
    this.part.append(card);
  }

  private forget(id: string): void {
    this.cards.get(id)?.remove();
    this.cards.delete(id);
  }

  private async attempt(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.complain(explain(error));
      return false;
    }
  }
}
