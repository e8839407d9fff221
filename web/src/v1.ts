/** The client of the host's REST API (`/v1`). */

import type { Job } from "./api";
import type { ChartGraph } from "./chart/graph";
import type { SessionState, Summary } from "./conversation/state";
import { keyed } from "./key";
import { goToLogin, reason, Refused } from "./failure";
import { root } from "./root";
import { request } from "./scope";

export interface AgentModel {
  id: string;
  name: string;
  multiplier?: number;
}

export interface Agent {
  id: string;
  name: string;
  description?: string;
  models?: AgentModel[];
  capabilities?: Record<string, boolean>;
  missing?: string;
  label?: string;
}

/** An agent that the host knows and that is not installed. */
export interface KnownAgent {
  id: string;
  name: string;
  /** The command that adds it. */
  add: string;
}

export interface About {
  version: string;
  log: { seq: number; down: string | null };
  workspaces: string[];
}

export interface JobSummary {
  id: string;
  name: string;
  status: string;
  started: number;
  ended?: number;
  cwd?: string;
  error?: string;
  reason?: string;
  /** With one job: the entry stored with it, and its chart. */
  entry?: { jobs: Record<string, Job> };
  chart?: ChartGraph;
}

export interface Hit {
  session: string;
  turn?: string;
  excerpt: string;
}

export interface ChangedFile {
  path: string;
  status: "added" | "modified" | "deleted" | "renamed";
  from?: string;
  added: number;
  removed: number;
  binary: boolean;
}

export interface Changes {
  git: boolean;
  cut?: boolean;
  note?: string;
  files: ChangedFile[];
}

export interface Uncommitted {
  git: boolean;
  state: string;
  files: ChangedFile[];
}

export interface Grant {
  id: string;
  agent: string;
  tool: string;
  allow: boolean;
  expires: number;
  session?: string | null;
  project?: string | null;
  pattern?: string;
  covers?: string[];
}

/** For how much an answer can be remembered. */
export interface Covered {
  breadth: string;
  covers: string[];
}

export interface Terminal {
  id: string;
  title: string;
  cwd: string;
  cols: number;
  rows: number;
  pos: number;
  session?: string;
  /** An editor or an agent has it; here it can only be watched and closed. */
  held?: boolean;
  exited?: boolean;
  code?: number | null;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

async function answer(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, ...(signal ? { signal } : {}) };
  if (method !== "GET") {
    const text = JSON.stringify(body ?? {});
    // A draft is saved while the page closes; browsers allow 64 KB for that.
    Object.assign(init, { body: text, keepalive: (method === "PUT" || path.startsWith("/approvals/")) && text.length < 20_000, headers: { "Content-Type": "application/json" } });
  }
  const response = await request(`${root}/v1${path}`, init);
  if (response.ok) return response;
  if (response.status === 401) goToLogin();
  throw new Refused(response.status, await reason(response.clone()), 0, await fieldOf(response));
}

async function fieldOf(response: Response): Promise<string> {
  const { field } = (await response.json().catch(() => ({}))) as { field?: unknown };
  return typeof field === "string" ? field : "";
}

