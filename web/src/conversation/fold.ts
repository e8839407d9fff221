/**
 * `state(n) + events(n..m) = state(m)`: the same fold as the host's, over what the pages show. An event this page does not
 * know comes from a newer host; it moves the position and nothing else.
 */

import { active, type Approval, type CallPart, type LogRecord, type Message, type Option, type Part, type Pending, type Problem, type QuestionPart, type SessionState, type TextPart, type Turn, type Usage } from "./state";
import { addClientNames } from "./words";

interface Fields {
  turn: string;
  part: string;
  call: string;
  text: string;
  by: string;
  [name: string]: unknown;
}

type Fold = (state: SessionState, event: Fields, time: number) => void;

export function apply(state: SessionState, record: LogRecord): void {
  if (record.pos <= state.pos) return;
  FOLDS[record.event.type]?.(state, record.event as unknown as Fields, record.time);
  state.pos = record.pos;
}

function find<K extends Part["part"]>(state: SessionState, turn: string, id: string, kind: K): Extract<Part, { part: K }> | undefined {
  const now = active(state);
  if (!now || now.id !== turn) return undefined;
  const found = now.parts?.findLast((part) => part.id === id);
  return found?.part === kind ? (found as Extract<Part, { part: K }>) : undefined;
}

function add(state: SessionState, turn: string, part: Part): void {
  const now = active(state);
  if (now?.id === turn) (now.parts ??= []).push(part);
}

function started(state: SessionState, { turn, message, by, pending }: Fields, time: number): void {
  (state.turns ??= []).push({ id: turn, message: message as Message, by, started: time, parts: [] });
  state.queue = state.queue?.filter(({ id }) => id !== pending) ?? [];
  state.read = false;
  state.held = false;
  state.rewound = false;
}

function resumed(state: SessionState, { turn }: Fields): void {
  const last = state.turns?.at(-1);
  if (last?.id !== turn || !last.outcome) return;
  last.outcome = last.error = last.ended = null;
  state.read = false;
  state.held = false;
  state.rewound = false;
}

function truncated(state: SessionState, { turn }: Fields): void {
  const turns = state.turns ?? [];
  const index = turn == null ? -1 : turns.findIndex(({ id }) => id === turn);
  if (turn != null && index < 0) return;
  state.turns = turns.slice(0, index + 1);
  state.rewound = true;
}

function used(state: SessionState, event: Fields): void {
  const turn = state.turns?.findLast(({ id }) => id === event.turn);
  if (!turn) return;
  const before = turn.usage ?? {};
  const report = event as Usage;
  const after = event["total"] ? plus({}, report) : plus(before, report);
  turn.usage = after;
  state.usage = plus(plus(state.usage ?? {}, before, -1), after);
}

function plus(one: Usage, other: Usage, sign = 1): Usage {
  const sum = (name: "input" | "output" | "cached" | "cost") => (one[name] ?? 0) + sign * (other[name] ?? 0);
  const model = other.model ?? one.model;
  return { input: sum("input"), output: sum("output"), cached: sum("cached"), cost: sum("cost"), ...(model ? { model } : {}) };
}

function asked(state: SessionState, event: Fields): void {
  const call = find(state, event.turn, event.call, "call");
  if (!call || call.done) return;
  const { approval, type: _type, turn: _turn, call: _call, tool: _tool, meta: _meta, ...rest } = event;
  (call.approvals ??= []).push({ ...(rest as unknown as Approval), id: approval as string, options: event["options"] as Option[] });
}

function approved(state: SessionState, event: Fields): void {
  for (const turn of [...(state.turns ?? [])].reverse())
    for (const part of turn.parts ?? []) {
      const found = part.part === "call" ? part.approvals?.find(({ id }) => id === event["approval"]) : undefined;
      if (!found || found.answered) continue;
      Object.assign(found, { answered: true, allowed: event["allowed"] === true, by: event.by, option: event["option"], reason: event["reason"], grant: event["grant"], covers: event["covers"] });
      if (event["input"]) (part as CallPart).input = event["input"] as string;
      return;
    }
}

/** While something runs its start is known, and then how long it took: as the host has it, without what is zero. */
function stopClock(part: TextPart | CallPart, time: number): void {
  const took = part.started ? Math.max(0, time - part.started) : 0;
  delete part.started;
  if (took) part.took = took;
}

function ended(call: CallPart | undefined, event: Fields, time: number): void {
  if (!call || call.done) return;
  stopClock(call, time);
  Object.assign(call, {
    done: true,
    ok: event["ok"] === true,
    output: event["output"] ?? "",
    blob: event["blob"],
    error: event["error"],
    past: event["title"] ?? "",
    detail: event["detail"] ?? "",
    outcome: event["outcome"] ?? "completed",
    exit_code: event["exit_code"],
  });
  if (event["content"]) call.content = event["content"] as Record<string, unknown>[];
  if (!call.ready) call.input = "";
}

function reordered(state: SessionState, order: string[]): void {
  const rank = (pending: Pending) => (order.includes(pending.id) ? order.indexOf(pending.id) : order.length);
  state.queue?.sort((one, other) => rank(one) - rank(other));
}

function whenOpen<T extends TextPart | CallPart | QuestionPart>(part: T | undefined, change: (part: T) => void): void {
  const closed = part && (part.part === "question" ? part.response !== undefined : part.done);
  if (part && !closed) change(part);
}

/** Who alone may answer, and what it is about, where there is something. */
function shown(event: Fields): Partial<QuestionPart> {
  const [people, evidence] = [event["people"] as string[] | undefined, event["evidence"] as QuestionPart["evidence"]];
  return { ...(people?.length ? { people } : {}), ...(evidence?.length ? { evidence } : {}) };
}

