/** After a job failed, was canceled or is waiting: resume it, or run it again. */

import { explain, Refused } from "./api";
import { byId, trackingAddress } from "./page";
import { type JobSummary, v1 } from "./v1";

/** How long a job may wait for a decision before the page shows it. */
const POLL_MS = 3_000;
const ENDED = "Resume continues and keeps what succeeded. Run again begins from the start.";

export class JobActions {
  private readonly row = byId("job-next");
  private readonly text = byId("job-next-text");
  private readonly resume = byId("resume-job-button", HTMLButtonElement);
  private readonly retry = byId("retry-job-button", HTMLButtonElement);

  private next: ReturnType<typeof setTimeout> | undefined;
  private polls = 0;
  private waits = false;

  constructor(
    private readonly jobName: string,
    private readonly jobId: string,
  ) {
    this.resume.addEventListener("click", () => void this.follow(v1.resumeJob));
    this.retry.addEventListener("click", () => void this.follow(v1.retryJob));
  }

  /** The shown state of the job decides what can be done with it. */
  update(status: string): void {
    // Events of a running job may be old, after a reconnect all of them: only the host knows whether it waits.
    if (status === "RUNNING" && this.waits) return;
    if (status !== "RUNNING") this.stopPolling();
    this.offer(status === "FAILED" || status === "CANCELED" ? ENDED : "", true);
  }

  /**
   * In the portal's protocol a waiting job is a running one; the host's own API has more detail. Asked again while it runs: after a
   * restart the host takes a job up when it comes to it, and another page may have resumed it.
   */
  async poll(): Promise<void> {
    this.stopPolling();
    const mine = this.polls;
    const found = await this.ask();
    if (mine !== this.polls || !found) return;
    const { status, reason } = found;
    this.waits = status === "waiting";
    if (this.waits) this.offer(`This job waits for you. ${reason ?? ""}`, false);
    if (status === "running") this.offer("", false);
    if (status === "waiting" || status === "running" || status === "unknown") this.next = setTimeout(() => void this.poll(), POLL_MS);
  }

  /** What was asked before counts no more. */
  private stopPolling(): void {
    clearTimeout(this.next);
    this.polls++;
  }

  private async ask(): Promise<{ status: JobSummary["status"] | "unknown"; reason?: string } | undefined> {
    try {
      return await v1.job(this.jobId);
    } catch (error) {
      if (error instanceof TypeError) return { status: "unknown" }; // out of reach: the page shows it where it follows the job
      if (error instanceof Refused) return undefined; // forgotten, or not for this reader
      throw error;
    }
  }

  private offer(text: string, again: boolean): void {
    if (text === this.text.textContent) return; // a button that was pressed stays pressed
    this.row.hidden = !text;
    this.text.textContent = text;
    this.retry.hidden = !again;
    this.resume.disabled = this.retry.disabled = false;
  }

  private async follow(begin: (id: string) => Promise<{ job: string }>): Promise<void> {
    this.resume.disabled = this.retry.disabled = true;
    this.stopPolling();
    try {
      const { job } = await begin(this.jobId);
      this.waits = false;
      this.offer("", false);
      if (job === this.jobId) void this.poll();
      else window.location.assign(trackingAddress(this.jobName, job));
    } catch (error) {
      this.resume.disabled = this.retry.disabled = false;
      window.alert(explain(error));
      void this.poll();
    }
  }
}
