/** The list behind `?`: every key, and what it does. */

import { make } from "../page";
import { dialog } from "../shortcuts";
import type { Key } from "./workbench";
import { KEY_LIST } from "../texts/keys";

export function showKeys(all: Key[]): void {
  const box = dialog(KEY_LIST.keys);
  box.addEventListener("close", () => box.remove());
  const table = make("dl", "keys");
  for (const { keys: each, text } of all) {
    const term = make("dt");
    term.append(...each.split(/([+ ])/).map((piece) => (piece === "+" || piece === " " ? piece : make("kbd", "", piece.length === 1 ? piece.toUpperCase() : piece))));
    table.append(term, make("dd", "", text));
  }
  box.append(table, make("p", "soft", KEY_LIST.singleLettersActOnlyOutside));
  box.showModal();
}
