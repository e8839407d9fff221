/** What is asked before a session gets another name, or goes. */

import { make } from "../page";
import { askFirst, dialog } from "../shortcuts";

export function askDelete(name: string, work: () => Promise<unknown>): void {
  askFirst(`Delete ${name}?`, "Its history and the sessions that came out of it go with it. This cannot be undone.", "Delete", work);
}

export function askTitle(title: string, given: (title: string) => void): void {
  const box = dialog("Rename");
  const form = make("form", "stack");
  const input = make("input");
  input.value = title;
  input.maxLength = 200;
  input.setAttribute("aria-label", "Title");
  form.append(input, make("button", "primary", "Rename"));
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
