/** All jobs: a table next to the list, which shows only jobs here. */

import { guard } from "lit-html/directives/guard.js";
import { repeat } from "lit-html/directives/repeat.js";
import { make } from "../page";
import { html, render, type TemplateResult } from "../render";
import { root } from "../root";
import { Scope } from "../scope";
import { JOBS } from "../texts/job";
import { tookOf, when } from "../time";
import { entryOfJob, type JobRow, lastName, type Row } from "./entries";
import { mark } from "./row";
import type { View, ViewContext } from "./view";

const MOST = 300;

export class JobsView implements View {
  readonly element = make("section", "place");
  readonly title: string = JOBS.title;
  private readonly scope = new Scope();

  constructor(private readonly context: ViewContext) {
    this.scope.onEnd(context.feed.watch(() => this.render()));
    this.render();
  }

  leave(): void {
    this.scope.end();
  }

  private render(): void {
    const { feed } = this.context;
    const jobs = [...feed.jobs.values()].sort((one, other) => other.started - one.started).slice(0, MOST);
    const tasks = [...feed.rows.values()].filter(({ session }) => session.by?.startsWith("task:"));
    const table = html`<table class="table"><tbody><tr>${JOBS.columns.map((name, index) => html`<th class=${index > 2 ? "num" : ""}>${name}</th>`)}</tr>${repeat(jobs, ({ id }) => id, (job) => row(job, tasks))}</tbody></table>`;
    render(
      html`<header class="head"><div class="head-text"><h1>${JOBS.title}</h1><p>${JOBS.about}</p></div><a class="button primary" href="${root}/app/new/job">${JOBS.start}</a></header>
        <div class="scroll"><div class="wide">${jobs.length === 0 ? html`<p class="soft">${JOBS.empty}</p>` : table}</div></div>`,
      this.element,
    );
  }
}

function row(job: JobRow, tasks: Row[]): TemplateResult {
  const { state, line } = entryOfJob(job, tasks);
  const facts = [String(job.works?.length ?? 0), when(job.started, Date.now()), job.ended ? tookOf(job.ended - job.started) : ""];
  return html`<tr><td><a href="${root}/app/j/${encodeURIComponent(job.id)}">${job.name}</a></td><td><span class="job-state">${guard([state], () => mark(state))}<span>${line}</span></span></td><td>${lastName(job.cwd)}</td>${facts.map((fact) => html`<td class="num">${fact}</td>`)}</tr>`;
}
