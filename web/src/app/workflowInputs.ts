/** The typed inputs of a workflow as fields, and the fields as values. */

import { html, nothing, type TemplateResult } from "../render";
import type { JobInput } from "../rest";
import { START_JOB as TEXTS } from "../texts/startJob";

/** What the fields contain, by name; a field that was not touched has its default. */
export type Filled = Record<string, string | boolean>;

export const isNeeded = (input: JobInput): boolean => input.required ?? (input.default === undefined || input.default === null);

export const secretsOf = (inputs: Record<string, JobInput>): string[] => Object.keys(inputs).filter((name) => inputs[name]?.type === "secret");

export function shownOf(input: JobInput, filled: string | boolean | undefined): string | boolean {
  if (filled !== undefined) return filled;
  const value = input.default;
  if (input.type === "boolean") return value === true;
  if (value === undefined || value === null) return "";
  return Array.isArray(value) ? value.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n") : String(value);
}

/** Lines, or words with commas between them; a JSON array as it is. */
function listOf(text: string): unknown[] {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) {
    try {
      const found: unknown = JSON.parse(trimmed);
      if (Array.isArray(found)) return found;
    } catch {
      // It is text that begins with a bracket.
    }
  }
  return trimmed.split(trimmed.includes("\n") ? "\n" : ",").map((each) => each.trim()).filter(Boolean);
}

/** The values to send. An empty field that is not needed is left out, so its default applies. */
export function valuesOf(inputs: Record<string, JobInput>, filled: Filled): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, input] of Object.entries(inputs)) {
    const given = filled[name];
    if (given === undefined) continue;
    if (input.type === "boolean") values[name] = given === true;
    else if (input.type === "list") values[name] = listOf(String(given));
    else if (given === "" && !(typeof input.default === "string" && !isNeeded(input))) continue;
    else values[name] = input.type === "number" && Number.isFinite(Number(given)) ? Number(given) : String(given);
  }
  return values;
}

/** The needed inputs that are empty. */
export const missingOf = (inputs: Record<string, JobInput>, filled: Filled): string[] =>
  Object.entries(inputs).filter(([name, input]) => isNeeded(input) && input.type !== "boolean" && !String(shownOf(input, filled[name])).trim()).map(([name]) => name);

export function inputFields(inputs: Record<string, JobInput>, filled: Filled, change: (name: string, value: string | boolean) => void): TemplateResult | typeof nothing {
  const names = Object.entries(inputs);
  if (names.length === 0) return nothing;
  return html`<fieldset class="job-inputs"><legend>${TEXTS.inputs}</legend>${names.map(([name, input]) => field(name, input, shownOf(input, filled[name]), (value) => change(name, value)))}</fieldset>`;
}

function field(name: string, input: JobInput, shown: string | boolean, change: (value: string | boolean) => void): TemplateResult {
  const id = `input-${name}`;
  const changed = (event: Event) => change((event.target as HTMLInputElement).value);
  const about = [input.about?.replace(/[.!?]?$/, "."), HINTS[input.type ?? "text"]].filter(Boolean).join(" ");
  if (input.type === "boolean")
    return html`<div class="job-input"><label class="check"><input id=${id} type="checkbox" .checked=${shown === true} aria-describedby=${about ? `${id}-about` : nothing} @change=${(event: Event) => change((event.target as HTMLInputElement).checked)} />${name}</label>${aboutOf(id, about)}</div>`;
  const needed = isNeeded(input);
  return html`<div class="job-input"><label for=${id}><span>${name}${needed || shownOf(input, undefined) !== "" ? nothing : html` <span class="soft">(${TEXTS.optional})</span>`}</span></label>${control(id, input, String(shown), needed, about, changed)}${aboutOf(id, about)}</div>`;
}

const HINTS: Partial<Record<NonNullable<JobInput["type"]>, string>> = { list: TEXTS.list, file: TEXTS.file, secret: TEXTS.secret };

const aboutOf = (id: string, about: string) => (about ? html`<p class="soft" id="${id}-about">${about}</p>` : nothing);

function control(id: string, { type, choices = [] }: JobInput, shown: string, needed: boolean, about: string, changed: (event: Event) => void): TemplateResult {
  const described = about ? `${id}-about` : nothing;
  switch (type) {
    case "choice":
      return html`<select id=${id} aria-describedby=${described} @change=${changed}>${choices.includes(shown) ? nothing : html`<option value="" selected></option>`}${choices.map((each) => html`<option value=${each} ?selected=${each === shown}>${each}</option>`)}</select>`;
    case "number":
      return html`<input id=${id} type="number" step="any" inputmode="decimal" ?required=${needed} aria-describedby=${described} .value=${shown} @input=${changed} />`;
    case "secret":
      return html`<input id=${id} type="password" autocomplete="off" ?required=${needed} aria-describedby=${described} .value=${shown} @input=${changed} />`;
    case "file":
      return html`<input id=${id} type="text" spellcheck="false" ?required=${needed} aria-describedby=${described} .value=${shown} @input=${changed} />`;
    case "list":
      return html`<textarea id=${id} rows="3" spellcheck="false" ?required=${needed} aria-describedby=${described} .value=${shown} @input=${changed}></textarea>`;
    default:
      return html`<textarea id=${id} rows="2" dir="auto" ?required=${needed} aria-describedby=${described} .value=${shown} @input=${changed}></textarea>`;
  }
}
