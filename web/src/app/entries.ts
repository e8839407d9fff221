/** The entries of the list: sessions and jobs, each with its state, status line and group. */

import type { BoardRow, JobSummary, Waiting } from "../rest";
import type { Summary } from "../conversation/state";
import { plain } from "../conversation/pieces";
import { stoppedWords } from "../conversation/words";
import { plainReason } from "./reasons";
import { clock, type Day, dayOf } from "../time";
import { LIST } from "../texts/list";
import { plural } from "../texts/plural";

/** A row of `GET /v1/board`. What the host passes on unread has its shape here. */
export type Row = Omit<BoardRow, "session"> & {
  session: Summary & { changes?: { additions?: number; deletions?: number; files?: number }; origin?: { kind: string; call?: string } | null; shares?: Record<string, string[]>; features?: { chats?: { pinned?: number } } };
};

/** A job of `GET /v1/jobs`. */
export type JobRow = Pick<JobSummary, "id" | "name" | "status" | "started" | "cwd"> & Partial<Pick<JobSummary, "by" | "error" | "reason" | "works">> & { ended?: number | null };

export type State = "need" | "ask" | "work" | "queued" | "interrupted" | "stopped" | "failed" | "done";
export type Group = "need" | "work" | "stopped" | "pinned" | Day;
export type Step = "done" | "work" | "need" | "failed";

export interface Entry {
  key: string;
  kind: "session" | "job";
  id: string;
  title: string;
  state: State;
  line: string;
  changes?: { additions: number; deletions: number };
  folder: string;
  cwd: string;
  agent: string;
  owner: string;
  time: number;
  /** Start of the current state; only while something runs or waits. */
  since?: number;
  unread: boolean;
  archived: boolean;
  /** For all clients; jobs are pinned in this browser. */
  pinned?: boolean;
  /** Whom it is shared with; only of a session that has an owner. */
  shares?: Record<string, string[]>;
  steps?: Step[];
  words: string;
}

/** A turn of it runs, or waits. */
export const moves = ({ state }: Pick<Entry, "state">) => state === "need" || state === "ask" || state === "work" || state === "queued";

export const GROUPS = Object.entries(LIST.groups) as readonly [Group, string][];

