/** The menu behind an answer that is remembered: what it would cover, the narrowest first. */

import { make, makeButton } from "../page";
import { ignoreEarlyClicks } from "../settle";
import { APPROVAL } from "../texts/cards";
import { type Covered, v1 } from "../v1";
import { coverPhrase } from "./grants";
import type { CardActions } from "./pieces";
import type { Approval, CallPart, Option } from "./state";

/** Pixels between the menu and the edge of the window. */
const EDGE_PX = 8;

export type Choose = (option: Option, breadth?: Covered["breadth"], covers?: string[]) => unknown;

/** One menu for each card: while its answer is on the way, and while it is open, there is no second one. */
export class Scopes {
  private menu: HTMLElement | undefined;
  private asking = false;

  constructor(
    private readonly card: HTMLElement,
    private readonly approval: Approval,
    private readonly call: CallPart,
    private readonly acts: CardActions,
    private readonly choose: Choose,
  ) {}

  /** Opens it over `button`; closes it if it is open. */
  async toggle(button: HTMLElement, option: Option): Promise<void> {
    if (this.menu) return this.close();
    if (this.asking) return;
    this.asking = true;
    let covers: Covered[] = [];
    const known = await this.acts.attempt(async () => void (covers = await v1.covers(this.approval.id)));
    this.asking = false;
    if (known && covers.length > 0 && button.isConnected) this.open(button, option, covers);
  }

  private open(button: HTMLElement, option: Option, covers: Covered[]): void {
    const menu = (this.menu = make("div", "scopes"));
    menu.setAttribute("role", "group");
    menu.setAttribute("aria-label", APPROVAL.what(option.label));
    menu.append(
      ...covers.map(({ breadth, covers: each }) =>
        makeButton("option", APPROVAL.allowScope(coverPhrase(each, this.approval, this.call, this.acts.cwd())), () => {
          this.close();
          this.choose(option, breadth, each);
        }),
      ),
      make("p", "soft", APPROVAL.notAskedAgain(option.grant === "session")),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
      button.focus();
    });
    menu.addEventListener("toggle", (event) => (event as ToggleEvent).newState === "closed" && this.close());
    this.card.append(menu);
    place(menu, button);
    ignoreEarlyClicks(menu);
    menu.querySelector("button")?.focus({ preventScroll: true });
    button.closest("#transcript, .scroll")?.addEventListener("scroll", () => this.close(), { once: true });
  }

  private close(): void {
    this.menu?.remove();
    this.menu = undefined;
  }
}

/** Over the page, so that nothing moves; the first choice covers the button that opened it, with room below or without. */
function place(menu: HTMLElement, button: HTMLElement): void {
  if (!menu.showPopover) return; // an old browser: it stays below the card
  menu.popover = "auto";
  menu.showPopover();
  const [first, at] = [menu.querySelector<HTMLElement>("button"), button.getBoundingClientRect()];
  if (!first) return;
  first.style.minHeight = `${at.height}px`;
  const top = () => at.top + (at.height - first.offsetHeight) / 2 - first.offsetTop - menu.clientTop;
  const [aside, { width }] = [first.offsetLeft + menu.clientLeft, menu.style];
  menu.style.minWidth = width || `${at.width + 2 * aside}px`;
  menu.style.left = `${Math.max(EDGE_PX, Math.min(at.left - aside, window.innerWidth - menu.offsetWidth - EDGE_PX))}px`;
  if (top() + menu.offsetHeight > window.innerHeight - EDGE_PX) {
    menu.classList.add("upwards");
    if (top() < EDGE_PX) menu.classList.remove("upwards");
  }
  menu.style.top = `${top()}px`;
  menu.style.maxHeight = `${window.innerHeight - EDGE_PX - top()}px`;
}
