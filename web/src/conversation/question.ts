/** A question of the agent as a card, one step for each of its fields; or what was answered. */

import { outsideAddress } from "../addresses";
import { icon } from "../icons";
import { make, makeButton } from "../page";
import { settle } from "../settle";
import { v1 } from "../v1";
import { evidenceView } from "./evidence";
import { type CardActs, plain } from "./pieces";
import type { Field, QuestionPart } from "./state";
import { who } from "./words";

export function questionCard(question: QuestionPart, acts: CardActs): HTMLElement {
  const card = make("form", "card question");
  const [asked = ""] = question.evidence?.length ? question.text.split("\n\nChanged files:\n") : [question.text];
  const title = make("h2", "", plain(asked));
  if (!question.response) title.prepend(icon("ask"));
  title.id = `title-${question.id}`;
  title.tabIndex = -1;
  card.setAttribute("aria-labelledby", title.id);
  card.append(title);
  if (question.people?.length && !question.response) card.append(make("p", "soft", plain(`Only ${question.people.join(", ")} may answer.`)));
  if (question.evidence?.length) card.append(evidenceView(question.evidence));
  if (question.response) card.append(answered(question));
  else new Steps(card, question, acts);
  return card;
}

function answered(question: QuestionPart): HTMLElement {
  if (question.response !== "accept") return make("p", "soft", question.response === "decline" ? `Declined by ${who(question.by ?? "")}.` : "Not answered: the turn ended.");
  const list = make("dl");
  for (const [name, answer] of Object.entries(question.answers ?? {})) {
    const field = question.fields?.find(({ id }) => id === name);
    list.append(make("dt", "", field?.title ?? (name === "answer" ? who(question.by ?? "") : name)), make("dd", "", plain(chosen(field, bare(answer)))));
  }
  return list;
}

/** Doors keep answers wrapped, `{"state", "value": {"value"}}`; people read the bare one. */
function bare(answer: unknown): unknown {
  while (answer && typeof answer === "object" && "value" in answer) answer = answer.value;
  return answer;
}

/** By the names that were shown, where there were some to choose from. */
function chosen(field: Field | undefined, answer: unknown): string {
  if (Array.isArray(answer)) return answer.map((each) => chosen(field, each)).join(", ") || "none of them";
  const label = field?.options?.find(({ id }) => id === answer)?.label;
  if (label) return label;
  return typeof answer === "string" ? answer : typeof answer === "boolean" ? (answer ? "Yes" : "No") : JSON.stringify(answer);
}

/** One field at a time; a single choice continues immediately, everything else with the button. */
class Steps {
  private readonly fields: Field[];
  private readonly answers = new Map<string, unknown>();
  private readonly body = make("div", "question-step");
  private read: () => unknown = () => undefined;
  private at = 0;

  constructor(
    private readonly card: HTMLFormElement,
    private readonly question: QuestionPart,
    private readonly acts: CardActs,
  ) {
    this.fields = question.fields?.length ? question.fields : [{ id: "answer", title: "Your answer", required: true }];
    card.append(this.body);
    card.addEventListener("submit", (event) => {
      event.preventDefault();
      this.take(this.read());
    });
    this.show(0);
  }

  private show(at: number): void {
    const focused = this.body.contains(document.activeElement);
    this.at = at;
    // A number that was meant for the step before chooses nothing here.
    settle(this.card);
    const field = this.fields[at] as Field;
    const control = field.options?.length ? this.choices(field) : this.input(field);
    this.body.replaceChildren(...this.heading(field), ...control, ...this.elsewhere(), this.foot(field));
    if (focused) this.body.querySelector<HTMLElement>("button.option, input, textarea")?.focus();
  }

  private heading(field: Field): HTMLElement[] {
    const title = plain(field.title ?? "");
    const found: HTMLElement[] = [];
    if (this.fields.length > 1) {
      const line = make("p", "question-field");
      const name = title || plain(field.message ?? field.id);
      // The card's own title has asked it already.
      line.append(make("b", "", name === plain(this.question.text) ? "" : name), make("span", "soft", `${this.at + 1} of ${this.fields.length}`));
      found.push(line);
    }
    if (field.message && field.message !== title && field.message !== this.question.text && (title || this.fields.length === 1)) found.push(make("p", "soft", plain(field.message)));
    return found;
  }

