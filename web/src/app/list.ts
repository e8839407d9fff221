/** The list on the left: what needs you, what works, what stopped, what is done. Live, filtered, walked with the keys. */

import { root } from "../root";
import { make, makeButton } from "../page";
import { html, render } from "../render";
import { page } from "../scope";
import { Refused } from "../failure";
import { type Hit, v1 } from "../v1";
import { type Entry, fits, type Group, grouped, GROUPS, wantsArchive } from "./entries";
import type { BoardStore } from "./boardStore";
import type { Elsewhere } from "./elsewhere";
import { FilterField } from "./filterField";
import { GroupView, place } from "./groupView";
import type { Selection } from "./listSelection";
import type { matchSection } from "./matches";
import { remember, remembered } from "./preferences";
import { RowView } from "./row";
import { LIST } from "../texts/list";
import type { Day } from "../time";

/** So far above and below the view rows are built as well: with a screen of them about 30. */
const NEAR_PX = 400;
/** Where a page has no size, in tests. */
const SCREEN_PX = 800;
/** The heading that stays at the top while its rows go by. */
const HEAD_PX = 34;
/** Rows never move under the pointer: the order follows so long after it left. */
const LEFT_MS = 500;
const SEARCH_MS = 250;
/** More items that need the user scroll with the list: all rows of the pinned group are in the page. */
const PINNED_ROWS = 30;
/** Rows in the form of shadows, until the host has answered. */
const GHOSTS = Array.from({ length: 8 }, () => html`<div class="ghost"></div>`);

export class ListView {
  readonly element = make("div", "list");
  readonly filter: FilterField;
  private readonly empty = make("div", "list-empty");
  /** Those near the view. */
  private readonly rows = new Map<string, RowView>();
  private readonly groups: Map<Group, GroupView>;
  private elsewhere: Elsewhere | undefined;
  private readonly folded = new Set<string>((remembered("folded") ?? "older").split(",").filter(Boolean));
  private current = "";
  private busy = false;
  private leaving: ReturnType<typeof setTimeout> | undefined;
  private hits: Hit[] = [];
  private matches: typeof matchSection | undefined;
  private asked = 0;
  private selection: Selection | undefined;
  kind: "all" | "job" = "all";

  constructor(
    private readonly board: BoardStore,
    private readonly open: (entry: Entry) => void,
  ) {
    this.filter = new FilterField(board, () => this.filtered());
    this.groups = new Map(GROUPS.map(([group, title]) => [group, new GroupView(group, title, () => this.fold(group))]));
    this.element.addEventListener("pointerenter", () => this.hold(true));
    this.element.addEventListener("pointerleave", () => this.hold(false));
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    if (typeof ResizeObserver !== "undefined") new ResizeObserver(() => this.draw()).observe(this.element);
    this.board.subscribe(() => this.render());
    // Not part of the first load.
    void import("./listLater").then(({ Elsewhere }) => (this.elsewhere = new Elsewhere(board, () => this.render())));
    page.every(1000, () => this.tick());
    this.tick();
    void this.movePins();
  }

  get search(): HTMLInputElement {
    return this.filter.input;
  }

  private hold(busy: boolean): void {
    clearTimeout(this.leaving);
    if (busy) return void (this.busy = true);
    this.leaving = setTimeout(() => {
      this.busy = false;
      this.render();
    }, LEFT_MS);
  }

  select(key: string): void {
    this.unseen = key !== this.current;
    this.current = key;
    for (const [each, row] of this.rows) row.select(each === key);
  }

  private filtered(): void {
    this.busy = false;
    this.render();
    const [words, mine] = [this.filter.words, ++this.asked];
    if (words.length < 2) {
      this.hits = [];
      return this.render();
    }
    setTimeout(async () => {
      if (mine !== this.asked) return;
      void this.board.loadCalled(words);
      try {
        const [{ hits }, { matchSection }] = await Promise.all([v1.search(words), import("./listLater")]);
        this.matches = matchSection;
        if (mine !== this.asked) return;
        this.hits = hits;
        this.render();
      } catch {
        this.hits = []; // the titles are still there
      }
    }, SEARCH_MS);
  }

  // -- showing ------------------------------------------------------------------------------------------------------

