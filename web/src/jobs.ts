/** The matrix of jobs: choose one, give it its input, start it or look at its chart. */

import { api, explain, type JobListing } from "./api";
import { byId, confirmStop, endPage, make, makeButton, openTab, trackingAddress } from "./page";
import { split } from "./splitter";
import { JOB_MATRIX } from "./texts/portal";

class JobsView {
  private readonly table = byId("matrix-table", HTMLTableElement);
  private readonly input = byId("user-input-textarea", HTMLTextAreaElement);
  private readonly start = byId("start-job-button", HTMLButtonElement);
  private readonly preview = byId("preview-button", HTMLButtonElement);
  private listing: JobListing = { grid: [], jobs: {}, chart: {} };
  private selected: HTMLButtonElement | undefined;

  constructor(private readonly folder: string) {
    split({ bar: byId("resize-bar"), part: byId("right-part"), axis: "width", least: 200 });
    this.start.addEventListener("click", () => void this.startJob());
    this.preview.addEventListener("click", () => this.jobName !== undefined && openTab(trackingAddress(this.jobName)));
    this.select(undefined);
    void this.load();
  }

  private get jobName(): string | undefined {
    return this.selected?.dataset.jobName;
  }

  private async load(): Promise<void> {
    try {
      const { grid = [], jobs = {}, chart = {} } = await api.jobs();
      this.listing = { grid, jobs, chart };
    } catch (error) {
      this.table.replaceWith(make("p", "page-trouble", JOB_MATRIX.theJobsCould(explain(error))));
      return;
    }
    this.showMatrix();
  }

  private showMatrix(): void {
    const { grid } = this.listing;
    const columns = Math.max(1, ...grid.map((row) => row.jobs.length));
    const title = make("td", "matrix-title-cell");
    title.colSpan = columns + 1;
    const bar = make("div", "matrix-title-row");
    const stop = makeButton("danger", JOB_MATRIX.stopServer, () => void this.stopServer());
    stop.id = "stop-server-button";
    bar.append(make("h1", "matrix-title", JOB_MATRIX.availableJobs), stop);
    title.append(bar);
    const head = make("tr");
    head.append(title);
    const rows = grid.map((row) => {
      const line = make("tr");
      const keyword = make("th", "matrix-keyword", row.keyword);
      keyword.scope = "row";
      line.append(keyword);
      for (let column = 0; column < columns; column++) line.append(this.cell(row.jobs[column] ?? null));
      return line;
    });
    this.table.replaceChildren(head, ...rows);
    if (grid.length === 0) this.table.after(make("p", "page-hint", JOB_MATRIX.theEntryOfThisHost));
  }

  private cell(job: { name: string; jobName: string } | null): HTMLTableCellElement {
    const cell = make("td");
    if (!job) return cell;
    const button = makeButton("matrix-job-btn", job.name, () => this.select(button === this.selected ? undefined : button));
    button.dataset.jobName = job.jobName;
    button.setAttribute("aria-pressed", "false");
    cell.append(button);
    return cell;
  }

  private select(button: HTMLButtonElement | undefined): void {
    this.selected?.classList.remove("selected");
    this.selected?.setAttribute("aria-pressed", "false");
    this.selected = button;
    button?.classList.add("selected");
    button?.setAttribute("aria-pressed", "true");
    const name = this.jobName;
    this.start.textContent = name === undefined ? JOB_MATRIX.jobNotSelected : JOB_MATRIX.startJob(name);
    this.start.disabled = this.preview.disabled = name === undefined;
    const needed = name !== undefined && this.listing.jobs[name]?.requireUserInput === true;
    this.input.disabled = !needed;
    this.input.placeholder = needed ? JOB_MATRIX.whatShouldTheJobDo : name === undefined ? JOB_MATRIX.chooseAJobFirst : JOB_MATRIX.thisJobNeedsNoInput;
  }

  private async startJob(): Promise<void> {
    const name = this.jobName;
    if (name === undefined) return;
    this.start.disabled = true;
    try {
      const input = this.input.disabled ? "" : this.input.value;
      const { jobId, jobError, error } = await api.startJob(name, this.folder, input);
      if (jobId) openTab(trackingAddress(name, jobId));
      else window.alert(explain(jobError ?? error ?? JOB_MATRIX.theHostGaveNoJob));
    } catch (error) {
      window.alert(explain(error));
    } finally {
      this.start.disabled = this.jobName === undefined;
    }
  }

  private async stopServer(): Promise<void> {
    if (!confirmStop()) return;
    try {
      await api.stopServer();
      endPage(JOB_MATRIX.serverStoppedYouMayClose);
    } catch (error) {
      window.alert(explain(error));
    }
  }
}

const folder = new URLSearchParams(window.location.search).get("wb");
if (folder === null) window.location.replace("./index.html");
else new JobsView(folder);
