/** The page of a job: its steps as a tree, the time they took, the chart, and the conversation of the selected step. */

import { root } from "../root";
import { FlowChart } from "../chart/flowChart";
import { Zoom } from "../chart/zoom";
import { plain } from "../conversation/pieces";
import { who } from "../conversation/words";
import { make } from "../page";
import { explain, Refused } from "../failure";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import type { JobInput, Routes } from "../rest";
import { Scope } from "../scope";
import { DETAILS } from "../texts/details";
import { JOB } from "../texts/job";
import { ask, channelAddress, v1 } from "../v1";
import { connections } from "./details";
import { type JobRow, lastName } from "./entries";
import { type Decision, type GroupNode, itemsOf, JobHistory, type JobRecord, lastRun, type Run, type StepNode, type StepState, stepsOf, taskDecisions, treeOf, type WorkTree } from "./jobModel";
import { type ItemActions, ItemList } from "./jobItems";
import { jobResult } from "./jobResult";
import { MARKS, stepTimes, stepTree, type Steps } from "./jobSteps";
import { plainReason } from "./reasons";
import { menu } from "./menu";
import type { Place } from "./router";
import { askStop } from "./rowMenu";
import type { View, ViewContext } from "./view";
import { StepView } from "./stepView";
import { secretsOf } from "./workflowInputs";
import { clock, cost, tokens, tookOf } from "../time";

type Whole = Routes["GET /jobs/{id}"]["answer"];
type Tab = keyof typeof JOB.tabs;

/** The tasks whose decisions are listed. */
const TASKS = 200;
/** Changes of the job that come together are one request. */
const SETTLE_MS = 50;
const LOOK: Record<JobRow["status"], string> = { running: "work", waiting: "need", succeeded: "ok", failed: "bad", canceled: "" };
/** The banner, the pill and the row of the list have the same mark for an outcome. */
const STATE: Record<JobRow["status"], StepState> = { running: "work", waiting: "need", succeeded: "done", failed: "failed", canceled: "stopped" };
/** With many runs each request is large, so changes of a longer time are one request. */
const MOST_SETTLE_MS = 2_000;

/** A step that waits for a person. */
interface Waiting {
  task: string;
  text: string;
}

/** Who cannot read the folder runs what is stored. */
function asItRan(error: unknown): Routes["POST /jobs/{id}/retry/plan"]["answer"] {
  if (error instanceof Refused && error.status === 403) return { text: "", differences: "", kept: [] };
  throw error;
}

export class JobView implements View {
  readonly element = make("section", "place job");
  title: string = JOB.title;
  private readonly scope = new Scope((text) => this.report(text));
  private readonly chartBox = make("div", "chart-box");
  private readonly menu = this.menuOf();
  private readonly history = new JobHistory();
  private readonly refresh = this.scope.latest((signal) => this.load(signal), (whole) => this.take(whole), { failed: (error) => this.failed(error), debounceMs: SETTLE_MS });
  private whole: Whole | undefined;
  private chart: FlowChart | undefined;
  private step: StepView | undefined;
  /** The number of a step, or the path of an item. */
  private chosen: number | string | undefined;
  private readonly items = new Map<string, ItemList>();
  private entryShown = false;
  private missing = "";
  private trouble = "";
  private ofTasks: Decision[] = [];
  /** All events up to the state of the job have arrived: with 1,000 items that takes seconds. What the runs show is unknown until then. */
  private complete = false;

  constructor(
    readonly id: string,
    wanted: string | undefined,
    private readonly context: ViewContext,
  ) {
    this.chosen = placeOf(wanted);
    this.element.classList.toggle("at-step", wanted !== undefined);
    this.chartBox.tabIndex = 0;
    this.chartBox.setAttribute("role", "region");
    this.chartBox.setAttribute("aria-label", JOB.flowChart);
    this.showTab("steps");
    this.scope.onEnd(context.board.subscribe(() => this.render()));
    this.scope.every(1000, () => this.whole?.status === "running" && !document.hidden && this.render());
    this.scope.follow<Whole>({
      load: (signal) => this.load(signal),
      loaded: (whole) => this.take(whole),
      address: () => channelAddress(`job/${id}`, this.history.pos),
      message: (data) => this.apply(JSON.parse(data) as JobRecord),
      gone: (error) => this.failed(error),
    });
  }

