/** The page of a job: its steps as a tree, the time they took, the chart, and the conversation of the chosen step. */

import { keyed } from "../key";
import { root } from "../root";
import { explain, type Job as EntryJob, Refused } from "../api";
import { FlowChart } from "../chart/flowChart";
import type { ChartGraph } from "../chart/graph";
import { Zoom } from "../chart/zoom";
import { counted, plain } from "../conversation/pieces";
import { who } from "../conversation/words";
import { make, makeButton, pause } from "../page";
import { call, v1 } from "../v1";
import { type JobRow, lastName } from "./entries";
import { icon, type Icon } from "../icons";
import { type Decision, JobHistory, type JobRecord, lanesOf, lastRun, type StepNode, type StepState, stateOf, stepsOf, taskDecisions, type TreeNode, treeOf, type WorkTree } from "./jobModel";
import { said } from "./reasons";
import { Refresher } from "./refresher";
import { menu } from "./menu";
import { askStop } from "./rowMenu";
import type { Shell, View } from "./shell";
import { StepView } from "./stepView";
import { clock, cost, elapsed, span, tokens } from "./time";

type Whole = JobRow & { entry: { jobs: Record<string, EntryJob>; models?: Record<string, string>; tasks?: Record<string, { model?: { category?: string; id?: string } }> }; chart: ChartGraph; origin?: string };

const MARKS: Record<StepState, [Icon, string, string]> = {
  todo: ["todo", "", "to come"],
  work: ["work", "work", "working"],
  need: ["need", "need", "needs you"],
  done: ["done", "ok", "succeeded"],
  failed: ["failed", "bad", "failed"],
  stopped: ["interrupted", "", "stopped"],
};
/** Of so many tasks the decisions are listed. */
const TASKS = 200;
const STATUS: Record<JobRow["status"], [look: string, word: string]> = {
  running: ["work", "Working"],
  waiting: ["need", "Needs you"],
  succeeded: ["ok", "Succeeded"],
  failed: ["bad", "Failed"],
  canceled: ["", "Stopped"],
};

export class JobView implements View {
  readonly element = make("section", "place job");
  title = "Job";
  private readonly heading = make("h1", "", "…");
  private readonly facts = make("p");
  private readonly status = make("span", "pill");
  private readonly stop = makeButton("btn", "", () => askStop(this.id, (work) => this.attempt(work)));
  private readonly strip = make("div", "strip");
  private readonly tree = make("div", "tree");
  private readonly time = make("div", "gantt");
  private readonly chartBox = make("div", "chart-box");
  private readonly decisions = make("ol", "decisions");
  private readonly decided = make("section", "job-decisions");
  private readonly side = make("div", "jcard job-step");
  private readonly trouble = make("p", "trouble");
  private readonly follow = makeButton("chip", "Follow the running step", () => this.choose(undefined));
  private readonly history = new JobHistory();
  private readonly unwatch: () => void;
  private readonly ticking: ReturnType<typeof setInterval>;
  private steps: HTMLElement | undefined;
  private whole: Whole | undefined;
  private chart: FlowChart | undefined;
  private source: EventSource | undefined;
  private step: StepView | undefined;
  private chosen: number | undefined;
  private readonly refresher = new Refresher(() => this.moved());
  private ofTasks: Decision[] = [];
  private left = false;

  constructor(
    readonly id: string,
    wanted: string | undefined,
    private readonly shell: Shell,
  ) {
    this.chosen = wanted === undefined ? undefined : Number(wanted);
    this.element.classList.toggle("at-step", wanted !== undefined);
    this.build();
    this.unwatch = shell.feed.watch(() => this.refresh());
    this.ticking = setInterval(() => this.tick(), 1000);
    void this.load();
  }

  leave(): void {
    this.left = true;
    this.refresher.stop();
    this.unwatch();
    clearInterval(this.ticking);
    this.source?.close();
    this.step?.leave();
  }

  // -- the frame ----------------------------------------------------------------------------------------------------

