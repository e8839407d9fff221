/** The host's portal API as the pages call it. The cookie and the key of this login say who we are. */

import type { ChartGraph } from "./chart/graph";
import { keyHeader } from "./key";
import { root } from "./root";

/** An answer that is no answer: a status other than 200. Network failures stay TypeError, as fetch throws them. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds the host asks us to wait. */
    readonly retryAfter = 0,
    /** The place in the input that is wrong, where the host names one. */
    readonly field = "",
  ) {
    super(message);
  }
}

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

/** One call: POST when there is a body. Domain errors come back as `error`, as the API has it. */
export async function call<T extends object>(path: string, body?: string, signal?: AbortSignal): Promise<Partial<T> & Failure> {
  const request: RequestInit = { cache: "no-store", headers: keyHeader() };
  if (body !== undefined) {
    Object.assign(request, { method: "POST", body, headers: { ...keyHeader(), "Content-Type": "text/plain;charset=utf-8" } });
  }
  if (signal) request.signal = signal;
  const response = await fetch(`${root}/api/${path}`, request);
  if (response.ok) return (await response.json()) as Partial<T> & Failure;
  if (response.status === 401) goToLogin();
  throw new Refused(response.status, await reason(response), Number(response.headers.get("Retry-After")) || 0);
}

export async function reason(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") return error;
    if (error && typeof error === "object" && "message" in error) return String(error.message);
  } catch {
    // Not JSON (a proxy's page, say): the status is all we can tell.
  }
  return `The host answered with status ${response.status}.`;
}

export function goToLogin(): void {
  const here = window.location.pathname + window.location.search;
  window.location.assign(`${root}/login?next=${encodeURIComponent(here)}`);
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
   * `seq=1`: each element with its place in the log, so that a task's decisions stand between the words of its sessions.
   */
  live: (kind: Kind, id: string, token: string, signal: AbortSignal) =>
    call<{ responses: LiveElement[] }>(`copilot/${kind}/${part(id)}/live/${part(token)}?prompts=1&seq=1`, undefined, signal),
  /** Everything that is stored of something the live calls have forgotten. */
  history: (kind: Kind, id: string) => call<{ responses: LiveElement[] }>(`copilot/${kind}/${part(id)}/history?prompts=1&seq=1`),
};

const EXPLANATIONS: Record<string, string> = {
  ModelIdNotFound: "This model is not available any more. Reload the page for the current list.",
  WorkingDirectoryNotAbsolutePath: "The working directory must be an absolute path.",
  WorkingDirectoryNotExists: "The working directory does not exist.",
  SessionNotFound: "This session is closed, or the host does not know it.",
  JobNotFound: "There is no such job.",
};

/** Errors of tasks and jobs come as JSON with a name and a stack; people read the message. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text; // said in words already
  }
}

/** What a person reads: a sentence, with the API's own word in brackets. */
export function explain(error: unknown): string {
  if (error instanceof TypeError) return "The host cannot be reached.";
  const text = messageOf(error instanceof Error ? error.message : String(error));
  const sentence = EXPLANATIONS[text];
  return sentence ? `${sentence} (${text})` : text;
}
