/** A workflow on the page of a job: its tree, one row for each item, its result, and runs from a step. */

import { render } from "lit-html";
import { afterEach, expect, test, vi } from "vitest";
import { ItemList } from "../src/app/jobItems";
import { type Item, itemsOf, JobHistory, lanesOf, stepsOf, type TreeNode, treeOf, type WorkTree } from "../src/app/jobModel";
import { jobResult, valueView } from "../src/app/jobResult";
import { stepTree, type Steps } from "../src/app/jobSteps";
import type { Event, FlowStep } from "../src/rest";

afterEach(() => document.body.replaceChildren());

const step = (id: string, work: number, name = "", what: object = { kind: "run", command: `make ${id}` }): FlowStep => ({ kind: "Step", id, workIdInJob: work, name, do: what as FlowStep["do"] });
const event = (pos: number, fields: object) => ({ pos, time: 1000 + pos, event: fields as unknown as Event });
function history(...events: object[]): JobHistory {
  const found = new JobHistory();
  events.forEach((each, index) => found.apply(event(index + 1, each)));
  return found;
}
const lane = (path: string, name: string) => ({ type: "job.value", path, name: "lane", value: JSON.stringify({ item: name, name }) });
const begun = (path: string, work: number, task: string) => ({ type: "work.started", path, work, task });
const over = (path: string, task: string, outcome: string) => ({ type: "work.ended", path, task, outcome });
const result = (path: string, id: string, value: object) => ({ type: "job.value", path, name: `@${id}`, value: JSON.stringify(value) });
const outline = (nodes: TreeNode[]): unknown[] => nodes.map((node) => (node.kind === "step" ? node.name : [node.title, node.about, outline(node.children)]));

const FLOW: WorkTree = {
  kind: "Seq",
  works: [
    step("list", 0, "make list"),
    { kind: "Over", each: "{{ steps.list.output }}", item: "file", parallel: 4, body: { kind: "Seq", works: [step("one", 1, "Work on {{ file }}"), step("two", 2, "Test it")] }, merge: step("merged", 3, "Merge", { kind: "merge" }) },
    { kind: "Again", most: 3, until: "{{ steps.ok.output }}", body: { kind: "If", when: "{{ inputs.fast }}", then: step("ok", 4, "Fast"), otherwise: step("slow", 5) } },
    { kind: "Branches", names: ["left", ""], works: [step("a", 6), step("b", 7)] },
    { kind: "If", then: step("end", 8, "Is it good?", { kind: "ask", question: "Is it good?" }) },
  ],
};

test("the tree of a workflow in plain words; a command is no name", () => {
  expect(outline(treeOf(FLOW, []))).toEqual([
    "list",
    ["For each file of steps.list.output", "4 at a time", ["one", "Test it"]],
    "Merge",
    ["Repeat until steps.ok.output", "at most 3 rounds", [["If inputs.fast", "", ["Fast"]], ["Otherwise", "", ["slow"]]]],
    ["At the same time", "", [["left", "", ["a"]], ["Branch 2", "", ["b"]]]],
    "Is it good?",
  ]);
  expect(stepsOf(treeOf(FLOW, [])).map(({ work, id }) => [work, id])).toEqual([[0, "list"], [1, "one"], [2, "two"], [3, "merged"], [4, "ok"], [5, "slow"], [6, "a"], [7, "b"], [8, "end"]]);
});

test("an item has one row: its name, the step that matters and the reason of a failure", () => {
  const found = history(lane("r.1*0", "a.py"), lane("r.1*1", "b.py"), lane("r.1*2", "c.py"), lane("r.1*10", "k.py"), begun("r.1*0.0", 1, "t1"), over("r.1*0.0", "t1", "succeeded"), begun("r.1*0.1", 2, "t2"), over("r.1*0.1", "t2", "succeeded"), begun("r.1*1.0", 1, "t3"), result("r.1*1.0", "one", { outcome: "failed", reason: "exit 1\nno such name" }), over("r.1*1.0", "t3", "failed"), begun("r.1*2.0", 1, "t4"));
  expect(itemsOf(found, "r.1*").map(({ name, state, reason, run }) => [name, state, reason, run?.task])).toEqual([["a.py", "done", "", "t2"], ["b.py", "failed", "exit 1\nno such name", "t3"], ["c.py", "work", "", "t4"], ["k.py", "todo", "", undefined]]);
  expect(itemsOf(found, "r.1*", "t4")[2]?.state).toBe("need");
  expect(itemsOf(found, "r.9*")).toEqual([]);
});

test("an item that was tried again counts by its last attempt, and one without a name has a number", () => {
  const found = history(begun("r.1*3.0", 1, "t1"), over("r.1*3.0", "t1", "failed"), begun("r.1*3.0", 1, "t2"), over("r.1*3.0", "t2", "succeeded"));
  expect(itemsOf(found, "r.1*").map(({ name, state }) => [name, state])).toEqual([["Item 4", "done"]]);
});

test("items of an entry's Each have the item as their name", () => {
  const found = history({ type: "job.value", path: "r*0", name: "item", value: "src/a.py" }, begun("r*0", 0, "t1"));
  expect(itemsOf(found, "r*").map(({ name }) => name)).toEqual(["src/a.py"]);
});