const FOLDS: Record<string, Fold> = {
  "client.joined": (_state, event) => addClientNames(event["name"] ? { [event["client"] as string]: event["name"] as string } : {}),
  "session.renamed": (state, event) => void (state.title = event["title"] as string),
  "session.model": (state, event) => {
    state.model = event["model"] as string;
    if (event["agent"]) state.agent = event["agent"] as string;
  },
  "session.configured": (state, event) => {
    const before = state.config ?? {};
    const keeps = event["replace"] ? ((event["keeps"] as string[] | undefined) ?? []) : Object.keys(before);
    state.config = { ...Object.fromEntries(keeps.flatMap((key) => (key in before ? [[key, before[key]]] : []))), ...(event["values"] as object) };
  },
  "session.archived": (state, event) => void (event["only"] === "chat" || (state.archived = event["archived"] === true)),
  "session.read": (state, event) => void (event["only"] === "chat" || (state.read = event["read"] === true)),
  "session.closed": (state) => void (state.closed = true),
  "session.reopened": (state) => void (state.closed = false),
  "session.truncated": truncated,
  "history.copied": (state, event) => void (state.turns ??= []).push(...(event["turns"] as Turn[])),
  "child.started": (state, event) => void (state.children ??= []).push(event["session"] as string),
  "chat.moved": (state, { session, to }) => {
    const others = (state.children ?? []).filter((each) => each !== session);
    if (state.id === session) state.parent = (to as string | undefined) ?? null;
    else state.children = state.id === to ? [...others, session as string] : others;
  },
  "turn.started": started,
  "turn.resumed": resumed,
  "turn.ended": (state, event, time) => {
    const turn = active(state);
    if (turn?.id === event.turn) Object.assign(turn, { outcome: event["outcome"], error: event["error"] as Problem | undefined, ended: time, ...(event["outcome"] === "cancelled" ? { stopped_by: event.by } : {}) });
  },
  "part.started": (state, { turn, part, kind }, time) => add(state, turn, { part: "text", id: part, kind: kind as TextPart["kind"], text: "", ...(kind === "reasoning" ? { started: time } : {}) }),
  "part.delta": (state, { turn, part, text }) => whenOpen(find(state, turn, part, "text"), (found) => (found.text = (found.text ?? "") + text)),
  "part.ended": (state, { turn, part, text }, time) => {
    const found = find(state, turn, part, "text");
    if (!found) return;
    stopClock(found, time);
    Object.assign(found, { text: text ?? "", done: true });
  },
  usage: used,
  "tool.started": (state, event, time) =>
    add(state, event.turn, { part: "call", id: event.call, tool: event["tool"] as string, title: (event["title"] as string) ?? "", kind: (event["kind"] as string) ?? "other", started: time }),
  "tool.input": (state, { turn, part, text }) =>
    whenOpen(find(state, turn, part, "call"), (call) => {
      if (!call.ready) call.input = (call.input ?? "") + text;
    }),
  "tool.ready": (state, event) =>
    whenOpen(find(state, event.turn, event.call, "call"), (call) => {
      call.input = event["input"] as string;
      call.ready = true;
      if (event["title"]) call.title = event["title"] as string;
    }),
  "tool.decided": (state, event) => void Object.assign(find(state, event.turn, event.call, "call") ?? {}, { rule: event["rule"], denied: event["allowed"] !== true }),
  "tool.output": (state, { turn, part, text }) => whenOpen(find(state, turn, part, "call"), (call) => (call.output = (call.output ?? "") + text)),
  "tool.content": (state, event) => whenOpen(find(state, event.turn, event.call, "call"), (call) => (call.content = event["content"] as Record<string, unknown>[])),
  "tool.ended": (state, event, time) => ended(find(state, event.turn, event.call, "call"), event, time),
  "approval.asked": asked,
  "approval.answered": approved,
  "question.asked": (state, event) => {
    add(state, event.turn, { part: "question", id: event["question"] as string, text: event.text, fields: (event["fields"] as QuestionPart["fields"]) ?? [], url: (event["url"] as string) ?? null, ...shown(event) });
    state.read = false;
  },
  "question.drafted": (state, event) =>
    whenOpen(find(state, event.turn, event["question"] as string, "question"), (question) => {
      const { [event["field"] as string]: _before, ...others } = question.answers ?? {};
      question.answers = event["answer"] == null ? others : { ...others, [event["field"] as string]: event["answer"] };
    }),
  "question.answered": (state, event) =>
    whenOpen(find(state, event.turn, event["question"] as string, "question"), (question) => {
      question.response = event["response"] as NonNullable<QuestionPart["response"]>;
      question.by = event.by;
      question.answers = { ...question.answers, ...(event["answers"] as object) };
    }),
  "client.kept": (state, event) => {
    const { [event["key"] as string]: _before, ...others } = state.kept ?? {};
    state.kept = event["value"] == null ? others : { ...others, [event["key"] as string]: event["value"] as Record<string, unknown> };
  },
  "queue.added": (state, event) => {
    const queue = (state.queue ??= []);
    if (!queue.some(({ id }) => id === event["pending"]))
      queue.push({ id: event["pending"] as string, kind: event["kind"] as Pending["kind"], message: event["message"] as Message, by: event.by });
  },
  "queue.edited": (state, event) => {
    const found = state.queue?.find(({ id }) => id === event["pending"]);
    if (found) found.message = event["message"] as Message;
  },
  "queue.reordered": (state, event) => reordered(state, event["order"] as string[]),
  "queue.removed": (state, event) => void (state.queue = state.queue?.filter(({ id }) => id !== event["pending"]) ?? []),
  "queue.held": (state, event) => void (state.held = event["held"] === true),
};
