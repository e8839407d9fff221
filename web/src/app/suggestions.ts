/** `@` names files and sessions, `/` commands, `!` a line to run: matches are listed above the field, chosen with the keys or a click. */

import { Refused } from "../api";
import { icon, type Icon } from "../icons";
import { make, makeButton } from "../page";
import type { Suggestion } from "../rest";
import { ask } from "../v1";
import { type Sign, wordAt } from "./word";
import { SUGGESTIONS } from "../texts/composer";

const ICONS: Record<Sign, Icon> = { "@": "file", "/": "next", "!": "terminal" };

const WAIT_MS = 120;

export class Suggestions {
  readonly element = make("div", "suggestions");
  private items: Suggestion[] = [];
  private chosen = 0;
  private from = 0;
  private asked = 0;
  /** Lines can be run here; unknown until the user begins one. */
  runs: boolean | undefined;

  constructor(
    private readonly area: HTMLTextAreaElement,
    private readonly by: (sign: Sign) => string,
    private readonly chosenSession: (item: Suggestion) => void = () => undefined,
    private readonly learned: () => void = () => undefined,
  ) {
    this.element.id = "suggestions";
    this.element.setAttribute("role", "listbox");
    this.element.setAttribute("aria-label", SUGGESTIONS.suggestions);
    this.element.hidden = true;
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", this.element.id);
    area.addEventListener("input", () => this.update());
    area.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
  }

  update(): void {
    const found = wordAt(this.area.value, this.area.selectionStart);
    const mine = ++this.asked;
    const by = found && this.by(found.sign);
    if (!found || !by) return this.hide();
    setTimeout(async () => {
      if (mine !== this.asked) return;
            try {
        const { items } = await ask("GET /sessions/{id}/suggestions", { id: by }, { query: { q: found.sign + found.word } });
        if (found.sign === "!") this.setRuns(true);
        if (mine !== this.asked) return;
        this.from = found.from;
        // What is written out already need not be offered.
        this.render(items.filter(({ text }) => text !== found.sign + found.word), found.sign);
      } catch (error) {
        if (found.sign === "!" && error instanceof Refused && error.status === 403) this.setRuns(false);
        this.hide(); // no scope for it, or out of reach: typing continues
      }
    }, WAIT_MS);
  }

  private setRuns(runs: boolean): void {
    this.runs = runs;
    this.learned();
  }

  private render(items: Suggestion[], sign: Sign): void {
    this.items = items;
    // Enter runs the line that is written; an older one has to be chosen.
    this.chosen = sign === "!" ? -1 : 0;
    this.element.hidden = items.length === 0;
    this.element.replaceChildren(
      ...items.map((item, index) => {
        const row = makeButton("suggestion", "", () => this.take(index));
        row.setAttribute("role", "option");
        row.id = `suggestion-${index}`;
        row.tabIndex = -1;
        row.append(icon(item.session ? "chats" : ICONS[sign]), make("span", "", item.text));
        if (item.about) row.append(make("small", "soft", item.about));
        return row;
      }),
    );
    this.mark();
  }

  private mark(): void {
    [...this.element.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === this.chosen)));
    if (this.chosen >= 0) this.area.setAttribute("aria-activedescendant", `suggestion-${this.chosen}`);
    this.element.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  private hide(): void {
    this.items = [];
    this.element.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }

  private take(index: number): void {
    const item = this.items[index];
    if (!item) return;
    const end = this.area.selectionStart;
    const text = item.text.startsWith("!") ? item.text : `${item.text} `;
    this.area.setRangeText(text, this.from, end, "end");
    this.hide();
    if (item.session) this.chosenSession(item);
    this.area.focus();
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** True: the key was for us. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      this.chosen = (Math.max(this.chosen, by > 0 ? -1 : 0) + by + this.items.length) % this.items.length;
      this.mark();
    } else if (event.key === "Enter" && this.chosen < 0) {
      this.hide();
      return false;
    } else if (event.key === "Enter" || event.key === "Tab") {
      this.take(Math.max(this.chosen, 0));
    } else if (event.key === "Escape") {
      this.hide();
      event.stopPropagation();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }
}
