/** The field that filters the list: words and `folder: agent: by: is:`, with what could be asked for, and chips for what is on. */

import { icon } from "../icons";
import { make, makeButton } from "../page";
import type { BoardStore } from "./boardStore";
import { FILTER } from "../texts/list";

const TERM = /^(folder|agent|by|is):/;

export class FilterField {
  /** The field with what it offers. */
  readonly element = make("div", "filter-field");
  readonly input = make("input", "filter");
  readonly chips = make("div", "chips");
  private readonly offers = make("div", "chips offers");

  constructor(
    private readonly board: BoardStore,
    private readonly changed: () => void,
  ) {
    const { input } = this;
    input.type = "search";
    input.id = "filter";
    input.placeholder = FILTER.filter;
    input.title = FILTER.wordsFolderAgent;
    input.setAttribute("aria-label", FILTER.filterSessionsAndJobs);
    input.addEventListener("input", () => this.filtered());
    this.element.addEventListener("focusin", () => void this.renderOffers());
    this.element.addEventListener("focusout", ({ relatedTarget }) => void this.renderOffers(relatedTarget as Element | null));
    this.offers.hidden = true;
    this.element.append(input, this.offers);
    input.value = new URLSearchParams(window.location.search).get("filter") ?? "";
  }

  get text(): string {
    return this.input.value;
  }

  /** What is looked for in titles and conversations. */
  get words(): string {
    return this.terms().filter((word) => !TERM.test(word)).join(" ");
  }

  set(text: string): void {
    this.input.value = text;
    this.filtered();
  }

  private terms(): string[] {
    return this.text.trim().split(/\s+/);
  }

  private filtered(): void {
    this.offers.hidden = true; // who types knows what they want
    this.renderChips();
    this.changed();
  }

  private renderChips(): void {
    const on = this.terms().filter((word) => /^(folder|agent|by|is):./.test(word));
    this.chips.replaceChildren(
      ...on.map((word) => {
        const chip = makeButton("chip", word, () => this.set(this.terms().filter((each) => each !== word).join(" ")));
        chip.setAttribute("aria-label", FILTER.removeTheFilter(word));
        chip.append(icon("close"));
        return chip;
      }),
    );
  }

  /** What can be filtered by, for those who have yet to learn the words; over the list, so that no row moves. */
  private async renderOffers(focused = document.activeElement): Promise<void> {
    const wanted = this.text === "" && this.element.contains(focused);
    if (wanted && !this.offers.hidden) return; // one of them may have the focus
    const found = wanted ? (await import("./filterOffers")).filterOffers(this.board, (word) => this.choose(word)) : [];
    const late = wanted && (this.text !== "" || !this.element.contains(document.activeElement)); // the user was faster
    this.offers.hidden = found.length === 0 || late;
    this.offers.replaceChildren(...(late ? [] : found));
  }

  private choose(word: string): void {
    this.input.focus();
    this.set(word);
  }
}