  leave(): void {
    this.scope.end();
    this.step?.leave();
  }

  // -- loading ------------------------------------------------------------------------------------------------------

  private async load(signal: AbortSignal): Promise<Whole> {
    const whole = await v1.job(this.id, signal);
    await this.loadDecisions(signal);
    return whole;
  }

  private take(whole: Whole): void {
    const first = !this.whole;
    this.whole = whole;
    this.checkComplete();
    this.title = whole.name;
    this.context.titled(this.title, this);
    if (first && (window.innerWidth >= 1800 || this.element.dataset["tab"] === "chart")) this.drawChart();
    this.render();
  }

  private apply(record: JobRecord): void {
    if (!this.history.apply(record)) return;
    if (!this.complete && this.checkComplete()) this.render();
    this.refresh(Math.min(MOST_SETTLE_MS, SETTLE_MS + this.history.runs.length));
  }

  private checkComplete(): boolean {
    return (this.complete ||= this.whole !== undefined && this.history.pos >= (this.whole.pos ?? 0));
  }

  /** A job that was erased while it is shown stays on the page. */
  private failed(error: unknown): void {
    if (!this.whole && error instanceof Refused && error.status < 500) this.missing = explain(error);
    this.render();
  }

  /** The records of the tasks; requested again with every event of the job. */
  private async loadDecisions(signal: AbortSignal): Promise<void> {
    const tasks = [...new Set(this.history.runs.map(({ task }) => task))].slice(-TASKS);
    if (tasks.length === 0) return;
    const query = [...tasks.map((task) => ["channel", `task/${task}`]), ["channel", `job/${this.id}`], ["limit", "1000"]];
    const { events } = await ask("GET /events", {}, { query, signal });
    if (!signal.aborted) this.ofTasks = taskDecisions(events.filter(({ channel }) => channel.startsWith("task/")));
  }

  // -- rendering ----------------------------------------------------------------------------------------------------

  private render(): void {
    render(this.missing ? this.missingPage() : this.page(), this.element);
  }

  private missingPage(): TemplateResult {
    return html`<div class="empty"><h1>${JOB.missing}</h1><p>${this.missing}</p><a class="button" href="${root}/app/jobs">${JOB.allJobs}</a></div>`;
  }

  private page(): TemplateResult {
    const { whole, work, history } = this;
    const tree = work ? treeOf(work, this.runs) : [];
    const all = stepsOf(tree);
    const waiting = this.waitingTask();
    const again = this.retries ? { retry: (step: StepNode) => this.retryFrom(step.id ?? "") } : {};
    const current = typeof this.chosen === "string" ? undefined : this.current;
    const steps: Steps = { tree, history, now: Date.now(), current, waiting: waiting?.task, modelOf: (step) => this.modelOf(step), choose: (step) => this.select(String(step)), items: (group) => this.itemsOf(group, waiting?.task), ...again };
    this.updateStep(all);
    this.markChart(all);
    const over = history.ended !== undefined;
    const tab = (name: Tab) => html`<button type="button" data-tab=${name} aria-pressed=${String(this.element.dataset["tab"] === name)} @click=${() => this.showTab(name)}>${JOB.tabs[name]}</button>`;
    // What was decided is part of the result; while the job works, the steps come first.
    return html`${this.head(all, waiting)}
      <div class="scroll job-scroll">
        <p class="trouble" role="alert" ?hidden=${!this.trouble}>${this.trouble}</p>
        ${this.strip(waiting)}${whole ? jobResult(whole.result, whole.artifacts ?? [], whole.branch ?? "") : nothing}${whole?.network?.length ? html`<section class="jcard" aria-label=${DETAILS.network}>${connections(whole.network)}</section>` : nothing}
        ${over && !this.flow ? this.decisions(true) : nothing}
        <div class="job-tabs modes">${tab("steps")}${tab("chart")}</div>
        <div class="jobgrid">
          <div class="jcard job-steps">
            <div class="jcard-head"><h2>${JOB.tabs.steps}</h2><button type="button" class="chip" ?hidden=${this.chosen === undefined || whole?.status !== "running"} @click=${() => this.select(undefined)}>${JOB.follow}</button></div>
            <div class="tree">${this.complete ? stepTree(steps) : html`<p class="soft" role="status">${JOB.loading}</p>`}</div>
            <h2>${JOB.time}</h2>
            <div class="gantt">${this.complete ? stepTimes(all, steps) : nothing}</div>
            ${over && !this.flow ? nothing : this.decisions(false)}
          </div>
          <div class="jcard job-chart"><h2>${JOB.tabs.chart}</h2>${this.chartBox}</div>
          <div class="jcard job-step">${this.side(all)}</div>
        </div>
      </div>`;
  }