  private build(): void {
    const head = make("header", "head");
    // On a phone the step's conversation is a page of its own.
    const back = makeButton("icon back", "", () => (this.element.classList.contains("at-step") ? this.choose(undefined) : this.shell.go({ at: "jobs" })));
    back.append(icon("back"));
    back.setAttribute("aria-label", "Back to the list");
    const text = make("div", "head-text");
    text.append(this.heading, this.facts);
    this.status.setAttribute("role", "status");
    this.stop.append(icon("stop"), make("span", "", "Stop…"));
    this.stop.hidden = true;
    head.append(back, text, this.status, this.stop, this.more());
    this.strip.hidden = true;
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    this.follow.hidden = true;
    const left = make("div", "jcard job-steps");
    const stepsHead = make("div", "jcard-head");
    stepsHead.append(make("h2", "", "Steps"), this.follow);
    left.append(stepsHead, this.tree, make("h2", "", "Time"), this.time);
    this.steps = left;
    this.decided.tabIndex = 0; // it scrolls where many were made
    this.decided.setAttribute("aria-label", "Decisions");
    this.decided.append(make("h2", "", "Decisions, in order"), this.decisions);
    this.chartBox.tabIndex = 0;
    this.chartBox.setAttribute("role", "region");
    this.chartBox.setAttribute("aria-label", "Flow chart");
    const chart = make("div", "jcard job-chart");
    chart.append(make("h2", "", "Chart"), this.chartBox);
    this.side.append(make("p", "soft", "Choose a step to read what its agent says."));
    const tabs = make("div", "job-tabs modes");
    for (const [name, title] of [["steps", "Steps"], ["chart", "Chart"]] as const) {
      const button = makeButton("", title, () => this.showTab(name));
      button.dataset["tab"] = name;
      tabs.append(button);
    }
    const grid = make("div", "jobgrid");
    grid.append(left, chart, this.side);
    const scroll = make("div", "scroll job-scroll");
    scroll.append(this.trouble, this.strip, tabs, grid);
    this.element.append(head, scroll);
    this.showTab("steps");
  }

  private showTab(name: "steps" | "chart"): void {
    this.element.dataset["tab"] = name;
    for (const button of this.element.querySelectorAll<HTMLButtonElement>(".job-tabs button")) button.setAttribute("aria-pressed", String(button.dataset["tab"] === name));
    if (name === "chart") this.drawChart();
  }

  private more(): HTMLElement {
    return menu("job-menu", "More of this job", () => {
      const over = this.whole && this.whole.status !== "running";
      const again = (begin: (id: string) => Promise<{ job: string }>) => void this.attempt(async () => this.shell.go({ at: "job", id: (await begin(this.id)).job }));
      return [
        ...(this.whole && ["failed", "canceled", "waiting"].includes(this.whole.status) ? [{ id: "resume-job", text: "Resume, keeping what succeeded", run: () => again(v1.resumeJob) }] : []),
        ...(over ? [{ id: "retry-job", text: "Run again from the start", run: () => again(v1.retryJob) }] : []),
        { id: "entry", text: "Show the entry", run: () => this.showEntry() },
        { id: "edit-entry", text: "Edit the entry and run it", run: () => this.editEntry() },
        { id: "old-page", text: "The portal's page of it", run: () => window.location.assign(`${root}/jobTracking.html?${new URLSearchParams({ jobName: this.whole?.name ?? "", jobId: this.id })}`) },
      ];
    });
  }

  // -- loading ------------------------------------------------------------------------------------------------------

