/** The page of a job: what it shows for each outcome, and what its steps show. */

import { render } from "lit-html";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { JobView } from "../src/app/job";
import { JobHistory, stepsOf, treeOf, type WorkTree } from "../src/app/jobModel";
import { stepTimes, stepTree, type Steps } from "../src/app/jobSteps";
import type { ViewContext } from "../src/app/view";
import type { Event } from "../src/rest";
import { Net } from "./net";

const NOW = new Date(2026, 5, 10, 12).getTime();
const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  document.body.replaceChildren();
  window.history.replaceState(null, "", "/");
});

const ref = (taskId: string, workIdInJob: number): WorkTree => ({ kind: "Ref", taskId, workIdInJob });
const WORK: WorkTree = { kind: "Seq", works: [ref("write", 0), ref("check", 1), ref("ship", 2)] };
const event = (pos: number, time: number, fields: object) => ({ pos, time: NOW + time, event: fields as unknown as Event });
const started = (pos: number, time: number, work: number, task: string) => event(pos, time, { type: "work.started", path: `r.${work}`, work, task });
const ended = (pos: number, time: number, work: number, task: string, outcome: string) => event(pos, time, { type: "work.ended", path: `r.${work}`, work, task, outcome });

const STORY = [event(1, -10_000, { type: "job.started", by: "token:owner" }), started(2, -10_000, 0, "t1"), ended(3, -6_000, 0, "t1", "succeeded"), started(4, -6_000, 1, "t2")];

async function open(job: object, ...records: object[]) {
  const entry = { jobs: { release: { work: WORK } } };
  const net = new Net({ "GET /jobs/j1": { id: "j1", name: "release", started: NOW - 10_000, cwd: "/w/shop", by: "token:owner", entry, chart: { nodes: [] }, ...job }, "GET /events": { events: [] }, "POST /jobs/j1/resume": { job: "j2" }, "POST /jobs/j1/retry": { job: "j3" } });
  const go = vi.fn();
  const board = { subscribe: () => () => undefined, ofTask: () => [], agentName: (id: string) => id };
  const view = new JobView("j1", undefined, { board, go, titled: () => undefined } as unknown as ViewContext);
  document.body.replaceChildren(view.element);
  await tick(10);
  for (const record of records) net.open.find(({ channel }) => channel === "job/j1")?.send(record);
  await tick(100);
  return { view, net, go };
}

const text = (selector: string) => document.querySelector(selector)?.textContent?.replace(/\s+/g, " ").trim();
const button = (name: string) => [...document.querySelectorAll<HTMLButtonElement>(".job button")].find(({ textContent }) => textContent?.trim() === name);

test.each<[string, object, object[], { pill: string; strip: string | undefined; stop: boolean }]>([
  ["works", { status: "running" }, STORY, { pill: "Working, 1 of 3", strip: undefined, stop: true }],
  ["waits for a decision", { status: "waiting", reason: "Shall it go on?" }, STORY, { pill: "Needs you", strip: "Shall it go on?Resume", stop: true }],
  ["succeeded", { status: "succeeded", ended: NOW }, [...STORY, ended(5, -1_000, 1, "t2", "succeeded"), event(6, 0, { type: "job.ended", outcome: "succeeded" })], { pill: "Succeeded", strip: "Succeeded in 10 s · 2 steps ran · no files changed", stop: false }],
  ["succeeded quickly", { status: "succeeded", ended: NOW - 10_000 }, [STORY[0]!], { pill: "Succeeded", strip: "Succeeded in under 1 s · 0 steps ran · no files changed", stop: false }],
  ["failed at a step", { status: "failed", ended: NOW }, [...STORY, ended(5, -1_000, 1, "t2", "failed")], { pill: "Failed", strip: "Failed at check. After 10 s · 2 steps ran · no files changedResumeRun againResume keeps what succeeded. Run again starts from the beginning.", stop: false }],
  ["failed with an error", { status: "failed", ended: NOW, error: "No such folder" }, [], { pill: "Failed", strip: "Failed: No such folder After 10 s · 0 steps ran · no files changedResumeRun againResume keeps what succeeded. Run again starts from the beginning.", stop: false }],
  ["failed at a step, with the host's error about it", { status: "failed", ended: NOW, error: "check: Criteria condition failed." }, [...STORY, ended(5, -1_000, 1, "t2", "failed")], { pill: "Failed", strip: "Failed: check: Criteria condition failed. After 10 s · 2 steps ran · no files changedResumeRun againResume keeps what succeeded. Run again starts from the beginning.", stop: false }],
  ["was stopped", { status: "canceled", ended: NOW }, STORY, { pill: "Stopped", strip: "Stopped. After 10 s · 2 steps ran · no files changedResumeRun againResume keeps what succeeded. Run again starts from the beginning.", stop: false }],
])("a job that %s", async (_, job, records, { pill, strip, stop }) => {
  const { view } = await open(job, ...records);
  expect(text(".head .pill")).toBe(pill);
  expect(document.querySelector<HTMLElement>(".strip")!.hidden ? undefined : text(".strip")).toBe(strip);
  expect(button("Stop…")!.hidden).toBe(!stop);
  view.leave();
});