  private head(all: StepNode[], waiting: Waiting | undefined): TemplateResult {
    const { whole } = this;
    const word = waiting ? JOB.state.waiting : whole ? JOB.state[whole.status] : "";
    const look = waiting ? "need" : whole ? LOOK[whole.status] : "";
    const done = new Set(this.runs.filter(({ outcome }) => outcome === "succeeded").map(({ work }) => work)).size;
    const stops = whole?.status === "running" || whole?.status === "waiting";
    return html`<header class="head">
      <button type="button" class="icon back" aria-label=${JOB.back} @click=${() => this.back()}>${iconOf("back")}</button>
      <div class="head-text"><h1>${whole?.name ?? "…"}</h1><p>${whole ? this.facts(whole, all) : ""}</p></div>
      <span class="pill ${look}" role="status">${whole?.status === "running" && this.complete ? JOB.progress(word, done, all.length) : word}</span>
      <button type="button" class="btn" ?hidden=${!stops} @click=${() => askStop(this.id, (run) => this.scope.attempt(run))}>${iconOf("stop")}<span>${JOB.stop}</span></button>
      ${this.menu}
    </header>`;
  }

  /** On a phone the conversation of a step is a separate page. */
  private back(): void {
    if (this.element.classList.contains("at-step")) this.select(undefined);
    else this.context.go({ at: "jobs" });
  }

  private facts(whole: Whole, all: StepNode[]): string {
    const by = who(this.history.by || whole.by || "");
    const facts = [lastName(whole.cwd), JOB.size(all.length), JOB.started(clock(whole.started), by === "You" ? "you" : by), whole.ended ? JOB.took(tookOf(whole.ended - whole.started)) : "", this.usage()];
    return facts.filter(Boolean).join(" · ");
  }

  private strip(waiting: Waiting | undefined): TemplateResult {
    const status = this.whole?.status;
    const look = waiting ? "need" : status ? LOOK[status] : "";
    return html`<div class="strip outcome-${look || "none"} ${look}" ?hidden=${!waiting && (status === "running" || status === undefined)}>${this.stripContent(waiting)}</div>`;
  }

  private stripContent(waiting: Waiting | undefined): Content {
    const { whole } = this;
    const spring = html`<span class="spring"></span>`;
    const button = (text: string, run: () => void, look = "") => html`<button type="button" class=${look} @click=${run}>${text}</button>`;
    if (waiting) {
      const work = this.runs.find(({ task }) => task === waiting.task)?.work;
      const text = ` ${waiting.text.charAt(0).toLowerCase()}${waiting.text.slice(1)}`;
      return html`${iconOf("need")}<span class="strip-text"><b>${this.nameOf(work)}</b>${text}</span>${spring}${button(JOB.answer, () => work !== undefined && this.select(String(work)))}`;
    }
    if (whole?.status === "waiting") return html`${iconOf("need")}<span class="strip-text">${whole.reason || JOB.waitsForWord}</span>${spring}${button(JOB.resume, () => void this.scope.attempt(() => v1.resumeJob(this.id)), "primary")}`;
    if (!whole || whole.status === "running") return nothing;
    const banner = html`${iconOf(MARKS[STATE[whole.status]][0])}${this.summary(whole)}`;
    if (whole.status === "succeeded") return banner;
    return html`${banner}${spring}${button(JOB.resume, () => this.begin(v1.resumeJob))}${button(JOB.again, () => this.begin(v1.retryJob))}<small class="strip-about soft">${JOB.resumeAbout}</small>`;
  }

