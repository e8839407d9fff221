/** Which finished jobs were opened in this browser. Sessions have a mark at the host, jobs have none. */

import { remember, remembered } from "./preferences";

/** Older ones are forgotten: by then they are below everything that is new. */
const MOST = 200;

export class ReadJobs {
  /** What ended before the first visit is not new. */
  private readonly since: number;
  private readonly ids: Set<string>;

  constructor() {
    this.since = Number(remembered("jobs-since") ?? Date.now());
    this.ids = new Set((remembered("jobs-read") ?? "").split(",").filter(Boolean));
    remember("jobs-since", String(this.since));
  }

  isUnread({ id, ended }: { id: string; ended?: number | null }): boolean {
    return typeof ended === "number" && ended > this.since && !this.ids.has(id);
  }

  markRead(id: string): void {
    this.ids.add(id);
    remember("jobs-read", [...this.ids].slice(-MOST).join(","));
  }
}
