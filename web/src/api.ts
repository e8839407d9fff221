/** The host's portal API as the pages call it. The cookie and the key of this login identify the caller. */

import type { ChartGraph } from "./chart/graph";
import { goToLogin, reason, Refused } from "./failure";
import { root } from "./root";
import { request } from "./scope";

export { explain, goToLogin, reason, Refused } from "./failure";

export interface Model {
  name: string;
  id: string;
  multiplier: number;
}

export interface TaskInfo {
  name: string;
  requireUserInput: boolean;
}

export type JobStatus = "Running" | "Succeeded" | "Failed" | "Canceled";

export interface RunningJob {
  jobId: string;
  jobName: string;
  startTime: string;
  status: JobStatus;
}

export interface WorkStatus {
  workIdInJob: number;
  taskId?: string;
  status: "Running" | "Succeeded" | "Failed";
}

export interface Job {
  requireUserInput?: boolean;
  work: unknown;
}

export interface JobListing {
  grid: { keyword: string; jobs: ({ name: string; jobName: string } | null)[] }[];
  jobs: Record<string, Job>;
  chart: Record<string, ChartGraph>;
}

interface Failure {
  error?: string;
}

/** One call: POST when there is a body. Domain errors are returned as `error`, as the API has it. */
export async function call<T extends object>(path: string, body?: string, signal?: AbortSignal): Promise<Partial<T> & Failure> {
  const post = body === undefined ? {} : { method: "POST", body, headers: { "Content-Type": "text/plain;charset=utf-8" } };
  const response = await request(`${root}/api/${path}`, { ...post, ...(signal ? { signal } : {}) });
  if (response.ok) return (await response.json()) as Partial<T> & Failure;
  if (response.status === 401) goToLogin();
  throw new Refused(response.status, await reason(response), Number(response.headers.get("Retry-After")) || 0);
}

const part = encodeURIComponent;

export type Kind = "session" | "task" | "job";
export type LiveElement = { callback?: string } & Record<string, unknown>;

export const api = {
  test: () => call<{ message: string }>("test"),
  config: () => call<{ repoRoot: string }>("config"),
  token: () => call<{ token: string }>("token"),
  stopServer: () => call("stop", ""),
  models: () => call<{ models: Model[] }>("copilot/models"),
  tasks: () => call<{ tasks: TaskInfo[] }>("copilot/task"),
  jobs: () => call<JobListing>("copilot/job"),
  runningJobs: () => call<{ jobs: RunningJob[] }>("copilot/job/running"),
  startSession: (model: string, folder: string) => call<{ sessionId: string }>(`copilot/session/start/${part(model)}`, folder),
  query: (session: string, prompt: string) => call(`copilot/session/${part(session)}/query`, prompt),
  startTask: (task: string, session: string, input: string) =>
    call<{ taskId: string; taskError: string }>(`copilot/task/start/${part(task)}/session/${part(session)}`, input),
  startJob: (job: string, folder: string, input: string) =>
    call<{ jobId: string; jobError: string }>(`copilot/job/start/${part(job)}`, `${folder}\n${input}`),
  jobStatus: (job: string) => call<RunningJob & { tasks: WorkStatus[] }>(`copilot/job/${part(job)}/status`),
  stop: (kind: Kind, id: string) => call<{ result: string }>(`copilot/${kind}/${part(id)}/stop`, ""),
  /**
   * `prompts=1`: what people wrote comes too (`onUserPrompt`), so that a reloaded page shows both sides, and what they are asked.
   * `seq=1`: each element with its place in the log, so that a task's decisions are shown between the messages of its sessions.
   */
  live: (kind: Kind, id: string, token: string, signal: AbortSignal) =>
    call<{ responses: LiveElement[] }>(`copilot/${kind}/${part(id)}/live/${part(token)}?prompts=1&seq=1`, undefined, signal),
  /** Everything that is stored of something the live calls have forgotten. */
  history: (kind: Kind, id: string) => call<{ responses: LiveElement[] }>(`copilot/${kind}/${part(id)}/history?prompts=1&seq=1`),
};
