/** The form that starts a workflow: typed inputs, plan, recipes and drafts. Nothing starts before Start. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { BoardStore } from "../src/app/boardStore";
import { StartJob } from "../src/app/startJob";
import type { ViewContext } from "../src/app/view";
import { type Filled, isNeeded, missingOf, shownOf, valuesOf } from "../src/app/workflowInputs";
import type { JobInput } from "../src/rest";
import { V1Host } from "./v1Host";

describe("typed inputs", () => {
  test.each<[string, JobInput, string | boolean | undefined, unknown]>([
    ["a text", {}, "x", "x"],
    ["a text that is empty", {}, "", undefined],
    ["a text that was emptied, with a default", { default: "usual" }, "", ""],
    ["an untouched one", { default: "usual" }, undefined, undefined],
    ["a number", { type: "number" }, "2.5", 2.5],
    ["no number: the host explains it", { type: "number" }, "two", "two"],
    ["a ticked box", { type: "boolean" }, true, true],
    ["an unticked box", { type: "boolean", default: true }, false, false],
    ["a choice", { type: "choice", choices: ["a", "b"] }, "b", "b"],
    ["lines", { type: "list" }, "a\n b, c \n\n", ["a", "b, c"]],
    ["words with commas", { type: "list" }, "a, b,", ["a", "b"]],
    ["a JSON array", { type: "list" }, '[1, {"a": 2}]', [1, { a: 2 }]],
    ["a text that begins like one", { type: "list" }, "[draft] one", ["[draft] one"]],
    ["an emptied list", { type: "list", default: ["a"] }, "", []],
    ["a file", { type: "file" }, "src/a.py", "src/a.py"],
    ["a secret", { type: "secret" }, "s3cret", "s3cret"],
  ])("%s", (_, input, filled, sent) => {
    const given: Filled = filled === undefined ? {} : { name: filled };
    expect(valuesOf({ name: input }, given)["name"]).toEqual(sent);
  });

  test.each<[JobInput, string | boolean]>([
    [{}, ""],
    [{ default: 3, type: "number" }, "3"],
    [{ default: ["a", { b: 1 }], type: "list" }, 'a\n{"b":1}'],
    [{ default: true, type: "boolean" }, true],
    [{ type: "boolean" }, false],
    [{ default: null }, ""],
  ])("the default of %j is shown as %j", (input, shown) => expect(shownOf(input, undefined)).toBe(shown));

  test("an input is needed unless it has a default or says otherwise", () => {
    expect([isNeeded({}), isNeeded({ default: "" }), isNeeded({ required: false }), isNeeded({ default: "x", required: true })]).toEqual([true, false, false, true]);
    expect(missingOf({ a: {}, b: { default: "x" }, c: { type: "boolean" }, d: {} }, { d: " y" })).toEqual(["a"]);
  });
});

const INPUTS = { task: { about: "What to build" }, level: { type: "choice", choices: ["low", "high"], default: "low" }, fast: { type: "boolean" }, key: { type: "secret", required: false } };
const PLAN = { job: "ship", about: "Ship it.", inputs: {}, folder: "worktree", branch: "ship/1", budget: { dollars: 3 }, agents: { codex: 2 }, asks: ["sure"], secrets: ["TOKEN"], timeout: 600, steps: [{ id: "one", name: "Build", kind: "prompt", text: "Build it", agent: "codex", checks: 1, inside: ["each file of list"] }, { id: "two", name: "two", kind: "run", text: "make", inside: ["each file of list"] }, { id: "sure", name: "Ship?", kind: "ask", asks: true }] };
const planned = (name: string, more: object = {}) => ({ name, text: `# ${name}`, inputs: INPUTS, plan: PLAN, chart: { nodes: [] }, ...more });
const RECIPE = { name: "fix-until-green", about: "Fix it.", steps: 2, inputs: { test: {} }, text: "about: Fix it.\n" };

let host: V1Host;
let gone: object[];
let notify: () => void;

async function open(more: Record<string, never | object> = {}): Promise<StartJob> {
  host = new V1Host({
    "GET ": { workspaces: ["/w/shop"] },
    "GET /entry": { name: "demo", entry: { jobs: { hello: {}, told: { requireUserInput: true } } }, chart: { hello: { nodes: [] }, told: { nodes: [] } } },
    "GET /hosts": { hosts: [] },
    "GET /agents": { agents: [{ id: "codex", name: "Codex" }, { id: "demo", name: "Demo" }], default: "codex" },
    "GET /workflows?cwd=/w/shop": { workflows: [{ name: "ship", about: "Ship it.", steps: 3 }] },
    "GET /recipes": { recipes: [RECIPE] },
    "POST /workflows/plan": (body: unknown) => planned((body as { name: string }).name),
    "POST /jobs": { job: "j7" },
    ...more,
  });
  const board = { rows: new Map(), subscribe: (run: () => void) => ((notify = run), () => undefined) } as unknown as BoardStore;
  const view = new StartJob({ board, go: (place: object) => void gone.push(place), titled: () => undefined } as unknown as ViewContext);
  document.body.replaceChildren(view.element);
  return view;
}

beforeEach(() => {
  gone = [];
  sessionStorage.clear();
  window.history.replaceState(null, "", "/app/new/job");
});
afterEach(() => vi.unstubAllGlobals());

const find = <T extends Element = HTMLInputElement>(selector: string) => document.querySelector<T>(selector)!;
const text = (selector: string) => document.querySelector(selector)?.textContent?.replace(/\s+/g, " ").trim();
const shown = (selector: string) => vi.waitFor(() => expect(find(selector)).toBeTruthy());
function type(selector: string, value: string): void {
  const field = find<HTMLInputElement>(selector);
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
const started = () => host.calls.filter((call) => call === "POST /jobs");

test("a workflow of the folder shows its description, fields, plan and chart before it is started", async () => {
  const view = await open();
  await shown(".plan-steps");
  expect([...find<HTMLSelectElement>("#job").querySelectorAll("optgroup")].map((group) => [group.label, [...group.children].map((each) => each.textContent)])).toEqual([["Workflows of this folder", ["ship"]], ["From the built-in demo plan", ["hello", "told"]]]);
  expect(text(".job-about")).toBe("Ship it.");
  expect([...document.querySelectorAll(".plan-facts dt")].map((each) => [each.textContent, each.nextElementSibling?.textContent])).toEqual([["Works in", "a separate folder, branch ship/1"], ["Agents", "codex (2 steps)"], ["Budget", "$3"], ["Asks a person", "sure"], ["Secrets", "TOKEN"], ["Ends after", "10 min"]]);
  expect([...document.querySelectorAll(".plan-steps li")].map((each) => each.textContent?.replace(/\s+/g, " ").trim())).toEqual(["each file of list", "promptBuild Build itcodex · 1 check", "runtwo make", "askShip?asks you"]);
  expect([find("#input-task").tagName, find("#input-level").tagName, find("#input-fast").type, find("#input-key").type]).toEqual(["TEXTAREA", "SELECT", "checkbox", "password"]);
  for (const value of ["", "  "]) {
    type("#input-task", value);
    find<HTMLFormElement>("form").requestSubmit();
  }
  expect([started(), document.activeElement?.id]).toEqual([[], "input-task"]);
  type("#input-task", "a login page");
  find("#input-fast").click();
  find<HTMLFormElement>("form").requestSubmit();
  await vi.waitFor(() => expect(gone).toEqual([{ at: "job", id: "j7" }]));
  expect(host.bodies.get("POST /jobs")).toEqual({ job: "ship", cwd: "/w/shop", inputs: { task: "a login page", fast: true } });
  view.leave();
});

test("what is filled in is part of the plan that is asked for", async () => {
  const view = await open();
  await shown("#input-task");
  type("#input-task", "x");
  await vi.waitFor(() => expect(host.bodies.get("POST /workflows/plan")).toEqual({ name: "ship", cwd: "/w/shop", inputs: { task: "x" } }));
  view.leave();
});

test("mistakes of a file are listed with their lines, and it cannot be started", async () => {
  const view = await open({ "POST /workflows/plan": { name: "ship", text: "steps:", mistakes: [{ line: 2, column: 5, place: "steps[0]", message: "There is no key 'runn'." }] } });
  await shown(".mistakes");
  expect(text(".mistakes")).toBe("1 mistake in the fileLine 2 There is no key 'runn'.");
  expect(find<HTMLButtonElement>("#start-job").disabled).toBe(true);
  view.leave();
});

test("a job of the entry has its chart and its input", async () => {
  const view = await open();
  await shown("#job");
  await vi.waitFor(() => expect(find<HTMLSelectElement>("#job").options.length).toBe(3));
  const select = find<HTMLSelectElement>("#job");
  select.value = "told";
  select.dispatchEvent(new Event("change"));
  await shown("#job-input");
  type("#job-input", "tell me");
  find<HTMLFormElement>("form").requestSubmit();
  await vi.waitFor(() => expect(gone.length).toBe(1));
  expect(host.bodies.get("POST /jobs")).toEqual({ job: "told", cwd: "/w/shop", input: "tell me" });
  view.leave();
});

test("a recipe is chosen in the gallery, changed, saved in the project, or started as it is", async () => {
  const view = await open({ "POST /workflows": { name: "green", file: "/w/shop/.portico/jobs/green.yaml" } });
  await shown("#job option");
  find<HTMLElement>('[data-way="recipes"]').click();
  await shown(".recipe");
  expect(text(".recipe")).toBe("fix-until-greenFix it.2 steps · 1 inputUse this recipe");
  find<HTMLElement>(".recipe button").click();
  await shown("#input-task");
  expect([find<HTMLTextAreaElement>("#workflow-text").value, started()]).toEqual(["about: Fix it.\n", []]);
  type("#workflow-name", "green");
  find<HTMLElement>("#save-workflow").click();
  await vi.waitFor(() => expect(text(".good")).toBe("Saved as /w/shop/.portico/jobs/green.yaml."));
  expect(host.bodies.get("POST /workflows")).toEqual({ cwd: "/w/shop", name: "green", text: "about: Fix it.\n" });
  type("#input-task", "t");
  find<HTMLFormElement>("form").requestSubmit();
  await vi.waitFor(() => expect(gone.length).toBe(1));
  expect(host.bodies.get("POST /jobs")).toMatchObject({ workflow: "about: Fix it.\n", inputs: { task: "t" } });
  view.leave();
});

test("a draft is written and corrected by the agent, is shown with its plan, and never starts", async () => {
  const mistaken = { running: false, answers: 1, found: planned("draft", { plan: undefined, mistakes: [{ line: 1, column: 1, place: "", message: "No." }] }), next: "Correct it." };
  const states: object[] = [{ running: true }, mistaken, { running: true, answers: 1 }, { running: false, answers: 2, found: planned("draft") }];
  let at = 0;
  const view = await open({
    "POST /workflows/draft": { session: "s3" },
    "GET /workflows/draft/s3": (() => states[Math.min(at++, states.length - 1)]) as never,
    "POST /sessions/s3/messages": { turn: "t2" },
  });
  await shown("#job option");
  find<HTMLElement>('[data-way="describe"]').click();
  await shown("#describe");
  expect(find<HTMLButtonElement>("#write-draft").disabled).toBe(true);
  type("#describe", "Say hello");
  find<HTMLElement>("#write-draft").click();
  await vi.waitFor(() => expect(text(".draft-state")).toContain("The agent is writing the draft."));
  expect(host.bodies.get("POST /workflows/draft")).toEqual({ description: "Say hello", cwd: "/w/shop", agent: "codex" });
  for (let turn = 0; turn < 3; turn++) {
    notify();
    await new Promise((done) => setTimeout(done, 350));
  }
  await shown("#workflow-text");
  expect(host.calls.filter((call) => call === "POST /sessions/s3/messages").length).toBe(1);
  expect(host.bodies.get("POST /sessions/s3/messages")).toEqual({ text: "Correct it.", busy: "queue" });
  await shown(".plan-steps");
  expect([find<HTMLTextAreaElement>("#workflow-text").value, started()]).toEqual(["# draft", []]);
  view.leave();
});

test("a draft continues after a reload of the page", async () => {
  sessionStorage.setItem("portico.draft", "s3");
  const view = await open({ "GET /workflows/draft/s3": { running: false, answers: 1, found: planned("draft") } });
  await shown(".plan-steps");
  expect(find<HTMLTextAreaElement>("#workflow-text").value).toBe("# draft");
  view.leave();
});

test("a secret input is empty when a job is started again: its page does not know the value", async () => {
  sessionStorage.setItem("portico.entry", JSON.stringify({ text: "steps: []", workflow: true, job: "ship", cwd: "/w/other", inputs: { task: "[secret]", fast: true }, secret: ["task"] }));
  const view = await open();
  await shown("#input-task");
  expect([find<HTMLTextAreaElement>("#input-task").value, find("#input-fast").checked]).toEqual(["", true]);
  view.leave();
});

test("the page of a job hands its workflow over, with its inputs", async () => {
  sessionStorage.setItem("portico.entry", JSON.stringify({ text: "steps: []", workflow: true, job: "ship", cwd: "/w/other", inputs: { task: "again", fast: true } }));
  const view = await open();
  await shown("#input-task");
  expect([find("#folder").value, find<HTMLTextAreaElement>("#input-task").value, find("#input-fast").checked]).toEqual(["/w/other", "again", true]);
  view.leave();
});
