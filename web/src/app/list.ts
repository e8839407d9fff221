/** The list on the left: what needs you, what works, what stopped, what is done. Live, filtered, walked with the keys. */

import { root } from "../root";
import { plain } from "../conversation/pieces";
import { make, makeButton } from "../page";
import { type Hit, v1 } from "../v1";
import { type Entry, fits, type Group, grouped, GROUPS, lastName, wantsArchive } from "./entries";
import type { Feed } from "./feed";
import { icon } from "../icons";
import { remember, remembered } from "./preferences";
import { RowView } from "./row";

const OFFERS: Record<string, string> = { "is:needs": "needs you", "is:working": "working", "is:interrupted": "interrupted", "is:failed": "failed", "is:unread": "unread", "is:job": "jobs" };
/** Folders of the host that an empty list offers. */
const FOLDERS = 3;
/** Folders and agents among them. */
const OFFERED = 4;
/** Rows of a group that are built, about a screen; more as somebody scrolls there. */
const PAGE = 30;
/** The chosen row is built as well, unless it is further down than this. */
const FAR = 300;
/** Rows never move under the pointer: the order follows so long after it left. */
const LEFT_MS = 500;
const SEARCH_MS = 250;

export class ListView {
  readonly element = make("div", "list");
  readonly search = make("input", "filter");
  /** The field with what it offers. */
  readonly field = make("div", "filter-field");
  private readonly offers = make("div", "chips offers");
  private readonly empty = make("div", "list-empty");
  private readonly chips = make("div", "chips");
  private readonly rows = new Map<string, RowView>();
  private readonly folded = new Set<string>((remembered("folded") ?? "older").split(",").filter(Boolean));
  private readonly shownOf = new Map<Group, number>();
  private order: string[] = [];
  private current = "";
  private busy = false;
  private leaving: ReturnType<typeof setTimeout> | undefined;
  private hits: Hit[] = [];
  private asked = 0;
  kind: "all" | "job" = "all";

  constructor(
    private readonly feed: Feed,
    private readonly open: (entry: Entry) => void,
  ) {
    this.search.type = "search";
    this.search.id = "filter";
    this.search.placeholder = "Filter";
    this.search.title = "Words, folder:, agent:, by: or is:";
    this.search.setAttribute("aria-label", "Filter sessions and jobs");
    this.search.addEventListener("input", () => this.filtered());
    this.field.addEventListener("focusin", () => this.showOffers());
    this.field.addEventListener("focusout", ({ relatedTarget }) => this.showOffers(relatedTarget as Element | null));
    this.offers.hidden = true;
    this.field.append(this.search, this.offers);
    this.search.value = new URLSearchParams(window.location.search).get("filter") ?? "";
    this.element.addEventListener("pointerenter", () => this.hold(true));
    this.element.addEventListener("pointerleave", () => this.hold(false));
    this.feed.watch(() => this.show());
    setInterval(() => this.tick(), 1000);
    this.tick();
  }

  private hold(busy: boolean): void {
    clearTimeout(this.leaving);
    if (busy) return void (this.busy = true);
    this.leaving = setTimeout(() => {
      this.busy = false;
      this.show();
    }, LEFT_MS);
  }

  select(key: string): void {
    this.unseen = key !== this.current;
    this.current = key;
    for (const [each, row] of this.rows) row.select(each === key);
  }

  private filtered(): void {
    this.busy = false;
    this.offers.hidden = true; // who types knows what they want
    this.showChips();
    this.show();
    const [text, mine] = [this.search.value.trim(), ++this.asked];
    const words = text.split(/\s+/).filter((word) => !/^(folder|agent|by|is):/.test(word)).join(" ");
    if (words.length < 2) {
      this.hits = [];
      return this.show();
    }
    setTimeout(async () => {
      if (mine !== this.asked) return;
      try {
        const { hits } = await v1.search(words);
        if (mine !== this.asked) return;
        this.hits = hits;
        this.show();
      } catch {
        this.hits = []; // the titles are still there
      }
    }, SEARCH_MS);
  }

  private showChips(): void {
    const on = this.search.value.split(/\s+/).filter((word) => /^(folder|agent|by|is):./.test(word));
    this.chips.replaceChildren(
      ...on.map((word) => {
        const chip = makeButton("chip", word, () => {
          this.search.value = this.search.value.split(/\s+/).filter((each) => each !== word).join(" ");
          this.filtered();
        });
        chip.setAttribute("aria-label", `Remove the filter ${word}`);
        chip.append(icon("close"));
        return chip;
      }),
    );
  }

  /** What can be filtered by, for those who have yet to learn the words; over the list, so that no row moves. */
  private showOffers(focused = document.activeElement): void {
    const wanted = this.search.value === "" && this.field.contains(focused);
    if (wanted && !this.offers.hidden) return; // one of them may have the focus
    const found = wanted ? this.offered() : [];
    this.offers.hidden = found.length === 0;
    this.offers.replaceChildren(...found);
  }

