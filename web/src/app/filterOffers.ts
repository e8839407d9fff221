/** What the list can be filtered by: states, and the folders and agents that are in it. Loaded when the field gets the focus. */

import { makeButton } from "../page";
import { fits } from "./entries";
import type { BoardStore } from "./boardStore";
import { FILTER_OFFERS } from "../texts/list";

const STATES: Record<string, string> = { "is:needs": "needs you", "is:working": "working", "is:queued": "queued", "is:interrupted": "interrupted", "is:stopped": "stopped", "is:failed": "failed", "is:unread": "unread", "is:job": "jobs" };
/** So many folders, and so many agents. */
const MOST = 4;

export function filterOffers(board: BoardStore, choose: (word: string) => void): HTMLElement[] {
  const entries = board.entries();
  const most = (values: string[]) => [...new Set(values.filter(Boolean))].slice(0, MOST);
  const folders = most(entries.map(({ folder }) => folder)).map((name) => [`folder:${name}`, name]);
  const agents = most(entries.filter(({ kind }) => kind === "session").map(({ agent }) => agent)).map((id) => [`agent:${id}`, board.agentName(id)]);
  return [...Object.entries(STATES), ...folders, ...agents].flatMap(([word = "", text = ""]) => {
    if (/\s/.test(word) || !entries.some((entry) => fits(entry, word))) return [];
    const chip = makeButton("chip", text, () => choose(word));
    chip.setAttribute("aria-label", FILTER_OFFERS.only(text));
    chip.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    return [chip];
  });
}
