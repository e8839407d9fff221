/** What one chooses before a session begins: model, folder; and the jobs of the last hour. */

import { api, explain, type Model, type RunningJob } from "./api";
import { byId, make, makeButton, openTab, trackingAddress } from "./page";
import { SETUP } from "./texts/host";

const DEFAULT_MODEL = "gpt-5.2";

export class SetupView {
  private readonly view = byId("setup-ui");
  private readonly models = byId("model-select", HTMLSelectElement);
  private readonly folder = byId("working-dir", HTMLInputElement);
  private readonly start = byId("start-button", HTMLButtonElement);
  private readonly jobs = byId("running-jobs-list");
  private readonly trouble = byId("setup-error");

  constructor(private readonly started: (sessionId: string) => void) {
    this.start.addEventListener("click", () => void this.startSession());
    byId("refresh-button").addEventListener("click", () => void this.loadJobs());
    byId("jobs-button").addEventListener("click", () => {
      window.location.assign(`./jobs.html?${new URLSearchParams({ wb: this.folder.value.trim() })}`);
    });
  }

  show(): void {
    this.view.style.display = "";
    void this.loadJobs();
    void this.loadFolder();
    void this.loadModels();
  }

  hide(): void {
    this.view.style.display = "none";
  }

  report(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = !text;
  }

  private async loadModels(): Promise<void> {
    try {
      const { models } = await api.models();
      this.models.replaceChildren(...sorted(models ?? []).map(option));
    } catch (error) {
      this.report(SETUP.theModelsCould(explain(error)));
      return;
    }
    if ([...this.models.options].some(({ value }) => value === DEFAULT_MODEL)) this.models.value = DEFAULT_MODEL;
    this.start.disabled = this.models.options.length === 0;
    if (this.start.disabled) this.report(SETUP.noAgentOfThisHost);
  }

  private async loadFolder(): Promise<void> {
    try {
      const { repoRoot = "" } = await api.config();
      const project = new URLSearchParams(window.location.search).get("project");
      // Text that was typed before the host answered stays.
      if (!this.folder.value) this.folder.value = project ? sibling(repoRoot, project) : repoRoot;
    } catch (error) {
      this.report(explain(error));
    }
  }

  private async loadJobs(): Promise<void> {
    try {
      const { jobs = [] } = await api.runningJobs();
      this.jobs.replaceChildren(...jobs.map(jobRow));
    } catch (error) {
      this.report(SETUP.theRunningJobsCould(explain(error)));
    }
  }

  private async startSession(): Promise<void> {
    this.start.disabled = true;
    try {
      const { sessionId, error } = await api.startSession(this.models.value, this.folder.value.trim());
      if (sessionId) this.started(sessionId);
      else window.alert(explain(error ?? SETUP.theHostGaveNoSession));
    } catch (error) {
      window.alert(explain(error));
    } finally {
      this.start.disabled = false;
    }
  }
}

export function sorted(models: Model[]): Model[] {
  return [...models].sort((a, b) => a.name.localeCompare(b.name));
}

function option({ name, id }: Model): HTMLOptionElement {
  return new Option(name, id);
}

/** The folder beside the repository, written the way the repository's own path is. */
export function sibling(root: string, project: string): string {
  const separator = root.includes("\\") ? "\\" : "/";
  return root.slice(0, root.lastIndexOf(separator) + 1) + project;
}

function jobRow(job: RunningJob): HTMLElement {
  const row = make("div", "running-job");
  const view = makeButton("running-job-view", SETUP.view, () => openTab(trackingAddress(job.jobName, job.jobId)));
  view.setAttribute("aria-label", SETUP.viewNamed(job.jobName));
  const time = make("time", "running-job-time", new Date(job.startTime).toLocaleString());
  time.dateTime = job.startTime;
  const status = make("span", `running-job-status status-${job.status.toLowerCase()} ${job.status}`, job.status);
  row.append(view, make("span", "running-job-name", job.jobName), status, time);
  return row;
}
