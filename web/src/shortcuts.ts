/** Keyboard shortcuts, and the list of them behind `?`. */

import { make, makeButton } from "./page";
import { ignoreEarlyClicks } from "./settle";
import { page } from "./scope";
import { DIALOGS } from "./texts/host";

export interface Shortcut {
  key: string;
  text: string;
  /** False: it does not apply now, and the key stays the browser's. */
  run(): boolean | void;
}

/** Keys that other parts of a page handle themselves; they are only listed. */
export type Hint = [keys: string, text: string];

const TYPING = "input:not([type=checkbox]), textarea, select, [contenteditable]";

export function shortcuts(list: Shortcut[], hints: Hint[] = []): void {
  const help = overlay(list, hints);
  page.on(document, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const target = event.target as Element;
    if (event.key === "Escape" && target instanceof HTMLElement && target.matches(TYPING)) return target.blur();
    if (target.matches(TYPING) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") {
      event.preventDefault();
      return help.showModal();
    }
    const found = list.find(({ key }) => key === event.key);
    if (found && found.run() !== false) event.preventDefault();
  });
  for (const button of document.querySelectorAll("[data-help]")) button.addEventListener("click", () => help.showModal());
}

function overlay(list: Shortcut[], hints: Hint[]): HTMLDialogElement {
  const rows: Hint[] = [...list.map(({ key, text }): Hint => [key, text]), ...hints, ["Esc", DIALOGS.leaveAFieldCloseThis], ["?", DIALOGS.thisList]];
  const help = dialog(DIALOGS.keys);
  const table = make("dl", "keys");
  for (const [keys, text] of rows) {
    const term = make("dt");
    term.append(...keys.split("+").flatMap((key, index) => [...(index ? ["+"] : []), make("kbd", "", key)]));
    table.append(term, make("dd", "", text));
  }
  help.append(table);
  return help;
}

/** A dialog with a title and a way out. */
export function dialog(title: string): HTMLDialogElement {
  const found = make("dialog", "panel");
  const heading = make("h2", "", title);
  heading.id = `dialog-${document.querySelectorAll("dialog").length + 1}`;
  found.setAttribute("aria-labelledby", heading.id);
  const head = make("header", "dialog-head");
  head.append(heading, makeButton("quiet", DIALOGS.close, () => found.close()));
  found.append(head);
  document.body.append(found);
  found.showModal = () => {
    HTMLDialogElement.prototype.showModal.call(found);
    ignoreEarlyClicks(found);
  };
  return found;
}

/** Asks before something that cannot be undone. */
export function askFirst(title: string, text: string, action: string, work: () => Promise<unknown>): void {
  const box = dialog(title);
  const row = make("div", "answers");
  row.append(
    makeButton("danger", action, () => {
      box.close();
      void work();
    }),
  );
  box.append(make("p", "", text), row);
  box.addEventListener("close", () => box.remove());
  box.showModal();
}
