/** The form of an automation: when, what, and the rules. Errors of the host are shown at their field. */

import { explain, Refused } from "../failure";
import { Scope } from "../scope";
import { make, makeButton } from "../page";
import { nothing, render } from "../render";
import type { JobInput, WorkflowInfo } from "../rest";
import { type Agent, ask, v1 } from "../v1";
import { frame, headOf, keepSecret } from "./automationFrame";
import { AUTOMATIONS, FORM } from "../texts/automations";
import { type Automation, browserZone, DAYS, dueWords, fieldFor, MISSED, OVERLAP, type Plan, planOf, type Values, valuesOf } from "./automationModel";
import { MODES } from "./messageBox";
import { type Filled, inputFields, valuesOf as inputValues } from "./workflowInputs";
import type { View, ViewContext } from "./view";
import { whereChoices } from "./where";

type Options = [value: string, text: string][];

interface FieldSpec {
  path: string;
  label: string;
  hint?: string;
  kind?: "text" | "area" | "box" | "number" | "time" | "datetime-local";
  options?: Options;
  list?: string;
  /** In which choice of `when` or `what` it is there; always, when absent. */
  at?: string[];
}

const WHEN: Options = [["daily", FORM.onDaysAtATime], ["every", FORM.atAnInterval], ["at", FORM.once], ["hook", FORM.whenAnotherSystemCallsHook], ["files", FORM.whenFilesChange], ["after", FORM.afterAnotherAutomation], ["none", FORM.manually], ["cron", FORM.customCron]];
/** Only for a plan that has them: the form edits one trigger. */
const SEVERAL: Options[number] = ["several", FORM.severalTriggersAsTheyAre];
const ENDS = ["succeeded", "failed", "canceled", "interrupted"];

/** The browser's own zone is the first. */
const ZONES: Options = [...new Set([browserZone(), "UTC", ...(typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [])])].map((zone) => [zone, zone.replace(/_/g, " ")]);

const FIRST: FieldSpec[] = [
  { path: "name", label: FORM.name, hint: FORM.lowerCaseLettersDigits },
  { path: "title", label: FORM.titleOptional },
];
const TRIGGER: FieldSpec[] = [
  { path: "when", label: FORM.trigger, options: WHEN },
  { path: "daily.days", label: FORM.repeat, options: DAYS, at: ["daily"] },
  { path: "daily.time", label: FORM.at, kind: "time", at: ["daily"] },
  { path: "schedule.cron", label: FORM.cron, hint: FORM.minuteHourDayMonthWeekday, at: ["cron"] },
  { path: "schedule.every", label: FORM.every, hint: FORM.n90s15m2hOr1d, at: ["every"] },
  { path: "schedule.at", label: FORM.at, kind: "datetime-local", at: ["at"] },
  { path: "schedule.zone", label: FORM.timeZone, options: ZONES, at: ["daily", "cron", "at"] },
  { path: "hook.filter", label: FORM.onlyIfOptional, kind: "area", hint: FORM.oneConditionInALine, at: ["hook"] },
  { path: "hook.per_minute", label: FORM.callsInAMinute, kind: "number", at: ["hook"] },
  { path: "files.folder", label: FORM.folder, at: ["files"] },
  { path: "files.globs", label: FORM.files, hint: FORM.patternsSuchAsCsvSeparated, at: ["files"] },
  { path: "files.excludes", label: FORM.but, hint: FORM.patternsSeparatedByCommas, at: ["files"] },
  { path: "files.quiet", label: FORM.secondsWithoutAFurtherChange, kind: "number", at: ["files"] },
  { path: "after.automation", label: FORM.afterTheAutomation, list: "automations", hint: FORM.itsNameOrName, at: ["after"] },
  { path: "after.job", label: FORM.orAfterTheJob, list: "jobs", at: ["after"] },
  { path: "after.outcomes", label: FORM.howItEnded, at: ["after"] },
];
const START: FieldSpec[] = [
  { path: "what", label: FORM.start, options: [["prompt", FORM.aPromptForAnAgent], ["job", FORM.aJob]] },
  { path: "prompt.text", label: FORM.prompt, kind: "area", hint: FORM.payloadIsTheCallsJson, at: ["prompt"] },
  { path: "prompt.agent", label: FORM.agent, options: [], at: ["prompt"] },
  { path: "prompt.model", label: FORM.model, options: [["", FORM.theAgentsOwnChoice]], at: ["prompt"] },
  { path: "prompt.cwd", label: FORM.folder, hint: FORM.anAbsolutePathEmpty, list: "folders", at: ["prompt"] },
  { path: "prompt.config", label: FORM.whatItMayDo, options: MODES, at: ["prompt"] },
  { path: "prompt.worktree", label: FORM.workInASeparateCopy, kind: "box", at: ["prompt"] },
  { path: "prompt.place", label: FORM.place, options: [["", FORM.whereItsFolder]], at: ["prompt"] },
  { path: "prompt.label", label: FORM.onlyAtAHost, options: [["", FORM.anyHost]], at: ["prompt"] },
  { path: "job.job", label: FORM.job, options: [], at: ["job"] },
  { path: "job.input", label: FORM.inputForTheJobOptional, kind: "area", at: ["job"] },
  { path: "job.cwd", label: FORM.folder, hint: FORM.anAbsolutePathEmpty, list: "folders", at: ["job"] },
  { path: "job.place", label: FORM.place, options: [["", FORM.whereItsFolder]], at: ["job"] },
  { path: "job.label", label: FORM.onlyAtAHost, options: [["", FORM.anyHost]], at: ["job"] },
];
const RULES: FieldSpec[] = [
  { path: "missed", label: FORM.ifNoHostRan, options: Object.entries(MISSED) },
  { path: "missed_limit", label: FORM.madeUpForAtMost, kind: "number" },
  { path: "overlap", label: FORM.ifTheRunBeforeStill, options: Object.entries(OVERLAP) },
  { path: "parallel", label: FORM.sideBySideAtMost, kind: "number" },
  { path: "stop_after_failures", label: FORM.stopsAfterSoManyFailures, kind: "number" },
  { path: "stop_after_runs", label: FORM.stopsAfterSoManyRuns, kind: "number" },
  { path: "stop_at", label: FORM.stopsAtOptional, hint: "2027-01-31T09:00" },
  { path: "budget.dollars", label: FORM.aRunCostsAtMost, hint: FORM.thenItWaitsAndAsks },
  { path: "budget.tokens", label: FORM.aRunUsesAtMost },
  { path: "keep_days", label: FORM.daysThatRunsStay, kind: "number" },
  { path: "keep_runs", label: FORM.runsThatStay, kind: "number" },
];
const ALL = [...FIRST, ...TRIGGER, ...START, ...RULES];

