/** What became of a job, from its events and the entry stored with it: runs, decisions, and the tree in plain words. */

import type { Event, FlowStep } from "../rest";
import { JOB } from "../texts/job";

export type WorkTree =
  | { kind: "Ref"; workIdInJob: number; taskId: string; modelOverride?: { category?: string; id?: string } }
  | { kind: "Seq" | "Par"; works: WorkTree[]; concurrency?: number }
  | { kind: "Loop"; preCondition?: [boolean, WorkTree]; postCondition?: [boolean, WorkTree]; body: WorkTree; maxIterations?: number }
  | { kind: "Alt"; condition: WorkTree; trueWork?: WorkTree; falseWork?: WorkTree }
  | { kind: "Ask"; workIdInJob: number; question: string | string[]; choices?: { label: string; work?: WorkTree | null }[] }
  | { kind: "Wait"; workIdInJob: number; seconds?: number | null; until?: string | null; hook?: string | null }
  | { kind: "Each"; files?: string | null; output?: string | null; items?: string[] | null; body: WorkTree; concurrency?: number }
  | FlowStep
  | { kind: "If"; when?: string | null; then: WorkTree; otherwise?: WorkTree | null }
  | { kind: "Again"; most: number; until?: string | null; body: WorkTree }
  | { kind: "Over"; each: unknown; item?: string; parallel?: number; merge?: FlowStep | null; body: WorkTree }
  | { kind: "Branches"; names?: string[]; merge?: FlowStep | null; works: WorkTree[] };

export interface Run {
  path: string;
  work: number;
  task: string;
  attempt: number;
  started: number;
  ended?: number;
  outcome?: "succeeded" | "failed" | "crashed" | "stopped" | "interrupted";
  error?: string;
}

export interface Decision {
  time: number;
  text: string;
  /** Of a step's check or end. */
  task?: string;
  ok?: boolean;
  /** Why, in the words of the agent that judged. */
  evidence?: string;
}

/** What a step of a workflow gave. */
export interface StepResult {
  output?: unknown;
  reason?: string;
  answer?: string;
  name?: string;
}

export interface JobRecord {
  pos: number;
  time: number;
  event: Event;
}

export class JobHistory {
  readonly runs: Run[] = [];
  readonly decisions: Decision[] = [];
  /** The names of the items of `each`, by their paths. */
  readonly lanes = new Map<string, string>();
  /** The results of steps, by their paths. */
  readonly results = new Map<string, StepResult>();
  started = 0;
  ended: number | undefined;
  input = "";
  by = "";
  pos = 0;

  /** False: it was known. */
  apply({ pos, time, event }: JobRecord): boolean {
    if (pos <= this.pos) return false;
    this.pos = pos;
    const decide = (text: string) => this.decisions.push({ time, text });
    switch (event.type) {
      case "job.started":
        this.started = time;
        this.input = event.input ?? "";
        this.by = event.by;
        break;
      case "work.started":
        this.runs.push({ path: event.path, work: event.work, task: event.task, attempt: event.attempt ?? 1, started: time });
        break;
      case "work.ended": {
        const run = this.runs.findLast((each) => each.path === event.path && each.task === event.task);
        if (run) Object.assign(run, { ended: time, outcome: event.outcome, ...(event.error ? { error: event.error } : {}) });
        break;
      }
      case "job.value":
        this.takeValue(event.path, event.name, event.value);
        break;
      case "job.decided":
        decide(event.reason);
        break;
      case "job.waiting":
        decide(event.reason);
        break;
      case "job.resumed":
        decide("Resumed.");
        break;
      case "job.ended":
        this.ended = time;
        if (event.error) decide(event.error);
        break;
    }
    return true;
  }

  private takeValue(path: string, name: string, value: string): void {
    if (name === "item") this.lanes.set(path, value);
    else if (name === "lane") this.lanes.set(path, parsed<{ name?: string }>(value).name ?? "");
    else if (name.startsWith("@")) this.results.set(path, parsed<StepResult>(value));
  }
}

function parsed<T extends object>(text: string): Partial<T> {
  try {
    return JSON.parse(text) as T;
  } catch {
    return {}; // of a newer host
  }
}

const TAGS = /^\[(SESSION|SESSION STARTED|TASK SUCCEEDED)\]/;

