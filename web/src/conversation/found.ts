/** Marks the text that a search found in a row, without changing the row. */

import type { Conversation } from "./conversation";
import { markdownReady } from "./rows";
import type { Part, Turn } from "./state";

/** The name in `::highlight()` of the style sheet. */
const NAME = "found";
const MOST = 200;

export const contains = (text: string, wanted: string): boolean => text.toLowerCase().includes(wanted.toLowerCase());

/** What a part contributes to a search. */
export function textOf(part: Part): string {
  if (part.part === "call") return [part.title, part.input, part.output].filter(Boolean).join("\n");
  return part.text ?? "";
}

const hasText = (turn: Turn, text: string): boolean => contains(turn.message.text, text) || (turn.parts ?? []).some((part) => contains(textOf(part), text));

/** Shows the row of a turn that contains the text, and marks it there. */
export function goToText(conversation: Pick<Conversation, "reveal">, turns: Turn[], wanted: string, text: string): void {
  // A turn that was replaced is in the search index but not in the session: the newest one with the text is shown.
  const turn = turns.find(({ id }) => id === wanted) ?? turns.findLast((each) => hasText(each, text));
  if (!turn) return;
  const part = contains(turn.message.text, text) ? undefined : turn.parts?.find((each) => contains(textOf(each), text));
  const row = conversation.reveal(turn, part?.id);
  void markdownReady.then(() => markFound(row, text));
}

/** Marks every occurrence in an element. An empty text removes the marks. Browsers without highlights show the row only. */
export function markFound(element: HTMLElement | undefined, text: string): void {
  if (typeof Highlight === "undefined") return;
  CSS.highlights.delete(NAME);
  const ranges = element && text ? rangesOf(element, text.toLowerCase()) : [];
  if (ranges.length === 0) return;
  CSS.highlights.set(NAME, new Highlight(...ranges));
  ranges[0]?.startContainer.parentElement?.scrollIntoView({ block: "center" });
}

/** Occurrences inside one text node each. */
export function rangesOf(element: HTMLElement, wanted: string): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MOST; node = walker.nextNode()) {
    const text = (node.textContent ?? "").toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}
