/** The client of the host's REST API (`/v1`). */

import type { SessionState } from "./conversation/state";
import { keyed } from "./key";
import { goToLogin, reason, Refused } from "./failure";
import type { AgentCheck, Routes } from "./rest";
import { root } from "./root";
import { request as send } from "./scope";

export type { About, AgentInfo as Agent, AgentsAnswer as Agents, Covered, FileChange as ChangedFile, Grant, Hit, JobSummary, KnownAgent, AgentModel, StartSessionBody, TerminalInfo as Terminal, Uncommitted } from "./rest";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

async function answer(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, ...(signal ? { signal } : {}) };
  if (method !== "GET") {
    const text = JSON.stringify(body ?? {});
    // A draft is saved while the page closes; browsers allow 64 KB for that.
    Object.assign(init, { body: text, keepalive: (method === "PUT" || path.startsWith("/approvals/")) && text.length < 20_000, headers: { "Content-Type": "application/json" } });
  }
  const response = await send(`${root}/v1${path}`, init);
  if (response.ok) return response;
  if (response.status === 401) goToLogin();
  throw new Refused(response.status, await reason(response.clone()), 0, await fieldOf(response));
}

async function fieldOf(response: Response): Promise<string> {
  const { field } = (await response.json().catch(() => ({}))) as { field?: unknown };
  return typeof field === "string" ? field : "";
}

