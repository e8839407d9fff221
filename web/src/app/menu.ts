/** A button with a list of things to do. Closes on a choice, on Escape and on a click beside it. */

import { make, makeButton } from "../page";
import { icon } from "../icons";

export interface Choice {
  id?: string;
  text: string;
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
  details.addEventListener("toggle", () => {
    if (details.open) list.replaceChildren(...choices().map((choice) => item(choice, () => (details.open = false))));
  });
  document.addEventListener("click", (event) => {
    if (details.open && !details.contains(event.target as Node)) details.open = false;
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
function walk(list: HTMLElement, event: KeyboardEvent): void {
  const all = [...list.querySelectorAll<HTMLElement>("a, button")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 0) - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  all.at(to % all.length)?.focus();
  event.preventDefault();
  event.stopPropagation();
}

/** The same list over the page, beside what opened it: a list that scrolls would cut it off. `closed` says where the focus goes. */
export function openMenu(beside: HTMLElement, name: string, choices: Choice[], closed: () => void): HTMLElement {
  const list = make("div", "menu floating");
  list.setAttribute("role", "menu");
  list.setAttribute("aria-label", name);
  const end = (focus: boolean) => {
    if (!list.isConnected) return;
    list.remove();
    beside.setAttribute("aria-expanded", "false");
    for (const type of OUTSIDE) document.removeEventListener(type, outside, true);
    if (focus) closed();
  };
  const outside = ({ target }: Event) => {
    if (!list.contains(target as Node)) end(false);
  };
  list.append(
    ...choices.map((choice) => {
      const found = item(choice, () => end(true));
      found.setAttribute("role", "menuitem");
      found.tabIndex = -1;
      return found;
    }),
  );
  list.addEventListener("keydown", (event) => {
    event.stopPropagation(); // letters are no keys of the page here
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      end(true);
    } else walk(list, event);
  });
  document.body.append(list);
  const at = beside.getBoundingClientRect();
  list.style.top = `${Math.max(8, Math.min(at.bottom + 4, window.innerHeight - list.offsetHeight - 8))}px`;
  list.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - list.offsetWidth - 8))}px`;
  beside.setAttribute("aria-expanded", "true");
  for (const type of OUTSIDE) document.addEventListener(type, outside, true);
  list.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  return list;
}

/** What is beside the menu and closes it; what the list scrolls under it would belong to another row. */
const OUTSIDE = ["pointerdown", "focusin", "scroll", "resize"] as const;

function item(choice: Choice, close: () => void): HTMLElement {
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
  if (choice.id) found.id = choice.id;
  if (choice.key) {
    const letter = make("kbd", "", choice.key);
    letter.setAttribute("aria-hidden", "true");
    found.append(letter);
    found.setAttribute("aria-keyshortcuts", choice.key);
  }
  return found;
}
