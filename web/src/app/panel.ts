/** The panel on the right: changes, terminal, details. Closed until it is wanted; its tab and width are remembered. */

import { make, makeButton } from "../page";
import { icon } from "../icons";
import { remember, remembered, sizeClass } from "./preferences";
import type { Details } from "./details";
import type { Review } from "./review";
import { style } from "./style";
import type { TerminalTab } from "./terminalTab";
import type { BoardStore } from "./boardStore";
import type { Aim, OpenSession, Tab } from "./view";
import { PANEL } from "../texts/panel";

/** The frame, as far as the panel knows it. */
export interface PanelContext {
  readonly board: BoardStore;
  readonly session: OpenSession | undefined;
  readonly phone: boolean;
  /** Writes what is open into the address. */
  noteTab(tab?: Tab, file?: string, line?: number): void;
  landmarks(): void;
}

const TABS: [Tab, string][] = [
  ["changes", PANEL.changes],
  ["terminal", PANEL.terminal],
  ["details", PANEL.details],
];

export class Panel {
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private readonly body = make("div", "panel-body");
  private readonly count = make("span", "count");
  private tab: Tab = (remembered(this.key("tab")) as Tab | undefined) ?? "changes";
  private view: OpenSession | undefined;
  private review: Review | undefined;
  private terminal: TerminalTab | undefined;
  private details: Details | undefined;

  constructor(
    private readonly element: HTMLElement,
    private readonly shell: PanelContext,
  ) {
    const head = make("div", "tabs");
    const back = makeButton("icon back", "", () => this.close());
    back.append(icon("back"));
    back.setAttribute("aria-label", PANEL.backToTheConversation);
    const list = make("div", "tab-list");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", PANEL.panel);
    for (const [tab, text] of TABS) {
      const button = makeButton("tab", text, () => this.open(tab));
      button.id = `tab-${tab}`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", "panel-body");
      if (tab === "changes") button.append(this.count);
      this.tabs.set(tab, button);
      list.append(button);
    }
    list.addEventListener("keydown", (event) => this.arrow(event));
    this.count.hidden = true;
    const close = makeButton("icon", "", () => this.close());
    close.append(icon("close"));
    close.setAttribute("aria-label", PANEL.closeThePanel);
    head.append(back, list, make("span", "spring"), close);
    this.body.id = "panel-body";
    this.body.setAttribute("role", "tabpanel");
    element.append(make("h1", "vh phone-only", PANEL.changesTerminalAndDetails), head, this.body);
  }

  get isOpen(): boolean {
    return document.body.dataset["panel"] === "open";
  }

  private arrow(event: KeyboardEvent): void {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const at = TABS.findIndex(([tab]) => tab === this.tab);
    const [next] = TABS[(at + by + TABS.length) % TABS.length] ?? ["changes"];
    this.open(next);
    this.tabs.get(next)?.focus();
    event.preventDefault();
  }

  /** Another session is in view; what is open shows that one. */
  follow(view: OpenSession): void {
    if (this.view === view) return;
    this.view = view;
    this.review = undefined;
    this.details = undefined;
    this.terminal?.leave();
    this.terminal = undefined;
    this.renderCount();
    // A panel that opened automatically for one session is closed for the next; so is one that covers the conversation.
    if (window.innerWidth >= 1280 && remembered(this.key("panel")) === "open") this.openTab(this.tab);
    else if (this.isOpen) this.hide();
  }

  /** Opened by the user: remembered for this kind of screen, and part of the address. */
  open(tab: Tab, aim: Aim = {}, focus = true): void {
    if (!this.view) return;
    remember(this.key("tab"), tab);
    remember(this.key("panel"), "open");
    this.openTab(tab, aim, focus);
    this.shell.noteTab(tab, aim.file, aim.line);
  }

  /** Only who asks for a terminal types into it: one that comes with a session takes no keys. */
  private openTab(tab: Tab, { turn, file, line }: Aim = {}, focus = false): void {
    this.tab = tab;
    document.body.dataset["panel"] = "open";
    if (this.shell.phone) document.body.dataset["at"] = "panel";
    this.shell.landmarks();
    this.filled = this.fill(focus);
    void this.filled.then(() => {
      if (tab === "changes" && (turn !== undefined || file !== undefined)) this.review?.aim(turn, file, line);
    });
  }

  private key(name: "panel" | "tab"): string {
    return `${name}.${sizeClass()}`;
  }

