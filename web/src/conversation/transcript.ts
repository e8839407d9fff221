/**
 * A long column of rows of which only those near the view are built.
 *
 * A conversation grows at its end and is cut at its end, so rows stand in chunks of a fixed number; a chunk is an empty
 * box of a guessed height until it comes near the view. 10,000 rows are then 250 boxes.
 */

import { make } from "../page";

export interface Row {
  readonly key: string;
  build(): HTMLElement;
  /** What it shows may have changed; called only after `build`. */
  update?(): void;
}

const CHUNK = 40;
/** A collapsed tool call and a short answer, on average; wrong guesses only move the scroll bar. */
const ROW_REM = 4;
const NEAR = "1200px 0px";
/** So many pixels above the end still count as being at the end. */
const AT_END = 48;

interface Chunk {
  box: HTMLElement;
  rows: Row[];
  built: boolean;
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
      if (last.built) last.box.append(row.build());
      else last.box.style.setProperty("--guess", `${last.rows.length * ROW_REM}rem`);
    }
  }

  /** Takes the last row away. */
  pop(): void {
    const last = this.chunks.at(-1);
    const row = last?.rows.pop();
    if (!last || !row) return;
    this.rows.delete(row.key);
    if (last.built) last.box.lastElementChild?.remove();
    if (last.rows.length > 0) return;
    this.near?.unobserve(last.box);
    last.box.remove();
    this.chunks.pop();
  }

  update(key: string): void {
    const row = this.rows.get(key);
    if (row && this.chunkOf(row)?.built) row.update?.();
  }

  /** Builds the end, where readers begin, at once. */
  settle(): void {
    for (const chunk of this.chunks.slice(-2)) this.fill(chunk);
    this.follow();
  }

  follow(): void {
    if (this.following) this.view.scrollTop = this.view.scrollHeight;
  }

  toEnd(): void {
    this.following = true;
    this.follow();
  }

  /** A row's element, built if it was not yet. */
  element(key: string): HTMLElement | undefined {
    const row = this.rows.get(key);
    const chunk = row && this.chunkOf(row);
    if (!row || !chunk) return undefined;
    this.fill(chunk);
    return chunk.box.children[chunk.rows.indexOf(row)] as HTMLElement | undefined;
  }

  reveal(key: string): void {
    this.following = false;
    this.element(key)?.scrollIntoView({ block: "center" });
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
    const before = this.chunks.at(-1);
    const chunk: Chunk = { box: make("div", "chunk"), rows: [], built: !this.near || before?.built === true };
    if (!chunk.built) {
      chunk.box.classList.add("unbuilt");
      this.near?.observe(chunk.box);
    }
    this.column.append(chunk.box);
    return chunk;
  }

  private came(entries: IntersectionObserverEntry[]): void {
    for (const { isIntersecting, target } of entries) {
      const chunk = isIntersecting ? this.chunks.find(({ box }) => box === target) : undefined;
      if (chunk) this.fill(chunk);
    }
    this.follow();
  }

  private fill(chunk: Chunk): void {
    if (chunk.built) return;
    chunk.built = true;
    this.near?.unobserve(chunk.box);
    chunk.box.classList.remove("unbuilt");
    chunk.box.append(...chunk.rows.map((row) => row.build()));
  }
}
