/** A button with a list of actions. It closes after a choice, on Escape and on a click outside. */

import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { icon } from "../icons";
import { ignoreEarlyClicks } from "../settle";

export interface Choice {
  id?: string;
  text: string;
  /** What it means, in a second line. */
  about?: string;
  key?: string;
  danger?: boolean;
  href?: string;
  run?(): void;
}

export function menu(id: string, name: string, choices: () => Choice[]): HTMLElement {
  const details = make("details", "menu-button");
  details.id = id;
  const summary = make("summary", "icon");
  summary.append(icon("more"));
  summary.setAttribute("aria-label", name);
  const list = make("div", "menu");
  details.append(summary, list);
  let opened: Scope | undefined;
  details.addEventListener("toggle", () => {
    opened?.end();
    if (!details.open) return;
    list.replaceChildren(...choices().map((choice) => item(choice, () => (details.open = false))));
    ignoreEarlyClicks(list);
    // Only while it is open: a listener of the document keeps the view of the menu in memory.
    opened = new Scope();
    opened.on(document, "click", (event) => {
      if (!details.contains(event.target as Node)) details.open = false;
    });
  });
  details.addEventListener("keydown", (event) => {
    if (!details.open) return;
    if (event.key === "Escape") {
      details.open = false;
      summary.focus();
      event.stopPropagation();
    } else walk(list, event);
  });
  return details;
}

/** Arrows go round, Home and End to the ends. */
export function walk(list: HTMLElement, event: KeyboardEvent): void {
  const all = [...list.querySelectorAll<HTMLElement>("a, button")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 0) - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  all.at(to % all.length)?.focus();
  event.preventDefault();
  event.stopPropagation();
}

export function item(choice: Choice, close: () => void): HTMLElement {
  let found: HTMLElement;
  if (choice.href !== undefined) {
    const anchor = make("a", "", choice.text);
    anchor.href = choice.href;
    anchor.download = "";
    found = anchor;
  } else {
    found = makeButton(choice.danger ? "danger" : "", choice.text, () => {
      close();
      choice.run?.();
    });
  }
  if (choice.about) found.append(make("small", "", choice.about));
  if (choice.id) found.id = choice.id;
  if (choice.key) {
    const letter = make("kbd", "", choice.key);
    letter.setAttribute("aria-hidden", "true");
    found.append(letter);
    found.setAttribute("aria-keyshortcuts", choice.key);
  }
  return found;
}
