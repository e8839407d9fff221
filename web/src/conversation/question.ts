/** A question of the agent as a small form, or what was answered. */

import { outsideAddress } from "../addresses";
import { make, makeButton } from "../page";
import { v1 } from "../v1";
import { evidenceView } from "./evidence";
import { type CardActs, plain } from "./pieces";
import type { Field, QuestionPart } from "./state";
import { who } from "./words";

type Control = { field: Field; read(): unknown };

export function questionCard(question: QuestionPart, acts: CardActs): HTMLElement {
  const card = make("form", "card question");
  const [asked = ""] = question.evidence?.length ? question.text.split("\n\nChanged files:\n") : [question.text];
  const title = make("h2", "", plain(asked));
  title.id = `title-${question.id}`;
  card.setAttribute("aria-labelledby", title.id);
  card.append(title);
  if (question.people?.length && !question.response) card.append(make("p", "soft", plain(`Only ${question.people.join(", ")} may answer.`)));
  if (question.evidence?.length) card.append(evidenceView(question.evidence));
  if (question.response) card.append(answered(question));
  else fill(card, question, acts);
  return card;
}

function answered(question: QuestionPart): HTMLElement {
  if (question.response !== "accept") return make("p", "soft", question.response === "decline" ? `Declined by ${who(question.by ?? "")}.` : "Not answered: the turn ended.");
  const list = make("dl");
  for (const [name, answer] of Object.entries(question.answers ?? {})) {
    const title = question.fields?.find(({ id }) => id === name)?.title ?? (name === "answer" ? who(question.by ?? "") : name);
    list.append(make("dt", "", title), make("dd", "", plain(bare(answer))));
  }
  return list;
}

/** Doors keep answers wrapped, `{"state", "value": {"value"}}`; people read the bare one. */
function bare(answer: unknown): string {
  while (answer && typeof answer === "object" && "value" in answer) answer = answer.value;
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}

/** One choice among a few: each is a row, and its number chooses it at once, with what stands in the other fields. */
function choices(card: HTMLFormElement, question: QuestionPart, field: Field, others: Field[], acts: CardActs): void {
  const controls = others.map((other) => control(card, other));
  if (field.message && field.message !== question.text) card.append(make("p", "soft", plain(field.message)));
  (field.options ?? []).forEach(({ id, label, description }, index) => {
    const row = makeButton("option", "", () => {
      for (const button of card.querySelectorAll("button")) button.disabled = true;
      void acts.attempt(() => v1.answer(question.id, { answers: { ...given(controls), [field.id]: id } })).then((done) => {
        if (!done) for (const button of card.querySelectorAll("button")) button.disabled = false;
      });
    });
    const text = make("span", "", plain(label ?? String(id)));
    if (description) text.append(make("small", "", plain(description)));
    if (index < 9) {
      row.dataset["answer"] = String(index + 1);
      row.setAttribute("aria-keyshortcuts", String(index + 1));
      const number = make("kbd", "", String(index + 1));
      number.setAttribute("aria-hidden", "true");
      row.append(number);
    }
    row.append(text);
    card.append(row);
  });
  const foot = make("div", "answers");
  foot.append(makeButton("", "Decline", () => void acts.attempt(() => v1.answer(question.id, { response: "decline" }))));
  card.append(foot);
}

function fill(card: HTMLFormElement, question: QuestionPart, acts: CardActs): void {
  const [first, ...others] = question.fields ?? [];
  card.dataset["since"] = String(performance.now());
  const atOnce = first?.options?.length && first.kind !== "multi-select" && first.required !== false && others.every(({ required }) => required !== true);
  if (first && atOnce) return choices(card, question, first, others, acts);
  const fields = question.fields?.length ? question.fields : [{ id: "answer", title: "Your answer", required: true }];
  const controls = fields.map((field) => control(card, field));
  const address = question.url ? outsideAddress(question.url) : undefined;
  if (address) {
    const anchor = make("a", "", "Answer there instead");
    Object.assign(anchor, { href: address, target: "_blank", rel: "noopener noreferrer" });
    card.append(anchor);
  }
  const send = make("button", "primary", "Answer");
  const row = make("div", "answers");
  row.append(send, makeButton("", "Decline", () => void acts.attempt(() => v1.answer(question.id, { response: "decline" }))));
  card.append(row);
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    void acts.attempt(() => v1.answer(question.id, { answers: given(controls) }));
  });
}

const given = (controls: Control[]) => Object.fromEntries(controls.flatMap(({ field, read }) => (read() === undefined ? [] : [[field.id, read()]])));

function control(card: HTMLElement, field: Field): Control {
  const label = make("label", "", plain(field.title ?? field.message ?? field.id));
  if (field.message && field.message !== field.title) label.append(make("span", "soft", ` ${plain(field.message)}`));
  if (field.options?.length) {
    const select = make("select");
    if (field.kind === "multi-select") select.multiple = true;
    if (!field.required && !select.multiple) select.append(new Option("(no answer)", ""));
    field.options.forEach(({ id, label: text }, index) => select.append(new Option(plain(text ?? String(id)), String(index))));
    label.append(select);
    card.append(label);
    const values = () => [...select.selectedOptions].flatMap(({ value }) => (value === "" ? [] : [field.options?.[Number(value)]?.id]));
    return { field, read: () => (select.multiple ? values() : values()[0]) };
  }
  const input = make("input");
  input.required = field.required === true && field.kind !== "boolean";
  if (field.kind === "boolean") input.type = "checkbox";
  if (field.kind === "number") {
    input.type = "number";
    input.step = "any";
  }
  label.append(input);
  card.append(label);
  if (field.kind === "boolean") return { field, read: () => input.checked };
  return { field, read: () => (input.value === "" ? undefined : field.kind === "number" ? Number(input.value) : input.value) };
}
