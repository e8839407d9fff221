/** The frame: the list on the left, the place in the middle, the panel on the right; on a phone one of them at a time. */

import { root } from "../root";
import { byId, make } from "../page";
import { html, iconOf, render } from "../render";
import { page } from "../scope";
import { v1 } from "../v1";
import { badge } from "./badge";
import type { Entry } from "./entries";
import { BoardStore } from "./boardStore";
import { grip } from "./grip";
import { icon } from "../icons";
import { ListView } from "./list";
import { Panel } from "./panel";
import { prefer, remember, remembered, setPreference, watchLook } from "./preferences";
import { addressOf, isAt, linked, rowOf } from "./places";
import { type Place, pathOf, Router } from "./router";
import { SessionView } from "./sessionView";
import { statusOf } from "../conversation/state";
import { style } from "./style";
import { FRAME, LIST } from "../texts/list";
import { clock } from "../time";
import type { Aim, Listed, OpenSession, Tab, View } from "./view";

/** The least that the conversation needs beside the other columns. */
const CONVERSATION = 480;
/** So many sessions stay as they were left. */
const KEPT = 3;

/** The list itself, which is a separate place on a phone. */
const SESSIONS: Listed = { name: "home", place: { at: "home" }, row: { title: FRAME.sessions, icon: "chats", view: () => Promise.reject(new Error("The list is not a view.")) } };

export class Shell {
  readonly board = new BoardStore();
  readonly list: ListView;
  readonly panel: Panel;
  readonly router: Router;
  session: SessionView | undefined;
  private readonly main = byId("main");
  private readonly kept = new Map<string, SessionView>();
  /** The place in the middle, if it is not a session. */
  view: View | undefined;
  /** Loaded beside the list and not before it; a place that is shown can be used by keys. */
  private readonly keys: Promise<void>;
  /** Resolves when the pages of features are known. */
  private pages: Promise<void> = Promise.resolve();
  private title: string = FRAME.name;
  private readonly counts: HTMLElement[] = [];
  private readonly links: [Listed, HTMLElement][] = [];
  private readonly plus = make("a", "icon");
  private readonly navs = make("div", "navs");
  private readonly offline = make("p", "offline");
  private readonly connection = make("span");

  constructor() {
    watchLook();
    this.list = new ListView(this.board, (entry) => this.open(entry));
    this.panel = new Panel(byId("panel"), this);
    this.router = new Router((place) => void this.showPlace(place));
    this.build();
    const [side, panel] = [byId("side"), byId("panel")];
    // Over the conversation, as on a small screen, the panel takes nothing from the others.
    const beside = (column: HTMLElement) => CONVERSATION + (getComputedStyle(column).position === "fixed" ? 0 : column.offsetWidth);
    grip(side, { name: "side", property: "--side", label: FRAME.listWidth, first: 288, least: 220, most: 460, others: () => beside(panel), towards: 1 });
    grip(panel, { name: "panel", property: "--panel-width", label: FRAME.panelWidth, first: 480, least: 360, most: 1600, others: () => beside(side), towards: -1 });
    this.keys = import("./keys").then(({ keys }) => keys(this));
    this.board.subscribe(() => this.update());
    page.on(document, "visibilitychange", () => this.session?.markRead());
    page.on(window, "pagehide", () => void this.session?.composer.save());
    page.on(window.matchMedia("(max-width: 767px)"), "change", () => this.landmarks());
    page.every(1000, () => this.renderConnection());
  }

  start(): void {
    if (remembered("side") === "closed") document.body.dataset["side"] = "closed";
    this.board.start();
    this.pages = import("./featurePages").then(({ loadFeaturePages }) => loadFeaturePages(() => this.addLinks()));
    void this.showPlace(this.router.place);
    if ("serviceWorker" in navigator) navigator.serviceWorker.register(`${root}/sw.js`).catch(() => undefined);
  }

  // -- the frame ----------------------------------------------------------------------------------------------------

