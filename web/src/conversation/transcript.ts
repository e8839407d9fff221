/**
 * A long column of rows of which only those near the view are in the page.
 *
 * A conversation grows at its end and is cut at its end, so rows are in chunks of a fixed number, and chunks in
 * sections; what is away from the view is one empty box: of a guessed height until its rows were built, of their measured
 * height afterwards. The cost of a frame grows with the number of elements in the page, so 100,000 rows are 98 boxes
 * and some chunks. Rows that left keep their elements for a while: what was opened stays open.
 */

import { make } from "../page";

export interface Row {
  readonly key: string;
  build(): HTMLElement;
  /** What it shows may have changed; called only after `build`. */
  update?(): void;
  /** Its element is gone for good, and so must be all that it knows of it. */
  forget?(): void;
}

/** Few enough to be built within a frame. */
const CHUNK = 16;
/** A collapsed tool call and a short answer, on average; wrong guesses only move the scroll bar. */
const ROW_REM = 4;
const NEAR = "4000px 0px";
/** So many pixels above the end still count as being at the end. */
const AT_END = 48;

/** So many chunks at the end are built immediately: more than a screen. */
const SETTLED = 3;
/** Chunks of a section: as many boxes as a browser lays out without being noticed. */
const SECTION = 64;
/** Chunks that left and keep their elements: some screens up and down again. More would be memory that grows for half an hour. */
const KEPT = 16;

interface Section {
  box: HTMLElement;
  chunks: Chunk[];
  shown: boolean;
}

interface Chunk {
  box: HTMLElement;
  section: Section;
  rows: Row[];
  /** The rows' elements, as soon as the view is near. */
  elements: HTMLElement[] | undefined;
  shown: boolean;
}