  render(): void {
    const { text } = this.filter;
    const archive = wantsArchive(text);
    if (archive) void this.board.loadArchive();
    const entries = this.board.entries(archive).filter((entry) => (this.kind === "all" || entry.kind === "job") && fits(entry, text));
    const fresh = grouped(entries, Date.now(), this.pinned);
    const stay = this.anchor(); // before the rows that are there move
    const holding = this.busy && this.rows.size > 0 ? new Set([...this.groups.values()].flatMap((view) => view.entries.map(({ key }) => key))) : undefined;
    for (const [group, view] of this.groups) this.fill(group, view, fresh, holding);
    const shown = [...this.groups.values()].filter((view) => view.total > 0);
    this.selection?.render();
    const pieces: HTMLElement[] = [this.filter.chips, ...(this.selection?.active ? [this.selection.element] : []), ...shown.map((view) => view.element)];
    if (this.hits.length > 0 && text && this.matches) pieces.push(this.matches(this.hits, this.filter.words, this.board));
    if (pieces.length === 1) pieces.push(this.teach(text));
    if (this.kind === "all" && this.board.live && this.elsewhere?.render(text)) pieces.push(this.elsewhere.element);
    if (!text && this.kind === "all" && this.board.archived > 0) pieces.push(this.archive());
    place(this.element, pieces);
    this.pinGroup();
    stay();
    this.draw();
    if (this.unseen && this.board.live) this.reveal();
  }

  /** What needs the user stays in view, whatever row is selected; too many would hide the other rows. */
  private pinGroup(): void {
    const view = this.groups.get("need") as GroupView;
    view.pin(view.total > 0 && view.total <= PINNED_ROWS);
    this.covered = view.pinned ? view.element.offsetHeight : 0;
    this.element.style.setProperty("--pinned", `${this.covered}px`);
  }
  /** Pixels at the top that the pinned group covers. */
  private covered = 0;

  /** `holding`: the rows that are there, none of which may move. */
  private fill(group: Group, view: GroupView, fresh: Map<Group, Entry[]>, holding: ReadonlySet<string> | undefined): void {
    const { text } = this.filter;
    const list = fresh.get(group) ?? [];
    const left = text || this.kind !== "all" ? 0 : (this.board.left[group as Day] ?? 0);
    view.entries = holding ? held(view.entries, view.left > 0 ? list.filter(({ key }) => !holding.has(key)) : [], fresh) : list;
    view.left = left;
    view.folded = this.folded.has(group) && !text;
    view.arrange(list.length + left);
  }

  /** Gives a way to have what is in view where it was, after rows came or went above it. */
  private anchor(): () => void {
    const { element } = this;
    if (element.scrollTop <= 0) return () => undefined; // at the top: what is new is to be seen
    const top = element.scrollTop + this.covered + HEAD_PX;
    const before = [...this.groups.values()].filter((view) => !view.pinned).flatMap((view) => [...this.rows.keys()].flatMap((key) => {
      const at = view.placeOf(key);
      return at && at.top + at.height > top ? [{ key, view, top: at.top }] : [];
    }));
    before.sort((one, other) => one.top - other.top);
    return () => {
      // The first that is still in its group: who went to another one is not followed there.
      for (const { key, view, top: was } of before) {
        const now = view.placeOf(key)?.top;
        if (now === undefined) continue;
        if (now !== was) element.scrollTop += now - was;
        return;
      }
    };
  }

  /** Builds the rows near the view, and asks for those of them that are not here. */
  private draw(again = true): void {
    const { scrollTop, clientHeight } = this.element;
    const [from, to] = [scrollTop - NEAR_PX, scrollTop + (clientHeight || SCREEN_PX) + NEAR_PX];
    const stays = document.activeElement?.closest<HTMLElement>(".list .entry-row")?.querySelector<HTMLElement>("[data-key]")?.dataset["key"];
    const used = new Set<string>();
    const row = (entry: Entry) => {
      used.add(entry.key);
      return this.row(entry).element;
    };
    let missing = false;
    for (const view of this.groups.values()) if (view.total > 0) missing = view.draw(from, to, row, stays) || missing;
    for (const [key, each] of this.rows) if (!used.has(key) && !each.element.isConnected) this.rows.delete(key);
    if (again && this.remeasure()) return this.draw(false);
    if (missing) void this.board.loadOlder();
  }

  private remeasure(): boolean {
    let wrong = false;
    for (const view of this.groups.values()) wrong = view.measure(({ key }) => this.rows.get(key)?.element) || wrong;
    if (wrong) for (const view of this.groups.values()) view.takeRoom();
    return wrong;
  }

  private row(entry: Entry): RowView {
    let row = this.rows.get(entry.key);
    if (!row) {
      row = new RowView((each) => this.open(each), (each) => this.pin(each), () => (this.busy = false), (agent) => this.board.agentName(agent), (each, range, begin) => this.pick(each, range, begin));
      this.rows.set(entry.key, row);
    }
    const current = entry.key === this.current;
    // What is open is not unread.
    if (current && entry.unread && !document.hidden && entry.kind === "job") this.board.readJobs.markRead(entry.id);
    row.update(current && entry.unread && !document.hidden ? { ...entry, unread: false } : entry, entry.pinned || this.pinned.has(entry.key), this.selection?.has(entry.key));
    row.select(current);
    return row;
  }

  /** The chosen row may come after it was chosen: the host's answer takes a moment. */
  private unseen = false;