  private build(): void {
    const side = byId("side");
    this.plus.append(icon("plus"));
    this.startsAt("session");
    this.addLinks();
    this.offline.setAttribute("role", "status");
    this.offline.hidden = true;
    const find = () => void import("./keys").then(({ openPalette }) => openPalette(this));
    const theme = () => setPreference("theme", document.documentElement.dataset["theme"] === "dark" ? "light" : "dark");
    render(
      html`<h1 class="vh">${LIST.title}</h1>
        <div class="brandrow"><a class="brand" href=${`${root}/app`}><span class="logo">${iconOf("arch")}</span>${FRAME.name}</a>${this.plus}</div>
        <button type="button" class="find" id="find" aria-keyshortcuts="Control+K" @click=${find}>${iconOf("search")}<span>${FRAME.search}</span><kbd aria-hidden="true">${FRAME.searchKey}</kbd></button>
        ${this.navs}${this.offline}${this.list.filter.element}${this.list.element}
        <div class="foot">${this.connection}<button type="button" class="icon" aria-label=${FRAME.theme} @click=${theme}>${iconOf("theme")}</button><a class="icon" href=${`${root}/app/settings`} aria-label=${FRAME.settings}>${iconOf("settings")}</a></div>`,
      side,
    );
    const [first, ...rest] = linked("bar").map((listed) => this.link(listed, ""));
    byId("tabbar").append(...(first ? [first] : []), this.link(SESSIONS, ""), ...rest);
  }

  /** Links in the column. Those of features follow when they are known. */
  private addLinks(): void {
    const known = new Set(this.links.map(([{ name }]) => name));
    for (const listed of linked("side")) if (!known.has(listed.name)) this.navs.append(this.link(listed, "navitem"));
    this.markLinks(this.router.place);
    // The address of a page that was unknown until now.
    if (this.view?.title === FRAME.notFound && this.router.place.at === "page") void this.showPlace(this.router.place);
  }

