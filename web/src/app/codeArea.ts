/** A field for code: line numbers, colors, and a caret that can be sent to a line. */

import { coloured } from "../highlight";
import { make } from "../page";

const COLOUR_MS = 120;
/** Fields grow with their text, between these. */
const LEAST_LINES = 16;
const MOST_LINES = 40;

export class CodeArea {
  readonly element = make("div", "code-area");
  readonly area = make("textarea");
  private readonly numbers = make("pre", "code-numbers");
  private readonly colours = make("pre", "code-colours");
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lines = 0;

  constructor(private readonly language: "json" | "yaml") {
    this.area.spellcheck = false;
    this.area.wrap = "off";
    this.area.autocapitalize = "off";
    this.numbers.setAttribute("aria-hidden", "true");
    this.colours.setAttribute("aria-hidden", "true");
    const field = make("div", "code-field");
    field.append(this.colours, this.area);
    this.element.append(this.numbers, field);
    this.area.addEventListener("input", () => this.render());
    this.area.addEventListener("scroll", () => this.scrolled());
    this.render();
  }

  get value(): string {
    return this.area.value;
  }

  set value(text: string) {
    if (text === this.area.value) return;
    this.area.value = text;
    this.render();
  }

  /** Counted from 1. */
  goTo(line: number, column = 1): void {
    const before = this.area.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.area.scrollTop = (line - 4) * (this.area.scrollHeight / Math.max(1, this.lines));
  }

  /** Its text was changed by code. */
  changed(): void {
    this.render();
  }

  private render(): void {
    const text = this.area.value;
    const lines = text.split("\n").length;
    if (lines !== this.lines) {
      this.lines = lines;
      this.numbers.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
      this.area.rows = Math.min(MOST_LINES, Math.max(LEAST_LINES, lines + 1));
    }
    // The last line has a height, too.
    this.colours.textContent = `${text}\n`;
    this.scrolled();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.colour(text), COLOUR_MS);
  }

  private async colour(text: string): Promise<void> {
    const html = await coloured(text, this.language).catch(() => undefined);
    if (html !== undefined && text === this.area.value) this.colours.innerHTML = `${html}\n`;
  }

  private scrolled(): void {
    this.colours.scrollTop = this.numbers.scrollTop = this.area.scrollTop;
    this.colours.scrollLeft = this.area.scrollLeft;
  }
}
