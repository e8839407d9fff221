/**
 * A long column of rows of which only those near the view stand in the page.
 *
 * A conversation grows at its end and is cut at its end, so rows stand in chunks of a fixed number; a chunk away from the
 * view is an empty box: of a guessed height until its rows were built, of their measured height afterwards. What every
 * frame costs the browser grows with what stands in the page, so 10,000 rows are 625 boxes. Rows that left keep their
 * elements: what was opened stays open, and nothing is rendered twice.
 */

import { make } from "../page";

export interface Row {
  readonly key: string;
  build(): HTMLElement;
  /** What it shows may have changed; called only after `build`. */
  update?(): void;
}

/** Few enough to be built within a frame. */
const CHUNK = 16;
/** A collapsed tool call and a short answer, on average; wrong guesses only move the scroll bar. */
const ROW_REM = 4;
const NEAR = "4000px 0px";
/** So many pixels above the end still count as being at the end. */
const AT_END = 48;

/** So many chunks at the end are built at once: more than a screen. */
const SETTLED = 3;

interface Chunk {
  box: HTMLElement;
  rows: Row[];
  /** The rows' elements, once somebody came near. */
  elements: HTMLElement[] | undefined;
  shown: boolean;
}

export class Transcript {
  private chunks: Chunk[] = [];
  private readonly rows = new Map<string, Row>();
  private readonly near: IntersectionObserver | undefined;
  /** The reader is at the end and wants to stay there. */
  private following = true;
  private top = 0;
  private readonly column = make("div");

  constructor(private readonly view: HTMLElement) {
    if (typeof IntersectionObserver !== "undefined")
      this.near = new IntersectionObserver((entries) => this.came(entries), { root: view, rootMargin: NEAR });
    view.append(this.column);
    view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // What is at the end grows without us as well: rows that are laid out only now, opened details, a keyboard that comes.
    if (typeof ResizeObserver !== "undefined") {
      const sizes = new ResizeObserver(() => this.follow());
      sizes.observe(view);
      sizes.observe(this.column);
    }
  }

  get size(): number {
    return this.rows.size;
  }

  has(key: string): boolean {
    return this.rows.has(key);
  }

  clear(): void {
    this.near?.disconnect();
    this.chunks = [];
    this.rows.clear();
    this.column.replaceChildren();
    this.following = true;
  }

  append(...rows: Row[]): void {
    for (const row of rows) {
      let last = this.chunks.at(-1);
      if (!last || last.rows.length >= CHUNK) this.chunks.push((last = this.newChunk()));
      last.rows.push(row);
      this.rows.set(row.key, row);
      if (last.elements) this.add(last, row.build());
      else last.box.style.setProperty("--height", `${last.rows.length * ROW_REM}rem`);
    }
  }

  /** Takes the last row away. */
  pop(): void {
    const last = this.chunks.at(-1);
    const row = last?.rows.pop();
    if (!last || !row) return;
    this.rows.delete(row.key);
    last.elements?.pop()?.remove();
    if (last.rows.length > 0) return;
    this.near?.unobserve(last.box);
    last.box.remove();
    this.chunks.pop();
  }

  update(key: string): void {
    const row = this.rows.get(key);
    if (row && this.chunkOf(row)?.elements) row.update?.();
  }

  /** Builds the end, where readers begin, at once. */
  settle(): void {
    for (const chunk of this.chunks.slice(-SETTLED)) this.show(chunk);
    this.follow();
  }

  follow(): void {
    if (this.following) this.view.scrollTop = this.view.scrollHeight;
  }

  toEnd(): void {
    this.following = true;
    this.follow();
  }

  /** A row's element, in the page from now on. */
  element(key: string): HTMLElement | undefined {
    const row = this.rows.get(key);
    const chunk = row && this.chunkOf(row);
    if (!row || !chunk) return undefined;
    this.show(chunk);
    return chunk.elements?.[chunk.rows.indexOf(row)];
  }

  /** A row's element, if it stands in the page. */
  built(key: string): HTMLElement | undefined {
    const row = this.rows.get(key);
    const chunk = row && this.chunkOf(row);
    return row && chunk?.shown ? chunk.elements?.[chunk.rows.indexOf(row)] : undefined;
  }

  reveal(key: string, block: ScrollLogicalPosition = "center"): void {
    this.following = false;
    this.element(key)?.scrollIntoView({ block });
  }

  /** Only going up ends the following: what is below may have grown before this event came. */
  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.view;
    if (scrollHeight - scrollTop - clientHeight <= AT_END) this.following = true;
    else if (scrollTop < this.top) this.following = false;
    this.top = scrollTop;
  }

  /** What changes is nearly always at the end. */
  private chunkOf(row: Row): Chunk | undefined {
    return this.chunks.findLast((chunk) => chunk.rows.includes(row));
  }

  private newChunk(): Chunk {
    const shown = !this.near || this.chunks.at(-1)?.shown === true;
    const chunk: Chunk = { box: make("div", shown ? "chunk" : "chunk away"), rows: [], elements: shown ? [] : undefined, shown };
    this.column.append(chunk.box);
    this.near?.observe(chunk.box);
    return chunk;
  }

  private came(entries: IntersectionObserverEntry[]): void {
    const chunks = new Map(this.chunks.map((chunk) => [chunk.box as Element, chunk]));
    for (const { isIntersecting, target, boundingClientRect } of entries) {
      const chunk = chunks.get(target);
      if (chunk && isIntersecting) this.show(chunk);
      else if (chunk) this.hide(chunk, boundingClientRect.height);
    }
    this.follow();
  }

  private add(chunk: Chunk, element: HTMLElement): void {
    chunk.elements?.push(element);
    if (chunk.shown) chunk.box.append(element);
  }

  private show(chunk: Chunk): void {
    if (chunk.shown) return;
    chunk.shown = true;
    chunk.elements ??= chunk.rows.map((row) => row.build());
    chunk.box.classList.remove("away");
    chunk.box.append(...chunk.elements);
  }

  /** Where somebody selects or writes, everything stays. */
  private hide(chunk: Chunk, height: number): void {
    if (!chunk.shown || chunk.box.contains(document.activeElement) || selected(chunk.box)) return;
    chunk.shown = false;
    chunk.box.style.setProperty("--height", `${height}px`);
    chunk.box.classList.add("away");
    chunk.box.replaceChildren();
  }
}

function selected(box: HTMLElement): boolean {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(box, true);
}
