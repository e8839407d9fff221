/** The steps of a job on its page: as a tree, and as bars on one axis of time. */

import { repeat } from "lit-html/directives/repeat.js";
import type { Icon } from "../icons";
import { html, iconOf, nothing, type TemplateResult } from "../render";
import { JOB } from "../texts/job";
import { type Bar, type GroupNode, type JobHistory, lanesOf, lastRun, type Run, type StepNode, type StepState, stateOf, type TreeNode } from "./jobModel";
import { clock, elapsed, span, tookOf } from "../time";

export const MARKS: Record<StepState, [Icon, look: string]> = {
  todo: ["todo", ""],
  work: ["work", "work"],
  need: ["need", "need"],
  done: ["done", "ok"],
  failed: ["failed", "bad"],
  stopped: ["interrupted", ""],
};
/** A bar that is wider shows its duration, in percent. */
const TEXT_WIDTH = 14;
/** A longer axis has a tick in the middle, and no seconds. */
const MIDDLE_TICK_MS = 240_000;
const SECONDS_MS = 300_000;

/** Drawn here: the icons of icons.ts are part of the first load. */
export const retryIcon = (): TemplateResult => html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 8a5 5 0 1 1 1.6 3.7M3 12.500V9h3.500" /></svg>`;

export interface Steps {
  tree: TreeNode[];
  history: JobHistory;
  now: number;
  /** The step in view. */
  current: number | undefined;
  /** The task that waits for a person. */
  waiting: string | undefined;
  modelOf(step: StepNode): string;
  choose(work: number): void;
  /** The rows of the items of a group. */
  items?(group: GroupNode): HTMLElement | undefined;
  /** Present when the job can run again from a step. */
  retry?(step: StepNode): void;
}

export const stepTree = (steps: Steps): TemplateResult => list(steps.tree, steps);

const list = (nodes: TreeNode[], steps: Steps): TemplateResult => html`<ul>${nodes.map((node) => html`<li class=${node.kind}>${node.kind === "group" ? groupOf(node, steps) : stepRow(node, steps)}</li>`)}</ul>`;

function groupOf(node: GroupNode, steps: Steps): TemplateResult {
  return html`<div class="tn group-title"><span>${node.title}</span><em>${node.about}</em></div>${steps.items?.(node) ?? list(node.children, steps)}`;
}

function stepRow(node: StepNode, steps: Steps): TemplateResult {
  const { retry } = steps;
  const offered = retry && node.id !== undefined && lastRun(steps.history.runs, node.work);
  return html`${stepButton(node, steps)}${offered ? html`<button type="button" class="icon retry-from" aria-label=${JOB.retryOf(node.name)} title="${JOB.retryFrom}. ${JOB.retryAbout}" @click=${() => retry(node)}>${retryIcon()}</button>` : nothing}`;
}

function stepButton(node: StepNode, steps: Steps): TemplateResult {
  const runs = steps.history.runs.filter(({ work }) => work === node.work);
  const run = lastRun(runs, node.work);
  const state = stateOf(run, run !== undefined && run.task === steps.waiting);
  const [name, look] = MARKS[state];
  const about = [node.condition ? JOB.decides : "", steps.modelOf(node), runs.length > 1 ? JOB.times(runs.length) : ""].filter(Boolean).join(" · ");
  return html`<button type="button" class="tn" data-work=${node.work} aria-current=${node.work === steps.current ? "true" : nothing} @click=${() => steps.choose(node.work)}
    ><span class="mark ${look}">${iconOf(name, state === "work" ? "spin" : "")}<span class="vh">${JOB.step[state]}</span></span><span class="tn-name">${node.name}</span><em>${about}</em><span class="tn-time">${run ? timeOf(run, state, steps.now) : ""}</span></button>`;
}

export function timeOf(run: Run, state: StepState, now: number): string {
  if (run.ended) return span(run.ended - run.started);
  return state === "need" ? JOB.step.need : elapsed(now - run.started);
}

export function stepTimes(all: StepNode[], steps: Steps): TemplateResult {
  const { lanes, from, to } = lanesOf(all, steps.history, steps.now);
  if (lanes.length === 0) return html`<p class="soft">${JOB.nothingRun}</p>`;
  const lane = (step: StepNode, bars: Bar[]) => html`<span class="lane-name">${step.name}</span><div class="lane">${bars.map((bar) => barButton(step, bar, steps))}</div>`;
  return html`${repeat(lanes, ({ step }) => step.work, ({ step, bars }) => lane(step, bars))}<span></span><div class="axis">${ticks(from, to).map((tick) => html`<span>${tick}</span>`)}</div>`;
}

function barButton(step: StepNode, { left, width, run }: Bar, steps: Steps): TemplateResult {
  const state = stateOf(run, run.task === steps.waiting);
  const took = tookOf((run.ended ?? steps.now) - run.started);
  // A short run at the end stays visible.
  const style = `left: min(${left}%, calc(100% - 8px)); width: ${width}%`;
  return html`<button type="button" class="bar-run ${state}" .style=${style} aria-label=${JOB.bar(step.name, JOB.step[state], took, clock(run.started))} title="${JOB.step[state]}, ${took}" @click=${() => steps.choose(step.work)}>${width > TEXT_WIDTH ? took : ""}</button>`;
}

/** On lines of the grid. */
function ticks(from: number, to: number): string[] {
  const count = to - from > MIDDLE_TICK_MS ? 3 : 2;
  const format: Intl.DateTimeFormatOptions = { hour: "numeric", minute: "2-digit", ...(to - from < SECONDS_MS ? { second: "2-digit" } : {}) };
  return Array.from({ length: count }, (_, tick) => new Date(from + ((to - from) * tick) / (count - 1)).toLocaleTimeString([], format));
}
