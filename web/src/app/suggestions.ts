/** `@` names files and `/` commands: what fits stands above the field, to be taken with the keys or a click. */

import { make, makeButton } from "../page";
import { call } from "../v1";

interface Item {
  text: string;
  about?: string;
}

const WAIT_MS = 120;

/** The word before the cursor that asks for suggestions. */
export function wordAt(text: string, at: number): { sign: "@" | "/"; word: string; from: number } | undefined {
  const from = Math.max(...[" ", "\n", "\t"].map((sign) => text.lastIndexOf(sign, at - 1))) + 1;
  const word = text.slice(from, at);
  if (word.startsWith("@")) return { sign: "@", word: word.slice(1), from };
  if (word.startsWith("/") && from === 0) return { sign: "/", word: word.slice(1), from };
  return undefined;
}

export class Suggestions {
  readonly element = make("div", "suggestions");
  private items: Item[] = [];
  private chosen = 0;
  private from = 0;
  private asked = 0;

  constructor(
    private readonly area: HTMLTextAreaElement,
    private readonly session: string,
  ) {
    this.element.id = "suggestions";
    this.element.setAttribute("role", "listbox");
    this.element.setAttribute("aria-label", "Suggestions");
    this.element.hidden = true;
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", this.element.id);
    area.addEventListener("input", () => this.look());
    area.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
  }

  private look(): void {
    const found = wordAt(this.area.value, this.area.selectionStart);
    const mine = ++this.asked;
    if (!found) return this.hide();
    setTimeout(async () => {
      if (mine !== this.asked) return;
      const query = new URLSearchParams({ q: found.sign + found.word });
      try {
        const { items } = await call<{ items: Item[] }>("GET", `/sessions/${encodeURIComponent(this.session)}/suggestions?${query}`);
        if (mine !== this.asked) return;
        this.from = found.from;
        this.show(items);
      } catch {
        this.hide(); // no scope for files, or out of reach: writing goes on
      }
    }, WAIT_MS);
  }

  private show(items: Item[]): void {
    this.items = items;
    this.chosen = 0;
    this.element.hidden = items.length === 0;
    this.element.replaceChildren(
      ...items.map((item, index) => {
        const row = makeButton("suggestion", "", () => this.take(index));
        row.setAttribute("role", "option");
        row.id = `suggestion-${index}`;
        row.tabIndex = -1;
        row.append(make("span", "", item.text));
        if (item.about) row.append(make("small", "soft", item.about));
        return row;
      }),
    );
    this.mark();
  }

  private mark(): void {
    [...this.element.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === this.chosen)));
    this.area.setAttribute("aria-activedescendant", `suggestion-${this.chosen}`);
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
    const text = `${item.text} `;
    this.area.setRangeText(text, this.from, end, "end");
    this.hide();
    this.area.focus();
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** True: the key was for us. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      this.chosen = (this.chosen + by + this.items.length) % this.items.length;
      this.mark();
    } else if (event.key === "Enter" || event.key === "Tab") {
      this.take(this.chosen);
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