interface Field {
  spec: FieldSpec;
  box: HTMLElement;
  input: HTMLElement;
  wrong: HTMLElement;
  read(): string;
  write(value: string): void;
}

export class AutomationForm implements View {
  readonly element = make("section", "place automations");
  readonly title: string;
  private readonly form = make("form", "start wide");
  private readonly fields = new Map<string, Field>();
  private readonly scope = new Scope((text) => this.report(text));
  private readonly trouble = make("p", "trouble");
  private readonly preview = make("p", "auto-preview soft");
  private readonly save = make("button", "primary");
  private before: Plan = {};
  private agents: Agent[] = [];
  private workflows: WorkflowInfo[] = [];
  private readonly inputs = make("div", "auto-inputs");
  private filled: Filled = {};
  private where: Awaited<ReturnType<typeof whereChoices>> = { places: [], labels: [] };

  constructor(
    private readonly id: string | undefined,
    private readonly context: ViewContext,
  ) {
    this.title = id ? FORM.editTheAutomation : FORM.newAutomation;
    frame(this.element, headOf(this.title, FORM.chooseATrigger), [], this.form, true);
    this.build();
    this.load();
  }

  leave(): void {
    this.scope.end();
  }

  private build(): void {
    this.form.noValidate = true;
    this.save.textContent = this.id ? FORM.save : FORM.createAutomation;
    this.trouble.setAttribute("role", "alert");
    this.preview.setAttribute("role", "status");
    for (const spec of ALL) this.fields.set(spec.path, field(spec));
    const rules = make("details", "auto-rules");
    rules.append(make("summary", "", FORM.missedRunsOverlapLimits), ...this.boxes(RULES));
    const foot = make("div", "answers");
    foot.append(this.save, makeButton("", FORM.cancel, () => this.context.go(this.id ? { at: "automations", id: this.id } : { at: "automations" })));
    this.form.append(...this.boxes(FIRST), make("h2", "", FORM.when), ...this.boxes(TRIGGER), this.preview, make("h2", "", FORM.whatToStart), ...this.boxes(START).flatMap((box) => (box === this.fields.get("job.job")?.box ? [box, this.inputs] : [box])), rules, this.trouble, foot);
    // Not with the change that a click on the button brings: the button would move away under the pointer.
    this.form.addEventListener("input", (event) => this.clearErrorAt(event.target as Element));
    this.form.addEventListener("change", (event) => {
      if (event.target === this.fields.get("job.cwd")?.input) this.listJobs();
      this.choose();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    this.fill(valuesOf({ schedule: { cron: "0 7 * * 1-5", zone: browserZone() } }));
  }

  private readonly listJobs = this.scope.latest((signal) => this.offerJobs(signal), () => this.choose(), { failed: () => undefined });

  private boxes(specs: FieldSpec[]): HTMLElement[] {
    return specs.flatMap(({ path }) => this.fields.get(path)?.box ?? []);
  }

  private fill(values: Values): void {
    for (const [path, each] of this.fields) each.write(values[path] ?? "");
    this.report("");
    this.choose();
  }

  private get values(): Values {
    return Object.fromEntries([...this.fields].map(([path, each]) => [path, each.read()]));
  }

  /** The choices of the form. It works without them, and they are retried. */
  private load(): void {
    this.listJobs();
    const offers = [this.offerAgents, this.offerAutomations, this.offerFolders, this.offerWhere];
    for (const offer of offers) this.scope.latest((signal) => offer.call(this, signal), () => this.choose(), { failed: () => undefined })();
    if (this.id) this.loadPlan(this.id);
    else if (document.activeElement === document.body) this.fields.get("name")?.input.focus();
  }

  /** Until the plan is here, Save would replace it by the defaults of the form. */
  private loadPlan(id: string): void {
    this.save.disabled = true;
    const take = ({ plan, name, source }: Automation) => {
      this.save.disabled = false;
      this.before = plan;
      this.filled = filledOf(plan.job?.inputs ?? {});
      if (plan.on?.length) this.choices("when", [SEVERAL, ...WHEN]);
      this.fill(valuesOf(plan, name));
      if (plan.job?.cwd) this.listJobs();
      if (source === "file") this.report(FORM.itIsWrittenInAutomations);
      if (document.activeElement === document.body) this.fields.get("name")?.input.focus();
    };
    this.scope.latest((signal) => ask("GET /automations/{id}", { id }, { signal }), take)();
  }

  private async offerAgents(signal: AbortSignal): Promise<void> {
    this.agents = await v1.agents(signal);
    this.choices("prompt.agent", [["", FORM.theHostsOwnChoice], ...this.agents.map(({ id, name, missing }): [string, string] => [id, missing ? FORM.notReady(name) : name])]);
  }

  private async offerJobs(signal: AbortSignal): Promise<void> {
    const { entry } = await ask("GET /entry", {}, { signal }).catch(noEntry);
    const { workspaces } = await v1.about(signal);
    const cwd = this.values["job.cwd"]?.trim() || workspaces[0];
    this.workflows = cwd ? (await ask("GET /workflows", {}, { query: { cwd }, signal }).catch(() => ({ workflows: [] }))).workflows : [];
    const names = [...new Set([...this.workflows.map(({ name }) => name), ...Object.keys(entry.jobs ?? {})])];
    this.choices("job.job", names.map((name) => [name, name]));
    this.offer("jobs", names);
  }

  /** The inputs of the chosen workflow; undefined for another job. */
  private get spec(): Record<string, JobInput> | undefined {
    const { values } = this;
    if (values["what"] !== "job") return undefined;
    const inputs = this.workflows.find(({ name }) => name === values["job.job"])?.inputs;
    return inputs && Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, forAutomation(input, values["when"] ?? "")]));
  }

  private renderInputs(): void {
    const { spec } = this;
    this.toggle("job.input", this.values["what"] === "job" && spec === undefined);
    render(spec ? inputFields(spec, this.filled, (name, value) => (this.filled[name] = value)) : nothing, this.inputs);
  }

  private async offerAutomations(signal: AbortSignal): Promise<void> {
    const { automations } = await ask("GET /automations", {}, { signal });
    this.offer("automations", automations.filter(({ id, name }) => this.id !== id && this.id !== name).map(({ name }) => name));
  }

  private async offerFolders(signal: AbortSignal): Promise<void> {
    const { workspaces } = await v1.about(signal);
    this.offer("folders", [...new Set([...workspaces, ...[...this.context.board.rows.values()].map(({ session }) => session.cwd)])].slice(0, 12));
  }

  private async offerWhere(signal: AbortSignal): Promise<void> {
    this.where = await whereChoices(signal);
    for (const what of ["prompt", "job"]) {
      this.choices(`${what}.place`, [["", FORM.whereItsFolder], ...this.where.places.map((each): [string, string] => [each, each])]);
      this.choices(`${what}.label`, [["", FORM.anyHost], ...this.where.labels.map((each): [string, string] => [each, each])]);
    }
  }

  private offer(name: string, all: string[]): void {
    const list = make("datalist");
    list.id = `auto-${name}`;
    list.append(...all.map((each) => new Option(each, each)));
    this.form.querySelector(`#${list.id}`)?.remove();
    this.form.append(list);
  }

  private choices(path: string, options: Options): void {
    const found = this.fields.get(path);
    if (!(found?.input instanceof HTMLSelectElement)) return;
    const value = found.input.value;
    found.input.replaceChildren(...options.map(([each, text]) => new Option(text, each)));
    if (value) found.write(value);
  }

  /** Only the fields of what is chosen are there. */
  private choose(): void {
    const values = this.values;
    for (const { spec, box } of this.fields.values()) box.hidden = spec.at !== undefined && !spec.at.includes(values["when"] ?? "") && !spec.at.includes(values["what"] ?? "");
    this.toggle("missed_limit", values["missed"] === "all");
    this.toggle("parallel", values["overlap"] === "parallel");
    for (const what of ["prompt", "job"]) {
      const mine = values["what"] === what;
      this.toggle(`${what}.place`, mine && this.where.places.length + (values[`${what}.place`] ?? "").length > 0);
      this.toggle(`${what}.label`, mine && this.where.labels.length + (values[`${what}.label`] ?? "").length > 0);
    }
    const agent = this.agents.find(({ id }) => id === values["prompt.agent"]);
    this.choices("prompt.model", [["", FORM.theAgentsOwnChoice], ...(agent?.models ?? []).map(({ id, name }): [string, string] => [id, name])]);
    this.renderInputs();
    void this.checkTrigger();
  }

  private toggle(path: string, on: boolean): void {
    const found = this.fields.get(path);
    if (found) found.box.hidden = !on;
  }

  private clearErrorAt(target: Element): void {
    clearError([...this.fields.values()].find(({ box }) => box.contains(target)));
  }

  private checks = 0;

  /** When it would be due, or what is wrong with the trigger, before anything is made. */
  private async checkTrigger(): Promise<void> {
    const mine = ++this.checks;
    const values = this.values;
    const when = values["when"] ?? "";
    const given = when === "daily" ? values["daily.time"] : when === "cron" || when === "every" || when === "at" ? values[`schedule.${when}`] : "";
    if (!given) return void (this.preview.hidden = true);
    try {
      const text = values["prompt.text"]?.trim() ? {} : { "prompt.text": "-" };
      const { when: words, next = [] } = await ask("POST /automations/check", {}, { body: planOf({ ...values, ...text, what: "prompt" }), signal: this.scope.signal });
      if (mine !== this.checks) return;
      this.preview.textContent = `${words.charAt(0).toUpperCase()}${words.slice(1)}.${next[0] ? FORM.next(dueWords(next[0], Date.now())) : ""}`;
      this.preview.hidden = false;
      for (const path of ["daily.time", "schedule.cron", "schedule.every", "schedule.at", "schedule.zone"]) clearError(this.fields.get(path));
    } catch (error) {
      if (mine !== this.checks) return;
      this.preview.hidden = true;
      if (error instanceof Refused && error.field.startsWith("schedule")) this.point(error);
    }
  }

  private point(error: Refused): boolean {
    const shown = [...this.fields.values()].filter(({ box }) => !box.hidden).map(({ spec }) => spec.path);
    return this.mark(fieldFor(shown, error.field === "schedule.cron" && shown.includes("daily.time") ? "daily.time" : error.field) ?? "", explain(error));
  }

  private mark(path: string, text: string): boolean {
    const found = this.fields.get(path);
    if (!found) return false;
    found.wrong.textContent = text;
    found.wrong.hidden = false;
    found.input.setAttribute("aria-invalid", "true");
    found.box.closest("details")?.setAttribute("open", "");
    return true;
  }

  /** Marks every field that is empty and needed, so that all of them are seen together. */
  private markEmpty(): boolean {
    const { values } = this;
    const needed: [path: string, text: string][] = [["name", AUTOMATIONS.needed.name], values["what"] === "job" ? ["job.job", AUTOMATIONS.needed.job] : ["prompt.text", AUTOMATIONS.needed.prompt]];
    const empty = needed.filter(([path]) => !values[path]?.trim());
    for (const [path, text] of empty) this.mark(path, text);
    this.form.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    return empty.length > 0;
  }

  private report(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = text === "";
  }

  private async send(): Promise<void> {
    this.report("");
    for (const each of this.fields.values()) clearError(each);
    if (this.markEmpty()) return;
    this.save.disabled = true;
    try {
      const body = { name: this.values["name"]?.trim() ?? "", plan: planOf(this.values, this.before, this.spec && inputValues(this.spec, this.filled)) };
      if (this.id) await ask("PATCH /automations/{id}", { id: this.id }, { body });
      const { automation, secret = "" } = this.id ? { automation: this.id } : await ask("POST /automations", {}, { body });
      if (secret) keepSecret(automation, secret);
      this.context.go({ at: "automations", id: automation });
    } catch (error) {
      if (error instanceof Refused && this.point(error)) this.form.querySelector<HTMLElement>("[aria-invalid]")?.focus();
      else this.report(explain(error));
    }
    this.save.disabled = false;
  }
}

