/** What is asked before a session gets another name, or goes. */

import { make } from "../page";
import { askFirst, dialog } from "../shortcuts";
import { SESSION_DIALOGS } from "../texts/menus";

export function askDelete(name: string, work: () => Promise<unknown>): void {
  askFirst(SESSION_DIALOGS.deleteIt(name), SESSION_DIALOGS.itsHistoryAndTheSessions, "Delete", work);
}

export function askTitle(title: string, given: (title: string) => void): void {
  const box = dialog(SESSION_DIALOGS.rename);
  const form = make("form", "stack");
  const input = make("input");
  input.value = title;
  input.maxLength = 200;
  input.setAttribute("aria-label", SESSION_DIALOGS.title);
  form.append(input, make("button", "primary", SESSION_DIALOGS.rename));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.close();
    given(input.value.trim());
  });
  box.append(form);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  input.select();
}
