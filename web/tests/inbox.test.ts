/** The inbox: what asks is named as people know it. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { needsResume, type Row } from "../src/app/entries";
import { Inbox } from "../src/app/inbox";
import type { Shell } from "../src/app/shell";
import { v1 } from "../src/v1";
import { button, stubDialogs, textOf, textsOf } from "./dom";
import { V1Host } from "./v1Host";

// Test files share a document, and links are relative to its address.
beforeEach(() => window.history.replaceState(null, "", "/"));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("a step of a job is named with its job, and leads there", async () => {
  const asked = (id: string, session: string, title: string) => ({ id, session, title, agent: "demo", cwd: "/w/docs", since: Date.now(), text: "", question: { part: "question", id, text: "Which date?" } });
  new V1Host({
    "GET /inbox": { waiting: [asked("q1", "s1", "review"), asked("q2", "s2", "Move billing"), asked("q3", "s3", "review")] },
    [`GET /inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`]: { answers: [], rules: 0 },
  });
  const row = (by: string) => ({ session: { by }, waiting: [] });
  const board = {
    rows: new Map([["s1", row("task:t1")], ["s2", row("token:owner")], ["s3", row("task:t9")]]),
    jobs: new Map([["j1", { id: "j1", name: "Release notes", works: [{ task: "t0" }, { task: "t1" }] }]]),
    subscribe: () => () => undefined,
    agentName: () => "Demo",
    entries: () => [],
  };
  const inbox = new Inbox({ board } as unknown as Shell);
  document.body.replaceChildren(inbox.element);
  await vi.waitFor(() => expect(document.querySelectorAll(".asked")).toHaveLength(2));
  const link = document.querySelector<HTMLAnchorElement>(".card .asked-where a")!;
  expect([link.textContent, new URL(link.href).pathname]).toEqual(["Release notes, step “review”", "/app/j/j1"]);
  expect([...document.querySelectorAll(".asked small")].map((each) => each.textContent!.split(" · ")[0])).toEqual(["Move billing", "review"]);
  inbox.leave();
});

test("interrupted work is listed and counted; one or all are resumed, and an error of one keeps none of the others", async () => {
  const stopped = (session: string) => ({ session, title: `Work ${session}`, agent: "demo", cwd: "/w/docs", since: Date.now() });
  const resumed: string[] = [];
  new V1Host({
    "GET /inbox": { waiting: [], interrupted: [stopped("s1"), stopped("s2"), stopped("s3")] },
    [`GET /inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`]: { answers: [], rules: 0 },
  });
  vi.spyOn(v1, "resume").mockImplementation((id) => {
    resumed.push(id);
    return id === "s2" ? Promise.reject(new Error("The agent is gone.")) : Promise.resolve({} as never);
  });
  const board = { rows: new Map(), jobs: new Map(), subscribe: () => () => undefined, agentName: () => "Demo", entries: () => [] };
  const inbox = new Inbox({ board } as unknown as Shell);
  document.body.replaceChildren(inbox.element);
  const titles = () => [...document.querySelectorAll(".interrupted-row .asked-title")].map(({ textContent }) => textContent);
  await vi.waitFor(() => expect(titles()).toEqual(["Work s1", "Work s2", "Work s3"]));
  expect(document.querySelector(".head p")?.textContent).toBe("3 items need you, oldest first");
  document.querySelector<HTMLElement>('[aria-label="Resume Work s1"]')!.click();
  await vi.waitFor(() => expect(titles()).toEqual(["Work s2", "Work s3"]));
  [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Resume all")!.click();
  await vi.waitFor(() => expect(resumed).toEqual(["s1", "s2", "s3"]));
  await vi.waitFor(() => expect(document.querySelector(".trouble")?.textContent).toContain("The agent is gone."));
  inbox.leave();
});

test("an exhausted budget that no turn shows is answered with one of its options", async () => {
  const options = ["Raise it by $1.00", "Let this turn finish", "Stop"];
  new V1Host({
    "GET /inbox": { waiting: [], interrupted: [], budgets: [{ budget: "day/2026-11-18", text: "The budget of today is spent.", options, session: "s1", since: 1 }] },
    [`GET /inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`]: { answers: [], rules: 0 },
  });
  const answered = vi.spyOn(v1, "answerBudget").mockImplementation(() => Promise.resolve({} as never));
  const board = { rows: new Map(), jobs: new Map(), subscribe: () => () => undefined, agentName: () => "Demo", entries: () => [] };
  const inbox = new Inbox({ board } as unknown as Shell);
  document.body.replaceChildren(inbox.element);
  const texts = (found: string) => [...document.querySelectorAll(found)].map(({ textContent }) => textContent);
  await vi.waitFor(() => expect(texts(".budgets .asked-title")).toEqual(["The budget of today is spent."]));
  expect(texts(".budgets button")).toEqual(["Raise it by $1.00", "Stop"]);
  document.querySelector<HTMLElement>(".budgets button")!.click();
  await vi.waitFor(() => expect(document.querySelector(".budgets")).toBeNull());
  expect(answered).toHaveBeenCalledWith("day/2026-11-18", "Raise it by $1.00");
  inbox.leave();
});

describe("several interrupted sessions", () => {
  const stopped = (session: string) => ({ session, title: session === "s4" ? "" : `Work ${session}`, agent: "demo", cwd: "/w/docs", since: Date.now() });
  const checks = () => [...document.querySelectorAll<HTMLInputElement>(".pick input")];
  const rowsLeft = () => textsOf(".interrupted-row .asked-title");
  let inbox: Inbox;

  async function open(ids: string[], answers: ConstructorParameters<typeof V1Host>[0] = {}): Promise<V1Host> {
    const host = new V1Host({ "GET /inbox": { waiting: [], interrupted: ids.map(stopped) }, [`GET /inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`]: { answers: [], rules: 0 }, ...answers });
    const board = { rows: new Map(), jobs: new Map(), subscribe: () => () => undefined, agentName: () => "Demo", entries: () => [] };
    inbox = new Inbox({ board } as unknown as Shell);
    document.body.replaceChildren(inbox.element);
    await vi.waitFor(() => expect(rowsLeft()).toHaveLength(ids.length));
    return host;
  }

  afterEach(() => inbox.leave());

  test("one alone has nothing to select", async () => {
    await open(["s1"]);
    expect(checks()).toEqual([]);
    expect(document.querySelector(".picked")).toBeNull();
  });

  test("a click selects, a second one clears; Shift selects everything in between", async () => {
    await open(["s1", "s2", "s3", "s4"]);
    expect(checks().map((each) => each.getAttribute("aria-label"))).toEqual(["Select Work s1", "Select Work s2", "Select Work s3", "Select New session"]);
    checks()[0]!.click();
    expect([textOf(".picked b"), checks().map(({ checked }) => checked)]).toEqual(["1 selected", [true, false, false, false]]);
    checks()[2]!.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true }));
    expect([textOf(".picked b"), checks().map(({ checked }) => checked)]).toEqual(["3 selected", [true, true, true, false]]);
    checks()[1]!.click();
    expect(textOf(".picked b")).toBe("2 selected");
    button("Done").click();
    expect([document.querySelector(".picked"), textOf(".section-head button")]).toEqual([null, "Resume all"]);
  });

  test.each<[string, string, (id: string) => string, unknown]>([
    ["Resume", "resumes them", (id) => `POST /sessions/${id}/resume`, {}],
    ["Archive", "archives them", (id) => `PATCH /sessions/${id}`, { archived: true }],
  ])("%s %s; the others stay", async (name, _what, request, body) => {
    const host = await open(["s1", "s2", "s3"], Object.fromEntries(["s1", "s2", "s3"].map((id) => [request(id), {}])));
    for (const at of [0, 2]) checks()[at]!.click();
    button(name, document.querySelector(".picked")!).click();
    await vi.waitFor(() => expect(rowsLeft()).toEqual(["Work s2"]));
    expect(host.calls.filter((call) => !call.startsWith("GET"))).toEqual([request("s1"), request("s3")]);
    expect(host.bodies.get(request("s1"))).toEqual(body);
    expect(document.querySelector(".picked")).toBeNull();
  });

  test("Delete asks first, and states how many", async () => {
    stubDialogs();
    const host = await open(["s1", "s2", "s3"], { "DELETE /sessions/s1": {}, "DELETE /sessions/s2": {} });
    for (const at of [0, 1]) checks()[at]!.click();
    button("Delete…").click();
    expect(textOf("dialog h2")).toBe("Delete 2 sessions?");
    expect(host.calls.some((call) => call.startsWith("DELETE"))).toBe(false);
    button("Delete", document.querySelector("dialog")!).click();
    await vi.waitFor(() => expect(rowsLeft()).toEqual(["Work s3"]));
    expect(host.calls.filter((call) => call.startsWith("DELETE"))).toEqual(["DELETE /sessions/s1", "DELETE /sessions/s2"]);
  });

  test("one that fails stays selected, its error is shown, and the others are done", async () => {
    await open(["s1", "s2", "s3"], { "POST /sessions/s1/resume": 409, "POST /sessions/s2/resume": {} });
    for (const at of [0, 1]) checks()[at]!.click();
    button("Resume", document.querySelector(".picked")!).click();
    await vi.waitFor(() => expect(rowsLeft()).toEqual(["Work s1", "Work s3"]));
    expect(textOf(".trouble")).toContain("refused with 409");
    expect(checks().map(({ checked }) => checked)).toEqual([true, false]);
  });
});

const NOW = Date.now();
test.each<[string, Partial<Row["session"]>, boolean]>([
  ["interrupted", {}, true],
  ["running again", { status: "running" }, false],
  ["archived", { archived: true }, false],
  ["of a job", { by: "task:t1" }, false],
  ["of a helper", { origin: { kind: "agent" } }, false],
  ["a week old", { moved: NOW - 8 * 86_400_000 }, false],
  ["done", { interrupted: false }, false],
])("a session that is %s: has a person to resume it? %j", (_name, fields, needed) => {
  const session = { id: "s", status: "idle", interrupted: true, moved: NOW, ...fields } as Row["session"];
  expect(needsResume({ session }, NOW)).toBe(needed);
});