/** The page of a job with 1,000 items showed "0 steps ran" and "Nothing has run yet." until its events had arrived. */
describe("while its events arrive, the page makes no statement about runs", () => {
  const all = [...STORY, ended(5, -1_000, 1, "t2", "failed"), event(6, 0, { type: "job.ended", outcome: "failed" })];
  const shown = () => ({ pill: text(".head .pill"), strip: document.querySelector<HTMLElement>(".strip")!.hidden ? "" : text(".strip-text"), tree: text(".tree"), time: text(".gantt"), step: text(".job-step") });
  const wrong = /ran|changed|Nothing|not run|to come| of 3/;

  test.each<[string, object, string]>([
    ["runs", { status: "running" }, "Working"],
    ["waits", { status: "waiting", reason: "Shall it go on?" }, "Needs you"],
    ["succeeded", { status: "succeeded", ended: NOW }, "Succeeded"],
    ["failed", { status: "failed", ended: NOW }, "Failed"],
    ["was stopped", { status: "canceled", ended: NOW }, "Stopped"],
  ])("of a job that %s", async (_, job, pill) => {
    const { view, net } = await open({ ...job, pos: 6 });
    const send = (records: object[]) => records.forEach((record) => net.open.find(({ channel }) => channel === "job/j1")?.send(record));
    for (const some of [[], all.slice(0, 3), all.slice(3, 5)]) {
      send(some);
      await tick(3_000);
      expect(shown()).toMatchObject({ pill, tree: "Loading…", time: "", step: "Choose a step to read its conversation." });
      expect(Object.values(shown()).join()).not.toMatch(wrong);
    }
    send(all.slice(5));
    expect([text(".tree"), document.querySelectorAll(".bar-run").length, text(".job-step h2")]).toEqual([expect.stringContaining("write"), 2, "check"]);
    expect(text(".tree")).not.toContain("Loading");
    view.leave();
  });

  test("a step of the address is neither shown as not run, nor looked for in the part that has arrived", async () => {
    const { view, net } = await open({ status: "failed", ended: NOW, pos: 6 }, ...STORY);
    view.select("1");
    expect(text(".job-step")).toBe("checkLoading…");
    expect(text(".tree")).toBe("Loading…");
    for (const record of all) net.open.find(({ channel }) => channel === "job/j1")?.send(record);
    await tick(100);
    expect(text(".job-step")).not.toContain("Loading");
    expect(text(".strip-text")).toBe("Failed at check. After 10 s · 2 steps ran · no files changed");
    view.leave();
  });

  test("a running job that has shown its runs never hides them again, also when an answer is ahead of the events", async () => {
    const { view, net } = await open({ status: "running", pos: 4 }, ...STORY);
    expect(text(".head .pill")).toBe("Working, 1 of 3");
    net.answers["GET /jobs/j1"] = { ...(net.answers["GET /jobs/j1"] as object), pos: 9 };
    net.open.find(({ channel }) => channel === "job/j1")?.send(ended(5, -1_000, 1, "t2", "succeeded"));
    await tick(3_000);
    expect([text(".head .pill"), text(".tree")]).toEqual(["Working, 2 of 3", expect.stringContaining("ship")]);
    view.leave();
  });
});

test("Resume and Run again open the job that they start; a failed one is shown, and disappears with the next that works", async () => {
  const { view, net, go } = await open({ status: "failed", ended: NOW }, ...STORY);
  net.failing = [502];
  button("Resume")!.click();
  await tick(10);
  expect([go.mock.calls.length, text(".trouble")]).toEqual([0, "The host answered with status 502."]);
  button("Run again")!.click();
  await tick(10);
  expect(go).toHaveBeenCalledWith({ at: "job", id: "j3" });
  expect(document.querySelector<HTMLElement>(".trouble")!.hidden).toBe(true);
  view.leave();
});

