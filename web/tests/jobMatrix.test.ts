/** The page of all jobs: choosing one, starting it with its input, and stopping the host. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { button, textOf, textsOf, type } from "./dom";
import { FakeHost } from "./host";

const LISTING = {
  grid: [
    { keyword: "Review", jobs: [{ name: "quick", jobName: "review-quick" }, null] },
    { keyword: "Write", jobs: [{ name: "notes", jobName: "notes" }, { name: "tests", jobName: "tests" }] },
  ],
  jobs: { "review-quick": { requireUserInput: false }, notes: { requireUserInput: true }, tests: {} },
  chart: {},
};

let host: FakeHost;
let opened: string[];
let alerts: string[];

async function open(listing: object = LISTING): Promise<void> {
  host.answers.set("copilot/job", listing);
  document.body.innerHTML =
    '<main><table id="matrix-table"></table><div id="resize-bar"></div><div id="right-part"><textarea id="user-input-textarea"></textarea><button id="start-job-button"></button><button id="preview-button">Preview</button></div></main>';
  await import("../src/jobs");
}

const start = () => document.getElementById("start-job-button") as HTMLButtonElement;
const field = () => document.getElementById("user-input-textarea") as HTMLTextAreaElement;
const pick = async (name: string) => {
  await vi.waitFor(() => button(name));
  button(name).click();
};

beforeEach(() => {
  vi.resetModules();
  host = new FakeHost();
  [opened, alerts] = [[], []];
  vi.stubGlobal("open", (address: string) => (opened.push(address), window));
  vi.stubGlobal("alert", (text: string) => alerts.push(text));
  window.history.replaceState(null, "", "/jobs.html?wb=/w/proj");
});
afterEach(() => {
  vi.unstubAllGlobals();
  window.history.replaceState(null, "", "/");
});

test("jobs are listed by their keyword, with empty cells in between", async () => {
  await open();
  await vi.waitFor(() => expect(textsOf(".matrix-keyword")).toEqual(["Review", "Write"]));
  expect([...document.querySelectorAll("tr")].slice(1).map((row) => textsOf("td", row))).toEqual([["quick", ""], ["notes", "tests"]]);
  expect([textOf("#start-job-button"), start().disabled, field().disabled, field().placeholder]).toEqual(["Job Not Selected", true, true, "Choose a job first."]);
});

test("an entry without jobs shows how to give it one", async () => {
  await open({});
  await vi.waitFor(() => expect(textOf(".page-hint")).toMatch(/^The entry of this host has no job/));
});

test("a list that cannot be loaded shows why, in place of the table", async () => {
  host.down = true;
  await open();
  await vi.waitFor(() => expect(textOf(".page-trouble")).toBe("The jobs could not be loaded. The host cannot be reached."));
  expect(document.querySelector("table")).toBeNull();
});

test.each([
  ["notes", false, "What should the job do?"],
  ["quick", true, "This job needs no input."],
])("%s: whether input is needed", async (name, disabled, placeholder) => {
  await open();
  await pick(name);
  expect([button(name).getAttribute("aria-pressed"), field().disabled, field().placeholder, start().disabled]).toEqual(["true", disabled, placeholder, false]);
  button(name).click();
  expect([button(name).getAttribute("aria-pressed"), textOf("#start-job-button"), start().disabled]).toEqual(["false", "Job Not Selected", true]);
});

test("one job is chosen at a time", async () => {
  await open();
  await pick("notes");
  await pick("tests");
  expect([...document.querySelectorAll(".matrix-job-btn.selected")].map(({ textContent }) => textContent)).toEqual(["tests"]);
});

test("a job starts in the folder of the page, with its input, and its page opens", async () => {
  await open();
  host.answers.set("copilot/job/start/notes", { jobId: "j7" });
  await pick("notes");
  type(field(), "for 1.0\nand 1.1");
  start().click();
  await vi.waitFor(() => expect(opened).toEqual(["./jobTracking.html?jobName=notes&jobId=j7"]));
  expect(host.calls.find(({ path }) => path === "copilot/job/start/notes")?.body).toBe("/w/proj\nfor 1.0\nand 1.1");
  expect(start().disabled).toBe(false);
});

test("a job without input sends none, also when something is left in the field", async () => {
  await open();
  host.answers.set("copilot/job/start/review-quick", { jobId: "j8" });
  type(field(), "left over");
  await pick("quick");
  start().click();
  await vi.waitFor(() => expect(opened).toHaveLength(1));
  expect(host.calls.find(({ path }) => path.includes("start"))?.body).toBe("/w/proj\n");
});

test.each<[string, object, string]>([
  ["an error of the job", { jobError: "WorkingDirectoryNotExists" }, "The working directory does not exist. (WorkingDirectoryNotExists)"],
  ["an answer without a job", {}, "The host gave no job."],
])("%s is shown, and the job can be started again", async (_name, answer, text) => {
  await open();
  host.answers.set("copilot/job/start/notes", answer);
  await pick("notes");
  start().click();
  await vi.waitFor(() => expect(alerts).toEqual([text]));
  expect([opened, start().disabled]).toEqual([[], false]);
});

test("the chart of a job opens without starting it", async () => {
  await open();
  await pick("tests");
  (document.getElementById("preview-button") as HTMLButtonElement).click();
  expect([opened, host.paths("start")]).toEqual([["./jobTracking.html?jobName=tests"], []]);
});

test.each([true, false])("Stop Server asks first; the answer is %s", async (yes) => {
  await open();
  host.answers.set("stop", {});
  const asked: string[] = [];
  vi.stubGlobal("close", () => undefined); // jsdom would end the window
  vi.stubGlobal("confirm", (text: string) => (asked.push(text), yes));
  await pick("Stop Server");
  expect(asked).toEqual([expect.stringMatching(/^Stop the server\? Running sessions and jobs are interrupted/)]);
  expect(host.paths("stop")).toEqual(yes ? ["stop"] : []);
  if (yes) await vi.waitFor(() => expect(textOf("body")).toBe("Server stopped — you may close this tab."));
});