  private offered(): HTMLElement[] {
    const entries = this.feed.entries();
    const most = (values: string[]) => [...new Set(values.filter(Boolean))].slice(0, OFFERED);
    const words = [...Object.entries(OFFERS), ...most(entries.map(({ folder }) => folder)).map((name) => [`folder:${name}`, name]), ...most(entries.filter(({ kind }) => kind === "session").map(({ agent }) => agent)).map((id) => [`agent:${id}`, this.feed.agentName(id)])];
    return words.flatMap(([word = "", text = ""]) => {
      if (/\s/.test(word) || !entries.some((entry) => fits(entry, word))) return [];
      const chip = makeButton("chip", text, () => {
        this.search.value = word;
        this.search.focus();
        this.filtered();
      });
      chip.setAttribute("aria-label", `Only ${text}`);
      chip.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
      return [chip];
    });
  }

  show(): void {
    const now = Date.now();
    const text = this.search.value;
    const archive = wantsArchive(text);
    if (archive) void this.feed.loadArchive();
    const entries = this.feed.entries(archive).filter((entry) => (this.kind === "all" || entry.kind === "job") && fits(entry, text));
    const groups = grouped(entries, now, this.pinned);
    if (this.busy && this.element.childElementCount > 0) return this.refresh(entries, groups);
    this.order = [];
    const seen = new Set<string>();
    const pieces: HTMLElement[] = [this.chips];
    for (const [group, title] of GROUPS) {
      const list = groups.get(group) ?? [];
      const older = group === "older" && !text && this.kind === "all" ? this.feed.older : 0;
      if (list.length + older > 0) pieces.push(this.section(group, title, list, list.length + older, seen, text !== ""));
    }
    if (this.hits.length > 0 && text) pieces.push(this.saidSection());
    for (const key of [...this.rows.keys()]) if (!seen.has(key)) this.rows.delete(key);
    const teach = pieces.length === 1;
    if (teach) pieces.push(this.teach(text));
    if (!text && this.kind === "all" && this.feed.archived > 0) pieces.push(this.archive());
    place(this.element, pieces);
    if (this.unseen && this.feed.live) this.reveal();
  }

  /** The chosen row may come after it was chosen: the host's answer takes a moment. */
  private unseen = false;

  private readonly archiveButton = makeButton("link archive", "", () => {
    this.search.value = "is:archived";
    this.filtered();
    this.search.focus();
  });

  private archive(): HTMLElement {
    const text = `Archived (${this.feed.archived})`;
    if (this.archiveButton.textContent !== text) this.archiveButton.textContent = text;
    return this.archiveButton;
  }

  private readonly pinned = new Set<string>((remembered("pinned") ?? "").split(",").filter(Boolean));

  private pin(key: string): void {
    if (!this.pinned.delete(key)) this.pinned.add(key);
    remember("pinned", [...this.pinned].join(",") || undefined);
    this.busy = false;
    this.show();
  }

  /** The pointer is over the list: rows say what is new, and none moves. */
  private refresh(entries: Entry[], groups: Map<Group, Entry[]>): void {
    for (const entry of entries) this.rows.get(entry.key)?.update(entry, this.pinned.has(entry.key));
    for (const [group, list] of groups) {
      const count = this.element.querySelector(`[data-group="${group}"] .group-count`);
      if (count) count.textContent = String(list.length + (group === "older" ? this.feed.older : 0));
    }
  }

  private readonly sections = new Map<Group, { element: HTMLElement; head: HTMLButtonElement; body: HTMLElement }>();

  private section(group: Group, title: string, list: Entry[], total: number, seen: Set<string>, filtering: boolean): HTMLElement {
    let found = this.sections.get(group);
    if (!found) {
      const element = make("section", "group");
      element.dataset["group"] = group;
      const heading = make("h2");
      const head = makeButton("group-head", title, () => this.fold(group));
      head.append(make("span", "group-count"));
      heading.append(head);
      const body = make("div", "group-body");
      element.append(heading, body);
      found = { element, head, body };
      this.sections.set(group, found);
    }
    const folded = this.folded.has(group) && !filtering;
    found.head.setAttribute("aria-expanded", String(!folded));
    (found.head.lastElementChild as HTMLElement).textContent = String(total);
    found.body.hidden = folded;
    if (folded) return found.element;
    const chosen = list.findIndex(({ key }) => key === this.current);
    const most = Math.max(this.shownOf.get(group) ?? PAGE, chosen < FAR ? chosen + 1 : 0);
    const rows: HTMLElement[] = list.slice(0, most).map((entry) => {
      seen.add(entry.key);
      this.order.push(entry.key);
      return this.row(entry).element;
    });
    const left = total - Math.min(list.length, most);
    if (left > 0) rows.push(this.more(group, left, most));
    place(found.body, rows);
    return found.element;
  }