/** Whose it is: of people by name, else of the token that began it. */
export function ownerOf({ owner, by = "" }: Row["session"]): string {
  const [kind = "", name = ""] = by.split(/[:#]/);
  return owner || (kind === "token" || kind === "person" ? name : by) || "someone";
}

/** What people call a folder: its last name, and of an own copy (`FOLDER.worktrees/SESSION`) that of the folder it is a copy of. */
export function lastName(path: string): string {
  const names = path.split(/[\\/]/).filter(Boolean);
  const copied = names.findLast((name) => name.endsWith(".worktrees"));
  return copied?.replace(/\.worktrees$/, "") ?? names.at(-1) ?? path;
}
export const ofTask = ({ session }: Row) => (session.by ?? "").startsWith("task:");

/** The status line of a turn that waits for a free slot. */
export function queuedLine({ after }: Row, titleOf: TitleOf): string {
  const title = after && titleOf(after);
  return title ? `Starts after ${title}` : "Waiting for a free place";
}

export type TitleOf = (id: string) => string | undefined;

/** `helper`: one that it sent out and that waits for a person; then so does the session. */
export function entryOfSession({ session, ...own }: Row, helper?: Row, titleOf: TitleOf = () => undefined): Entry {
  const { activity = "", since, waiting = [] } = helper && !own.waiting?.length ? helper : own;
  const state = stateOf(helper ? { ...session, status: "waiting" } : session, waiting, own.queued);
  const moving = moves({ state });
  const { additions = 0, deletions = 0, files = 0 } = session.changes ?? {};
  return {
    key: `s/${session.id}`,
    kind: "session",
    id: session.id,
    title: session.title || LIST.newSession,
    state,
    line: state === "queued" ? queuedLine({ session, ...own }, titleOf) : moving ? activity : endLine(state, session, files, own.uncounted),
    ...(!moving && state === "done" && files ? { changes: { additions, deletions } } : {}),
    folder: lastName(session.cwd),
    cwd: session.cwd,
    agent: session.agent,
    owner: ownerOf(session),
    time: session.moved || session.modified,
    ...(moving && since ? { since } : {}),
    unread: session.read === false && state !== "work" && state !== "queued",
    archived: session.archived === true,
    ...(session.features?.chats?.pinned ? { pinned: true } : {}),
    ...(session.owner ? { shares: session.shares ?? {} } : {}),
    words: [session.title, session.agent, session.model, session.cwd, session.id].join(" ").toLowerCase(),
  };
}

function stateOf(session: Row["session"], waiting: Waiting[], queued = false): State {
  if (session.status === "waiting") return waiting[0]?.kind === "question" ? "ask" : "need";
  if (session.status === "running") return queued ? "queued" : "work";
  if (session.interrupted) return "interrupted";
  if (session.stopped && session.status === "idle") return "stopped";
  return session.status === "failed" ? "failed" : "done";
}

function endLine(state: State, { turns = 0, moved, error, stopped = "" }: Row["session"], files: number, uncounted = false): string {
  if (state === "interrupted") return moved ? `Interrupted at ${clock(moved)}: the host stopped` : "Interrupted: the host stopped";
  if (state === "stopped") return stoppedWords(stopped);
  if (state === "failed") return error ? `Failed: ${plain(error)}` : "Failed";
  if (turns === 0) return "No messages yet";
  return files ? plural(files, "file") : uncounted ? "Answered" : "Answered, no files changed";
}

/** Days in which an interrupted session is in the inbox, as the host counts (`INTERRUPTED_DAYS`). */
const INTERRUPTED_MS = 7 * 86_400_000;

/** Its turn ended with the host, and a person has to resume it: a job resumes the sessions of its tasks. */
export function needsResume(row: Row, now: number): boolean {
  const { interrupted, status, archived, origin, moved = 0 } = row.session;
  return interrupted === true && status === "idle" && archived !== true && !ofTask(row) && origin?.kind !== "agent" && moved >= now - INTERRUPTED_MS;
}

/** `sessions` are those of its tasks: what one of them waits for, the job waits for. */
export function entryOfJob(job: JobRow, sessions: Row[], titleOf: TitleOf = () => undefined): Entry {
  const works = job.works ?? [];
  const running = new Map(works.filter(({ status }) => status === "running").map((work) => [`task:${work.task}`, work]));
  const own = sessions.filter(({ session }) => running.has(session.by ?? ""));
  const asking = own.find(({ session }) => session.status === "waiting");
  // One that works is enough: only where every step waits for a place the job does.
  const behind = job.status === "running" && own.length > 0 && own.every(({ queued }) => queued) ? own[0] : undefined;
  const state: State = asking ? (asking.waiting?.[0]?.kind === "question" ? "ask" : "need") : behind ? "queued" : JOB_STATES[job.status];
  const current = asking ? running.get(asking.session.by ?? "") : [...running.values()].at(-1);
  const steps = works.map(({ task, status }): Step => (asking?.session.by === `task:${task}` ? "need" : status === "running" ? "work" : status === "succeeded" ? "done" : "failed"));
  const line = asking ? `${current?.name} ${lower(asking.activity ?? "")}` : behind ? queuedLine(behind, titleOf) : jobLine(job, current?.name);
  return {
    key: `j/${job.id}`,
    kind: "job",
    id: job.id,
    title: job.name,
    state,
    line,
    folder: lastName(job.cwd),
    cwd: job.cwd,
    agent: "job",
    owner: (job.by ?? "").split(/[:#]/)[1] ?? "",
    time: job.ended ?? job.started,
    ...(moves({ state }) ? { since: asking?.since ?? job.started } : {}),
    unread: false,
    archived: false,
    steps,
    words: ["job", job.name, job.cwd, job.id].join(" ").toLowerCase(),
  };
}

const JOB_STATES: Record<JobRow["status"], State> = { running: "work", waiting: "need", succeeded: "done", failed: "failed", canceled: "stopped" };
const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

function jobLine({ status, reason, error, works = [] }: JobRow, current: string | undefined): string {
  if (status === "waiting") return reason || "Needs your decision";
  if (status === "running") return current ? `Working on ${current}` : "Working";
  if (status === "canceled") return "Stopped";
  if (status !== "failed") return "Succeeded";
  const step = works.findLast((work) => work.status === "failed")?.name;
  // The host names the step before its error: the page of the job has the details.
  if (step && (error ?? "").startsWith(`${step}: `)) return `Failed at ${step}`;
  return error || reason ? `Failed: ${plainReason(error || reason || "")}` : step ? `Failed at ${step}` : "Failed";
}

export function groupOf(entry: Entry, now: number, pinned: ReadonlySet<string> = new Set()): Group {
  if (entry.state === "need" || entry.state === "ask") return "need";
  if (entry.state === "work" || entry.state === "queued") return "work";
  if (entry.pinned || pinned.has(entry.key)) return "pinned";
  const day = dayOf(entry.time, now);
  // What stopped a week ago and was left alone needs no attention.
  return (entry.state === "interrupted" || entry.state === "stopped" || entry.state === "failed") && day !== "older" ? "stopped" : day;
}

/** In the order of the list: what waits longest first, elsewhere the newest; who waits for a place comes after those who have one, in turn. */
export function grouped(entries: Entry[], now: number, pinned?: ReadonlySet<string>): Map<Group, Entry[]> {
  const found = new Map<Group, Entry[]>(GROUPS.map(([group]) => [group, []]));
  for (const entry of entries) found.get(groupOf(entry, now, pinned))?.push(entry);
  for (const [group, list] of found) {
    if (group === "need") list.sort((one, other) => (one.since ?? one.time) - (other.since ?? other.time));
    else list.sort((one, other) => Number(one.state === "queued") - Number(other.state === "queued") || (one.state === "queued" ? (one.since ?? 0) - (other.since ?? 0) : other.time - one.time));
  }
  return found;
}

const IS: Record<string, (entry: Entry) => boolean> = {
  needs: ({ state }) => state === "need" || state === "ask",
  working: ({ state }) => state === "work",
  queued: ({ state }) => state === "queued",
  interrupted: ({ state }) => state === "interrupted",
  stopped: ({ state }) => state === "stopped",
  failed: ({ state }) => state === "failed",
  done: ({ state }) => state === "done",
  unread: ({ unread }) => unread,
  job: ({ kind }) => kind === "job",
  archived: ({ archived }) => archived,
};

/** What is in the archive is shown to those who ask for it. */
export const wantsArchive = (text: string) => /(^|\s)is:archived(\s|$)/i.test(text);

/** `folder:api agent:codex is:failed some words`: everything has to fit. */
export function fits(entry: Entry, text: string): boolean {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => {
      const [name = "", value = ""] = word.split(/:(.*)/s);
      if (name === "folder") return entry.cwd.toLowerCase().includes(value);
      if (name === "by") return entry.owner.toLowerCase() === value;
      if (name === "agent") return entry.agent.toLowerCase().includes(value);
      if (name === "is") return IS[value]?.(entry) ?? true;
      return entry.words.includes(word);
    });
}