  /** The result. */
  private summary(whole: Whole): TemplateResult {
    const rows = this.runs.flatMap(({ task }) => this.context.board.ofTask(task));
    const sum = (name: "files" | "additions" | "deletions") => rows.reduce((all, { session }) => all + (session.changes?.[name] ?? 0), 0);
    const took = tookOf((whole.ended ?? whole.started) - whole.started);
    const ran = new Set(this.runs.map(({ work }) => work)).size;
    const [files, added, removed, won] = [sum("files"), sum("additions"), sum("deletions"), whole.status === "succeeded"];
    const facts = [JOB.after(took, won), ...(this.complete ? [JOB.ran(ran), files || !rows.some(({ uncounted }) => uncounted) ? JOB.changed(files) : "", this.usage()] : [])];
    const text = ` ${facts.filter(Boolean).join(" · ")}${files ? " " : ""}`;
    return html`<span class="strip-text"><b>${won ? JOB.state.succeeded : whole.status === "failed" ? this.failure(whole) : JOB.stopped}</b>${text}${files ? counts(added, removed) : nothing}</span>`;
  }

  /** The step that failed and the result of its check, if both are known; else the job's own error. */
  private failure(whole: Whole): string {
    if (this.flow && whole.error) return JOB.failed(plain(whole.error));
    const run = this.runs.findLast(({ outcome }) => outcome === "failed" || outcome === "crashed");
    const check = this.ofTasks.findLast(({ task, ok }) => task === run?.task && ok === false);
    const why = this.ofTasks.findLast(({ task, evidence }) => task === run?.task && evidence)?.evidence ?? (check ? plainReason(check.text) : "");
    if (run && why) return plain(JOB.failedAt(this.nameOf(run.work), why));
    if (whole.error || whole.reason) return JOB.failed(plain(plainReason(whole.error || whole.reason || "")));
    return run ? plain(JOB.failedAt(this.nameOf(run.work), "")) : JOB.failed("");
  }

  /** Of the job and of all its steps, by time. */
  private decisions(card: boolean): TemplateResult {
    const all = [...this.history.decisions, ...this.ofTasks].sort((one, other) => one.time - other.time);
    const item = ({ time, text, task, ok, evidence }: Decision) =>
      html`<li><span class="call-state ${ok === true ? "ok" : ok === false ? "bad" : ""}" aria-hidden="true">${ok === true ? "✓" : ok === false ? "✗" : "·"}</span><span class="evidence">${task ? html`<b>${this.nameOf(this.runs.find((run) => run.task === task)?.work)}</b>: ` : nothing}${plain(plainReason(text))}${evidence ? html`<q class="why">${plain(evidence)}</q>` : nothing}</span><time class="soft">${clock(time)}</time></li>`;
    // It scrolls, so it takes the focus.
    return html`<section class="job-decisions ${card ? "jcard" : ""}" tabindex="0" aria-label=${JOB.decisions} ?hidden=${all.length === 0 || !this.complete}><h2>${JOB.decisionsInOrder}</h2><ol class="decisions">${all.map(item)}</ol></section>`;
  }

  private side(all: StepNode[]): Content {
    if (this.entryShown) return html`<h2>${JOB.entry}</h2><pre class="box" tabindex="0">${this.flow?.source ?? JSON.stringify(this.whole?.entry, null, 2)}</pre>`;
    if (this.step) return this.step.element;
    const step = typeof this.chosen === "number" ? all.find(({ work }) => work === this.chosen) : undefined;
    return step ? html`<h2>${step.name}</h2><p class="soft">${this.complete ? JOB.notRun : JOB.loading}</p>` : html`<p class="soft">${JOB.chooseStep}</p>`;
  }

  // -- what the job is ----------------------------------------------------------------------------------------------

  /** What a workflow adds to a job; undefined for a job of an entry. */
  private get flow(): { source?: string; inputs?: Record<string, JobInput> } | undefined {
    return this.whole?.entry.jobs?.[this.whole.name]?.flow ?? undefined;
  }

  /** A workflow that has ended can run again from each step. */
  private get retries(): boolean {
    return this.flow !== undefined && this.whole?.ended !== undefined;
  }

  /** Empty until they are complete. */
  private get runs(): Run[] {
    return this.complete ? this.history.runs : [];
  }