export class Transcript {
  private sections: Section[] = [];
  private readonly rows = new Map<string, { row: Row; chunk: Chunk }>();
  private readonly boxes = new WeakMap<Element, Chunk | Section>();
  /** Those that left, the longest away first. */
  private readonly kept = new Set<Chunk>();
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
    this.sections = [];
    this.rows.clear();
    this.kept.clear();
    this.column.replaceChildren();
    this.following = true;
  }

  append(...rows: Row[]): void {
    for (const row of rows) {
      let chunk = this.sections.at(-1)?.chunks.at(-1);
      if (!chunk || chunk.rows.length >= CHUNK) chunk = this.newChunk();
      chunk.rows.push(row);
      this.rows.set(row.key, { row, chunk });
      if (chunk.elements) this.add(chunk, row.build());
      else chunk.box.style.setProperty("--height", `${chunk.rows.length * ROW_REM}rem`);
    }
    this.guess(this.sections.at(-1));
  }

  /** Takes the last row away. */
  pop(): void {
    const section = this.sections.at(-1);
    const last = section?.chunks.at(-1);
    const row = last?.rows.pop();
    if (!section || !last || !row) return;
    this.rows.delete(row.key);
    last.elements?.pop()?.remove();
    if (last.rows.length > 0) return;
    this.near?.unobserve(last.box);
    last.box.remove();
    this.kept.delete(last);
    section.chunks.pop();
    if (section.chunks.length > 0) return;
    this.near?.unobserve(section.box);
    section.box.remove();
    this.sections.pop();
  }

  update(key: string): void {
    const found = this.rows.get(key);
    if (found?.chunk.elements) found.row.update?.();
  }

  /** Builds the end immediately, where readers begin. */
  settle(): void {
    for (const chunk of this.sections.slice(-2).flatMap(({ chunks }) => chunks).slice(-SETTLED)) this.mount(chunk);
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
    const found = this.rows.get(key);
    if (!found) return undefined;
    this.mount(found.chunk);
    return found.chunk.elements?.[found.chunk.rows.indexOf(found.row)];
  }

  /** A row's element, if it is in the page. */
  built(key: string): HTMLElement | undefined {
    const found = this.rows.get(key);
    return found?.chunk.shown ? found.chunk.elements?.[found.chunk.rows.indexOf(found.row)] : undefined;
  }

  /** Where a row ends in the window; of one that is away, where its place begins. */
  bottomOf(key: string): number | undefined {
    const chunk = this.rows.get(key)?.chunk;
    if (!chunk) return undefined;
    return this.built(key)?.getBoundingClientRect().bottom ?? (chunk.section.shown ? chunk.box : chunk.section.box).getBoundingClientRect().top;
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

  /** A second section makes boxes of both: a short conversation needs none. */
  private newSection(): Section {
    const before = this.sections.at(-1);
    this.guess(before);
    const shown = !before || !this.near || before.chunks.at(-1)?.shown === true;
    const section: Section = { box: make("div", shown ? "chunks" : "chunks away"), chunks: [], shown };
    this.boxes.set(section.box, section);
    this.column.append(section.box);
    if (before) this.near?.observe(section.box);
    if (before && this.sections.length === 1) this.near?.observe(before.box);
    this.sections.push(section);
    return section;
  }

  private newChunk(): Chunk {
    let section = this.sections.at(-1);
    const before = section?.chunks.at(-1);
    if (!section || section.chunks.length >= SECTION) section = this.newSection();
    const shown = !this.near || before?.shown === true;
    const chunk: Chunk = { box: make("div", shown ? "chunk" : "chunk away"), section, rows: [], elements: shown ? [] : undefined, shown };
    this.boxes.set(chunk.box, chunk);
    section.chunks.push(chunk);
    if (section.shown) this.place(chunk);
    return chunk;
  }

  private place(chunk: Chunk): void {
    chunk.section.box.append(chunk.box);
    this.near?.observe(chunk.box);
  }

  /** Until it has been measured. */
  private guess(section: Section | undefined): void {
    if (!section || section.shown || section.box.dataset["known"]) return;
    section.box.style.setProperty("--height", `${section.chunks.reduce((sum, { rows }) => sum + rows.length, 0) * ROW_REM}rem`);
  }

  /**
   * What comes near above the view is as high as it is and not as was guessed. The row at the top of the view stays where the reader
   * sees it; browsers do this as well, but not all of them, and not where a box is emptied.
   */
  private came(entries: IntersectionObserverEntry[]): void {
    const anchor = this.following ? undefined : this.topRow();
    const before = anchor?.getBoundingClientRect().top ?? 0;
    this.take(entries);
    if (!anchor?.isConnected) return;
    const moved = anchor.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) this.view.scrollTop = this.top = this.view.scrollTop + moved;
  }

  private topRow(): Element | undefined {
    const { left, top, width } = this.view.getBoundingClientRect();
    return document.elementFromPoint?.(left + width / 2, top + 24)?.closest(".row") ?? undefined;
  }

  private take(entries: IntersectionObserverEntry[]): void {
    for (const { isIntersecting, target, boundingClientRect } of entries) {
      const found = this.boxes.get(target);
      if (!found) continue;
      if ("chunks" in found) this.cameSection(found, isIntersecting, boundingClientRect.height);
      else if (isIntersecting) this.mount(found);
      else if (found.section.shown) this.hide(found, boundingClientRect.height);
    }
    this.follow();
  }

  private cameSection(section: Section, near: boolean, height: number): void {
    if (near) return this.mountSection(section);
    // New rows are appended to the last one; a section with content keeps it.
    if (!section.shown || section === this.sections.at(-1) || section.chunks.some(({ box }) => busy(box))) return;
    for (const chunk of section.chunks) {
      if (chunk.shown) this.hide(chunk, chunk.box.getBoundingClientRect().height);
      this.near?.unobserve(chunk.box);
    }
    section.shown = false;
    section.box.dataset["known"] = "yes";
    section.box.style.setProperty("--height", `${height}px`);
    section.box.classList.add("away");
    section.box.replaceChildren();
  }

  private mountSection(section: Section): void {
    if (section.shown) return;
    section.shown = true;
    section.box.classList.remove("away");
    for (const chunk of section.chunks) this.place(chunk);
  }

  private add(chunk: Chunk, element: HTMLElement): void {
    chunk.elements?.push(element);
    if (chunk.shown) chunk.box.append(element);
  }

  private mount(chunk: Chunk): void {
    if (chunk.shown) return;
    this.mountSection(chunk.section);
    chunk.shown = true;
    this.kept.delete(chunk);
    chunk.elements ??= chunk.rows.map((row) => row.build());
    chunk.box.classList.remove("away");
    chunk.box.append(...chunk.elements);
  }

  /** Keeps everything while the user selects or types. */
  private hide(chunk: Chunk, height: number): void {
    if (!chunk.shown || busy(chunk.box)) return;
    chunk.shown = false;
    chunk.box.style.setProperty("--height", `${height}px`);
    chunk.box.classList.add("away");
    chunk.box.replaceChildren();
    this.kept.add(chunk);
    if (this.kept.size > KEPT) this.forget();
  }

  /** The chunk that was out of view the longest is dropped and built again later, unless something was opened or typed in it. */
  private forget(): void {
    const [oldest] = this.kept;
    if (!oldest) return;
    this.kept.delete(oldest);
    if (oldest.elements?.some((element) => element.querySelector("details[open], textarea, input"))) return;
    oldest.elements = undefined;
    for (const row of oldest.rows) row.forget?.();
  }
}

function busy(box: HTMLElement): boolean {
  if (box.contains(document.activeElement)) return true;
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(box, true);
}