export async function call<T>(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await answer(method, path, body, signal);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

const part = encodeURIComponent;
const session = (id: string) => `/sessions/${part(id)}`;
const pending = (id: string, message: string) => `${session(id)}/queue/${part(message)}`;

export interface Start {
  agent?: string;
  model?: string;
  cwd?: string;
  title?: string;
}

export interface Change {
  title?: string;
  model?: string;
  archived?: boolean;
  read?: boolean;
}

export interface Agents {
  agents: Agent[];
  /** Who answers where nobody names an agent. */
  default: string | null;
  known?: KnownAgent[];
}

export const v1 = {
  about: (signal?: AbortSignal) => call<About>("GET", "", undefined, signal),
  agents: async (signal?: AbortSignal) => (await v1.offers(signal)).agents,
  offers: (signal?: AbortSignal) => call<Agents>("GET", "/agents", undefined, signal),
  sessions: () => call<{ sessions: Summary[]; total: number }>("GET", "/sessions"),
  search: (text: string) => call<{ hits: Hit[]; complete: boolean }>("GET", `/search?${new URLSearchParams({ q: text })}`),
  start: (body: Start) => call<Summary>("POST", "/sessions", body),
  show: (id: string, signal?: AbortSignal) => call<SessionState>("GET", session(id), undefined, signal),
  change: (id: string, body: Change) => call<Summary>("PATCH", session(id), body),
  remove: (id: string) => call<void>("DELETE", session(id)),
  send: (id: string, text: string, busy: "queue" | "steer") => call<{ turn?: string }>("POST", `${session(id)}/messages`, { text, busy }),
  draft: (id: string, text: string, typed = false) => call<object>("PUT", `${session(id)}/draft`, { text, ...(typed ? { typed } : {}) }),
  cancel: (id: string) => call<Summary>("POST", `${session(id)}/cancel`),
  resume: (id: string) => call<object>("POST", `${session(id)}/resume`),
  fork: (id: string, turn?: string) => call<Summary>("POST", `${session(id)}/fork`, turn === undefined ? {} : { turn }),
  truncate: (id: string, turn?: string) => call<Summary>("POST", `${session(id)}/truncate`, turn === undefined ? {} : { turn }),
  close: (id: string) => call<Summary>("POST", `${session(id)}/close`),
  reopen: (id: string) => call<Summary>("POST", `${session(id)}/reopen`),
  editPending: (id: string, message: string, text: string) => call<object>("PATCH", pending(id, message), { text }),
  removePending: (id: string, message: string) => call<object>("DELETE", pending(id, message)),
  steerPending: (id: string, message: string) => call<{ steered: boolean }>("POST", `${pending(id, message)}/steer`),
  orderQueue: (id: string, order: string[]) => call<object>("POST", `${session(id)}/queue/order`, { order }),
  releaseQueue: (id: string) => call<object>("POST", `${session(id)}/queue/release`),
  approve: (id: string, answer: { option?: string; reason?: string; input?: string }) => call<object>("POST", `/approvals/${part(id)}`, answer),
  answer: (id: string, answer: { response?: "accept" | "decline"; text?: string; answers?: Record<string, unknown> }) =>
    call<object>("POST", `/questions/${part(id)}`, answer),
  terminals: async (of?: string) => (await call<{ terminals: Terminal[] }>("GET", of === undefined ? "/terminals" : `/terminals?${new URLSearchParams({ session: of })}`)).terminals,
  openTerminal: (of?: string) => call<Terminal>("POST", "/terminals", of === undefined ? {} : { session: of }),
  closeTerminal: (id: string) => call<void>("DELETE", `/terminals/${part(id)}`),
  changes: (id: string, turn?: string) => call<Changes>("GET", `${session(id)}/changes${turn === undefined ? "" : `?${new URLSearchParams({ turn })}`}`),
  ownChanges: (id: string) => call<{ shared?: boolean; files?: string[] }>("GET", `${session(id)}/changes/own`),
  uncommitted: (id: string) => call<Uncommitted>("GET", `${session(id)}/uncommitted`),
  diff: async (id: string, path: string, turn?: string) =>
    (await answer("GET", `${session(id)}/changes/diff?${new URLSearchParams({ path, ...(turn === undefined ? {} : { turn }) })}`)).text(),
  covers: async (approval: string) => (await call<{ covers: Covered[] }>("GET", `/approvals/${part(approval)}/covers`)).covers,
  grants: async () => (await call<{ grants: Grant[] }>("GET", "/grants")).grants,
  revoke: (id: string) => call<void>("DELETE", `/grants/${part(id)}`),
  jobs: async () => (await call<{ jobs: JobSummary[] }>("GET", "/jobs")).jobs,
  job: (id: string) => call<JobSummary>("GET", `/jobs/${part(id)}`),
  resumeJob: (id: string) => call<{ job: string }>("POST", `/jobs/${part(id)}/resume`),
  retryJob: (id: string) => call<{ job: string }>("POST", `/jobs/${part(id)}/retry`),
};

export const exportAddress = (id: string, format: "markdown" | "html" | "jsonl") =>
  keyed(`${root}/v1${session(id)}/export?format=${format}`);
export const eventsAddress = (id: string, after: number) => keyed(`${root}/v1${session(id)}/events?after=${after}`);
export const blobAddress = (digest: string) => keyed(`${root}/v1/blobs/${part(digest)}`);
export const sessionAddress = (id: string) => `${root}/app/s/${part(id)}`;
export const terminalAddress = (id: string) => `${root}/terminal.html?${new URLSearchParams({ id })}`;
export function socketAddress(id: string, after: number | undefined): string {
  const address = new URL(`${root}/v1/terminals/${part(id)}/socket`, window.location.href);
  address.protocol = address.protocol.replace("http", "ws");
  if (after !== undefined) address.searchParams.set("after", String(after));
  return keyed(address.href);
}
