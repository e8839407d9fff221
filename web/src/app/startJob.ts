/** Start a job: a workflow of a folder, a recipe, a draft from a description, or a job of the host's entry. */

import { explain, isTemporary, Refused } from "../failure";
import { make } from "../page";
import { html, iconOf, nothing, render, type TemplateResult } from "../render";
import type { PlannedWorkflow, Recipe, Routes, WorkflowInfo } from "../rest";
import { Scope } from "../scope";
import { START_JOB as TEXTS } from "../texts/startJob";
import { type About, ask, v1 } from "../v1";
import { CodeArea } from "./codeArea";
import { DraftJob } from "./draftJob";
import { type Checked, EntryEditor } from "./entryEditor";
import { ChartBox, planView } from "./planView";
import { offerWhere, type Where } from "./where";
import type { View, ViewContext } from "./view";
import { type Filled, inputFields, missingOf, valuesOf } from "./workflowInputs";

type Current = Routes["GET /entry"]["answer"];
type Way = keyof typeof TEXTS.ways;

/** What the page of a job handed over: its entry, or the text of its workflow. */
interface Kept {
  text: string;
  workflow?: boolean;
  job?: string;
  cwd?: string;
  input?: string;
  inputs?: Record<string, unknown>;
  /** The inputs whose values are not known here. */
  secret?: string[];
}

/** A workflow whose text is on this page: a recipe, a draft or a changed file. */
interface Written {
  name: string;
  title: string;
}

const SETTLE_MS = 350;

/** A host without an entry has workflows only. */
function noEntry(error: unknown): undefined {
  if (!(error instanceof Refused) || isTemporary(error)) throw error;
  return undefined;
}

export class StartJob implements View {
  readonly element = make("section", "place start-job");
  readonly title: string = TEXTS.title;
  private readonly scope = new Scope();
  private readonly form = make("form", "start wide broad");
  private readonly places = make("div", "contents");
  private readonly editor = new EntryEditor((checked) => this.edited(checked));
  private readonly code = new CodeArea("yaml");
  private readonly chart = new ChartBox();
  private readonly drafts: DraftJob;
  private way: Way = "folder";
  private folder = new URLSearchParams(window.location.search).get("folder") ?? "";
  private folders: string[] = [];
  private job = new URLSearchParams(window.location.search).get("job") ?? "";
  private current: Current | undefined;
  private workflows: WorkflowInfo[] = [];
  private recipes: Recipe[] | undefined;
  private written: Written | undefined;
  private planned: PlannedWorkflow | undefined;
  private filled: Filled = {};
  private input = "";
  private own = false;
  private trouble = "";
  private notice = "";
  private starting = false;
  private where: () => Where = () => ({});

