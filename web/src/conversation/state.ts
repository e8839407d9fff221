/** What is known of a session: the shapes of `GET /v1/sessions/{id}`. Fields with their default value are left out there. */

import type { Evidence } from "./evidence";
import type * as rest from "../rest";
import type { Approval, TextPart } from "../rest";

export type { Approval, ErrorInfo as Problem, Message, Option, PendingState as Pending, TextPart, Usage } from "../rest";

export type Status = rest.Summary["status"];
export type Outcome = NonNullable<rest.TurnState["outcome"]>;

/** A field of a question, as agents send it. The host passes it on unread. */
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

export type QuestionPart = Omit<rest.QuestionPart, "fields" | "evidence"> & { fields?: Field[]; evidence?: Evidence[] };
export type Part = TextPart | CallPart | QuestionPart;

/** Of this type, but null where the fold has removed it. */
type Removable<T, K extends keyof T> = Omit<T, K> & { [Name in K]?: T[Name] | null };

export type CallPart = Removable<rest.CallPart, "blob">;

/** A turn, as the fold of the pages keeps it: without positions in the log. */
export type Turn = Omit<Removable<rest.TurnState, "outcome" | "error" | "ended">, "pos" | "parts"> & { parts?: Part[] };

export type SessionState = Omit<rest.SessionState, "agent" | "model" | "cwd" | "turns" | "worktree" | "kept" | "pos" | "parent"> & {
  agent: string;
  model: string;
  cwd: string;
  turns?: Turn[];
  parent?: string | null;
  worktree?: { branch?: string; path?: string } & Record<string, unknown>;
  /** What clients share through the host: the draft, for one. */
  kept?: Record<string, Record<string, unknown>>;
  pos: number;
};

/** The draft that a program offers; text that a user types in an editor is not one. */
export function offeredDraft(state: SessionState): string {
  const draft = state.kept?.["draft"] as { text?: string; _meta?: Record<string, unknown> } | undefined;
  return draft?._meta?.["portico.offered"] === true ? (draft.text ?? "") : "";
}

/** A row of a list of sessions. */
export type Summary = Omit<rest.Summary, "pos" | "title" | "changes" | "origin" | "features" | "shares"> & { title?: string };

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
