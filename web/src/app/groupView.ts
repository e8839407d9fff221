/** One group of the list: a heading that folds it, and of its rows those near the view. */

import { make, makeButton } from "../page";
import type { Entry, Group } from "./entries";
import { between, offsetsOf, spaced } from "./rowWindow";

/** Row height by shape: measured as soon as one is in the page. */
const heights = new Map([["session", 50], ["job", 58]]);
const shapeOf = (entry: Entry | undefined) => (entry?.steps?.length ? "job" : "session");
const heightOf = (entry: Entry | undefined) => heights.get(shapeOf(entry)) ?? 50;

export class GroupView {
  readonly element = make("section", "group");
  /** What is here, in its order. */
  entries: Entry[] = [];
  /** So many more the host has; they have their place already. */
  left = 0;
  folded = false;
  private fixed = false;
  private readonly head: HTMLButtonElement;
  private readonly count = make("span", "group-count");
  private readonly body = make("div", "group-body");
  private offsets = offsetsOf(0, () => 0);
  private drawn = { first: 0, end: 0, kept: -1, offsets: this.offsets };

  constructor(group: Group, title: string, fold: () => void) {
    this.element.dataset["group"] = group;
    const heading = make("h2");
    this.head = makeButton("group-head", title, fold);
    this.head.append(this.count);
    heading.append(this.head);
    this.element.append(heading, this.body);
  }

  /** Stays at the top while the other groups scroll. All of its rows are in the page. */
  pin(on: boolean): void {
    this.fixed = on && !this.folded;
    this.element.classList.toggle("pinned", this.fixed);
  }

  get pinned(): boolean {
    return this.fixed;
  }

  get total(): number {
    return this.entries.length + this.left;
  }

  /** Shows the count and reserves the height; `draw` renders the rows. */
  arrange(count: number): void {
    this.head.setAttribute("aria-expanded", String(!this.folded));
    if (this.count.textContent !== String(count)) this.count.textContent = String(count);
    this.body.hidden = this.folded;
    this.takeRoom();
  }

  takeRoom(): void {
    this.offsets = offsetsOf(this.folded ? 0 : this.total, (index) => heightOf(this.entries[index]));
    this.body.style.height = `${this.offsets.at(-1) ?? 0}px`;
  }

  /** The position of a row in the list; undefined: not in this group. */
  placeOf(key: string): { top: number; height: number } | undefined {
    const index = this.folded ? -1 : this.entries.findIndex((entry) => entry.key === key);
    return index < 0 ? undefined : { top: this.body.offsetTop + (this.offsets[index] ?? 0), height: heightOf(this.entries[index]) };
  }

  /** Builds what is between these two heights of the list, and the row `stays`. True: rows are missing there. */
  draw(from: number, to: number, row: (entry: Entry) => HTMLElement, stays: string | undefined): boolean {
    if (this.folded) return false;
    const top = this.body.offsetTop;
    const [first, end] = this.fixed ? [0, this.total] : between(this.offsets, from - top, to - top);
    const kept = stays === undefined ? -1 : this.entries.findIndex((entry) => entry.key === stays);
    const { drawn } = this;
    if (drawn.offsets !== this.offsets || drawn.first !== first || drawn.end !== end || drawn.kept !== kept) {
      this.drawn = { first, end, kept, offsets: this.offsets };
      const near = Array.from({ length: end - first }, (_, index) => first + index);
      place(this.body, spaced(kept < 0 ? near : [...near, kept], this.offsets).map((piece) => ("space" in piece ? space(piece.space) : this.rowAt(piece.row, row))));
    }
    return end > first && end > this.entries.length;
  }

  private rowAt(index: number, row: (entry: Entry) => HTMLElement): HTMLElement {
    const entry = this.entries[index];
    if (entry) return row(entry);
    const ghost = make("div", "ghost");
    ghost.style.height = `${heightOf(undefined) - 8}px`;
    return ghost;
  }

  /** True: a row is not as high as was thought. */
  measure(elementOf: (entry: Entry) => HTMLElement | undefined): boolean {
    let wrong = false;
    for (const entry of this.entries.slice(this.drawn.first, this.drawn.end)) {
      const height = elementOf(entry)?.getBoundingClientRect().height;
      if (!height || Math.abs(height - heightOf(entry)) < 0.5) continue;
      heights.set(shapeOf(entry), height);
      wrong = true;
    }
    return wrong;
  }
}

function space(height: number): HTMLElement {
  const found = make("div", "rows-away");
  found.style.height = `${height}px`;
  return found;
}

/** The elements in this order, moving as few as possible: focus and hover stay where they are. */
export function place(parent: HTMLElement, children: HTMLElement[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child as HTMLElement)) child.remove();
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}