  private more(group: Group, left: number, most: number): HTMLElement {
    const show = () => {
      this.shownOf.set(group, most + PAGE);
      this.busy = false;
      if (group === "older" && this.feed.older > 0) void this.feed.loadOlder();
      else this.show();
    };
    const button = makeButton("more-rows", `Show more (${left})`, show);
    // Who scrolls there gets more without a click.
    if (typeof IntersectionObserver === "undefined") return button;
    const near = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      near.disconnect();
      show();
    }, { root: this.element, rootMargin: "200px 0px" });
    near.observe(button);
    return button;
  }

  private row(entry: Entry): RowView {
    let row = this.rows.get(entry.key);
    if (!row) {
      row = new RowView((each) => this.open(each), (key) => this.pin(key), () => (this.busy = false), (agent) => this.feed.agentName(agent));
      this.rows.set(entry.key, row);
    }
    row.update(entry, this.pinned.has(entry.key));
    row.select(entry.key === this.current);
    return row;
  }

  /** What was said, one line for each session, with the words marked. */
  private saidSection(): HTMLElement {
    const section = make("section", "group");
    section.append(make("h2", "group-head", "Said in a session"));
    const once = new Map(this.hits.map((hit) => [hit.session, hit]).reverse() as [string, Hit][]);
    const words = this.search.value.trim().split(/\s+/).filter((word) => !word.includes(":"));
    for (const hit of [...once.values()].reverse()) {
      const anchor = make("a", "entry hit");
      anchor.href = `${root}/app/s/${encodeURIComponent(hit.session)}`;
      const title = this.feed.rows.get(hit.session)?.session.title || hit.session;
      const excerpt = make("span", "act");
      excerpt.append(...markWords(plain(hit.excerpt), words));
      const sub = make("span", "sub");
      sub.append(excerpt);
      anchor.append(icon("chats"), make("span", "t", title), make("span"), sub);
      section.append(anchor);
    }
    return section;
  }

  private fold(group: Group): void {
    if (this.folded.has(group)) this.folded.delete(group);
    else this.folded.add(group);
    remember("folded", [...this.folded].join(","));
    this.busy = false;
    this.show();
  }

  private teach(text: string): HTMLElement {
    if (text) this.empty.replaceChildren(make("p", "", "Nothing fits. Titles, folders, agents and what was said were searched."));
    else if (!this.feed.live) this.empty.replaceChildren(...Array.from({ length: 8 }, () => make("div", "ghost")));
    else if (this.kind === "job") this.empty.replaceChildren(make("p", "", "No jobs yet."), link(`${root}/app/new/job`, "Start a job"));
    else this.empty.replaceChildren(make("p", "", "No sessions yet."), link(`${root}/app/new`, "New session"), ...this.folders());
    return this.empty;
  }

  private found: string[] | undefined;

  /** Where one could begin: folders that the host knows. */
  private folders(): HTMLElement[] {
    if (!this.found) {
      this.found = [];
      void v1.about().then(({ workspaces }) => {
        this.found = workspaces.slice(0, FOLDERS);
        this.show();
      }, () => undefined); // the form asks again
    }
    return this.found.map((path) => {
      const anchor = make("a", "button", `In ${lastName(path)}`);
      anchor.href = `${root}/app/new?${new URLSearchParams({ folder: path })}`;
      anchor.title = path;
      return anchor;
    });
  }

  /** The next or previous row of those shown. */
  step(by: 1 | -1): Entry | undefined {
    const at = this.order.indexOf(this.current);
    const key = this.order[at < 0 ? (by > 0 ? 0 : this.order.length - 1) : Math.min(Math.max(at + by, 0), this.order.length - 1)];
    return key === undefined ? undefined : this.rows.get(key)?.entry;
  }

  focusOn(key: string): void {
    this.rows.get(key)?.element.querySelector<HTMLElement>(".entry")?.focus();
  }

  reveal(): void {
    this.rows.get(this.current)?.element.scrollIntoView({ block: "nearest" });
    if (this.feed.live) this.unseen = false;
  }

  private tick(): void {
    const now = Date.now();
    for (const row of this.rows.values()) row.tick(now);
  }
}

/** The elements in this order, moving as few as possible: focus and hover stay where they are. */
export function place(parent: HTMLElement, children: HTMLElement[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child as HTMLElement)) child.remove();
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}

function link(href: string, text: string): HTMLElement {
  const anchor = make("a", "button primary", text);
  anchor.href = href;
  return anchor;
}

export function markWords(text: string, words: string[]): (string | HTMLElement)[] {
  const escaped = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (escaped.length === 0) return [text];
  return text.split(new RegExp(`(${escaped.join("|")})`, "gi")).map((piece, index) => (index % 2 ? make("mark", "", piece) : piece));
}
