/** One job: its chart with live marks, and what each work is saying. */

import { api, explain, type Job, type JobStatus, type LiveElement, Refused } from "./api";
import { FlowChart, type WorkMark } from "./chart/flowChart";
import type { ChartGraph } from "./chart/graph";
import { printable } from "./chart/sheets";
import { Zoom } from "./chart/zoom";
import { Lanes, Live } from "./live";
import { byId, make } from "./page";
import { JobActions } from "./jobActions";
import { split } from "./splitter";
import { v1 } from "./v1";
import { WorkView } from "./work";
import { TRACKING } from "./texts/portal";

class TrackingView {
  private readonly label = byId("job-status-label");
  private readonly stopButton = byId("stop-job-button", HTMLButtonElement);
  private readonly trouble = byId("job-error");
  private readonly right = byId("session-response-part");
  private readonly works = new Map<number, WorkView>();
  private readonly lanes = new Lanes();
  private readonly jobActions: JobActions | undefined;
  private chart: FlowChart | undefined;
  private overview: HTMLElement = make("pre", "job-json");
  private inspected: number | undefined;

  constructor(
    private readonly jobName: string,
    private readonly jobId: string | undefined,
  ) {
    byId("job-name").textContent = jobName;
    document.title = `${jobName} · Portico`;
    split({ bar: byId("resize-bar"), part: byId("right-part"), axis: "width", least: 200 });
    if (jobId !== undefined) this.jobActions = new JobActions(jobName, jobId);
    this.setStatus(jobId === undefined ? "PREVIEW" : "RUNNING");
    if (jobId === undefined) this.stopButton.remove();
    else this.stopButton.addEventListener("click", () => void this.stopJob(jobId));
    void this.load();
  }

  private async load(): Promise<void> {
    let job: Job | undefined;
    let chart: ChartGraph | undefined;
    try {
      ({ job, chart } = (await this.stored()) ?? (await this.listed()));
    } catch (error) {
      this.giveUp(explain(error));
      return;
    }
    if (!job || !chart) {
      this.giveUp(TRACKING.jobNotFound(this.jobName));
      return;
    }
    this.overview.textContent = JSON.stringify({ job, chart }, null, 4);
    this.overview.tabIndex = 0;
    this.right.replaceChildren(this.overview);
    this.chart = new FlowChart(chart, this.jobName, this.jobId === undefined ? undefined : (work) => this.choose(work));
    new Zoom(byId("chart-container"), this.chart, this.jobId === undefined ? "" : TRACKING.chooseATaskToRead);
    printable(byId("chart-container"), this.chart);
    if (this.jobId !== undefined) await this.track(this.jobId);
  }

  /** Nothing to show. A phone has no right part here, so the bar shows it, too. An unknown job is not shown as running. */
  private giveUp(trouble: string): void {
    this.right.replaceChildren(make("p", "page-trouble", trouble));
    this.setStatus(this.jobId === undefined ? "PREVIEW" : "UNKNOWN", trouble);
  }

  /** A job that runs or ran has its own entry stored with it: the host's may be another one by now. */
  private async stored(): Promise<{ job: Job | undefined; chart: ChartGraph | undefined } | undefined> {
    if (this.jobId === undefined) return undefined;
    try {
      const { name, entry, chart } = await v1.job(this.jobId);
      return { job: entry.jobs?.[name], chart };
    } catch (error) {
      if (error instanceof Refused && error.status === 404) return undefined; // forgotten: the host's own has to do
      throw error;
    }
  }

  private async listed(): Promise<{ job: Job | undefined; chart: ChartGraph | undefined }> {
    const { jobs, chart } = await api.jobs();
    return { job: jobs?.[this.jobName], chart: chart?.[this.jobName] };
  }

  private async track(jobId: string): Promise<void> {
    await this.loadStatus(jobId);
    void this.jobActions?.poll();
    new Live("job", jobId, {
      elements: (list, again) => {
        if (again) this.chart?.clearMarks();
        for (const element of list) this.apply(element);
        // After an interruption the job may be on another host, which waits for a decision.
        if (again) void this.jobActions?.poll();
      },
      ended: () => void this.settle(jobId),
    });
  }

  /** The list has ended; the outcome may still be known, or the job not at all. */
  private async settle(jobId: string): Promise<void> {
    const known = await this.loadStatus(jobId);
    if (!known && this.label.dataset.status === "RUNNING") this.setStatus("UNKNOWN", TRACKING.theHostDoesNotKnow);
  }

  /** False if the host does not know the job (any more). */
  private async loadStatus(jobId: string): Promise<boolean> {
    try {
      const { status, tasks = [] } = await api.jobStatus(jobId);
      if (status) this.setStatus(status.toUpperCase() as Uppercase<JobStatus>);
      for (const { workIdInJob, status } of tasks) this.chart?.setMark(workIdInJob, status);
      return status !== undefined;
    } catch (error) {
      if (error instanceof TypeError || error instanceof Refused) return true; // the live loop reports it and retries
      throw error;
    }
  }

  private apply(element: LiveElement): void {
    const workId = Number(element.workId);
    switch (element.callback) {
      case "workStarted":
        this.jobActions?.update("RUNNING");
        this.chart?.setMark(workId, "Running");
        this.work(workId).follow(String(element.taskId));
        break;
      case "workStopped":
        this.chart?.setMark(workId, (element.succeeded ? "Succeeded" : "Failed") satisfies WorkMark);
        break;
      case "jobSucceeded":
        this.setStatus("SUCCEEDED");
        break;
      case "jobFailed":
        this.setStatus("FAILED");
        break;
      case "jobCanceled":
        this.setStatus("CANCELED");
        break;
      default:
        if (element.jobError !== undefined) this.setStatus("FAILED", explain(element.jobError));
    }
  }

  private work(workId: number): WorkView {
    let work = this.works.get(workId);
    if (!work) {
      work = new WorkView(this.lanes, () => this.inspected === workId, () => this.choose(undefined));
      this.works.set(workId, work);
    }
    return work;
  }

  private choose(workId: number | undefined): void {
    this.inspected = workId === this.inspected ? undefined : workId;
    this.chart?.setInspected(this.inspected);
    document.body.classList.toggle("inspecting", this.inspected !== undefined);
    this.right.replaceChildren(this.inspected === undefined ? this.overview : this.work(this.inspected).tabs.element);
    this.lanes.promote();
  }

  private setStatus(status: string, detail = ""): void {
    this.label.dataset.status = status;
    this.label.textContent = TRACKING.job(status);
    if (detail) {
      this.trouble.textContent = detail;
      this.trouble.hidden = false;
    }
    this.stopButton.disabled = status !== "RUNNING";
    this.jobActions?.update(status);
  }

  private async stopJob(jobId: string): Promise<void> {
    this.stopButton.disabled = true;
    try {
      const { error } = await api.stop("job", jobId);
      if (error) throw new Error(error);
      if (this.label.dataset.status === "RUNNING") this.setStatus("CANCELED");
    } catch (error) {
      this.stopButton.disabled = false;
      window.alert(explain(error));
    }
  }
}

const query = new URLSearchParams(window.location.search);
const jobName = query.get("jobName");
if (jobName === null) window.location.replace("./index.html");
else new TrackingView(jobName, query.get("jobId") ?? undefined);