test("the running step is followed until one is selected, and Follow returns to it", async () => {
  const { view } = await open({ status: "running" }, ...STORY);
  const current = () => document.querySelector<HTMLElement>(".tn[aria-current]")?.dataset["work"];
  expect([current(), button("Follow the running step")!.hidden]).toEqual(["1", true]);
  document.querySelector<HTMLElement>('.tn[data-work="0"]')!.click();
  expect([current(), button("Follow the running step")!.hidden, window.location.pathname.endsWith("/app/j/j1/0")]).toEqual(["0", false, true]);
  button("Follow the running step")!.click();
  expect(current()).toBe("1");
  expect(view.accept({ at: "job", id: "j1", step: "2" })).toBe(true);
  expect(view.accept({ at: "job", id: "j2" })).toBe(false);
  expect([current(), text(".job-step")]).toEqual(["2", "shipThis step has not run yet."]);
  view.leave();
});

test("the stored entry is shown, and a step afterwards", async () => {
  const { view } = await open({ status: "running" }, ...STORY);
  document.querySelector<HTMLDetailsElement>("#job-menu")!.open = true;
  document.querySelector("#job-menu")!.dispatchEvent(new globalThis.Event("toggle"));
  document.getElementById("entry")!.click();
  expect(text(".job-step pre")).toContain('"taskId": "write"');
  document.querySelector<HTMLElement>('.tn[data-work="0"]')!.click();
  expect(document.querySelector(".job-step pre")).toBeNull();
  view.leave();
});

describe("steps", () => {
  const box = document.createElement("div");
  const chosen = vi.fn();
  const stepsAt = (now: number, ...records: ReturnType<typeof event>[]): Steps => {
    const history = new JobHistory();
    for (const record of records) history.apply(record);
    return { tree: treeOf(WORK, history.runs), history, now: NOW + now, current: undefined, waiting: undefined, modelOf: () => "gpt", choose: chosen };
  };
  const marks = (steps: Steps) => {
    render(stepTree(steps), box);
    return [...box.querySelectorAll(".tn")].map((row) => [row.querySelector(".tn-name")!.textContent, row.querySelector(".vh")!.textContent, row.querySelector(".tn-time")!.textContent]);
  };

  test("each has its state in words and its time", () => {
    expect(marks(stepsAt(0, ...(STORY as ReturnType<typeof event>[])))).toEqual([["write", "succeeded", "4.0 s"], ["check", "working", "0:06"], ["ship", "to come", ""]]);
    expect(marks({ ...stepsAt(0, ...(STORY as ReturnType<typeof event>[])), waiting: "t2" })[1]).toEqual(["check", "needs you", "needs you"]);
  });

  test("a lane that appears before another leaves its button in place", () => {
    const late = [STORY[0]!, started(2, -6_000, 1, "t2")] as ReturnType<typeof event>[];
    const steps = stepsAt(0, ...late);
    render(stepTimes(stepsOf(steps.tree), steps), box);
    const bar = box.querySelector<HTMLElement>(".bar-run")!;
    const more = stepsAt(1000, ...late, started(3, -500, 0, "t1"));
    render(stepTimes(stepsOf(more.tree), more), box);
    expect([...box.querySelectorAll(".lane-name")].map((each) => each.textContent)).toEqual(["write", "check"]);
    expect(box.querySelectorAll(".bar-run")[1]).toBe(bar);
    bar.click();
    expect(chosen).toHaveBeenCalledWith(1);
  });
});

test("the hosts that a job reached are listed", async () => {
  const reached = { host: "a.test", port: 443, count: 2, refused: 0, sent: 10, received: 2000, first: NOW, last: NOW, allowed_by: ["policy"], refused_by: [] };
  const failed = { ...reached, host: "b.test", count: 0, refused: 1, sent: 0, received: 0, allowed_by: [], refused_by: ["network"] };
  const { view } = await open({ status: "running", network: [reached, failed] }, ...STORY);
  const rows = [...document.querySelectorAll("section[aria-label='Network'] tr")].slice(1).map((row) => [...row.children].map(({ textContent }) => textContent));
  expect(rows.map(([host, count, , , by]) => [host, count, by])).toEqual([
    ["a.test:443", "2", "the policy"],
    ["b.test:443", "1 refused or failed", "no connection"],
  ]);
  view.leave();
});