  private get work(): WorkTree | undefined {
    return this.whole?.entry.jobs?.[this.whole.name]?.work as WorkTree | undefined;
  }

  private waitingTask(): Waiting | undefined {
    for (const run of this.runs) {
      if (run.outcome !== undefined) continue;
      const row = this.context.board.ofTask(run.task).find(({ session }) => session.status === "waiting");
      if (row) return { task: run.task, text: row.activity ?? JOB.waitsForYou };
    }
    return undefined;
  }

  private usage(): string {
    let [used, dollars] = [0, 0];
    for (const run of this.runs)
      for (const { session } of this.context.board.ofTask(run.task)) {
        used += (session.usage?.input ?? 0) + (session.usage?.output ?? 0);
        dollars += session.usage?.cost ?? 0;
      }
    return used ? `${tokens(used)}, ${cost(dollars)}` : "";
  }

  private nameOf(work: number | undefined): string {
    const tree = this.work;
    return (tree && stepsOf(treeOf(tree, [])).find((step) => step.work === work)?.name) ?? JOB.aStep;
  }

  /** The model that the stored entry gives it. */
  private modelOf({ name, model }: StepNode): string {
    const { tasks, models } = this.whole?.entry ?? {};
    const wanted = model || (tasks?.[name]?.model?.category ?? tasks?.[name]?.model?.id ?? "");
    return models?.[wanted] ?? wanted;
  }

  // -- the chart ----------------------------------------------------------------------------------------------------

  private showTab(name: Tab): void {
    this.element.dataset["tab"] = name;
    if (name === "chart") this.drawChart();
    this.render();
  }

  private drawChart(): void {
    if (this.chart || !this.whole || !this.work) return;
    this.chart = new FlowChart(this.whole.chart, this.whole.name, (work) => this.select(String(work)));
    new Zoom(this.chartBox, this.chart);
  }

  private markChart(all: StepNode[]): void {
    for (const { work } of all) {
      const run = lastRun(this.runs, work);
      this.chart?.setMark(work, run && (run.outcome === undefined ? "Running" : run.outcome === "succeeded" ? "Succeeded" : "Failed"));
    }
    this.chart?.setInspected(this.current);
  }

  // -- the step -----------------------------------------------------------------------------------------------------

  /** The rows of the items of a group; undefined before it has begun. */
  private itemsOf(group: GroupNode, waiting: string | undefined): HTMLElement | undefined {
    if (group.items === undefined) return undefined;
    const found = itemsOf(this.history, group.items, waiting);
    if (found.length === 0) return undefined;
    const list = this.items.get(group.items) ?? new ItemList();
    this.items.set(group.items, list);
    const retry = this.retries ? { retry: ({ run }: { run: Run | undefined }) => this.retryFrom(this.stepOf(run)?.id ?? "") } : {};
    const actions: ItemActions = { current: typeof this.chosen === "string" ? this.chosen : undefined, now: Date.now(), choose: ({ path }) => this.select(path), ...retry };
    list.update(found, actions);
    return list.element;
  }

  private stepOf(run: Run | undefined): StepNode | undefined {
    const tree = this.work;
    return tree && run ? stepsOf(treeOf(tree, [])).find(({ work }) => work === run.work) : undefined;
  }

  /** A file that has changed since is shown before it runs. */
  private retryFrom(step: string): void {
    const start = (workflow: string) => this.begin((id) => v1.retryJob(id, step, workflow));
    void this.scope.attempt(async () => {
      const plan = await v1.planRetry(this.id, step).catch(asItRan);
      if (!plan.differences) return start("");
      const { retryDialog } = await import("./retryDialog");
      retryDialog(plan, start);
    });
  }

  private get current(): number | undefined {
    if (typeof this.chosen === "string") return this.runOf(this.chosen)?.work;
    return this.chosen ?? this.runs.findLast(({ outcome }) => outcome === undefined)?.work ?? this.runs.at(-1)?.work;
  }

  /** Undefined: follow the running step. */
  select(step?: string): void {
    this.chosen = placeOf(step);
    this.entryShown = false;
    this.element.classList.toggle("at-step", step !== undefined);
    const path = `${root}/app/j/${encodeURIComponent(this.id)}${step === undefined ? "" : `/${encodeURIComponent(step)}`}`;
    if (window.location.pathname !== path) window.history.replaceState(null, "", path);
    this.render();
  }