  private markLinks(place: Place): void {
    for (const [listed, anchor] of this.links) {
      if (isAt(place, listed)) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
  }

  /** What the plus above the list starts: on the list of jobs, a job. */
  private startsAt(what: "session" | "job"): void {
    this.plus.href = pathOf({ at: "new", what });
    this.plus.setAttribute("aria-label", what === "job" ? LIST.startJob : LIST.newSession);
    this.plus.title = what === "job" ? LIST.startJob : LIST.newSessionKey;
  }

  private link(listed: Listed, look: string): HTMLElement {
    const anchor = make("a", look);
    anchor.href = addressOf(listed);
    anchor.append(icon(listed.row.icon), make("span", "", listed.row.title));
    this.links.push([listed, anchor]);
    if (listed.row.counts) {
      const count = make("b", "count need");
      count.hidden = true;
      anchor.append(count);
      this.counts.push(count);
    }
    return anchor;
  }

  private update(): void {
    const { needed } = this.board;
    for (const count of this.counts) {
      count.hidden = needed === 0;
      count.textContent = String(needed);
      count.setAttribute("aria-label", FRAME.needYou(needed));
      count.setAttribute("role", "img");
    }
    this.renderTitle();
    this.notifyAway();
    badge(needed);
    this.session?.update();
    this.panel.counted();
    if (this.router.place.at === "home" && this.board.live) this.home();
    this.renderConnection();
  }

  private lastStates: Map<string, Entry["state"]> | undefined;

  private notifyAway(): void {
    if (!this.board.live) return;
    const [before, entries] = [this.lastStates, this.board.entries()];
    this.lastStates = new Map(entries.map(({ key, state }) => [key, state]));
    if (before && document.hidden) void import("./awayNotices").then((module) => module.notifyAway(before, entries, (entry) => (entry ? this.open(entry) : this.go({ at: "inbox" }))));
  }

  private renderConnection(): void {
    const { downSince, live } = this.board;
    const up = live && downSince === undefined;
    const word = up ? FRAME.connected(window.location.hostname) : live ? FRAME.notConnected : FRAME.connecting;
    render(html`<i class=${up ? "live" : "live down"}></i>${word}`, this.connection);
    this.offline.hidden = !this.board.lost;
    if (document.body.hasAttribute("data-lost") !== this.board.lost) {
      document.body.toggleAttribute("data-lost", this.board.lost);
      this.session?.update();
    }
    if (!this.board.lost || downSince === undefined) return;
    const left = Math.ceil((this.board.retryAt - Date.now()) / 1000);
    // The countdown is hidden from screen readers: otherwise it is announced every second.
    render(html`<span>${FRAME.unreachable(clock(downSince))}</span> <span aria-hidden="true">${FRAME.retryIn(left)}</span> ${FRAME.whileOffline}`, this.offline);
  }

  /** An answer may arrive after the user has left: only the view that is shown sets the title. */
  titled(text: string, view: object): void {
    if (view !== this.view && view !== this.session) return;
    this.title = text;
    this.renderTitle();
  }

  private renderTitle(): void {
    const { needed } = this.board;
    const text = `${needed ? `(${needed}) ` : ""}${this.title === FRAME.name ? FRAME.name : `${this.title} · ${FRAME.name}`}`;
    if (document.title !== text) document.title = text;
  }

  // -- places -------------------------------------------------------------------------------------------------------

  go(place: Place, replace = false, hash = ""): void {
    this.router.go(place, replace, hash);
  }

  /** `byKey`: letters stay shortcuts, so the focus stays out of the field. */
  open(entry: Entry, byKey = false): void {
    const inList = byKey && this.list.element.contains(document.activeElement);
    this.byKey = byKey;
    this.go(entry.kind === "job" ? { at: "job", id: entry.id } : { at: "session", id: entry.id });
    this.byKey = false;
    if (inList) this.list.focusOn(entry.key);
  }
  private byKey = false;

  get phone(): boolean {
    return window.matchMedia("(max-width: 767px)").matches;
  }

  private async showPlace(place: Place): Promise<void> {
    this.list.kind = place.at === "jobs" || place.at === "job" ? this.list.kind : "all";
    if (place.at === "jobs") this.list.kind = "job";
    this.startsAt(place.at === "jobs" ? "job" : "session");
    this.list.select(place.at === "session" ? `s/${place.id}` : place.at === "job" ? `j/${place.id}` : "");
    this.markLinks(place);
    const listed = place.at === "home" || place.at === "jobs";
    document.body.dataset["at"] = listed ? "list" : "main";
    document.body.dataset["deep"] = place.at === "session" || place.at === "job" || place.at === "new" || (place.at === "automations" && (place.id || place.form)) ? "yes" : "no";
    this.landmarks();
    this.list.render();
    this.list.reveal();
    if (place.at === "session") return this.showSession(place);
    this.leaveSession();
    if (place.at !== "job") this.panel.close(true);
    if (place.at === "home") return this.home();
    await this.showOther(place);
  }

  /** A page has one main part and one heading of the first rank, also where the list is all there is. */
  landmarks(): void {
    for (const [id, at] of [["side", "list"], ["panel", "panel"]] as const) {
      if (this.phone && document.body.dataset["at"] === at) byId(id).setAttribute("role", "main");
      else byId(id).removeAttribute("role");
    }
  }

  /** What needs you most, else where you were; on a phone the list itself. */
  private home(): void {
    this.title = FRAME.name;
    this.renderTitle();
    if (this.phone) return;
    if (!this.board.live) return;
    const [first] = this.board.entries().filter(({ state }) => state === "need" || state === "ask").sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
    if (first) return this.go(first.kind === "job" ? { at: "job", id: first.id } : { at: "session", id: first.id }, true);
    const last = remembered("last");
    if (last && this.board.rows.has(last)) return this.go({ at: "session", id: last }, true);
    const newest = this.board.entries().sort((one, other) => other.time - one.time)[0];
    if (newest) return this.go(newest.kind === "job" ? { at: "job", id: newest.id } : { at: "session", id: newest.id }, true);
    this.go({ at: "new", what: "session" }, true);
  }

  private showSession(place: Extract<Place, { at: "session" }>): void {
    const before = this.session;
    if (before?.id !== place.id || !before.element.isConnected) {
      this.leaveView();
      before?.hidden();
      const view = this.kept.get(place.id) ?? new SessionView(place.id, this);
      this.keep(view);
      this.session = view;
      this.main.replaceChildren(view.element);
      view.shown();
      remember("last", place.id);
      if (!this.phone && before?.id !== place.id) this.focusIn(view);
      this.panel.follow(view);
    }
    const line = /^#L(\d+)$/.exec(window.location.hash)?.[1];
    if (place.tab === "changes" || place.tab === "terminal" || place.tab === "details") this.panel.open(place.tab, { ...(place.file === undefined ? {} : { file: place.file }), ...(line ? { line: Number(line) } : {}) }, false);
    else if (this.phone) this.panel.close(true);
    const wanted = new URLSearchParams(window.location.hash.slice(1));
    const turn = wanted.get("turn");
    if (turn) this.session?.goTo(turn, wanted.get("find") ?? "");
  }

  /** Focuses the field. If a card waits, or the user moves from session to session by keys, the conversation: letters are shortcuts there. */
  private focusIn(view: SessionView): void {
    if (this.byKey || this.board.rows.get(view.id)?.waiting?.length) view.conversation.focus();
    else view.composer.focus();
    // A page that was just loaded does not know yet what waits.
    this.arriving = this.board.live ? undefined : view;
  }
  private arriving: SessionView | undefined;

  private keep(view: SessionView): void {
    this.kept.delete(view.id);
    this.kept.set(view.id, view);
    for (const [id, old] of this.kept) {
      if (this.kept.size <= KEPT) break;
      old.leave();
      this.kept.delete(id);
    }
  }

  private leaveSession(): void {
    this.session?.hidden();
    this.session = undefined;
  }

  private leaveView(): void {
    this.view?.leave?.();
    this.view = undefined;
  }

  private async showOther(place: Place): Promise<void> {
    if (this.view?.element.isConnected && this.view.accept?.(place)) return;
    if (place.at === "unknown") {
      await this.pages;
      place = this.router.place; // it may be the page of a feature
    }
    const [view] = await Promise.all([this.viewOf(place), this.keys]);
    // The user may have left while its code was loaded.
    if (pathOf(this.router.place) !== pathOf(place)) return view.leave?.();
    this.leaveView();
    this.view = view;
    this.main.replaceChildren(view.element);
    this.titled(view.title, view);
  }

  private async viewOf(place: Place): Promise<View> {
    const row = rowOf(place);
    if (!row) return notFound(place);
    await Promise.all([style("app-places"), ...(row.styles ?? []).map(style)]);
    return row.view(this, place as never);
  }

  /** What the keys Y, N and 1 to 9 answer here. */
  get answering(): Pick<View, "press" | "chooseAnswer"> | undefined {
    return this.view ?? this.session;
  }

  // -- what sessions and keys ask for -------------------------------------------------------------------------------

  changed(view: OpenSession, what: "opened" | "state" | "delta"): void {
    if (view !== this.session) return;
    this.panel.changed(view, what);
    if (what !== "opened" || view !== this.arriving) return;
    this.arriving = undefined;
    if (view.state && statusOf(view.state) === "waiting" && view.composer.untouched) view.conversation.focus();
  }

  panelAt(tab: Tab, aim: Aim = {}): void {
    this.panel.open(tab, aim);
  }

  /** Stores the open tab in the address, so that it can be sent and reloaded. On a phone it is a separate page in the history. */
  noteTab(tab?: Tab, file?: string, line?: number): void {
    const at = this.router.place;
    if (at.at !== "session" || at.id !== this.session?.id) return;
    const path = pathOf({ at: "session", id: at.id, ...(tab ? { tab } : {}), ...(tab && file ? { file } : {}) }) + (line ? `#L${line}` : "");
    if (path !== window.location.pathname + window.location.hash) window.history[this.phone && tab && !at.tab ? "pushState" : "replaceState"](null, "", path);
  }

  toggleSide(): void {
    const closed = document.body.dataset["side"] !== "closed";
    if (closed) document.body.dataset["side"] = "closed";
    else delete document.body.dataset["side"];
    remember("side", closed ? "closed" : undefined);
  }

  nextNeeded(): boolean {
    const all = this.board.entries().filter(({ state }) => state === "need" || state === "ask").sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
    const at = all.findIndex(({ id }) => id === this.session?.id);
    const next = all[(at + 1) % all.length];
    if (!next) return false;
    this.open(next, true);
    return true;
  }

  async archive(): Promise<void> {
    const view = this.session;
    if (view) await view.attempt(() => v1.change(view.id, { archived: !view.state?.archived }));
  }

  lettersOn(): boolean {
    return prefer("letters");
  }
}

function notFound(place: Place): View {
  const element = make("section", "place");
  const path = place.at === "unknown" ? place.path : pathOf(place);
  render(html`<div class="empty"><h1>${FRAME.noPage}</h1><p>${FRAME.noPageText(path)}</p><a class="button primary" href=${`${root}/app`}>${FRAME.openList}</a></div>`, element);
  return { element, title: FRAME.notFound };
}