  /** `away`: the place has no panel; the user's choice is not changed. */
  close(away = false): void {
    if (!away) remember(this.key("panel"), "closed");
    if (!away) this.shell.noteTab();
    if (document.body.dataset["at"] === "panel") document.body.dataset["at"] = "main";
    this.shell.landmarks();
    if (away && !this.shell.phone && this.shell.session) return;
    if (away && !this.shell.session) this.view = undefined;
    this.hide();
  }

  private hide(): void {
    document.body.dataset["panel"] = "closed";
    this.element.hidden = true;
    this.terminal?.leave();
    this.terminal = undefined;
  }

  /** By a key: the focus moves into the panel, and back when it closes. */
  toggle(tab?: Tab): boolean {
    if (!this.view) return false;
    if (this.isOpen && (tab === undefined || tab === this.tab)) {
      const inside = this.element.contains(document.activeElement);
      this.close();
      if (inside) this.before?.focus();
      return true;
    }
    this.before = document.activeElement instanceof HTMLElement && document.activeElement !== document.body ? document.activeElement : document.getElementById("transcript");
    this.open(tab ?? this.tab);
    void this.filled.then(() => this.isOpen && this.body.querySelector<HTMLElement>(".pbody, .details-tab")?.focus());
    return true;
  }

  /** Where the focus was before. */
  private before: HTMLElement | null = null;
  private filled: Promise<void> = Promise.resolve();

  escape(): void {
    if (this.isOpen && window.innerWidth < 1280) this.close();
  }

  /** The code of a tab is loaded when it is opened. */
  private async fill(focus: boolean): Promise<void> {
    const { view, tab } = this;
    if (!view) return;
    await style("app-places");
    if (!this.isOpen) return;
    this.element.hidden = false;
    for (const [each, button] of this.tabs) {
      button.setAttribute("aria-selected", String(each === tab));
      button.tabIndex = each === tab ? 0 : -1;
    }
    this.body.setAttribute("aria-labelledby", `tab-${tab}`);
    if (tab !== "terminal") {
      this.terminal?.leave();
      this.terminal = undefined;
    }
    const modules = { changes: () => import("./review"), details: () => import("./details"), terminal: () => import("./terminalTab") };
    const module = await modules[tab]();
    // The user may have left in between.
    if (this.view !== view || this.tab !== tab || !this.isOpen) return;
    if (PANEL.review in module) {
      this.review ??= new module.Review(view, (file, line) => this.shell.noteTab("changes", file, line));
      this.body.replaceChildren(this.review.element);
      void this.review.load();
    } else if (PANEL.details in module) {
      this.details ??= new module.Details(view);
      this.body.replaceChildren(this.details.element);
      this.details.render();
    } else if (!this.terminal) {
      this.terminal = new module.TerminalTab(view, focus);
      this.body.replaceChildren(this.terminal.element);
    }
  }

  /** The list knows how much has changed, a moment after the session has ended its turn. */
  counted(): void {
    if (!this.view || this.shell.session !== this.view) return;
    this.renderCount();
    if (!this.isOpen) this.openOnce(this.view);
  }

  private renderCount(): void {
    const files = this.view && this.shell.board.rows.get(this.view.id)?.session.changes?.files;
    this.count.hidden = !files;
    this.count.textContent = String(files ?? "");
  }

  changed(view: OpenSession, what: "opened" | "state" | "delta"): void {
    if (view !== this.view || what === "delta") return;
    this.renderCount();
    if (!this.isOpen) return this.openOnce(view);
    if (this.tab === "changes") this.review?.stale();
    if (this.tab === "details") this.details?.render();
  }

  /** Opens automatically once, at the first change of a session, if there is room and the user has not closed it. */
  private openOnce(view: OpenSession): void {
    const key = `opened.${view.id}`;
    if (this.count.hidden || window.innerWidth < 1280 || remembered(this.key("panel")) === "closed" || remembered(key)) return;
    remember(key, "yes");
    this.openTab("changes");
  }

  // -- keys in the changes ------------------------------------------------------------------------------------------

  hasFocus(): boolean {
    return this.isOpen && this.tab === "changes" && this.element.contains(document.activeElement);
  }

  step(by: 1 | -1): boolean {
    return this.review?.step(by) ?? false;
  }

  viewed(): boolean {
    return this.hasFocus() && (this.review?.toggleViewed() ?? false);
  }

  sendComments(): boolean {
    return this.hasFocus() && (this.review?.sendComments() ?? false);
  }

  comment(): boolean {
    return this.hasFocus() && (this.review?.commentHere() ?? false);
  }

  switchMode(): boolean {
    if (!this.isOpen || this.tab !== "changes") return false;
    this.review?.switchMode();
    return true;
  }
}
