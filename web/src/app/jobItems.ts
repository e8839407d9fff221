/** The items of an `each`, one row for each. Only the rows near the view are in the page, so 1,000 items stay usable. */

import { repeat } from "lit-html/directives/repeat.js";
import { make } from "../page";
import { html, iconOf, nothing, render, type TemplateResult } from "../render";
import { JOB } from "../texts/job";
import type { Item } from "./jobModel";
import { MARKS, retryIcon, timeOf } from "./jobSteps";

type Filter = keyof typeof JOB.itemFilter;

/** With more items there is a field to find one. */
const FIND = 12;
/** Rows above and below the view. */
const MARGIN = 10;
const FITS: Record<Filter, (item: Item) => boolean> = {
  all: () => true,
  failed: ({ state }) => state === "failed",
  work: ({ state }) => state === "work" || state === "need",
};

export interface ItemActions {
  /** The item in view. */
  current: string | undefined;
  now: number;
  choose(item: Item): void;
  /** Present when a run from a step is possible. */
  retry?(item: Item): void;
}

export class ItemList {
  readonly element = make("div", "items");
  private readonly box = make("div", "item-rows");
  private filter: Filter = "all";
  private words = "";
  private items: Item[] = [];
  private actions: ItemActions | undefined;

  constructor() {
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "list");
    this.box.setAttribute("aria-label", JOB.items);
    this.box.addEventListener("scroll", () => this.rows(), { passive: true });
  }

  update(items: Item[], actions: ItemActions): void {
    [this.items, this.actions] = [items, actions];
    this.render();
  }

  private render(): void {
    const count = (filter: Filter) => this.items.filter(FITS[filter]).length;
    const button = (filter: Filter) => html`<button type="button" data-filter=${filter} aria-pressed=${String(this.filter === filter)} @click=${() => this.change(() => (this.filter = filter))}>${JOB.itemFilter[filter]} ${count(filter)}</button>`;
    const done = this.items.filter(({ state }) => state === "done" || state === "failed" || state === "stopped").length;
    render(
      html`<div class="item-tools"><div class="modes item-filter" role="group" aria-label=${JOB.items}>${(Object.keys(FITS) as Filter[]).map(button)}</div>
        ${this.items.length > FIND ? html`<input type="search" aria-label=${JOB.findItem} placeholder=${JOB.findItem} .value=${this.words} @input=${(event: Event) => this.change(() => (this.words = (event.target as HTMLInputElement).value))} />` : nothing}
        <span class="soft" role="status">${JOB.itemCount(done, count("failed"), this.items.length)}</span></div>${this.box}`,
      this.element,
    );
    this.rows();
  }

  private change(edit: () => void): void {
    edit();
    this.box.scrollTop = 0;
    this.render();
  }

  private get found(): Item[] {
    const words = this.words.toLowerCase().trim();
    return this.items.filter((item) => FITS[this.filter](item) && (!words || item.name.toLowerCase().includes(words)));
  }

  private rows(): void {
    const { found, actions } = this;
    if (!actions) return;
    const height = window.matchMedia?.("(max-width: 767px)").matches ? 48 : 36;
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - MARGIN);
    const end = Math.min(found.length, Math.ceil((this.box.scrollTop + (this.box.clientHeight || 400)) / height) + MARGIN);
    const shown = found.slice(first, end).map((item, index) => ({ item, at: first + index }));
    render(
      found.length === 0
        ? html`<p class="soft">${JOB.noItems}</p>`
        : html`<div class="item-space" .style=${`height: ${found.length * height}px`}>${repeat(shown, ({ item }) => item.path, ({ item, at }) => row(item, at, height, found.length, actions))}</div>`,
      this.box,
    );
  }
}

function row(item: Item, at: number, height: number, all: number, { current, now, choose, retry }: ItemActions): TemplateResult {
  const [name, look] = MARKS[item.state];
  const { run } = item;
  return html`<div class="item-row" role="listitem" aria-setsize=${all} aria-posinset=${at + 1} .style=${`top: ${at * height}px; height: ${height}px`}>
    <button type="button" class="tn" data-item=${item.path} aria-current=${item.path === current ? "true" : nothing} ?disabled=${!run} @click=${() => choose(item)}
      ><span class="mark ${look}">${iconOf(name, item.state === "work" ? "spin" : "")}<span class="vh">${JOB.step[item.state]}</span></span><span class="tn-name">${item.name}</span><em class="item-reason">${item.reason.split("\n").at(-1)}</em><span class="tn-time">${run ? timeOf({ ...run, ...(item.started === undefined ? {} : { started: item.started }), ...(item.ended === undefined ? {} : { ended: item.ended }) }, item.state, now) : ""}</span></button>
    ${retry && run ? html`<button type="button" class="icon retry-from" aria-label=${JOB.retryOf(item.name)} title="${JOB.retryFrom}. ${JOB.retryAbout}" @click=${() => retry(item)}>${retryIcon()}</button>` : nothing}
  </div>`;
}
