/** Every job there ever was; the newest first. */

import { api, explain, Refused } from "./api";
import { folder } from "./conversation/words";
import { ago } from "./time";
import { tookOf } from "./time";
import { byId, make, trackingAddress } from "./page";
import { shortcuts } from "./shortcuts";
import { type JobSummary, v1 } from "./v1";
import { watch } from "./watch";
import { JOB_HISTORY } from "./texts/portal";

const STATUS: Record<string, [look: string, text: string]> = {
  running: ["running", JOB_HISTORY.running],
  waiting: ["waiting", JOB_HISTORY.needsYou],
  succeeded: ["good", JOB_HISTORY.succeeded],
  failed: ["failed", JOB_HISTORY.failed],
  canceled: ["closed", JOB_HISTORY.canceled],
};

async function jobs(): Promise<JobSummary[]> {
  try {
    return await v1.jobs();
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    // A host without the whole history still knows the last hour.
    const { jobs: found = [] } = await api.runningJobs();
    return found.map(({ jobId, jobName, startTime, status }) => ({ id: jobId, name: jobName, status: status.toLowerCase() as JobSummary["status"], cwd: "", by: "", started: Date.parse(startTime) }));
  }
}

function item(job: JobSummary): HTMLElement {
  const row = make("li");
  const anchor = make("a", "session");
  anchor.href = trackingAddress(job.name, job.id);
  const [look, text] = STATUS[job.status] ?? ["idle", job.status];
  const facts = [folder(job.cwd ?? ""), job.ended ? `took ${tookOf(job.ended - job.started)}` : "", job.error || job.reason || ""].filter(Boolean);
  const detail = make("span", "facts soft");
  detail.append(...facts.map((fact) => make("span", "", fact)));
  const when = make("time", "soft", ago(job.started));
  when.dateTime = new Date(job.started).toISOString();
  anchor.append(make("span", "session-title", job.name), make("span", `status ${look}`, text), detail, when);
  row.append(anchor);
  return row;
}

async function load(): Promise<void> {
  const found = (await jobs()).sort((one, other) => other.started - one.started);
  byId("list").replaceChildren(...found.map(item));
  const empty = byId("empty");
  empty.hidden = found.length > 0;
  if (!empty.hidden)
    empty.replaceChildren(
      make("h2", "", JOB_HISTORY.noJobYet),
      make("p", "", JOB_HISTORY.aJobIsATree),
    );
}

shortcuts([{ key: "s", text: JOB_HISTORY.allSessions, run: () => window.location.assign("./app") }]);

const report = (error: unknown) => {
  const trouble = byId("trouble");
  trouble.textContent = error === undefined ? "" : explain(error);
  trouble.hidden = error === undefined;
};
v1.about().then(({ workspaces }) => (byId("new-job", HTMLAnchorElement).href = `./jobs.html?${new URLSearchParams({ wb: workspaces[0] ?? "" })}`), report);
watch(load, report);