/** What the tasks of a job decided: their checks and retries, and why one failed. */
export function taskDecisions(records: (JobRecord & { channel: string })[]): Decision[] {
  return records.flatMap(({ channel, time, event }) => {
    const task = channel.replace(/^task\//, "");
    if (event.type === "task.ended") return event.error && !TAGS.test(event.error) ? [{ time, text: event.error, task, ok: false }] : [];
    if (event.type !== "task.decided" || !event.reason || TAGS.test(event.reason)) return [];
    const { reason: text, passed: ok, evidence } = event;
    return [{ time, text, task, ...(typeof ok === "boolean" ? { ok } : {}), ...(evidence ? { evidence } : {}) }];
  });
}

export type StepState = "todo" | "work" | "need" | "done" | "failed" | "stopped";

export interface StepNode {
  kind: "step";
  work: number;
  name: string;
  model: string;
  /** Its answer decides what happens next. */
  condition: boolean;
  /** Of a workflow: what it is called in the file. */
  id?: string;
}

export interface GroupNode {
  kind: "group";
  title: string;
  about: string;
  children: TreeNode[];
  /** Of `each`: the beginning of the paths of its items. */
  items?: string;
}

export type TreeNode = StepNode | GroupNode;

type Leaf = Extract<WorkTree, { kind: "Ref" | "Ask" | "Wait" | "Step" }>;
/** A question is a step's name as far as it fits. */
const NAME_CHARS = 60;

/** What lists call it: its task, its question, or what it waits for. */
function nameOf(leaf: Leaf): string {
  if (leaf.kind === "Step") return stepName(leaf);
  if (leaf.kind === "Ref") return leaf.taskId;
  if (leaf.kind === "Wait") return leaf.hook ? `Wait for ${leaf.hook}` : leaf.until ? `Wait until ${leaf.until}` : `Wait ${leaf.seconds ?? 0} s`;
  const line = (typeof leaf.question === "string" ? leaf.question : (leaf.question[0] ?? "")).split("\n")[0] ?? "";
  return `Ask: ${line.length > NAME_CHARS ? `${line.slice(0, NAME_CHARS - 1)}…` : line}`;
}

/** The name that the file gives it. A command or an expression is no name, so such a step is called by its id. */
function stepName({ id, name, do: what }: FlowStep): string {
  const text = what.kind === "run" ? [what.command].flat().join(" ") : what.kind === "http" ? `${what.method ?? "GET"} ${what.url}` : "";
  const written = name && !name.includes("{{") && !(text && text.startsWith(name.replace(/…$/, "")));
  return written ? name : id;
}

const short = (text: string): string => (text.length > NAME_CHARS ? `${text.slice(0, NAME_CHARS - 1)}…` : text);
/** An expression without its braces. */
const expression = (text: unknown): string => short(typeof text === "string" ? text.replace(/^\{\{\s*|\s*\}\}$/g, "") : JSON.stringify(text));

/** The tree as people read it: a series is a list, loops and branches are groups with a title. */
export function treeOf(work: WorkTree, runs: Run[], path = "r", condition = false): TreeNode[] {
  switch (work.kind) {
    case "Ref":
      return [{ kind: "step", work: work.workIdInJob, name: nameOf(work), model: work.modelOverride?.category ?? work.modelOverride?.id ?? "", condition }];
    case "Wait":
      return [{ kind: "step", work: work.workIdInJob, name: nameOf(work), model: "", condition }];
    case "Ask": {
      const choices = (work.choices ?? []).flatMap(({ label, work: child }, index): TreeNode[] => (child ? [{ kind: "group", title: `If “${label}”`, about: "", children: treeOf(child, runs, `${path}|${index}`) }] : []));
      return [{ kind: "step", work: work.workIdInJob, name: nameOf(work), model: "", condition: condition || choices.length > 0 }, ...choices];
    }
    case "Each": {
      const source = work.files ?? (work.output ? `$${work.output}` : `${work.items?.length ?? 0} items`);
      const many = (work.concurrency ?? 1) > 1 ? `${work.concurrency} at a time` : "one after the other";
      return [{ kind: "group", title: `For each of ${source}`, about: many, items: `${path}*`, children: treeOf(work.body, runs, `${path}*`) }];
    }
    case "Step":
      return [{ kind: "step", work: work.workIdInJob ?? -1, name: nameOf(work), model: "", condition, id: work.id }];
    case "If": {
      const then = treeOf(work.then, runs, `${path}|1`);
      const otherwise: TreeNode[] = work.otherwise ? [{ kind: "group", title: JOB.otherwise, about: "", children: treeOf(work.otherwise, runs, `${path}|0`) }] : [];
      return work.when === undefined || work.when === null ? [...then, ...otherwise] : [{ kind: "group", title: JOB.when(expression(work.when)), about: "", children: then }, ...otherwise];
    }
    case "Again": {
      const round = roundOf(runs, path);
      const title = work.until ? JOB.until(expression(work.until)) : JOB.rounds(work.most);
      return [{ kind: "group", title, about: runs.some((run) => run.path.startsWith(`${path}#`)) ? JOB.roundOf(round + 1, work.most) : JOB.most(work.most), children: treeOf(work.body, runs, `${path}#${round}`) }];
    }
    case "Over": {
      const merge: TreeNode[] = work.merge ? treeOf(work.merge, runs, `${path}+`) : [];
      const many = (work.parallel ?? 1) > 1 ? JOB.parallel(work.parallel ?? 1) : JOB.oneByOne;
      return [{ kind: "group", title: JOB.each(work.item ?? "item", expression(work.each)), about: many, items: `${path}*`, children: treeOf(work.body, runs, `${path}*`) }, ...merge];
    }
    case "Branches": {
      const branches = work.works.map((child, index): TreeNode => ({ kind: "group", title: work.names?.[index] || JOB.branch(index + 1), about: "", children: treeOf(child, runs, `${path}.${index}`) }));
      return [{ kind: "group", title: "At the same time", about: "", children: branches }, ...(work.merge ? treeOf(work.merge, runs, `${path}+`) : [])];
    }
    case "Seq":
      return work.works.flatMap((child, index) => treeOf(child, runs, `${path}.${index}`, condition));
    case "Par": {
      const children = work.works.flatMap((child, index) => treeOf(child, runs, `${path}.${index}`));
      return [{ kind: "group", title: "At the same time", about: work.concurrency ? `at most ${work.concurrency} at the same time` : "", children }];
    }
    case "Loop":
      return [loopOf(work, runs, path)];
    case "Alt": {
      const branch = (title: string, child: WorkTree | undefined, sign: string): TreeNode[] => (child ? [{ kind: "group", title, about: "", children: treeOf(child, runs, `${path}|${sign}`) }] : []);
      return [...treeOf(work.condition, runs, `${path}|?`, true), ...branch("If yes", work.trueWork, "1"), ...branch("If no", work.falseWork, "0")];
    }
  }
}

function loopOf(work: Extract<WorkTree, { kind: "Loop" }>, runs: Run[], path: string): GroupNode {
  const round = roundOf(runs, path);
  const most = work.maxIterations ? ` of at most ${work.maxIterations}` : "";
  const until = work.postCondition ?? work.preCondition;
  const title = until ? JOB.repeat(work.postCondition !== undefined, names(until[1]).at(-1) ?? "", (work.postCondition ? !until[0] : until[0]) === true) : JOB.once;
  const children = [
    ...(work.preCondition ? treeOf(work.preCondition[1], runs, `${path}#${round}<`, true) : []),
    ...treeOf(work.body, runs, `${path}#${round}`),
    ...(work.postCondition ? treeOf(work.postCondition[1], runs, `${path}#${round}>`, true) : []),
  ];
  return { kind: "group", title, about: runs.some((run) => run.path.startsWith(`${path}#`)) ? `round ${round + 1}${most}` : most.trim(), children };
}

/** The latest round of the loop at this path, from 0. */
function roundOf(runs: Run[], path: string): number {
  let most = 0;
  for (const run of runs) if (run.path.startsWith(`${path}#`)) most = Math.max(most, Number(/^\d+/.exec(run.path.slice(path.length + 1))?.[0] ?? 0));
  return most;
}

export function names(work: WorkTree): string[] {
  switch (work.kind) {
    case "Ref":
    case "Wait":
    case "Step":
      return [nameOf(work)];
    case "If":
      return [work.then, work.otherwise].flatMap((each) => (each ? names(each) : []));
    case "Again":
    case "Over":
      return names(work.body);
    case "Branches":
      return work.works.flatMap((each) => names(each));
    case "Ask":
      return [nameOf(work), ...(work.choices ?? []).flatMap(({ work: child }) => (child ? names(child) : []))];
    case "Each":
      return names(work.body);
    case "Seq":
    case "Par":
      return work.works.flatMap(names);
    case "Loop":
      return [...(work.preCondition ? names(work.preCondition[1]) : []), ...names(work.body), ...(work.postCondition ? names(work.postCondition[1]) : [])];
    case "Alt":
      return [work.condition, work.trueWork, work.falseWork].flatMap((each) => (each ? names(each) : []));
  }
}

export function stepsOf(tree: TreeNode[]): StepNode[] {
  return tree.flatMap((node) => (node.kind === "step" ? [node] : stepsOf(node.children)));
}

export function lastRun(runs: Run[], work: number): Run | undefined {
  return runs.findLast((run) => run.work === work);
}

export function stateOf(run: Run | undefined, waiting: boolean): StepState {
  if (!run) return "todo";
  if (run.outcome === undefined) return waiting ? "need" : "work";
  if (run.outcome === "succeeded") return "done";
  return run.outcome === "failed" || run.outcome === "crashed" ? "failed" : "stopped";
}

/** One item of `each`: its name, and the run that matters most in it. */
export interface Item {
  path: string;
  name: string;
  state: StepState;
  run: Run | undefined;
  reason: string;
  started: number | undefined;
  ended: number | undefined;
}

/** The items below a path such as `r.1*`, in their order. `waiting`: the task that waits for a person. */
export function itemsOf(history: JobHistory, prefix: string, waiting?: string): Item[] {
  const runs = new Map<string, Run[]>();
  for (const run of history.runs) {
    if (!run.path.startsWith(prefix)) continue;
    const lane = prefix + (/^\d+/.exec(run.path.slice(prefix.length))?.[0] ?? "");
    runs.set(lane, [...(runs.get(lane) ?? []), run]);
  }
  const lanes = new Set(runs.keys());
  for (const path of history.lanes.keys()) if (path.startsWith(prefix) && /^\d+$/.test(path.slice(prefix.length))) lanes.add(path);
  const number = (path: string) => Number(path.slice(prefix.length));
  return [...lanes].sort((one, other) => number(one) - number(other)).map((path) => itemOf(history, path, latest(runs.get(path) ?? []), number(path), waiting));
}

/** The last run at each path: an attempt that was tried again does not count. */
function latest(runs: Run[]): Run[] {
  return [...new Map(runs.map((run) => [run.path, run])).values()];
}

function itemOf(history: JobHistory, path: string, runs: Run[], index: number, waiting: string | undefined): Item {
  const failed = runs.find(({ outcome }) => outcome === "failed" || outcome === "crashed");
  const run = runs.find(({ outcome, task }) => outcome === undefined && task === waiting) ?? runs.find(({ outcome }) => outcome === undefined) ?? failed ?? runs.at(-1);
  const ends = runs.map(({ ended }) => ended);
  return {
    path,
    name: history.lanes.get(path) || JOB.item(index + 1),
    state: stateOf(run, run !== undefined && run.task === waiting),
    run,
    reason: failed ? history.results.get(failed.path)?.reason || failed.error || "" : "",
    started: runs[0]?.started,
    ended: ends.includes(undefined) || ends.length === 0 ? undefined : Math.max(...ends.map((each) => each ?? 0)),
  };
}

export interface Bar {
  left: number;
  width: number;
  run: Run;
}

export interface Lane {
  step: StepNode;
  bars: Bar[];
}

/** Every run on one axis, in percent; rounds of a step share its lane. */
export function lanesOf(steps: StepNode[], history: JobHistory, now: number): { lanes: Lane[]; from: number; to: number } {
  const from = history.started;
  const to = Math.max(history.ended ?? now, from + 1000);
  const part = (time: number) => (100 * (time - from)) / (to - from);
  const bar = (run: Run): Bar => ({ run, left: part(run.started), width: Math.max(0.6, part(run.ended ?? to) - part(run.started)) });
  const lanes = steps.map((step) => ({ step, bars: joined(history.runs.filter((run) => run.work === step.work)).map(bar) }));
  return { lanes: lanes.filter(({ bars }) => bars.length > 0), from, to };
}

/** More runs of a step than can be told apart are one bar. */
const MOST_BARS = 60;

function joined(runs: Run[]): Run[] {
  const [first, last] = [runs[0], runs.at(-1)];
  if (runs.length <= MOST_BARS || !first || !last) return runs;
  const ended = runs.every((run) => run.ended !== undefined) ? { ended: Math.max(...runs.map((run) => run.ended ?? 0)) } : {};
  const outcome = runs.some((run) => run.outcome === "failed" || run.outcome === "crashed") ? "failed" : last.outcome;
  return [{ path: last.path, work: first.work, task: last.task, attempt: 1, started: first.started, ...ended, ...(outcome && ended.ended ? { outcome } : {}) }];
}
