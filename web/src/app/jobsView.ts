/** All jobs: a table that can be sorted and filtered, next to the list, which shows only jobs here. */

import { repeat } from "lit-html/directives/repeat.js";
import { make } from "../page";
import { html, render, type TemplateResult } from "../render";
import { root } from "../root";
import { Scope } from "../scope";
import { JOBS } from "../texts/job";
import { dollars, tookOf, when } from "../time";
import { entryOfJob, type JobRow, lastName, type Row } from "./entries";
import { mark } from "./row";
import type { View, ViewContext } from "./view";

const MOST = 300;

type Column = keyof typeof JOBS.columns;
const COLUMNS = Object.keys(JOBS.columns) as Column[];
const NUMBERS: ReadonlySet<Column> = new Set(["steps", "started", "took", "cost"]);

interface Line {
  job: JobRow;
  cost: number | undefined;
}

/** What a column sorts by. */
const SORT: Record<Column, (line: Line) => string | number> = {
  name: ({ job }) => job.name.toLowerCase(),
  state: ({ job }) => JOBS.states[job.status],
  folder: ({ job }) => lastName(job.cwd).toLowerCase(),
  steps: ({ job }) => job.works?.length ?? 0,
  started: ({ job }) => job.started,
  took: ({ job }) => (job.ended ?? Date.now()) - job.started,
  cost: ({ cost }) => cost ?? -1,
};

export class JobsView implements View {
  readonly element = make("section", "place");
  readonly title: string = JOBS.title;
  private readonly scope = new Scope();
  private sorted: { column: Column; down: boolean } = { column: "started", down: true };
  private words = "";
  private status: JobRow["status"] | "" = "";

  constructor(private readonly context: ViewContext) {
    this.scope.onEnd(context.board.subscribe(() => this.render()));
    this.render();
  }

  leave(): void {
    this.scope.end();
  }

  private render(): void {
    const { board } = this.context;
    const tasks = [...board.rows.values()].filter(({ session }) => session.by?.startsWith("task:"));
    const lines = this.lines([...board.jobs.values()], tasks);
    const table = html`<div class="scroll-x" tabindex="0" role="region" aria-label=${JOBS.title}><table class="table jobs-table">
      <thead><tr>${COLUMNS.map((column) => this.heading(column))}</tr></thead>
      <tbody>${repeat(lines, ({ job }) => job.id, (line) => row(line, tasks))}</tbody></table></div>`;
    render(
      html`<header class="head"><div class="head-text"><h1>${JOBS.title}</h1><p>${JOBS.about}</p></div><a class="button primary" href="${root}/app/new/job">${JOBS.start}</a></header>
        <div class="scroll"><div class="wide">${board.jobs.size === 0 ? html`<p class="soft">${JOBS.empty}</p>` : html`${this.filters()}${lines.length === 0 ? html`<p class="soft">${JOBS.noMatch}</p>` : table}`}</div></div>`,
      this.element,
    );
  }

  private lines(jobs: JobRow[], tasks: Row[]): Line[] {
    const { column, down } = this.sorted;
    const key = SORT[column];
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    return jobs
      .filter(({ status, name, cwd }) => (!this.status || status === this.status) && words.every((word) => `${name} ${cwd}`.toLowerCase().includes(word)))
      .map((job) => ({ job, cost: costOf(job, tasks) }))
      .sort((one, other) => (down ? -1 : 1) * compare(key(one), key(other)) || other.job.started - one.job.started)
      .slice(0, MOST);
  }

  private filters(): TemplateResult {
    return html`<div class="filters">
      <input type="search" aria-label=${JOBS.filter} placeholder=${JOBS.filter} .value=${this.words} @input=${(event: Event) => this.change(() => (this.words = (event.target as HTMLInputElement).value))} />
      <select aria-label=${JOBS.columns.state} @change=${(event: Event) => this.change(() => (this.status = (event.target as HTMLSelectElement).value as JobRow["status"] | ""))}>
        <option value="">${JOBS.all}</option>
        ${Object.entries(JOBS.states).map(([status, text]) => html`<option value=${status} ?selected=${status === this.status}>${text}</option>`)}
      </select>
    </div>`;
  }

  private heading(column: Column): TemplateResult {
    const { sorted } = this;
    const name = JOBS.columns[column];
    const direction = sorted.column !== column ? "none" : sorted.down ? "descending" : "ascending";
    // The first click sorts text from A to Z, and numbers and times from the largest.
    const sort = () => this.change(() => (this.sorted = { column, down: sorted.column === column ? !sorted.down : NUMBERS.has(column) }));
    return html`<th class=${NUMBERS.has(column) ? "num" : ""} aria-sort=${direction}><button type="button" class="quiet" title=${JOBS.sort(name)} @click=${sort}>${name}<span aria-hidden="true">${{ none: "", ascending: " ↑", descending: " ↓" }[direction]}</span></button></th>`;
  }

  private change(edit: () => void): void {
    edit();
    this.render();
  }
}

const compare = (one: string | number, other: string | number): number => (typeof one === "string" ? one.localeCompare(String(other)) : one - Number(other));

/** The cost of the sessions of its tasks; undefined where none of them reported one. */
function costOf(job: JobRow, tasks: Row[]): number | undefined {
  const own = new Set(job.works?.map(({ task }) => `task:${task}`));
  const costs = tasks.filter(({ session }) => own.has(session.by ?? "")).flatMap(({ session }) => session.usage?.cost ?? []);
  return costs.length ? costs.reduce((sum, cost) => sum + cost, 0) : undefined;
}

function row({ job, cost }: Line, tasks: Row[]): TemplateResult {
  const { state, line } = entryOfJob(job, tasks);
  const facts = [String(job.works?.length ?? 0), JOBS.ago(when(job.started, Date.now())), job.ended ? tookOf(job.ended - job.started) : "", cost === undefined ? "" : dollars(cost)];
  return html`<tr><td><a href="${root}/app/j/${encodeURIComponent(job.id)}">${job.name}</a></td><td><span class="job-state">${mark(state)}<span>${line}</span></span></td><td>${lastName(job.cwd)}</td>${facts.map((fact) => html`<td class="num">${fact}</td>`)}</tr>`;
}
