/** After a job failed, was canceled or stands waiting: going on with it, or beginning again. */

import { explain, Refused } from "./api";
import { byId, trackingAddress } from "./page";
import { v1 } from "./v1";

const ENDED = "Resume goes on and keeps what succeeded. Run again begins from the start.";

export class Sequel {
  private readonly row = byId("job-next");
  private readonly text = byId("job-next-text");
  private readonly resume = byId("resume-job-button", HTMLButtonElement);
  private readonly retry = byId("retry-job-button", HTMLButtonElement);

  constructor(
    private readonly jobName: string,
    private readonly jobId: string,
  ) {
    this.resume.addEventListener("click", () => void this.follow(v1.resumeJob));
    this.retry.addEventListener("click", () => void this.follow(v1.retryJob));
  }

  /** What the page says about the job decides what can be done with it. */
  show(status: string): void {
    this.offer(status === "FAILED" || status === "CANCELED" ? ENDED : "", true);
  }

  /** To the portal a job that waits is one that runs; the host's own words tell more. */
  async look(): Promise<void> {
    try {
      const { status, reason } = await v1.job(this.jobId);
      if (status === "waiting") this.offer(`This job waits for you. ${reason ?? ""}`, false);
    } catch (error) {
      // Out of reach, or forgotten: the page says so where it follows the job.
      if (!(error instanceof TypeError) && !(error instanceof Refused)) throw error;
    }
  }

  private offer(text: string, again: boolean): void {
    this.row.hidden = !text;
    this.text.textContent = text;
    this.retry.hidden = !again;
    this.resume.disabled = this.retry.disabled = false;
  }

  private async follow(begin: (id: string) => Promise<{ job: string }>): Promise<void> {
    this.resume.disabled = this.retry.disabled = true;
    try {
      const { job } = await begin(this.jobId);
      if (job === this.jobId) this.offer("", false);
      else window.location.assign(trackingAddress(this.jobName, job));
    } catch (error) {
      this.resume.disabled = this.retry.disabled = false;
      window.alert(explain(error));
    }
  }
}
