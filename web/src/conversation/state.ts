/** What is known of a session: the shapes of `GET /v1/sessions/{id}`. Fields with their default value are left out there. */

import type { Evidence } from "./evidence";

export type Status = "idle" | "running" | "waiting" | "failed";
export type Outcome = "completed" | "failed" | "cancelled" | "interrupted";

export interface Problem {
  code: string;
  message: string;
}

export interface Usage {
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  model?: string;
}

export interface Message {
  text: string;
  attachments?: object[];
  origin?: string;
}

export interface TextPart {
  part: "text";
  id: string;
  kind: "text" | "reasoning" | "notice";
  text?: string;
  done?: boolean;
  /** Of reasoning: since when it runs, or how long it took, in milliseconds. */
  started?: number;
  took?: number;
}

export interface Option {
  id: string;
  label: string;
  allow: boolean;
  grant?: "once" | "session" | "project";
}

export interface Approval {
  id: string;
  kind: string;
  title: string;
  input: string;
  expires: number;
  options: Option[];
  path?: string | null;
  command?: string | null;
  diff?: string | null;
  editable?: boolean;
  result?: boolean;
  answered?: boolean;
  allowed?: boolean;
  by?: string;
  option?: string | null;
  reason?: string;
  /** Why a person is asked. */
  why?: string;
  /** The id of the grant that remembers the answer, and what it covers. */
  grant?: string;
  covers?: string[];
}

export interface CallPart {
  part: "call";
  id: string;
  tool: string;
  title?: string;
  kind?: string;
  input?: string;
  ready?: boolean;
  output?: string;
  blob?: string | null;
  content?: Record<string, unknown>[];
  approvals?: Approval[];
  rule?: string;
  denied?: boolean;
  done?: boolean;
  ok?: boolean;
  error?: Problem | null;
  past?: string;
  detail?: string;
  outcome?: Outcome | null;
  /** Of the command that it ran, if the agent reports it. */
  exit_code?: number | null;
  /** Since when it runs, or how long it took, in milliseconds. */
  started?: number;
  took?: number;
}

export interface Field {
  id: string;
  title?: string;
  message?: string;
  required?: boolean;
  kind?: string;
  options?: { id: unknown; label?: string; description?: string }[];
  /** Words of one's own will do as well. */
  allowFreeformInput?: boolean;
}

export interface QuestionPart {
  part: "question";
  id: string;
  text: string;
  fields?: Field[];
  url?: string | null;
  answers?: Record<string, unknown>;
  response?: "accept" | "decline" | "cancel";
  by?: string;
  /** Who alone may answer. */
  people?: string[];
  evidence?: Evidence[];
}

export type Part = TextPart | CallPart | QuestionPart;

export interface Turn {
  id: string;
  message: Message;
  by: string;
  started: number;
  parts?: Part[];
  usage?: Usage | null;
  ended?: number | null;
  outcome?: Outcome | null;
  error?: Problem | null;
  /** Who cancelled it. */
  stopped_by?: string;
}

export interface Pending {
  id: string;
  kind: "queue" | "steer";
  message: Message;
  by: string;
}

export interface SessionState {
  id: string;
  agent: string;
  model: string;
  cwd: string;
  title?: string;
  parent?: string | null;
  /** Of a fork, a side chat or a sub-agent (`agent`). */
  origin?: { kind: string } | null;
  archived?: boolean;
  read?: boolean;
  closed?: boolean;
  held?: boolean;
  client_names?: Record<string, string>;
  turns?: Turn[];
  queue?: Pending[];
  children?: string[];
  usage?: Usage;
  rewound?: boolean;
  config?: Record<string, unknown>;
  worktree?: { branch?: string; path?: string } & Record<string, unknown>;
  /** What clients share through the host: the draft, for one. */
  kept?: Record<string, Record<string, unknown>>;
  pos: number;
}

/** The draft that a program offers; text that a user types in an editor is not one. */
export function offeredDraft(state: SessionState): string {
  const draft = state.kept?.["draft"] as { text?: string; _meta?: Record<string, unknown> } | undefined;
  return draft?._meta?.["portico.offered"] === true ? (draft.text ?? "") : "";
}

export interface Summary {
  id: string;
  agent: string;
  model: string;
  cwd: string;
  title?: string;
  status: Status;
  created: number;
  modified: number;
  /** Who began it. */
  by?: string;
  turns?: number;
  queued?: number;
  parent?: string | null;
  archived?: boolean;
  read?: boolean;
  closed?: boolean;
  usage?: Usage;
}

export interface LogRecord {
  pos: number;
  time: number;
  event: { type: string } & Record<string, unknown>;
}

export function active(state: SessionState): Turn | undefined {
  const last = state.turns?.at(-1);
  return last && !last.outcome ? last : undefined;
}

/** The approval of a call that waits for a person. */
export function waitingApproval(call: CallPart): Approval | undefined {
  return call.done ? undefined : call.approvals?.find(({ answered }) => !answered);
}

export function waits(part: Part): boolean {
  if (part.part === "call") return waitingApproval(part) !== undefined;
  return part.part === "question" && part.response === undefined;
}

export function statusOf(state: SessionState): Status {
  const turn = active(state);
  if (!turn) return state.turns?.at(-1)?.outcome === "failed" && !state.rewound ? "failed" : "idle";
  return turn.parts?.some(waits) ? "waiting" : "running";
}
