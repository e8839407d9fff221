/** A question of the agent as a card, one step for each of its fields; or what was answered. */

import { keyed } from "lit-html/directives/keyed.js";
import { outsideAddress } from "../addresses";
import { make } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { ignoreEarlyClicks } from "../settle";
import { QUESTION } from "../texts/cards";
import { v1 } from "../v1";
import { evidenceView } from "./evidence";
import { type CardActions, plain } from "./pieces";
import type { Field, QuestionPart } from "./state";
import { who } from "./words";

export function questionCard(question: QuestionPart, acts: CardActions): HTMLElement {
  return new QuestionCard(question, acts).element;
}

/** One field at a time; a single choice continues immediately, everything else with the button. */
class QuestionCard {
  readonly element = make("form", "card question");
  private readonly fields: Field[];
  private readonly evidence: HTMLElement | undefined;
  private readonly answers = new Map<string, unknown>();
  /** The chosen options of the current field, if it allows several. */
  private picked = new Set<unknown>();
  /** The field for an answer that is not among the options is open. */
  private other = false;
  private at = 0;
  private sending = false;

  constructor(
    private readonly question: QuestionPart,
    private readonly acts: CardActions,
  ) {
    const { element } = this;
    this.fields = question.fields?.length ? question.fields : [{ id: "answer", title: QUESTION.yourAnswer, required: true }];
    this.evidence = question.evidence?.length ? evidenceView(question.evidence) : undefined;
    element.setAttribute("aria-labelledby", `title-${question.id}`);
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.take(this.read());
    });
    if (!question.response) ignoreEarlyClicks(element);
    this.render();
  }

  private render(): void {
    const { question } = this;
    const [asked = ""] = this.evidence ? question.text.split("\n\nChanged files:\n") : [question.text];
    const open = !question.response;
    render(
      html`<h2 id=${`title-${question.id}`} tabindex="-1">${open ? iconOf("ask") : nothing}${plain(asked)}</h2>
        ${question.people?.length && open ? html`<p class="soft">${plain(QUESTION.only(question.people))}</p>` : nothing}${this.evidence ?? nothing}${open ? html`<div class="question-step">${keyed(`${this.at} ${this.other}`, this.step())}</div>` : answered(question)}`,
      this.element,
    );
  }

  private get field(): Field {
    return this.fields[this.at] as Field;
  }

  /** A choice with an optional reason next to it, as a person check of a job asks: one tap answers. */
  private get reason(): Field | undefined {
    const [first, second, ...more] = this.fields;
    const choice = first?.required && first.options?.length && first.kind !== "multi-select";
    return choice && second && more.length === 0 && !second.required && !second.options?.length && second.kind !== "boolean" ? second : undefined;
  }

  /** A question of a job: its choices are all there is, and one who does not answer declines nothing. */
  private get isOfJob(): boolean {
    const [first] = this.fields;
    return first?.id === "answer" && (this.reason?.id === "reason" || (this.fields.length === 1 && first.message === QUESTION.choose && Boolean(first.options?.length)));
  }

  private get isMany(): boolean {
    return this.field.kind === "multi-select" && Boolean(this.field.options?.length);
  }

  private goTo(at: number): void {
    const focused = this.element.querySelector(".question-step")?.contains(document.activeElement);
    this.at = at;
    this.other = false;
    const before = this.answers.get(this.field.id);
    this.picked = new Set<unknown>(Array.isArray(before) ? before : []);
    this.render();
    // A number that was meant for the step before chooses nothing here.
    ignoreEarlyClicks(this.element);
    if (focused) this.element.querySelector<HTMLElement>("button.option, .question-step input")?.focus();
  }

  private step(): TemplateResult {
    const { field, reason } = this;
    if (reason) {
      const named = plain(reason.title ?? reason.message ?? reason.id);
      return html`${this.choices(field)}<label>${named}<input class="reason" dir="auto" placeholder=${QUESTION.optional} /></label>${this.elsewhere()}${this.isOfJob ? nothing : this.foot(field)}`;
    }
    return html`${this.heading(field)}${field.options?.length ? this.choices(field) : this.input(field)}${this.elsewhere()}${this.foot(field)}`;
  }

  private heading(field: Field): TemplateResult {
    const title = plain(field.title ?? "");
    const name = title || plain(field.message ?? field.id);
    // The card's own title has asked it already.
    const line = html`<p class="question-field"><b>${name === plain(this.question.text) ? "" : name}</b><span class="soft">${QUESTION.step(this.at + 1, this.fields.length)}</span></p>`;
    const more = field.message && field.message !== title && field.message !== this.question.text && (title || this.fields.length === 1);
    return html`${this.fields.length > 1 ? line : nothing}${more ? html`<p class="soft">${plain(field.message ?? "")}</p>` : nothing}`;
  }

  // -- fields -------------------------------------------------------------------------------------------------------

  /** Each is a row, and its number chooses it. */
  private choices(field: Field): Content[] {
    const many = this.isMany;
    const before = this.answers.get(field.id);
    const rows = (field.options ?? []).map(({ id, label, description }, index) => {
      const press = () => {
        if (!many) return this.take(id);
        if (!this.picked.delete(id)) this.picked.add(id);
        this.render();
      };
      const text = html`<span>${plain(label ?? String(id))}${description ? html`<small>${plain(description)}</small>` : nothing}</span>`;
      return this.option(index, press, html`${many ? html`<span class="tick"></span>` : nothing}${text}`, many ? this.picked.has(id) : undefined, !many && before === id);
    });
    if (!field.allowFreeformInput || many) return rows;
    if (this.other) return [...rows, html`<label>${QUESTION.other}<input class="other" required dir="auto" /></label>`];
    return [...rows, this.option(rows.length, () => this.openOther(), html`<span>${QUESTION.otherMore}</span>`)];
  }

  private option(index: number, press: () => void, text: Content, checked?: boolean, pressed = false): TemplateResult {
    const key = index > 8 ? "" : String(index + 1);
    return html`<button type="button" class="option" ?disabled=${this.sending} role=${checked === undefined ? nothing : "checkbox"} aria-checked=${checked === undefined ? nothing : String(checked)} aria-pressed=${pressed ? "true" : nothing} data-answer=${key || nothing} aria-keyshortcuts=${key || nothing} @click=${press}>${key ? html`<kbd aria-hidden="true">${key}</kbd>` : nothing}${text}</button>`;
  }

  private openOther(): void {
    this.other = true;
    this.render();
    this.element.querySelector<HTMLElement>("input.other")?.focus();
  }

  private input(field: Field): TemplateResult {
    const named = plain(field.title ?? field.message ?? field.id);
    const before = this.answers.get(field.id);
    const name = this.fields.length > 1 ? "" : named;
    if (field.kind === "boolean") return html`<label>${name}<input type="checkbox" aria-label=${named} dir="auto" ?checked=${before === true} /></label>`;
    const number = field.kind === "number";
    return html`<label>${name}<input type=${number ? "number" : nothing} step=${number ? "any" : nothing} aria-label=${named} ?required=${field.required === true} dir="auto" value=${before === undefined ? nothing : String(before)} /></label>`;
  }

  /** The answer to the current field, as it is entered. */
  private read(): unknown {
    if (this.isMany) return [...this.picked];
    if (this.reason) return undefined; // Enter in the reason chooses nothing
    const input = this.element.querySelector<HTMLInputElement>(".question-step input");
    if (!input) return undefined;
    if (this.field.kind === "boolean") return input.checked;
    if (input.value === "") return undefined;
    return this.field.kind === "number" ? Number(input.value) : input.value;
  }

  // -- the foot -----------------------------------------------------------------------------------------------------

  private elsewhere(): Content {
    const address = this.question.url ? outsideAddress(this.question.url) : undefined;
    return address ? html`<a href=${address} target="_blank" rel="noopener noreferrer">${QUESTION.elsewhere}</a>` : nothing;
  }

  private foot(field: Field): TemplateResult {
    const one = field.options?.length && !this.isMany;
    const word = this.at + 1 < this.fields.length ? QUESTION.next : QUESTION.answer;
    const decline = () => void this.acts.attempt(() => v1.answer(this.question.id, { response: "decline" }), false);
    const plainButton = (text: string, press: () => void, look = "") => html`<button type="button" class=${look || nothing} ?disabled=${this.sending} @click=${press}>${text}</button>`;
    return html`<div class="answers">${!one || this.other ? html`<button class="primary" ?disabled=${this.sending}>${word}</button>` : nothing}${
      one && !field.required && this.fields.length > 1 ? plainButton(QUESTION.skip, () => this.take(undefined)) : nothing
    }${this.at > 0 ? plainButton(QUESTION.back, () => this.goTo(this.at - 1)) : nothing}${this.isOfJob ? nothing : plainButton(QUESTION.decline, decline, "apart")}</div>`;
  }

  private take(answer: unknown): void {
    if (this.reason) return void this.answerCheck(answer, this.reason.id);
    if (answer === undefined) this.answers.delete(this.field.id);
    else this.answers.set(this.field.id, answer);
    if (this.at + 1 < this.fields.length) this.goTo(this.at + 1);
    else void this.send();
  }

  private async answerCheck(answer: unknown, reason: string): Promise<void> {
    if (answer === undefined) return;
    const text = this.element.querySelector<HTMLInputElement>("input.reason")?.value.trim();
    this.answers.set(this.field.id, answer);
    if (text) this.answers.set(reason, text);
    else this.answers.delete(reason);
    await this.send();
  }

  private async send(): Promise<void> {
    this.sending = true;
    this.render();
    if (await this.acts.attempt(() => v1.answer(this.question.id, { answers: Object.fromEntries(this.answers) }), false)) return;
    this.sending = false;
    this.render();
  }
}