  /** Each is a row, and its number chooses it. */
  private choices(field: Field): HTMLElement[] {
    const many = field.kind === "multi-select";
    const before = this.answers.get(field.id);
    const picked = new Set<unknown>(Array.isArray(before) ? before : []);
    this.read = () => (many ? [...picked] : undefined);
    const rows = (field.options ?? []).map(({ id, label, description }, index) => {
      const row = makeButton("option", "", () => {
        if (!many) return this.take(id);
        if (!picked.delete(id)) picked.add(id);
        row.setAttribute("aria-checked", String(picked.has(id)));
      });
      if (many) {
        row.setAttribute("role", "checkbox");
        row.setAttribute("aria-checked", String(picked.has(id)));
      } else if (before === id) row.setAttribute("aria-pressed", "true");
      const text = make("span", "", plain(label ?? String(id)));
      if (description) text.append(make("small", "", plain(description)));
      row.append(...number(row, index), ...(many ? [make("span", "tick")] : []), text);
      return row;
    });
    if (field.allowFreeformInput && !many) rows.push(this.somethingElse(rows.length));
    return rows;
  }

  private somethingElse(index: number): HTMLButtonElement {
    const row = makeButton("option", "", () => {
      const label = make("label", "", "Something else");
      const input = make("input");
      input.required = true;
      input.dir = "auto";
      label.append(input);
      this.read = () => input.value;
      row.replaceWith(label);
      this.card.querySelector(".answers")?.prepend(make("button", "primary", this.word));
      input.focus();
    });
    row.append(...number(row, index), make("span", "", "Something else…"));
    return row;
  }

  private input(field: Field): HTMLElement[] {
    const named = plain(field.title ?? field.message ?? field.id);
    const label = make("label", "", this.fields.length > 1 ? "" : named);
    const input = make("input");
    input.setAttribute("aria-label", named);
    input.required = field.required === true && field.kind !== "boolean";
    input.dir = "auto";
    const before = this.answers.get(field.id);
    if (field.kind === "boolean") {
      input.type = "checkbox";
      input.checked = before === true;
    } else if (field.kind === "number") {
      input.type = "number";
      input.step = "any";
    }
    if (before !== undefined && field.kind !== "boolean") input.value = String(before);
    label.append(input);
    this.read = () => (field.kind === "boolean" ? input.checked : input.value === "" ? undefined : field.kind === "number" ? Number(input.value) : input.value);
    return [label];
  }

  private elsewhere(): HTMLElement[] {
    const address = this.question.url ? outsideAddress(this.question.url) : undefined;
    if (!address) return [];
    const anchor = make("a", "", "Answer there instead");
    Object.assign(anchor, { href: address, target: "_blank", rel: "noopener noreferrer" });
    return [anchor];
  }

  private get word(): string {
    return this.at + 1 < this.fields.length ? "Next" : "Answer";
  }

  private foot(field: Field): HTMLElement {
    const row = make("div", "answers");
    const one = field.options?.length && field.kind !== "multi-select";
    if (!one) row.append(make("button", "primary", this.word));
    else if (!field.required && this.fields.length > 1) row.append(makeButton("", "Leave it open", () => this.take(undefined)));
    if (this.at > 0) row.append(makeButton("", "Back", () => this.show(this.at - 1)));
    const decline = makeButton("apart", "Decline", () => void this.acts.attempt(() => v1.answer(this.question.id, { response: "decline" }), false));
    row.append(decline);
    return row;
  }

  private take(answer: unknown): void {
    const { id } = this.fields[this.at] as Field;
    if (answer === undefined) this.answers.delete(id);
    else this.answers.set(id, answer);
    if (this.at + 1 < this.fields.length) this.show(this.at + 1);
    else void this.send();
  }

  private async send(): Promise<void> {
    const hold = (on: boolean) => this.card.querySelectorAll("button").forEach((button) => (button.disabled = on));
    hold(true);
    if (!(await this.acts.attempt(() => v1.answer(this.question.id, { answers: Object.fromEntries(this.answers) }), false))) hold(false);
  }
}

function number(row: HTMLElement, index: number): HTMLElement[] {
  if (index > 8) return [];
  row.dataset["answer"] = String(index + 1);
  row.setAttribute("aria-keyshortcuts", String(index + 1));
  const key = make("kbd", "", String(index + 1));
  key.setAttribute("aria-hidden", "true");
  return [key];
}