function items(count: number): Item[] {
  return Array.from({ length: count }, (_, index) => ({ path: `r*${index}`, name: `file-${index}.py`, state: index % 100 === 7 ? "failed" : "done", run: { path: `r*${index}`, work: 1, task: `t${index}`, attempt: 1, started: 0, ended: 2000, outcome: index % 100 === 7 ? "failed" : "succeeded" }, reason: index % 100 === 7 ? "exit 1\nbad syntax" : "", started: 0, ended: 2000 }) as Item);
}

test("1,000 items are 1,000 rows of which few are in the page; failed ones and names are found", () => {
  const list = new ItemList();
  document.body.append(list.element);
  const [choose, retry] = [vi.fn(), vi.fn()];
  list.update(items(1000), { current: undefined, now: 5000, choose, retry });
  const rows = () => [...list.element.querySelectorAll<HTMLElement>(".item-row")];
  expect(rows().length).toBeLessThan(60);
  expect([rows()[0]?.getAttribute("aria-setsize"), list.element.querySelector<HTMLElement>(".item-space")!.style.height]).toEqual(["1000", "36000px"]);
  expect(list.element.querySelector("[role=status]")!.textContent).toBe("1000 of 1000 done, 10 failed");
  const box = list.element.querySelector<HTMLElement>(".item-rows")!;
  box.scrollTop = 36 * 900;
  box.dispatchEvent(new globalThis.Event("scroll"));
  expect(rows().some((row) => row.textContent?.includes("file-905.py"))).toBe(true);
  list.element.querySelector<HTMLElement>('[data-filter="failed"]')!.click();
  expect(rows().map((row) => row.querySelector(".tn-name")!.textContent)).toEqual(Array.from({ length: 10 }, (_, index) => `file-${index * 100 + 7}.py`));
  expect(rows()[0]!.querySelector(".item-reason")!.textContent).toBe("bad syntax");
  rows()[1]!.querySelector<HTMLElement>(".tn")!.click();
  rows()[2]!.querySelector<HTMLElement>(".retry-from")!.click();
  expect([choose.mock.calls[0]?.[0].name, retry.mock.calls[0]?.[0].name]).toEqual(["file-107.py", "file-207.py"]);
  const search = list.element.querySelector<HTMLInputElement>("input")!;
  search.value = "file-30";
  search.dispatchEvent(new globalThis.Event("input"));
  expect(rows().map((row) => row.querySelector(".tn-name")!.textContent)).toEqual(["file-307.py"]);
});

test("a list without a match says so, and a running job offers no run from a step", () => {
  const list = new ItemList();
  list.update(items(3), { current: "r*1", now: 5000, choose: vi.fn() });
  expect([list.element.querySelectorAll(".retry-from").length, list.element.querySelector("[aria-current] .tn-name")!.textContent, list.element.querySelector("input")]).toEqual([0, "file-1.py", null]);
  list.element.querySelector<HTMLElement>('[data-filter="work"]')!.click();
  expect(list.element.querySelector(".item-rows")!.textContent).toBe("No item matches.");
});

test("each step that ran offers a run from there when the job is over", () => {
  const box = document.createElement("div");
  const found = history(begun("r.0", 0, "t1"), over("r.0", "t1", "succeeded"));
  const retry = vi.fn();
  const steps: Steps = { tree: treeOf(FLOW, found.runs), history: found, now: 9000, current: undefined, waiting: undefined, modelOf: () => "", choose: vi.fn() };
  render(stepTree(steps), box);
  expect(box.querySelectorAll(".retry-from").length).toBe(0);
  render(stepTree({ ...steps, retry }), box);
  expect([...box.querySelectorAll(".retry-from")].map((each) => each.getAttribute("aria-label"))).toEqual(["Retry from here: list"]);
  box.querySelector<HTMLElement>(".retry-from")!.click();
  expect(retry.mock.calls[0]?.[0].id).toBe("list");
});

test("more runs of a step than can be told apart are one bar", () => {
  const events = Array.from({ length: 200 }, (_, index) => [begun(`r*${index}`, 1, `t${index}`), over(`r*${index}`, `t${index}`, index === 5 ? "failed" : "succeeded")]).flat();
  const found = history({ type: "job.started", by: "" }, ...events);
  const { lanes } = lanesOf([{ kind: "step", work: 1, name: "one", model: "", condition: false }], found, 5000);
  expect(lanes[0]!.bars.map(({ run }) => run.outcome)).toEqual(["failed"]);
});

test.each<[string, unknown, string]>([
  ["text", "27 updated", "27 updated"],
  ["a number", 3, "3"],
  ["false", false, "false"],
  ["a list", ["a", 2], "a2"],
  ["an object", { done: 27, failed: ["x"] }, "done27failedx"],
  ["a list of objects, as JSON", [{ a: 1 }], '[ { "a": 1 } ]'],
  ["null inside", { none: null }, "nonenull"],
])("a result that is %s", (_, value, text) => {
  const box = document.createElement("div");
  render(valueView(value), box);
  expect(box.textContent?.replace(/\s+/g, " ").trim()).toBe(text);
});

test("the result has its files and its branch; a job without any shows nothing", () => {
  const box = document.createElement("div");
  render(jobResult("Done", [{ path: "reports/out.md", size: 2048, blob: "abc" }], "deps/2026"), box);
  const link = box.querySelector("a")!;
  expect([link.download, link.getAttribute("href")?.includes("/v1/blobs/abc"), box.textContent?.includes("2.0 kB"), box.querySelector("code")!.textContent]).toEqual(["out.md", true, true, "deps/2026"]);
  render(jobResult(null, [], ""), box);
  expect(box.textContent?.trim()).toBe("");
});