/** A host without an entry has workflows only. */
const noEntry = (): { entry: { jobs?: object } } => ({ entry: {} });

/** With a hook, an input that names a place in the call is filled from there. */
function forAutomation(input: JobInput, when: string): JobInput {
  const pointer = input.from;
  if (!pointer || (when !== "hook" && when !== "several")) return input;
  return { ...input, required: false, about: [input.about?.replace(/[.!?]?$/, "."), AUTOMATIONS.fromCall(pointer)].filter(Boolean).join(" ") };
}

/** The stored inputs as the fields show them. */
const filledOf = (inputs: Record<string, unknown>): Filled =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, typeof value === "boolean" ? value : Array.isArray(value) ? value.join("\n") : String(value ?? "")]));

function clearError(found: Field | undefined): void {
  if (!found) return;
  found.wrong.hidden = true;
  found.wrong.textContent = "";
  found.input.removeAttribute("aria-invalid");
}

function field(spec: FieldSpec): Field {
  const wrong = make("p", "bad field-wrong");
  wrong.id = `wrong-${spec.path}`;
  wrong.hidden = true;
  wrong.setAttribute("role", "alert");
  if (spec.path === "after.outcomes") return outcomes(spec, wrong);
  const input = control(spec);
  input.id = `auto-field-${spec.path}`;
  const label = make("label", spec.kind === "box" ? "check" : "", spec.kind === "box" ? "" : spec.label);
  label.htmlFor = input.id;
  const box = make("div", "auto-field");
  const described = [wrong.id];
  if (spec.kind === "box") label.append(input, spec.label);
  box.append(label, ...(spec.kind === "box" ? [] : [input]));
  if (spec.hint) {
    const hint = make("p", "soft field-hint", spec.hint);
    hint.id = `hint-${spec.path}`;
    described.unshift(hint.id);
    box.append(hint);
  }
  input.setAttribute("aria-describedby", described.join(" "));
  box.append(wrong);
  const ticked = input instanceof HTMLInputElement && input.type === "checkbox" ? input : undefined;
  const write = (value: string) => {
    if (ticked) ticked.checked = value === "yes";
    else if (input instanceof HTMLSelectElement && value && ![...input.options].some((each) => each.value === value)) input.append(new Option(value, value));
    if (!ticked && (value || !(input instanceof HTMLSelectElement) || /^prompt[.](agent|model)$|[.](place|label)$/.test(spec.path))) input.value = value;
  };
  return { spec, box, input, wrong, read: () => (ticked ? (ticked.checked ? "yes" : "") : input.value), write };
}