/** A request by its path, for pages of features. The host's own pages use `ask`. */
export async function request<T>(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await answer(method, path, body, signal);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

interface Given<Name extends keyof Routes> {
  query?: Record<string, string> | string[][];
  body?: Routes[Name]["body"];
  signal?: AbortSignal | undefined;
}

/** Calls a route by its name in the host's own document; `path` fills the names in braces. */
export function ask<Name extends keyof Routes>(name: Name, path: Record<string, string> = {}, { query, body, signal }: Given<Name> = {}): Promise<Routes[Name]["answer"]> {
  const [method, template] = name.split(" ") as [Method, string];
  const filled = template.replace(/\{(\w+)\}/g, (_, each: string) => encodeURIComponent(path[each] ?? ""));
  return request(method, query ? `${filled}?${new URLSearchParams(query)}` : filled, body, signal);
}

const part = encodeURIComponent;
const session = (id: string) => `/sessions/${part(id)}`;

export const v1 = {
  about: (signal?: AbortSignal) => ask("GET ", {}, { signal }),
  agents: async (signal?: AbortSignal) => (await v1.offers(signal)).agents,
  offers: (signal?: AbortSignal) => ask("GET /agents", {}, { signal }),
  checkAgent: (id: string) => ask("POST /agents/{id}/check", { id }) as Promise<AgentCheck>,
  sessions: () => ask("GET /sessions"),
  search: (text: string) => ask("GET /search", {}, { query: { q: text } }),
  start: (body: Routes["POST /sessions"]["body"]) => ask("POST /sessions", {}, { body }),
  /** The state as the fold of the pages knows it, which a test compares with the host's. */
  session: (id: string, signal?: AbortSignal) => ask("GET /sessions/{id}", { id }, { signal }) as Promise<SessionState>,
  change: (id: string, body: Routes["PATCH /sessions/{id}"]["body"]) => ask("PATCH /sessions/{id}", { id }, { body }),
  pin: (id: string, pinned: boolean) => ask("PUT /sessions/{id}/pin", { id }, { body: { pinned } }),
  remove: (id: string) => ask("DELETE /sessions/{id}", { id }),
  send: (id: string, text: string, busy: "queue" | "steer") => ask("POST /sessions/{id}/messages", { id }, { body: { text, busy } }),
  draft: (id: string, text: string, typed = false) => ask("PUT /sessions/{id}/draft", { id }, { body: { text, ...(typed ? { typed } : {}) } }),
  cancel: (id: string) => ask("POST /sessions/{id}/cancel", { id }),
  resume: (id: string) => ask("POST /sessions/{id}/resume", { id }),
  fork: (id: string, turn?: string) => ask("POST /sessions/{id}/fork", { id }, { body: turn === undefined ? {} : { turn } }),
  sendAgain: (id: string, text: string, attachments: object[]) => ask("POST /sessions/{id}/messages", { id }, { body: { text, attachments: attachments as Record<string, unknown>[] } }),
  truncate: (id: string, turn?: string) => ask("POST /sessions/{id}/truncate", { id }, { body: turn === undefined ? {} : { turn } }),
  close: (id: string) => ask("POST /sessions/{id}/close", { id }),
  reopen: (id: string) => ask("POST /sessions/{id}/reopen", { id }),
  editPending: (id: string, pending: string, text: string) => ask("PATCH /sessions/{id}/queue/{pending}", { id, pending }, { body: { text } }),
  removePending: (id: string, pending: string) => ask("DELETE /sessions/{id}/queue/{pending}", { id, pending }),
  steerPending: (id: string, pending: string) => ask("POST /sessions/{id}/queue/{pending}/steer", { id, pending }),
  orderQueue: (id: string, order: string[]) => ask("POST /sessions/{id}/queue/order", { id }, { body: { order } }),
  releaseQueue: (id: string) => ask("POST /sessions/{id}/queue/release", { id }),
  approve: (id: string, body: Routes["POST /approvals/{id}"]["body"]) => ask("POST /approvals/{id}", { id }, { body }),
  answer: (id: string, body: Routes["POST /questions/{id}"]["body"]) => ask("POST /questions/{id}", { id }, { body }),
  terminals: async (of?: string) => (await ask("GET /terminals", {}, of === undefined ? {} : { query: { session: of } })).terminals,
  openTerminal: (of?: string) => ask("POST /terminals", {}, { body: of === undefined ? {} : { session: of } }),
  closeTerminal: (id: string) => ask("DELETE /terminals/{id}", { id }),
  changes: (id: string, turn?: string) => ask("GET /sessions/{id}/changes", { id }, turn === undefined ? {} : { query: { turn } }),
  ownChanges: (id: string) => ask("GET /sessions/{id}/changes/own", { id }),
  uncommitted: (id: string) => ask("GET /sessions/{id}/uncommitted", { id }),
  diff: async (id: string, path: string, turn?: string) => (await answer("GET", `${session(id)}/changes/diff?${new URLSearchParams({ path, ...(turn === undefined ? {} : { turn }) })}`)).text(),
  covers: async (id: string) => (await ask("GET /approvals/{id}/covers", { id })).covers,
  grants: async () => (await ask("GET /grants")).grants,
  revoke: (id: string) => ask("DELETE /grants/{id}", { id }),
  jobs: async () => (await ask("GET /jobs")).jobs,
  job: (id: string, signal?: AbortSignal) => ask("GET /jobs/{id}", { id }, { signal }),
  stopJob: (id: string) => ask("POST /jobs/{id}/stop", { id }),
  resumeJob: (id: string) => ask("POST /jobs/{id}/resume", { id }),
  answerBudget: (budget: string, answer: string) => ask("POST /budgets/answer", {}, { body: { budget, answer } }),
  /** `step`: keeps what succeeded before it. */
  retryJob: (id: string, step = "", workflow = "") => ask("POST /jobs/{id}/retry", { id }, { body: { ...(step && { step }), ...(workflow && { workflow }) } }),
  planRetry: (id: string, step: string) => ask("POST /jobs/{id}/retry/plan", { id }, { body: { step } }),
};

export const exportAddress = (id: string, format: "markdown" | "html" | "jsonl") =>
  keyed(`${root}/v1${session(id)}/export?format=${format}`);
export const eventsAddress = (id: string, after: number) => keyed(`${root}/v1${session(id)}/events?after=${after}`);
/** The events of a channel, as a stream. */
export const channelAddress = (channel: string, after: number) => keyed(`${root}/v1/events?${new URLSearchParams({ channel, after: String(after) })}`);
export const blobAddress = (digest: string) => keyed(`${root}/v1/blobs/${part(digest)}`);
export const sessionAddress = (id: string) => `${root}/app/s/${part(id)}`;
export const terminalAddress = (id: string) => `${root}/terminal.html?${new URLSearchParams({ id })}`;
export function socketAddress(id: string, after: number | undefined): string {
  return webSocket(`terminals/${part(id)}/socket`, after === undefined ? {} : { after: String(after) });
}

/** `days`: where today and yesterday begin, for the host to count by. */
export const boardSocketAddress = (days: string): string => webSocket("board/socket", { days });

function webSocket(path: string, query: Record<string, string>): string {
  const address = new URL(`${root}/v1/${path}`, window.location.href);
  address.protocol = address.protocol.replace("http", "ws");
  address.search = new URLSearchParams(query).toString();
  return keyed(address.href);
}
