/** A menu over the page, beside what opened it. */

import { make } from "../page";
import { ignoreEarlyClicks } from "../settle";
import { Scope } from "../scope";
import { type Choice, item, walk } from "./menu";

/** The same list over the page, beside what opened it: a list that scrolls would cut it off. `closed` restores the focus. */
export function openMenu(beside: HTMLElement, name: string, choices: Choice[], closed: () => void): HTMLElement {
  const list = make("div", "menu floating");
  list.setAttribute("role", "menu");
  list.setAttribute("aria-label", name);
  const scope = new Scope();
  const end = (focus: boolean) => {
    if (!list.isConnected) return;
    list.remove();
    beside.setAttribute("aria-expanded", "false");
    scope.end();
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
  ignoreEarlyClicks(list);
  for (const type of OUTSIDE) scope.on(document, type, outside, { capture: true });
  list.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  return list;
}

/** What is beside the menu and closes it; what the list scrolls under it would belong to another row. */
const OUTSIDE = ["pointerdown", "focusin", "scroll", "resize"] as const;
