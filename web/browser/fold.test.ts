/** The pages fold events as the host does: from the first event on, both arrive at the same state. Needs no browser. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { apply } from "../src/conversation/fold";
import type { LogRecord, Part, SessionState } from "../src/conversation/state";
import { RealHost } from "./host";

const host = new RealHost();

beforeAll(() => host.start());
afterAll(() => host.close());

const ask = <T>(path: string, body?: object, method?: string) => host.ask<T>(`/v1${path}`, body, method);

/** Defaults are left out by the host, so empty things are the same as missing ones. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (!value || typeof value !== "object") return value;
  const kept = Object.entries(value).map(([name, each]) => [name, bare(each)] as const);
  return Object.fromEntries(kept.filter(([, each]) => !(each === undefined || each === null || each === "" || each === false || each === 0 || (typeof each === "object" && Object.keys(each).length === 0))));
}

/** What the pages do not show, and so do not fold. */
const UNSHOWN = new Set(["ids", "by", "created", "modified", "moved", "model_config", "named", "vendor", "config", "clients", "uri", "origin"]);
const HIDDEN_IN_TURN = new Set(["pos", "resumes", "stops", "asked", "waited"]);

function shownPart(part: Part): object {
  if (part.part !== "call") return { ...part, meta: undefined };
  const approvals = part.approvals?.map((approval) => ({ ...approval, file: undefined, meta: undefined, proposed: undefined }));
  return { ...part, approvals, meta: undefined, result: undefined, kind: part.kind === "other" ? undefined : part.kind };
}

function shown(state: SessionState): unknown {
  const turns = (state.turns ?? []).map((turn) => {
    const parts = (turn.parts ?? []).map(shownPart);
    return Object.fromEntries(Object.entries({ ...turn, parts }).filter(([name]) => !HIDDEN_IN_TURN.has(name)));
  });
  return bare(Object.fromEntries(Object.entries({ ...state, turns, read: state.read === false ? "no" : undefined }).filter(([name]) => !UNSHOWN.has(name))));
}

async function until(id: string, good: (state: SessionState) => boolean): Promise<SessionState> {
  for (;;) {
    const state = await ask<SessionState>(`/sessions/${id}`);
    if (good(state)) return state;
    await new Promise((done) => setTimeout(done, 50));
  }
}

const idle = (state: SessionState) => Boolean(state.turns?.at(-1)?.outcome) && !state.queue?.length;

test("a session with everything in it", async () => {
  const { id } = await ask<SessionState>("/sessions", { agent: "demo" });
  const say = (text: string) => ask(`/sessions/${id}/messages`, { text });
  await say("write something");
  const waiting = await until(id, (state) => state.turns?.at(-1)?.parts?.some((part) => part.part === "call" && part.approvals?.length) ?? false);
  const call = waiting.turns![0]!.parts!.find((part) => part.part === "call")!;
  for (const text of ["one", "two", "three"]) await say(text);
  const { queue } = await ask<{ queue: { id: string }[] }>(`/sessions/${id}/queue`);
  await ask(`/sessions/${id}/queue/order`, { order: [queue[2]!.id] });
  await ask(`/sessions/${id}/queue/${queue[1]!.id}`, { text: "zwei" }, "PATCH");
  await ask(`/sessions/${id}/queue/${queue[0]!.id}`, {}, "DELETE");
  await ask(`/approvals/${(call as { approvals: { id: string }[] }).approvals[0]!.id}`, { option: "allow-session" });
  await until(id, idle);
  await say("ask me");
  const asked = await until(id, (state) => state.turns?.at(-1)?.parts?.some((part) => part.part === "question") ?? false);
  const question = asked.turns!.at(-1)!.parts!.find((part) => part.part === "question")!;
  await ask(`/questions/${question.id}`, { field: "answer", answer: { value: "re" } }, "PATCH");
  await ask(`/questions/${question.id}`, { text: "red" });
  await until(id, idle);
  await say("fail");
  await until(id, idle);
  await ask(`/sessions/${id}/resume`, {});
  await until(id, idle);
  await ask(`/sessions/${id}`, { title: "Everything", archived: true, read: true }, "PATCH");
  await ask(`/sessions/${id}/fork`, {});

  const state = await ask<SessionState>(`/sessions/${id}`);
  const { events } = await ask<{ events: LogRecord[] }>(`/sessions/${id}/events?limit=10000`);
  const mine: SessionState = { id, agent: state.agent, model: state.model, cwd: state.cwd, pos: 0 };
  for (const record of events) apply(mine, record);
  expect(shown(mine)).toEqual(shown(state));
});