// -- what was answered ------------------------------------------------------------------------------------------------

function answered(question: QuestionPart): TemplateResult {
  if (question.response !== "accept") return html`<p class="soft">${question.response === "decline" ? QUESTION.declinedBy(who(question.by ?? "")) : QUESTION.ended}</p>`;
  return html`<dl>${Object.entries(question.answers ?? {}).map(([name, answer]) => {
    const field = question.fields?.find(({ id }) => id === name);
    return html`<dt>${field?.title ?? (name === "answer" ? who(question.by ?? "") : name)}</dt><dd>${plain(chosen(field, bare(answer)))}</dd>`;
  })}</dl>`;
}

/** Doors keep answers wrapped, `{"state", "value": {"value"}}`; people read the bare one. */
function bare(answer: unknown): unknown {
  while (answer && typeof answer === "object" && "value" in answer) answer = answer.value;
  return answer;
}

/** By the names that were shown, where there were some to choose from. */
function chosen(field: Field | undefined, answer: unknown): string {
  if (Array.isArray(answer)) return answer.map((each) => chosen(field, each)).join(", ") || QUESTION.none;
  const label = field?.options?.find(({ id }) => id === answer)?.label;
  if (label) return label;
  return typeof answer === "string" ? answer : typeof answer === "boolean" ? (answer ? QUESTION.yes : QUESTION.no) : JSON.stringify(answer);
}