  constructor(private readonly context: ViewContext) {
    this.code.area.id = "workflow-text";
    this.code.area.setAttribute("aria-label", TEXTS.source);
    this.code.area.addEventListener("input", () => this.plan());
    this.drafts = new DraftJob(this.scope, context.board, () => this.folder.trim(), () => this.render(), (found) => this.write({ name: found.name, title: TEXTS.draft }, found.text));
    if (sessionStorage.getItem("portico.draft")) this.way = "describe";
    const anchor = make("span");
    this.places.append(anchor);
    void offerWhere(anchor, "", this.scope.signal).then((where) => (this.where = where));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.begin();
    });
    this.takeKept();
    this.render();
    this.load();
  }

  leave(): void {
    this.scope.end();
  }

  // -- what the host has --------------------------------------------------------------------------------------------

  private readonly load = this.scope.latest(
    (signal) => Promise.all([v1.about(signal), ask("GET /entry", {}, { signal }).catch(noEntry)]),
    ([about, current]) => this.take(about, current),
    { failed: (error) => this.report(explain(error)) },
  );

  private readonly list = this.scope.latest(
    (signal) => ask("GET /workflows", {}, { query: { cwd: this.folder.trim() }, signal }),
    ({ workflows }) => this.listed(workflows),
    // A folder that does not exist has no workflows; Start reports the reason.
    { failed: () => this.listed([]), debounceMs: SETTLE_MS },
  );

  private readonly plan = this.scope.latest(
    (signal) => (this.flows ? ask("POST /workflows/plan", {}, { body: this.planBody(), signal }) : Promise.resolve(undefined)),
    (planned) => {
      this.planned = planned;
      this.render();
    },
    { failed: (error) => this.report(explain(error)), debounceMs: SETTLE_MS },
  );

  private take(about: About, current: Current | undefined): void {
    this.current = current;
    const recent = [...this.context.board.rows.values()].sort((one, other) => other.session.modified - one.session.modified).map(({ session }) => session.cwd);
    this.folders = [...new Set([...about.workspaces, ...recent])].filter((path) => !path.includes(".worktrees/"));
    this.folder ||= this.folders[0] ?? "";
    this.trouble = "";
    this.list(0);
    this.render();
  }

  private listed(workflows: WorkflowInfo[]): void {
    this.workflows = workflows;
    if (!this.written && !this.own) this.choose(this.jobs.includes(this.job) ? this.job : (this.jobs[0] ?? ""));
    this.render();
  }

  private takeKept(): void {
    const text = sessionStorage.getItem("portico.entry");
    sessionStorage.removeItem("portico.entry");
    if (text === null) return;
    const kept = JSON.parse(text) as Kept;
    this.folder = kept.cwd ?? "";
    if (kept.workflow) {
      for (const [name, value] of Object.entries(kept.inputs ?? {})) if (!kept.secret?.includes(name)) this.filled[name] = typeof value === "boolean" ? value : Array.isArray(value) ? value.join("\n") : String(value ?? "");
      return this.write({ name: kept.job ?? "", title: TEXTS.source }, kept.text);
    }
    this.own = true;
    this.job = kept.job ?? "";
    this.input = kept.input ?? "";
    this.editor.set(kept.text);
  }

  // -- what is chosen -----------------------------------------------------------------------------------------------

  private get jobs(): string[] {
    return [...this.workflows.map(({ name }) => name), ...this.entryJobs];
  }

  private get entryJobs(): string[] {
    const own = new Set(this.workflows.map(({ name }) => name));
    const names = this.own ? Object.keys(this.editor.checked.chart ?? {}) : Object.keys(this.current?.entry.jobs ?? {});
    return names.filter((name) => this.own || !own.has(name));
  }

  /** Whether the chosen job is a workflow and not one of an entry. */
  private get flows(): boolean {
    return Boolean(this.written) || (!this.own && this.workflows.some(({ name }) => name === this.job));
  }

  private planBody(): Routes["POST /workflows/plan"]["body"] {
    const inputs = valuesOf(this.planned?.inputs ?? {}, this.filled);
    return this.written ? { name: this.written.name, text: this.code.value, inputs } : { name: this.job, cwd: this.folder.trim(), inputs };
  }

  private choose(job: string): void {
    if (job !== this.job) [this.filled, this.planned] = [{}, undefined];
    this.job = job;
    if (this.own) this.editor.select(job);
    this.plan(0);
    this.render();
  }

  private open(way: Way): void {
    this.way = way;
    if (way === "recipes" && !this.recipes) void this.scope.attempt(async () => ((this.recipes = (await ask("GET /recipes")).recipes), this.render()));
    if (way === "folder" && this.written) {
      this.written = this.planned = undefined;
      this.filled = {};
      this.list(0);
    }
    this.render();
  }

  private write(written: Written, text: string): void {
    if (this.written?.name !== written.name) this.planned = undefined;
    this.written = written;
    this.own = false;
    this.notice = "";
    this.code.value = text;
    this.plan(0);
    this.render();
  }

  private edited(checked: Checked): void {
    if (!checked.mistake && !this.entryJobs.includes(this.job)) this.job = this.entryJobs[0] ?? "";
    if (this.own) this.editor.select(this.job);
    this.render();
  }

  // -- rendering ----------------------------------------------------------------------------------------------------

  private report(text: string): void {
    this.trouble = text;
    this.render();
  }

  private render(): void {
    if (this.scope.ended) return;
    render(this.page(), this.element);
    render(this.content(), this.form);
    const graph = this.flows ? this.planned?.chart : this.own ? undefined : this.current?.chart?.[this.job];
    this.chart.render(graph, this.job);
  }

  private page(): TemplateResult {
    return html`<header class="head"><button type="button" class="icon back" aria-label=${TEXTS.back} @click=${() => this.context.go({ at: "jobs" })}>${iconOf("back")}</button><div class="head-text"><h1>${TEXTS.title}</h1><p>${TEXTS.about}</p></div></header>
      <div class="scroll">${this.form}</div>`;
  }

  private content(): TemplateResult {
    const ways = Object.keys(TEXTS.ways) as Way[];
    return html`
      <label>${TEXTS.folder}<input id="folder" list="job-folders" spellcheck="false" autocomplete="off" placeholder=${TEXTS.path} .value=${this.folder} @input=${(event: Event) => this.moved((event.target as HTMLInputElement).value)} /></label>
      <datalist id="job-folders">${this.folders.map((path) => html`<option value=${path}></option>`)}</datalist>
      ${this.places}
      <div class="ways" role="group" aria-label=${TEXTS.title}>${ways.map((way) => html`<button type="button" data-way=${way} aria-pressed=${String(this.way === way)} @click=${() => this.open(way)}>${TEXTS.ways[way]}</button>`)}</div>
      ${this.way === "folder" ? this.ofFolder() : this.way === "recipes" && !this.written ? this.gallery() : this.way === "describe" ? this.drafts.view() : nothing}
      ${this.way === "recipes" && !this.written ? nothing : this.chosen()}
    `;
  }

  private moved(folder: string): void {
    this.folder = folder;
    this.list();
    this.render();
  }

  private ofFolder(): TemplateResult {
    const entry = this.entryJobs;
    const option = (name: string) => html`<option value=${name} ?selected=${name === this.job}>${name}</option>`;
    const group = (label: string, names: string[]) => (names.length ? html`<optgroup label=${label}>${names.map(option)}</optgroup>` : nothing);
    return html`${this.current && this.workflows.length === 0 && !this.own ? html`<p class="soft">${TEXTS.noWorkflows}</p>` : nothing}
      <label>${TEXTS.job}<select id="job" @change=${(event: Event) => this.choose((event.target as HTMLSelectElement).value)}>${this.own ? entry.map(option) : html`${group(TEXTS.ofFolder, this.workflows.map(({ name }) => name))}${group(TEXTS.ofHost(this.current?.name ?? ""), entry)}`}</select></label>`;
  }

  private gallery(): TemplateResult {
    const card = (recipe: Recipe) => html`<li class="connect-card recipe"><h3>${recipe.name}</h3><p>${recipe.about}</p><p class="soft">${TEXTS.size(recipe.steps ?? 0, Object.keys(recipe.inputs ?? {}).length)}</p><button type="button" class="btn" aria-label="${TEXTS.use}: ${recipe.name}" @click=${() => this.write({ name: recipe.name, title: TEXTS.recipe(recipe.name) }, recipe.text)}>${TEXTS.use}</button></li>`;
    return html`<p class="soft">${TEXTS.recipes}</p><ul class="recipes">${(this.recipes ?? []).map(card)}</ul>`;
  }

  /** The chosen job: its description, inputs, chart and plan, and Start. */
  private chosen(): TemplateResult | typeof nothing {
    if (this.way === "describe" && !this.written) return nothing;
    if (!this.written && !this.job && !this.own) return nothing;
    return this.flows ? this.workflow() : this.entryJob();
  }

  private workflow(): TemplateResult {
    const { planned, written } = this;
    const about = planned?.plan?.about ?? this.workflows.find(({ name }) => name === this.job)?.about ?? "";
    const mistakes = planned?.mistakes ?? [];
    return html`<div class="start-columns"><div class="stack">
      ${written ? html`<h2>${written.title}</h2>` : nothing}
      ${about ? html`<p class="job-about">${about}</p>` : nothing}
      ${inputFields(planned?.inputs ?? {}, this.filled, (name, value) => this.fill(name, value))}
      ${mistakes.length ? html`<div class="trouble mistakes" role="alert"><b>${TEXTS.mistakes(mistakes.length)}</b><ul>${mistakes.map(({ line, column, message }) => html`<li>${written ? html`<button type="button" class="quiet" @click=${() => this.code.goTo(line, column)}>${TEXTS.line(line)}</button>` : html`<span>${TEXTS.line(line)}</span>`} ${message}</li>`)}</ul></div>` : nothing}
      ${written ? this.source(written) : nothing}
      ${this.end(mistakes.length > 0)}
      </div>${planned?.plan ? html`<div class="plan-side"><section class="jcard"><h2>${TEXTS.plan}</h2>${planView(planned.plan)}</section><section class="jcard plan-chart"><h2>${TEXTS.chart}</h2>${this.chart.element}</section></div>` : nothing}</div>`;
  }

  private source(written: Written): TemplateResult {
    const named = (event: Event) => {
      written.name = (event.target as HTMLInputElement).value.trim();
      this.plan();
    };
    return html`<details class="source" ?open=${this.way === "describe" || Boolean(this.planned?.mistakes?.length)}><summary>${TEXTS.source}</summary>${this.code.element}
      <div class="save-row"><label>${TEXTS.name}<input id="workflow-name" spellcheck="false" .value=${written.name} @input=${named} /></label><button type="button" id="save-workflow" @click=${() => void this.save(written)}>${TEXTS.save}</button></div>
      </details>${this.notice ? html`<p class="good" role="status">${this.notice}</p>` : nothing}`;
  }

  private entryJob(): TemplateResult {
    const asks = this.own ? this.editor.checked.inputs?.includes(this.job) : this.current?.entry.jobs?.[this.job]?.requireUserInput;
    return html`<div class=${this.own ? "stack" : "start-columns"}><div class="stack">
      <label ?hidden=${!asks}>${TEXTS.input}<textarea id="job-input" rows="3" dir="auto" ?required=${asks} .value=${this.input} @input=${(event: Event) => (this.input = (event.target as HTMLTextAreaElement).value)}></textarea></label>
      <label class="check"><input id="own-entry" type="checkbox" .checked=${this.own} @change=${(event: Event) => this.edit((event.target as HTMLInputElement).checked)} />${TEXTS.edit}</label>
      ${this.own ? this.editor.element : nothing}
      ${this.end(this.own && Boolean(this.editor.checked.mistake))}
      </div>${this.own ? nothing : html`<div class="plan-side"><section class="jcard plan-chart"><h2>${TEXTS.chart}</h2>${this.chart.element}</section></div>`}</div>`;
  }

  private end(blocked: boolean): TemplateResult {
    return html`${this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing}
      <div class="start-row"><button class="primary" id="start-job" ?disabled=${blocked || this.starting}>${this.starting ? TEXTS.starting : TEXTS.start}</button><span class="soft">${TEXTS.nothingStarts}</span></div>`;
  }

  // -- actions ------------------------------------------------------------------------------------------------------

  private fill(name: string, value: string | boolean): void {
    this.filled[name] = value;
    this.plan();
    this.render();
  }

  private edit(own: boolean): void {
    this.own = own;
    if (own && this.editor.area.value === "") this.editor.set(JSON.stringify(this.current?.entry ?? {}, null, 2));
    if (!own) this.choose(this.jobs.includes(this.job) ? this.job : (this.jobs[0] ?? ""));
    this.render();
  }

  private async save(written: Written): Promise<void> {
    this.trouble = this.notice = "";
    try {
      const { file } = await ask("POST /workflows", {}, { body: { cwd: this.folder.trim(), name: written.name, text: this.code.value } });
      this.notice = TEXTS.saved(file);
    } catch (error) {
      this.trouble = explain(error);
    }
    this.render();
  }

  private async begin(): Promise<void> {
    const missing = this.flows ? missingOf(this.planned?.inputs ?? {}, this.filled) : [];
    if (missing[0]) return document.getElementById(`input-${missing[0]}`)?.focus();
    this.starting = true;
    this.report("");
    try {
      const { job } = await ask("POST /jobs", {}, { body: this.body() });
      sessionStorage.removeItem("portico.draft");
      this.context.go({ at: "job", id: job });
    } catch (error) {
      this.trouble = explain(error);
    }
    this.starting = false;
    this.render();
  }

  private body(): Routes["POST /jobs"]["body"] {
    const where = { cwd: this.folder.trim(), ...this.where() };
    if (this.flows) {
      const inputs = valuesOf(this.planned?.inputs ?? {}, this.filled);
      return this.written ? { job: this.planned?.name || this.written.name, workflow: this.code.value, inputs, ...where } : { job: this.job, inputs, ...where };
    }
    const asks = this.own ? this.editor.checked.inputs?.includes(this.job) : this.current?.entry.jobs?.[this.job]?.requireUserInput;
    return { job: this.job, input: asks ? this.input : "", ...where, ...(this.own ? { entry: JSON.parse(this.editor.area.value) as Record<string, unknown> } : {}) };
  }
}
