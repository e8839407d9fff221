/** Several rows of the list: which are selected, what can be done with them, and what remains after a failure. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Entry } from "../src/app/entries";
import { Selection } from "../src/app/listSelection";
import { v1 } from "../src/v1";

const entry = (key: string, more: Partial<Entry> = {}): Entry => ({ key, id: key.slice(2), kind: key.startsWith("j/") ? "job" : "session", state: "done", title: key, unread: false, ...more }) as Entry;
const ROWS = [entry("s/a"), entry("s/b", { unread: true }), entry("s/c", { state: "interrupted" }), entry("j/d", { state: "failed" }), entry("s/e", { state: "work" })];

let current: string;
let selection: Selection;
const markJobRead = vi.fn();
const keys = () => ROWS.filter(({ key }) => selection.has(key)).map(({ id }) => id).join("");
const buttons = () => [...selection.element.querySelectorAll("button")].map((each) => each.textContent);
const press = (text: string) => [...document.querySelectorAll("button")].find((each) => each.textContent === text)!.click();
const row = (id: string) => ROWS.find((each) => each.id === id)!;

beforeEach(() => {
  current = "";
  selection = new Selection({ order: () => ROWS, current: () => current, changed: () => selection.render(), markJobRead });
  document.body.replaceChildren(selection.element);
});
afterEach(() => {
  selection.clear();
  vi.restoreAllMocks();
});

test("one by one, and again to take it out", () => {
  selection.pick(row("a"), false);
  selection.pick(row("c"), false);
  expect(keys()).toBe("ac");
  selection.pick(row("a"), false);
  expect([keys(), selection.active]).toEqual(["c", true]);
  selection.pick(row("c"), false);
  expect(selection.active).toBe(false);
});

test.each<[from: string, current: string, to: string, wanted: string]>([
  ["b", "", "d", "bcd"],
  ["d", "", "b", "bcd"],
  ["", "s/a", "c", "abc"],
  ["", "", "c", "c"],
])("a range from %j (open: %j) to %s selects %s", (from, open, to, wanted) => {
  current = open;
  if (from) selection.pick(row(from), false);
  selection.pick(row(to), true);
  expect(keys()).toBe(wanted);
});

test("what is offered fits what is selected", () => {
  selection.pick(row("a"), false);
  expect(buttons()).toEqual(["Archive", "Delete…", "Done"]);
  selection.pick(row("d"), true);
  expect(buttons()).toEqual(["Archive", "Resume", "Mark read", "Delete…", "Done"]);
  selection.clear();
  selection.pick(row("e"), false);
  expect(buttons()).toEqual(["Done"]);
});

test("a job and a session are resumed, each in its way", async () => {
  const [session, job] = [vi.spyOn(v1, "resume").mockResolvedValue(undefined as never), vi.spyOn(v1, "resumeJob").mockResolvedValue(undefined as never)];
  selection.pick(row("c"), false);
  selection.pick(row("d"), false);
  press("Resume");
  await vi.waitFor(() => expect(selection.active).toBe(false));
  expect([session.mock.calls, job.mock.calls]).toEqual([[["c"]], [["d"]]]);
});

test("those that fail stay selected, with the reason", async () => {
  vi.spyOn(v1, "change").mockImplementation(async (id) => {
    if (id === "b") throw new Error("It is shared.");
    return undefined as never;
  });
  selection.pick(row("a"), false);
  selection.pick(row("c"), true);
  press("Archive");
  await vi.waitFor(() => expect(selection.element.textContent).toContain("1 of 3 not done: It is shared."));
  expect(keys()).toBe("b");
});

test("deleting asks first, and Escape ends the selection", async () => {
  const remove = vi.spyOn(v1, "remove").mockResolvedValue(undefined as never);
  selection.pick(row("a"), false);
  selection.pick(row("b"), false);
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  expect(selection.active).toBe(false);
  selection.pick(row("a"), false);
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  press("Delete…");
  expect([remove.mock.calls.length, document.querySelector("dialog h2")!.textContent]).toEqual([0, "Delete 1 session?"]);
  document.querySelector("dialog")!.remove();
});