  /** Opens the conversation of the current step, and closes the one that is no longer shown. */
  private updateStep(all: StepNode[]): void {
    const step = this.entryShown ? undefined : all.find(({ work }) => work === this.current);
    const run = step && (typeof this.chosen === "string" ? this.runOf(this.chosen) : lastRun(this.runs, step.work));
    if (this.step && this.step.run === run) return this.step.showResult(run && this.history.results.get(run.path));
    this.step?.leave();
    const rounds = this.runs.filter(({ work }) => work === step?.work).length;
    this.step = step && run && new StepView({ ...step, model: this.modelOf(step) }, run, this.roundOf(run, rounds), (agent) => this.context.board.agentName(agent));
    this.step?.showResult(run && this.history.results.get(run.path));
  }

  /** The run of an item: the one that failed, that works, or the last. */
  private runOf(path: string): Run | undefined {
    const [prefix = "", number = ""] = /^(.*\*)(\d+)$/.exec(path)?.slice(1) ?? [];
    return this.complete ? itemsOf(this.history, prefix, this.waitingTask()?.task).find((item) => item.path === prefix + number)?.run : undefined;
  }

  private roundOf(run: Run, rounds: number): string {
    const lane = /^.*\*\d+/.exec(run.path)?.[0];
    const item = lane === undefined ? "" : (this.history.lanes.get(lane) ?? "");
    return item || (rounds > 1 ? JOB.round(rounds) : "");
  }

  press(key: "y" | "n"): boolean {
    return this.step?.press(key) ?? false;
  }

  chooseAnswer(number: string): boolean {
    return this.step?.choose(number) ?? false;
  }

  accept(place: Place): boolean {
    if (place.at !== "job" || place.id !== this.id) return false;
    this.select(place.step);
    return true;
  }

  // -- actions ------------------------------------------------------------------------------------------------------

  private report(text: string): void {
    this.trouble = text;
    this.render();
  }

  private begin(start: (id: string) => Promise<{ job: string }>): void {
    void this.scope.attempt(async () => this.context.go({ at: "job", id: (await start(this.id)).job }));
  }

  private menuOf(): HTMLElement {
    return menu("job-menu", JOB.menu.name, () => {
      const status = this.whole?.status;
      return [
        ...(status && ["failed", "canceled", "waiting"].includes(status) ? [{ id: "resume-job", text: JOB.menu.resume, run: () => this.begin(v1.resumeJob) }] : []),
        ...(status && status !== "running" ? [{ id: "retry-job", text: JOB.menu.again, run: () => this.begin(v1.retryJob) }] : []),
        { id: "entry", text: JOB.menu.entry, run: () => this.showEntry() },
        { id: "edit-entry", text: JOB.menu.edit, run: () => this.editEntry() },
        { id: "old-page", text: JOB.menu.portal, run: () => window.location.assign(`${root}/jobTracking.html?${new URLSearchParams({ jobName: this.whole?.name ?? "", jobId: this.id })}`) },
      ];
    });
  }

  private showEntry(): void {
    this.entryShown = true;
    this.element.classList.add("at-step");
    this.render();
  }

  private editEntry(): void {
    const source = this.flow?.source;
    const text = source === undefined ? { text: JSON.stringify(this.whole?.entry, null, 2) } : { text: source, workflow: true, inputs: this.whole?.inputs, secret: secretsOf(this.flow?.inputs ?? {}) };
    sessionStorage.setItem("portico.entry", JSON.stringify({ ...text, job: this.whole?.name, cwd: this.whole?.cwd, input: this.history.input }));
    this.context.go({ at: "new", what: "job" });
  }
}

/** A step by its number, or an item by its path. */
const placeOf = (step: string | undefined): number | string | undefined => (step === undefined ? undefined : /^\d+$/.test(step) ? Number(step) : step);

/** How many lines were added and removed; zero is left out. */
const counts = (added: number, removed: number): TemplateResult => html`<span class="pm">${added || !removed ? html`<span class="good">+${added}</span>` : nothing}${added && removed ? " " : nothing}${removed ? html`<span class="bad">−${removed}</span>` : nothing}</span>`;