function control(spec: FieldSpec): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  if (spec.options) {
    const select = make("select");
    select.append(...spec.options.map(([value, text]) => new Option(text, value)));
    return select;
  }
  if (spec.kind === "area") {
    const area = make("textarea");
    area.rows = spec.path === "hook.filter" ? 2 : 4;
    area.dir = "auto";
    return area;
  }
  const input = make("input");
  if (spec.kind === "box") input.type = "checkbox";
  if (spec.kind === "number") input.inputMode = "decimal";
  if (spec.kind === "time" || spec.kind === "datetime-local") input.type = spec.kind;
  input.spellcheck = false;
  input.autocomplete = "off";
  if (spec.list) input.setAttribute("list", `auto-${spec.list}`);
  return input;
}

function outcomes(spec: FieldSpec, wrong: HTMLElement): Field {
  const box = make("fieldset", "auto-field");
  const boxes = ENDS.map((value) => {
    const input = make("input");
    input.type = "checkbox";
    input.value = value;
    const line = make("label", "check");
    line.append(input, value);
    return [input, line] as const;
  });
  box.append(make("legend", "", spec.label), ...boxes.map(([, line]) => line), make("p", "soft field-hint", FORM.noneTickedHoweverItEnds), wrong);
  const read = () => boxes.flatMap(([input]) => (input.checked ? [input.value] : [])).join(" ");
  return { spec, box, input: boxes[0]?.[0] ?? box, wrong, read, write: (value) => boxes.forEach(([input]) => (input.checked = value.split(" ").includes(input.value))) };
}
