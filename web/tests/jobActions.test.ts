/** What can be done after a job has ended, or while it waits for a word. */

import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { JobActions } from "../src/jobActions";
import { V1Host } from "./v1Host";

const PATH = "GET /jobs/j1";
let host: V1Host;
let jobActions: JobActions;
const row = () => document.getElementById("job-next")!;
const text = () => (row().hidden ? "" : document.getElementById("job-next-text")!.textContent);
const button = (id: "resume" | "retry") => document.getElementById(`${id}-job-button`) as HTMLButtonElement;
const says = (status: string, reason = "") => (host.answers[PATH] = { id: "j1", status, reason });
const later = () => vi.advanceTimersByTimeAsync(3_000);

beforeEach(() => {
  vi.useFakeTimers();
  document.body.innerHTML = /<body>([\s\S]*)<\/body>/.exec(readFileSync("jobTracking.html", "utf8"))![1]!;
  host = new V1Host();
  jobActions = new JobActions("careful", "j1");
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a job that waits only a moment after it was asked about is found all the same", async () => {
  says("running");
  await jobActions.poll();
  expect(text()).toBe("");
  says("waiting", "The host was restarted.");
  await later();
  expect(text()).toBe("This job waits for you. The host was restarted.");
  expect(button("retry").hidden).toBe(true);
});

test("one that somebody else has resumed waits no more", async () => {
  says("waiting");
  await jobActions.poll();
  expect(text()).toBe("This job waits for you. ");
  says("running");
  await later();
  expect(text()).toBe("");
});

test("what is told again after a reconnect does not take the offer away, the end does", async () => {
  says("waiting");
  await jobActions.poll();
  jobActions.update("RUNNING");
  expect(text()).toBe("This job waits for you. ");
  jobActions.update("SUCCEEDED");
  expect(text()).toBe("");
});

test.each([
  ["succeeded", 1],
  ["failed", 1],
  ["running", 3],
  ["waiting", 3],
])("a job that is %s is asked about %i times in six seconds", async (status, times) => {
  says(status);
  await jobActions.poll();
  await later();
  await later();
  expect(host.calls).toHaveLength(times);
});

test("a host out of reach is asked again, one that knows no such job is not", async () => {
  host.down = true;
  await jobActions.poll();
  host.down = false;
  says("waiting");
  await later();
  expect(text()).toContain("waits for you");
  host.answers[PATH] = 404;
  await later();
  const asked = host.calls.length;
  await later();
  expect(host.calls).toHaveLength(asked);
});

test("an answer that comes after the end does not take the offer away", async () => {
  let answer: (value: object) => void = () => undefined;
  host.answers[PATH] = () => new Promise<object>((done) => (answer = done));
  const looking = jobActions.poll();
  jobActions.update("FAILED");
  answer({ id: "j1", status: "running" });
  await looking;
  expect(text()).toContain("Run again begins from the start");
  await later();
  expect(host.calls).toHaveLength(1);
});

test("two looks are one clock", async () => {
  says("running");
  await Promise.all([jobActions.poll(), jobActions.poll(), jobActions.poll()]);
  host.calls.length = 0;
  await later();
  expect(host.calls).toHaveLength(1);
});

test("a pressed button stays pressed until the host has answered; a refusal gives it back", async () => {
  let refuse: (value: number) => void = () => undefined;
  host.answers["POST /jobs/j1/resume"] = () => new Promise<number>((done) => (refuse = done));
  const alerted = vi.fn();
  vi.stubGlobal("alert", alerted);
  says("waiting");
  await jobActions.poll();
  button("resume").click();
  await later();
  expect(button("resume").disabled).toBe(true);
  refuse(409);
  await vi.waitFor(() => expect(alerted).toHaveBeenCalled());
  expect([button("resume").disabled, text()]).toEqual([false, "This job waits for you. "]);
  await later();
  expect(text()).toContain("waits for you");
});

test("a resumed job goes on here: the offer goes, and it is asked about again", async () => {
  host.answers["POST /jobs/j1/resume"] = { job: "j1" };
  says("waiting");
  await jobActions.poll();
  says("running");
  button("resume").click();
  await vi.waitFor(() => expect(text()).toBe(""));
  says("waiting");
  await later();
  expect(text()).toContain("waits for you");
});