  private async load(): Promise<void> {
    for (let wait = 500; !this.left; wait = Math.min(2 * wait, 5000)) {
      try {
        this.whole = await call<Whole>("GET", `/jobs/${encodeURIComponent(this.id)}`);
        break;
      } catch (error) {
        if (!(error instanceof TypeError)) return this.gone(explain(error));
        await pause(wait);
      }
    }
    if (!this.whole || this.left) return;
    this.title = this.whole.name;
    this.shell.titled(this.title);
    this.openChart();
    this.source = new EventSource(keyed(`${root}/v1/events?${new URLSearchParams({ channel: `job/${this.id}` })}`));
    this.source.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.history.apply(JSON.parse(data) as JobRecord)) this.refresher.changed();
    };
    this.show();
  }

  private gone(text: string): void {
    const lead = make("div", "empty");
    const link = make("a", "button", "All jobs");
    link.href = `${root}/app/jobs`;
    lead.append(make("h1", "", "There is no such job"), make("p", "", text), link);
    this.element.replaceChildren(lead);
  }

  /** Returns whether the host answered. If the job was erased, the page keeps showing what it has. */
  private async moved(): Promise<boolean> {
    let answered = true;
    try {
      this.whole = await call<Whole>("GET", `/jobs/${encodeURIComponent(this.id)}`);
      await this.loadDecisions();
    } catch (error) {
      answered = error instanceof Refused && error.status < 500;
    }
    this.show();
    return answered;
  }

  private refresh(): void {
    if (this.whole) this.show();
  }

  // -- showing ------------------------------------------------------------------------------------------------------

  private get work(): WorkTree | undefined {
    return this.whole?.entry.jobs[this.whole.name]?.work as WorkTree | undefined;
  }

  private waitingTask(): { task: string; text: string; session: string } | undefined {
    for (const run of this.history.runs) {
      if (run.outcome !== undefined) continue;
      const row = this.shell.feed.ofTask(run.task).find(({ session }) => session.status === "waiting");
      if (row) return { task: run.task, text: row.activity ?? "Waits for you", session: row.session.id };
    }
    return undefined;
  }

  private show(): void {
    const { whole, work, history } = this;
    if (!whole || !work) return;
    const tree = treeOf(work, history.runs);
    const steps = stepsOf(tree);
    const waiting = this.waitingTask();
    const done = new Set(history.runs.filter(({ outcome }) => outcome === "succeeded").map(({ work: each }) => each)).size;
    const [look, word] = waiting ? ["need", "Needs you"] : STATUS[whole.status];
    this.heading.textContent = whole.name;
    this.status.className = `pill ${look}`;
    const text = whole.status === "running" ? `${word}, ${done} of ${steps.length}` : word;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.facts.textContent = [lastName(whole.cwd), `job of ${steps.length} ${steps.length === 1 ? "step" : "steps"}`, `started ${clock(whole.started)} by ${who(history.by || whole.by || "").toLowerCase() === "you" ? "you" : who(history.by || whole.by || "")}`, whole.ended ? `took ${span(whole.ended - whole.started) || "a moment"}` : "", this.usage()].filter(Boolean).join(" · ");
    this.stop.hidden = whole.status !== "running" && whole.status !== "waiting";
    this.showStrip(waiting);
    this.tree.replaceChildren(this.list(tree, waiting?.task));
    this.showTime(steps, waiting?.task);
    this.showDecisions();
    this.markChart(steps);
    this.showStep(steps);
  }

  /** Of the job and of all its steps, in the order in which they were made. */
  private showDecisions(): void {
    const all = [...this.history.decisions, ...this.ofTasks].sort((one, other) => one.time - other.time);
    this.decisions.replaceChildren(
      ...all.map(({ time, text, task, ok, evidence: why }) => {
        const item = make("li");
        const sign = make("span", `call-state ${ok === true ? "ok" : ok === false ? "bad" : ""}`, ok === true ? "✓" : ok === false ? "✗" : "·");
        sign.setAttribute("aria-hidden", "true");
        const evidence = make("span", "evidence");
        if (task) evidence.append(make("b", "", this.nameOf(this.history.runs.find((run) => run.task === task)?.work)), ": ");
        evidence.append(plain(said(text)), ...(why ? [make("q", "why", plain(why))] : []));
        item.append(sign, evidence, make("time", "soft", clock(time)));
        return item;
      }),
    );
    this.decided.hidden = all.length === 0;
    // What was decided is part of what came of it; while it works, the steps come first.
    const over = this.history.ended !== undefined;
    this.decided.classList.toggle("jcard", over);
    if (over) this.strip.after(this.decided);
    else this.steps?.append(this.decided);
  }

  /** The records of the tasks; a job that runs asks again with every event of its own. */
  private async loadDecisions(): Promise<void> {
    const tasks = [...new Set(this.history.runs.map(({ task }) => task))].slice(-TASKS);
    if (tasks.length === 0) return;
    const query = new URLSearchParams([...tasks.map((task) => ["channel", `task/${task}`]), ["channel", `job/${this.id}`], ["limit", "1000"]]);
    const { events } = await call<{ events: (JobRecord & { channel: string })[] }>("GET", `/events?${query}`);
    this.ofTasks = taskDecisions(events.filter(({ channel }) => channel.startsWith("task/")));
  }

  private usage(): string {
    let [used, dollars] = [0, 0];
    for (const run of this.history.runs)
      for (const { session } of this.shell.feed.ofTask(run.task)) {
        used += (session.usage?.input ?? 0) + (session.usage?.output ?? 0);
        dollars += session.usage?.cost ?? 0;
      }
    return used ? `${tokens(used)}, ${cost(dollars)}` : "";
  }

  private showStrip(waiting: { task: string; text: string } | undefined): void {
    const whole = this.whole;
    if (waiting) {
      const run = this.history.runs.find(({ task }) => task === waiting.task);
      const text = make("span", "strip-text");
      text.append(make("b", "", this.nameOf(run?.work)), ` ${waiting.text.charAt(0).toLowerCase()}${waiting.text.slice(1)}`);
      this.strip.replaceChildren(icon("need"), text, make("span", "spring"), makeButton("", "Show and answer", () => run && this.choose(String(run.work))));
    } else if (whole?.status === "waiting") {
      this.strip.replaceChildren(icon("need"), make("span", "strip-text", whole.reason || "This job waits for your word."), make("span", "spring"), makeButton("primary", "Resume", () => void this.attempt(() => v1.resumeJob(this.id))));
    } else if (whole && (whole.status === "failed" || whole.status === "canceled")) {
      this.strip.replaceChildren(
        this.summary(whole),
        make("span", "spring"),
        makeButton("", "Resume", () => void this.attempt(async () => this.shell.go({ at: "job", id: (await v1.resumeJob(this.id)).job }))),
        makeButton("", "Run again", () => void this.attempt(async () => this.shell.go({ at: "job", id: (await v1.retryJob(this.id)).job }))),
      );
    }
    if (!waiting && whole?.status === "succeeded") this.strip.replaceChildren(icon("done"), this.summary(whole));
    this.strip.className = whole?.status === "succeeded" && !waiting ? "strip ok" : `strip ${waiting || whole?.status === "waiting" ? "need" : ""}`;
    this.strip.hidden = !waiting && whole?.status === "running";
  }

  /** Why it failed: its own error, else the step that did not pass, and what its check said. */
  private failure(whole: Whole): string {
    if (whole.error || whole.reason) return `Failed: ${plain(said(whole.error || whole.reason || ""))}`;
    const run = this.history.runs.findLast(({ outcome }) => outcome === "failed" || outcome === "crashed");
    if (!run) return "Failed.";
    const check = this.ofTasks.findLast(({ task, ok }) => task === run.task && ok === false);
    const why = this.ofTasks.findLast(({ task, evidence }) => task === run.task && evidence)?.evidence ?? (check ? said(check.text) : "");
    return plain(`Failed at ${this.nameOf(run.work)}${why ? `: ${why}` : "."}`);
  }

  /** What came of it, before how it came about. */
  private summary(whole: Whole): HTMLElement {
    const rows = this.history.runs.flatMap(({ task }) => this.shell.feed.ofTask(task));
    const changed = rows.map(({ session }) => session.changes ?? {});
    const sum = (name: "files" | "additions" | "deletions") => changed.reduce((all, each) => all + (each[name] ?? 0), 0);
    const took = span((whole.ended ?? whole.started) - whole.started) || "a moment";
    const ran = new Set(this.history.runs.map(({ work }) => work)).size;
    const text = make("span", "strip-text");
    const files = sum("files");
    const won = whole.status === "succeeded";
    const facts = [`${won ? "in" : "After"} ${took}`, `${ran} ${ran === 1 ? "step" : "steps"} ran`, files ? `${files} ${files === 1 ? "file" : "files"} changed` : rows.some(({ uncounted }) => uncounted) ? "" : "no files changed", this.usage()];
    text.append(make("b", "", won ? "Succeeded" : whole.status === "failed" ? this.failure(whole) : "Stopped."), ` ${facts.filter(Boolean).join(" · ")}`);
    if (files) text.append(" ", counted(sum("additions"), sum("deletions")));
    return text;
  }

  private nameOf(work: number | undefined): string {
    const tree = this.work;
    return (tree && stepsOf(treeOf(tree, [])).find((step) => step.work === work)?.name) ?? "A step";
  }

  private list(nodes: TreeNode[], waiting: string | undefined): HTMLElement {
    const list = make("ul");
    list.append(
      ...nodes.map((node) => {
        const item = make("li");
        if (node.kind === "group") {
          const title = make("div", "tn group-title");
          title.append(make("span", "", node.title), make("em", "", node.about));
          item.append(title, this.list(node.children, waiting));
        } else item.append(this.stepButton(node, waiting));
        return item;
      }),
    );
    return list;
  }

  /** The model that the stored entry gives it. */
  private modelOf({ name, model }: StepNode): string {
    const { tasks, models } = this.whole?.entry ?? {};
    const wanted = model || (tasks?.[name]?.model?.category ?? tasks?.[name]?.model?.id ?? "");
    return models?.[wanted] ?? wanted;
  }

  private stepButton(node: StepNode, waiting: string | undefined): HTMLElement {
    const run = lastRun(this.history.runs, node.work);
    const state = stateOf(run, run?.task === waiting);
    const [name, look, word] = MARKS[state];
    const row = makeButton("tn", "", () => this.choose(String(node.work)));
    row.dataset["work"] = String(node.work);
    if (node.work === this.current) row.setAttribute("aria-current", "true");
    const sign = make("span", `mark ${look}`);
    sign.append(icon(name, state === "work" ? "spin" : ""), make("span", "vh", word));
    const took = run ? (run.ended ? span(run.ended - run.started) : state === "need" ? "needs you" : elapsed(Date.now() - run.started)) : "";
    const rounds = this.history.runs.filter(({ work }) => work === node.work).length;
    const about = [node.condition ? "decides" : "", this.modelOf(node), rounds > 1 ? `${rounds} times` : ""].filter(Boolean).join(" · ");
    row.append(sign, make("span", "tn-name", node.name), make("em", "", about), make("span", "tn-time", took));
    return row;
  }

  private showTime(steps: StepNode[], waiting: string | undefined): void {
    const { lanes, from, to } = lanesOf(steps, this.history, Date.now());
    const rows = lanes.flatMap(({ step, bars }) => {
      const lane = make("div", "lane");
      for (const { left, width, run } of bars) {
        const state = stateOf(run, run.task === waiting);
        const bar = makeButton(`bar-run ${state}`, "", () => this.choose(String(step.work)));
        bar.style.left = `min(${left}%, calc(100% - 8px))`; // a moment at the end is seen as well
        bar.style.width = `${width}%`;
        const took = span((run.ended ?? Date.now()) - run.started) || "a moment";
        bar.setAttribute("aria-label", `${step.name}: ${MARKS[state][2]}, ${took}, from ${clock(run.started)}`);
        bar.title = `${MARKS[state][2]}, ${took}`;
        if (width > 14) bar.textContent = took;
        lane.append(bar);
      }
      return [make("span", "lane-name", step.name), lane];
    });
    const axis = make("div", "axis");
    const ticks = to - from > 240_000 ? 3 : 2; // on lines of the grid
    for (let tick = 0; tick < ticks; tick++) axis.append(make("span", "", new Date(from + ((to - from) * tick) / (ticks - 1)).toLocaleTimeString([], { hour: "numeric", minute: "2-digit", ...(to - from < 300_000 ? { second: "2-digit" } : {}) })));
    this.time.replaceChildren(...rows, ...(rows.length ? [make("span"), axis] : [make("p", "soft", "Nothing has run yet.")]));
  }

  private tick(): void {
    if (this.whole?.status === "running" && !document.hidden) this.refresh();
  }

  // -- the chart ----------------------------------------------------------------------------------------------------

  private openChart(): void {
    if (window.innerWidth >= 1800 || this.element.dataset["tab"] === "chart") this.drawChart();
  }

  private drawChart(): void {
    if (this.chart || !this.whole || !this.work) return;
    this.chart = new FlowChart(this.whole.chart, this.whole.name, (work) => this.choose(String(work)));
    new Zoom(this.chartBox, this.chart);
    this.markChart(stepsOf(treeOf(this.work, this.history.runs)));
  }

  private markChart(steps: StepNode[]): void {
    for (const { work } of steps) {
      const run = lastRun(this.history.runs, work);
      this.chart?.setMark(work, run && (run.outcome === undefined ? "Running" : run.outcome === "succeeded" ? "Succeeded" : "Failed"));
    }
    this.chart?.setInspected(this.current);
  }

  // -- the step -----------------------------------------------------------------------------------------------------

  private get current(): number | undefined {
    return this.chosen ?? this.history.runs.findLast(({ outcome }) => outcome === undefined)?.work ?? this.history.runs.at(-1)?.work;
  }

  /** Undefined: follow what runs. */
  choose(step?: string): void {
    this.chosen = step === undefined ? undefined : Number(step);
    this.element.classList.toggle("at-step", step !== undefined);
    const path = `${root}/app/j/${encodeURIComponent(this.id)}${step === undefined ? "" : `/${encodeURIComponent(step)}`}`;
    if (window.location.pathname !== path) window.history.replaceState(null, "", path);
    this.refresh();
  }

  private showStep(steps: StepNode[]): void {
    this.follow.hidden = this.chosen === undefined || this.whole?.status !== "running";
    const step = steps.find(({ work }) => work === this.current);
    const run = step && lastRun(this.history.runs, step.work);
    if (!step || !run) {
      if (step && this.chosen !== undefined) this.side.replaceChildren(make("h2", "", step.name), make("p", "soft", "This step has not run yet."));
      return;
    }
    if (this.step?.run === run) return;
    this.step?.leave();
    const rounds = this.history.runs.filter(({ work }) => work === step.work).length;
    this.step = new StepView({ ...step, model: this.modelOf(step) }, run, rounds > 1 ? `round ${rounds}` : "", (agent) => this.shell.feed.agentName(agent));
    this.side.replaceChildren(this.step.element);
  }

  press(key: "y" | "n"): boolean {
    return this.step?.press(key) ?? false;
  }

  chooseAnswer(number: string): boolean {
    return this.step?.choose(number) ?? false;
  }

  // -- what can be done ---------------------------------------------------------------------------------------------

  private async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      this.trouble.hidden = true;
    } catch (error) {
      this.trouble.textContent = explain(error);
      this.trouble.hidden = false;
    }
  }

  private showEntry(): void {
    const text = make("pre", "box", JSON.stringify(this.whole?.entry, null, 2));
    text.tabIndex = 0;
    this.side.replaceChildren(make("h2", "", "Entry, as stored with this job"), text);
    this.step?.leave();
    this.step = undefined;
    this.chosen = -1;
    this.element.classList.add("at-step");
  }

  private editEntry(): void {
    sessionStorage.setItem("portico.entry", JSON.stringify({ text: JSON.stringify(this.whole?.entry, null, 2), job: this.whole?.name, cwd: this.whole?.cwd, input: this.history.input }));
    this.shell.go({ at: "new", what: "job" });
  }
}
