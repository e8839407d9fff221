/**
 * Pages that features of the host add (`Feature.pages`). Their code is a module that the host serves, so the content security
 * policy stays as it is: scripts of this origin only, none inline.
 */

import { explain } from "../failure";
import { SHAPES, type Icon } from "../icons";
import { make } from "../page";
import { html, nothing, render } from "../render";
import { root } from "../root";
import type { FeaturePage } from "../rest";
import { page as wholePage, Scope } from "../scope";
import { FEATURE_PAGES } from "../texts/featurePages";
import { ask, request } from "../v1";
import { addPage } from "./places";
import { placeOf } from "./router";
import type { PlaceOf } from "./router";
import type { View, ViewContext } from "./view";

/** What the module of a page gets: documented in docs/guide/writing-a-feature.md. */
export interface FeaturePageContext {
  /** Render here. */
  readonly element: HTMLElement;
  /** The parts of the address behind the page. */
  readonly rest: string[];
  /** A request of the REST API, with this login: `call("GET", "/bookmarks")`. It throws the host's error. */
  readonly call: typeof request;
  /** Listeners, timers and requests that end with the page. */
  readonly scope: Scope;
  /** Rendering with lit-html. */
  readonly html: typeof html;
  readonly nothing: typeof nothing;
  readonly render: typeof render;
  /** Where the addresses of the host begin, for links. */
  readonly root: string;
  /** Calls `run` when sessions or jobs have changed. */
  onChange(run: () => void): void;
  /** Goes to an address of the workbench, such as `/app/s/ID`. */
  go(path: string): void;
  /** Shows an error above the page; "" removes it. */
  report(text: string): void;
}

interface Module {
  default?: (context: FeaturePageContext) => unknown;
}

/** Adds the pages of the host. `added` is called when they are known; the promise also resolves if they cannot be loaded now. */
export function loadFeaturePages(added: () => void, load = importModule): Promise<void> {
  return new Promise((resolve) => {
    const refresh = wholePage.latest(
      (signal) => ask("GET /pages", {}, { signal }),
      ({ pages }) => {
        for (const each of pages) addPage(each.name, { title: each.title, icon: iconNamed(each.icon), links: ["side", "more"], view: async (context, place) => new FeatureView(each, context, place, load) });
        if (pages.length > 0) added();
        resolve();
      },
      { failed: () => resolve() }, // retried if the host is out of reach; the list shows that
    );
    refresh();
  });
}

const iconNamed = (name: string): Icon => (name in SHAPES ? (name as Icon) : "note");

const importModule = (address: string): Promise<Module> => import(/* @vite-ignore */ new URL(`${root}/${address}`, window.location.href).href) as Promise<Module>;

export class FeatureView implements View {
  readonly element = make("section", "place feature-page");
  readonly title: string;
  private readonly body = make("div", "wide");
  private readonly scope = new Scope((text) => this.render(text));

  constructor(
    private readonly page: FeaturePage,
    private readonly context: ViewContext,
    place: PlaceOf<"page">,
    load: (address: string) => Promise<Module>,
  ) {
    this.title = page.title;
    this.render("");
    void this.open(place.rest, load);
  }

  leave(): void {
    this.scope.end();
  }

  private render(trouble: string): void {
    render(
      html`<header class="head"><div class="head-text"><h1>${this.title}</h1></div></header>
        ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : nothing}
        <div class="scroll">${this.body}</div>`,
      this.element,
    );
  }

  private async open(rest: string[], load: (address: string) => Promise<Module>): Promise<void> {
    const { context, scope } = this;
    try {
      const module = await load(this.page.module);
      if (scope.ended) return;
      if (typeof module.default !== "function") throw new Error(FEATURE_PAGES.noFunction);
      await module.default({
        element: this.body,
        rest,
        call: request,
        scope,
        html,
        nothing,
        render,
        root,
        onChange: (run) => scope.onEnd(context.board.subscribe(run)),
        go: (path) => context.go(placeOf(`${root}${path}`)),
        report: (text) => this.render(text),
      });
    } catch (error) {
      if (!scope.ended) this.render(FEATURE_PAGES.failed(this.title, error instanceof TypeError ? error.message : explain(error)));
    }
  }
}
