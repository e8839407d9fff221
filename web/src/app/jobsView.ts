/** All jobs: a table beside the list, which shows only jobs here. */

import { root } from "../root";
import { duration } from "../conversation/words";
import { make } from "../page";
import { lastName } from "./entries";
import { mark } from "./row";
import type { View, ViewContext } from "./view";
import { when } from "../time";
import { entryOfJob } from "./entries";

const MOST = 300;

export class JobsView implements View {
  readonly element = make("section", "place");
  readonly title = "Jobs";
  private readonly list = make("div", "wide");
  private readonly unwatch: () => void;

  constructor(private readonly context: ViewContext) {
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", "Jobs"), make("p", "", "A job is a tree of tasks that agents do one after the other or side by side."));
    const start = make("a", "button primary", "Start a job");
    start.href = `${root}/app/new/job`;
    head.append(text, start);
    const scroll = make("div", "scroll");
    scroll.append(this.list);
    this.element.append(head, scroll);
    this.unwatch = context.feed.watch(() => this.show());
    this.show();
  }

  leave(): void {
    this.unwatch();
  }

  private show(): void {
    const jobs = [...this.context.feed.jobs.values()].sort((one, other) => other.started - one.started).slice(0, MOST);
    if (jobs.length === 0) return this.list.replaceChildren(make("p", "soft", "No jobs yet. Start one, and watch its steps here."));
    const table = make("table", "table");
    const head = make("tr");
    head.append(...["Job", "State", "Folder", "Steps run", "Started", "Took"].map((name, index) => make("th", index > 2 ? "num" : "", name)));
    table.append(head);
    const tasks = [...this.context.feed.rows.values()].filter(({ session }) => session.by?.startsWith("task:"));
    for (const job of jobs) {
      const entry = entryOfJob(job, tasks);
      const link = make("a", "", job.name);
      link.href = `${root}/app/j/${encodeURIComponent(job.id)}`;
      const name = make("td");
      name.append(link);
      const state = make("td");
      const line = make("span", "job-state");
      line.append(mark(entry.state), make("span", "", entry.line));
      state.append(line);
      const row = make("tr");
      row.append(name, state, make("td", "", lastName(job.cwd)), make("td", "num", String(job.works?.length ?? 0)), make("td", "num", when(job.started, Date.now())), make("td", "num", job.ended ? duration(job.ended - job.started) : ""));
      table.append(row);
    }
    this.list.replaceChildren(table);
  }
}
