/** The messages of the sessions of one work, a tab for each. */

import { make, makeButton } from "./page";
import { SessionResponseRenderer } from "./sessionResponse";
import { TABS } from "./texts/portal";

export interface Tab {
  button: HTMLButtonElement;
  panel: HTMLDivElement;
  renderer: SessionResponseRenderer;
}

export class Tabs {
  readonly element = make("div", "tab-container");
  private readonly headers = make("div", "tab-headers");
  private readonly buttons = make("div", "tab-list");
  private readonly content = make("div", "tab-content");
  private tabs: Tab[] = [];

  constructor(back: () => void) {
    this.buttons.setAttribute("role", "tablist");
    this.headers.append(this.buttons, makeButton("tab-back-btn", TABS.back, back));
    this.element.append(this.headers, this.content);
    this.clear();
  }

  clear(): void {
    this.tabs = [];
    this.buttons.replaceChildren();
    this.content.replaceChildren(make("p", "tab-placeholder", TABS.noSessionDataForThis));
  }

  /** A new tab does not take the view away from the one that is being read. */
  add(name: string, first = false): Tab {
    const panel = make("div", "tab-panel");
    panel.hidden = true;
    panel.tabIndex = 0;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", name);
    const tab: Tab = {
      button: makeButton("tab-header-btn", name, () => this.select(tab)),
      panel,
      renderer: new SessionResponseRenderer(panel),
    };
    tab.button.setAttribute("role", "tab");
    tab.button.addEventListener("keydown", (event) => this.walk(event, tab));
    if (this.tabs.length === 0) this.content.replaceChildren();
    if (first) {
      this.tabs.unshift(tab);
      this.buttons.prepend(tab.button);
    } else {
      this.tabs.push(tab);
      this.buttons.append(tab.button);
    }
    this.content.append(panel);
    this.select(this.tabs.find(({ panel }) => !panel.hidden) ?? tab);
    return tab;
  }

  private select(tab: Tab): void {
    for (const each of this.tabs) {
      const shown = each === tab;
      const appears = shown && each.panel.hidden;
      each.panel.hidden = !shown;
      each.button.classList.toggle("active", shown);
      each.button.setAttribute("aria-selected", String(shown));
      each.button.tabIndex = shown ? 0 : -1;
      if (appears) each.renderer.scrollToBottom();
    }
  }

  private walk(event: KeyboardEvent, from: Tab): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = this.tabs[(this.tabs.indexOf(from) + step + this.tabs.length) % this.tabs.length];
    if (!next) return;
    this.select(next);
    next.button.focus();
  }
}
