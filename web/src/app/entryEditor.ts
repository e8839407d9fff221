/** An entry written in the browser: checked by the host as one types, completed from its schema, with a live chart. */

import { root } from "../root";
import { request } from "../scope";
import { FlowChart } from "../chart/flowChart";
import type { ChartGraph } from "../chart/graph";
import { Zoom } from "../chart/zoom";
import { make, makeButton } from "../page";
import { ask } from "../v1";
import { CodeArea } from "./codeArea";
import { offersAt, placeIn } from "./jsonPlace";

export interface Checked {
  chart?: Record<string, ChartGraph>;
  inputs?: string[];
  path?: string;
  mistake?: string;
}

const CHECK_MS = 400;

export class EntryEditor {
  readonly element = make("div", "editor-grid");
  private readonly code = new CodeArea("json");
  readonly area = this.code.area;
  private readonly word = make("p", "mistake");
  private readonly offers = make("div", "suggestions");
  private readonly charts = make("div", "stack");
  private readonly box = make("div", "chart-box");
  private readonly which = make("select");
  private schema: Record<string, unknown> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private chosen = 0;
  checked: Checked = {};

  constructor(private readonly changed: (checked: Checked) => void) {
    this.area.classList.add("entry-editor");
    this.area.setAttribute("aria-label", "Plan (JSON)");
    this.area.setAttribute("aria-describedby", "entry-mistake");
    this.word.id = "entry-mistake";
    this.word.setAttribute("role", "status");
    this.offers.setAttribute("role", "listbox");
    this.offers.setAttribute("aria-label", "Completions");
    this.offers.hidden = true;
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "region");
    this.box.setAttribute("aria-label", "Flow chart");
    this.which.setAttribute("aria-label", "Chart of");
    this.which.addEventListener("change", () => this.draw());
    const left = make("div", "stack complete");
    left.append(this.code.element, this.offers, this.word);
    this.charts.append(this.which, this.box);
    this.element.append(left, this.charts);
    this.area.addEventListener("input", () => {
      this.checkLater();
      void this.complete(false);
    });
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("blur", () => setTimeout(() => (this.offers.hidden = true), 200));
  }

  set(text: string): void {
    this.code.value = text;
    void this.check();
  }

  private checkLater(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), CHECK_MS);
  }

  private async check(): Promise<void> {
    const mine = ++this.asked;
    try {
      const found = await ask("POST /entry/check", {}, { body: { text: this.area.value } });
      if (mine !== this.asked) return;
      this.checked = found;
      this.word.classList.toggle("fine", !found.mistake);
      this.word.textContent = found.mistake ? `${found.path}: ${found.mistake}` : `Valid: ${Object.keys(found.chart ?? {}).length} jobs`;
      if (!found.mistake) this.fill();
      this.changed(found);
    } catch {
      this.word.textContent = "The host cannot be reached; this is not checked.";
    }
  }

  private fill(): void {
    const names = Object.keys(this.checked.chart ?? {});
    const before = this.which.value;
    this.which.replaceChildren(...names.map((name) => new Option(name, name)));
    this.which.value = names.includes(before) ? before : (names[0] ?? "");
    this.which.hidden = names.length < 2;
    this.draw();
  }

  select(job: string): void {
    this.which.value = job;
    this.draw();
  }

  private draw(): void {
    const graph = this.checked.chart?.[this.which.value];
    if (graph) new Zoom(this.box, new FlowChart(graph, this.which.value));
  }

  // -- completion ---------------------------------------------------------------------------------------------------

  private async complete(wanted: boolean): Promise<void> {
    this.schema ??= (await (await request(`${root}/entry.schema.json`)).json().catch(() => undefined)) as Record<string, unknown> | undefined;
    const caret = this.area.selectionStart;
    const place = placeIn(this.area.value, caret);
    const quoted = place && this.area.value.charAt(place.from) === '"';
    const offers = this.schema && place && (quoted || wanted) ? offersAt(this.schema, place) : [];
    this.offers.hidden = offers.length === 0;
    this.chosen = 0;
    this.offers.replaceChildren(
      ...offers.slice(0, 20).map(({ text, about }) => {
        const row = makeButton("suggestion", "", () => this.take(text));
        row.setAttribute("role", "option");
        row.tabIndex = -1;
        row.dataset["text"] = text;
        row.append(make("span", "", text), make("small", "soft", about));
        return row;
      }),
    );
    this.mark();
  }

  private mark(): void {
    [...this.offers.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === this.chosen)));
    this.offers.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  private take(text: string): void {
    const caret = this.area.selectionStart;
    const place = placeIn(this.area.value, caret);
    if (!place) return;
    const closed = this.area.value.charAt(caret) === '"' ? 1 : 0;
    this.area.setRangeText(`"${text}"${place.at === "key" && !/^\s*:/.test(this.area.value.slice(caret + closed)) ? ": " : ""}`, place.from, caret + closed, "end");
    this.offers.hidden = true;
    this.area.focus();
    this.code.changed();
    this.checkLater();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return void this.complete(true);
    }
    if (this.offers.hidden) return;
    const rows = this.offers.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : -1) + rows) % rows;
      this.mark();
    } else if (event.key === "Enter" || event.key === "Tab") this.take((this.offers.children[this.chosen] as HTMLElement | undefined)?.dataset["text"] ?? "");
    else if (event.key === "Escape") this.offers.hidden = true;
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