  private readonly archiveButton = makeButton("link archive", "", () => {
    this.filter.set("is:archived");
    this.search.focus();
  });

  private archive(): HTMLElement {
    const text = LIST.archived(this.board.archived);
    if (this.archiveButton.textContent !== text) this.archiveButton.textContent = text;
    return this.archiveButton;
  }

  /** The keys of jobs. Sessions are pinned at the host. */
  private readonly pinned = new Set<string>((remembered("pinned") ?? "").split(",").filter(Boolean));

  private pin({ key, id, kind, pinned = false }: Entry): void {
    this.busy = false;
    if (kind === "session" && !this.pinned.has(key)) return void v1.pin(id, !pinned).catch(() => undefined); // the board shows the result
    if (!this.pinned.delete(key)) this.pinned.add(key);
    this.storePins();
    this.render();
  }

  /** Selects a row instead of opening it. `begin`: also if nothing is selected yet. */
  private pick(entry: Entry, range: boolean, begin: boolean): boolean {
    if (!begin && !this.selection?.active) return false;
    this.busy = false;
    void this.loadSelection().then((selection) => selection.pick(entry, range));
    return true;
  }

  private async loadSelection(): Promise<Selection> {
    const { Selection: Selected } = await import("./listSelection");
    const order = () => [...this.groups.values()].flatMap((view) => (view.folded ? [] : view.entries));
    return (this.selection ??= new Selected({ order, current: () => this.current, changed: () => this.render(), markJobRead: (id) => this.board.readJobs.markRead(id) }));
  }

  private storePins(): void {
    remember("pinned", [...this.pinned].join(",") || undefined);
  }

  /** Move the sessions that an older version of this page has pinned in this browser to the host. */
  private async movePins(): Promise<void> {
    for (const key of [...this.pinned].filter((each) => each.startsWith("s/"))) {
      try {
        await v1.pin(key.slice(2), true);
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) continue; // who may only read keeps it here
      }
      this.pinned.delete(key);
    }
    this.storePins();
  }

  private fold(group: Group): void {
    if (this.folded.has(group)) this.folded.delete(group);
    else this.folded.add(group);
    remember("folded", [...this.folded].join(","));
    this.busy = false;
    this.render();
  }

  private teach(text: string): HTMLElement {
    const start = (says: string, path: string, action: string) => html`<p>${says}</p><a class="button primary" href=${`${root}${path}`}>${action}</a>`;
    const none = !text && this.board.live;
    const content = text ? html`<p>${LIST.noMatch}</p>` : !none ? GHOSTS : this.kind === "job" ? start(LIST.noJobs, "/app/new/job", LIST.startJob) : html`${start(LIST.noSessions, "/app/new", LIST.newSession)}${this.folders}`;
    render(content, this.empty);
    if (none && this.kind !== "job") void import("./listLater").then(({ offerFolders }) => offerFolders(this.folders));
    return this.empty;
  }
  private readonly folders = make("div", "list-folders");

  // -- the keys -----------------------------------------------------------------------------------------------------

  /** The next or previous row; folded groups are passed by. */
  step(by: 1 | -1): Entry | undefined {
    const order = [...this.groups.values()].flatMap((view) => (view.folded ? [] : view.entries));
    const at = order.findIndex(({ key }) => key === this.current);
    return order[at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(Math.max(at + by, 0), order.length - 1)];
  }

  focusOn(key: string): void {
    this.rows.get(key)?.element.querySelector<HTMLElement>(".entry")?.focus({ preventScroll: true });
  }

  /** Scrolls as little as it takes to have the chosen row in view. */
  reveal(): void {
    const view = [...this.groups.values()].find((each) => each.placeOf(this.current));
    const at = view?.placeOf(this.current);
    const { element } = this;
    const above = this.covered + HEAD_PX;
    if (view?.pinned) this.rows.get(this.current)?.element.scrollIntoView?.({ block: "nearest" });
    else if (at && at.top - above < element.scrollTop) element.scrollTop = at.top - above;
    else if (at && at.top + at.height > element.scrollTop + element.clientHeight) element.scrollTop = at.top + at.height - element.clientHeight;
    this.draw();
    if (this.board.live) this.unseen = false;
  }

  private tick(): void {
    const { now } = this.board;
    for (const row of this.rows.values()) row.tick(now);
  }
}

/** The pointer is over the list: rows are updated, and none moves. Older rows that were loaded fill the space reserved for them. */
export function held(before: Entry[], loaded: Entry[], fresh: Map<Group, Entry[]>): Entry[] {
  const now = new Map([...fresh.values()].flat().map((entry) => [entry.key, entry]));
  const last = before.at(-1)?.time ?? Infinity;
  return [...before.map((entry) => now.get(entry.key) ?? entry), ...loaded.filter(({ time }) => time <= last)];
}
