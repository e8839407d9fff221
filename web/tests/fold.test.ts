import { describe, expect, test } from "vitest";
import { apply } from "../src/conversation/fold";
import { active, type CallPart, type LogRecord, type SessionState, statusOf } from "../src/conversation/state";

function told(...events: LogRecord["event"][]): SessionState {
  const state: SessionState = { id: "s", agent: "a", model: "m", cwd: "/w", pos: 0 };
  events.forEach((event, index) => apply(state, { pos: index + 1, time: 1000 + index, event }));
  return state;
}

const START = { type: "turn.started", turn: "t1", message: { text: "hi" }, by: "token:owner" };
const CALL = { type: "tool.started", turn: "t1", call: "c1", tool: "write" };
const ASKED = { type: "approval.asked", turn: "t1", approval: "s.a1", call: "c1", tool: "write", title: "w", kind: "write", input: "{}", expires: 1, options: [] };

describe("the fold", () => {
  test("a part grows by its deltas and ends with its whole text", () => {
    const begun = [START, { type: "part.started", turn: "t1", part: "p1", kind: "text" }, { type: "part.delta", turn: "t1", part: "p1", text: "He" }];
    expect(told(...begun).turns![0]!.parts).toEqual([{ part: "text", id: "p1", kind: "text", text: "He" }]);
    const whole = told(...begun, { type: "part.ended", turn: "t1", part: "p1", text: "Hello" }, { type: "part.delta", turn: "t1", part: "p1", text: "!" });
    expect(whole.turns![0]!.parts).toEqual([{ part: "text", id: "p1", kind: "text", text: "Hello", done: true }]);
  });

  test("what was seen before is not told twice, and what is unknown only moves the position", () => {
    const state = told(START, { type: "of.the.future" });
    apply(state, { pos: 1, time: 0, event: { ...START, turn: "t2" } });
    expect([state.turns!.length, state.pos]).toEqual([1, 2]);
  });

  test("an approval waits, the first answer counts, and an edited input is what runs", () => {
    const waiting = [START, CALL, ASKED];
    expect(statusOf(told(...waiting))).toBe("waiting");
    const answer = { type: "approval.answered", turn: "t1", approval: "s.a1", allowed: true, by: "token:ann", input: '{"x":1}' };
    const state = told(...waiting, answer, { ...answer, allowed: false, by: "token:bob" });
    const call = state.turns![0]!.parts![0] as CallPart;
    expect([call.input, call.approvals![0]!.by, call.approvals![0]!.allowed, statusOf(state)]).toEqual(['{"x":1}', "token:ann", true, "running"]);
  });

  test("usage adds up, and a total replaces what its turn reported before", () => {
    const use = (more: object) => ({ type: "usage", turn: "t1", ...more });
    expect(told(START, use({ input: 5 }), use({ input: 2, output: 1 })).usage).toMatchObject({ input: 7, output: 1 });
    expect(told(START, use({ input: 5 }), use({ input: 4, total: true })).usage).toMatchObject({ input: 4 });
  });

  test("the queue keeps its order, and a message that became a turn leaves it", () => {
    const add = (pending: string) => ({ type: "queue.added", pending, kind: "queue", message: { text: pending }, by: "x" });
    const queued = [add("a"), add("b"), add("c"), { type: "queue.reordered", order: ["c"], by: "x" }];
    expect(told(...queued).queue!.map(({ id }) => id)).toEqual(["c", "a", "b"]);
    expect(told(...queued, { ...START, pending: "c" }).queue!.map(({ id }) => id)).toEqual(["a", "b"]);
  });

  test("a failed turn goes on with its parts when it is resumed; a cut forgets what follows", () => {
    const failed = [START, { type: "turn.ended", turn: "t1", outcome: "failed", error: { code: "x", message: "no" } }];
    expect(statusOf(told(...failed))).toBe("failed");
    const state = told(...failed, { type: "turn.resumed", turn: "t1", by: "x" });
    expect([active(state)?.id, active(state)?.error]).toEqual(["t1", null]);
    expect(told(...failed, { ...START, turn: "t2" }, { type: "session.truncated", turn: "t1", by: "x" }).turns!.map(({ id }) => id)).toEqual(["t1"]);
    expect(told(...failed, { type: "session.truncated", by: "x" }).turns).toEqual([]);
  });
});
