/** The table of all jobs: newest first, live, and with the focus where it was. */

import { afterEach, expect, test } from "vitest";
import { JobsView } from "../src/app/jobsView";
import type { ViewContext } from "../src/app/view";

afterEach(() => document.body.replaceChildren());

const job = (id: string, started: number, more = {}) => ({ id, name: id, status: "running", started, cwd: "/w/shop", works: [{ work: 0, name: "write", task: "t", status: "running", started }], ...more });

function open(...jobs: ReturnType<typeof job>[]) {
  const listeners = new Set<() => void>();
  const all = new Map<string, object>(jobs.map((each) => [each.id, each]));
  const board = { jobs: all, rows: new Map(), subscribe: (listener: () => void) => (listeners.add(listener), () => listeners.delete(listener)) };
  const view = new JobsView({ board } as unknown as ViewContext);
  document.body.replaceChildren(view.element);
  const set = (...changed: ReturnType<typeof job>[]) => {
    for (const each of changed) all.set(each.id, each);
    for (const listener of [...listeners]) listener();
  };
  return { view, set, listeners };
}

const rows = () => [...document.querySelectorAll("tr")].slice(1).map((row) => [...row.cells].map((cell) => cell.textContent));

test("without jobs it says how to start one", () => {
  const { view } = open();
  expect(document.querySelector(".wide")!.textContent).toBe("No jobs yet. Start one, and watch its steps here.");
  expect(document.querySelector<HTMLAnchorElement>(".head a")!.href).toMatch(/\/app\/new\/job$/);
  view.leave();
});

test("newest first, with state, folder, steps and duration; a quick job took under 1 s", () => {
  const { view } = open(job("old", 1000, { status: "succeeded", ended: 5000 }), job("quick", 2000, { status: "succeeded", ended: 2010 }), job("new", 3000));
  expect(rows().map(([name, , folder, steps, , took]) => [name, folder, steps, took])).toEqual([["new", "shop", "1", ""], ["quick", "shop", "1", "under 1 s"], ["old", "shop", "1", "4.0 s"]]);
  view.leave();
});

test("a job that changes or arrives leaves the other rows and the focus in place", () => {
  const { view, set, listeners } = open(job("one", 1000), job("two", 2000));
  const link = [...document.querySelectorAll<HTMLAnchorElement>("td a")].find(({ textContent }) => textContent === "one")!;
  link.focus();
  set(job("two", 2000, { status: "succeeded", ended: 9000 }), job("three", 3000));
  expect(rows().map(([name]) => name)).toEqual(["three", "two", "one"]);
  expect([document.activeElement === link, link.isConnected]).toEqual([true, true]);
  view.leave();
  expect(listeners.size).toBe(0);
});

test("a heading sorts: numbers from the largest, text from A to Z, the second click the other way round", () => {
  const { view } = open(job("b", 3000, { status: "succeeded", ended: 3500 }), job("a", 2000, { status: "failed", ended: 9000 }), job("c", 1000, { status: "succeeded", ended: 2500 }));
  const press = (name: string) => [...document.querySelectorAll<HTMLButtonElement>("th button")].find(({ textContent }) => textContent!.startsWith(name))!.click();
  const names = () => rows().map(([name]) => name);
  const cases: [string, string[]][] = [["Took", ["a", "c", "b"]], ["Took", ["b", "c", "a"]], ["Job", ["a", "b", "c"]], ["Job", ["c", "b", "a"]], ["Started", ["b", "a", "c"]]];
  for (const [column, expected] of cases) {
    press(column);
    expect([column, names()]).toEqual([column, expected]);
  }
  expect([...document.querySelectorAll("th")].map((each) => each.getAttribute("aria-sort"))).toEqual(["none", "none", "none", "none", "descending", "none", "none"]);
  view.leave();
});

test("words and a state filter the rows; a filter without a match says so", () => {
  const { view } = open(job("nightly", 1000, { status: "failed", ended: 2000 }), job("review", 2000, { status: "succeeded", ended: 3000, cwd: "/w/blog" }));
  const [search, state] = [document.querySelector<HTMLInputElement>("input[type=search]")!, document.querySelector<HTMLSelectElement>("select")!];
  const set = (field: HTMLInputElement | HTMLSelectElement, value: string, event: string) => ((field.value = value), field.dispatchEvent(new Event(event)));
  set(search, "blog", "input");
  expect(rows().map(([name]) => name)).toEqual(["review"]);
  set(state, "failed", "change");
  expect(document.querySelector(".wide")!.textContent).toContain("No job matches the filter.");
  set(search, "", "input");
  expect(rows().map(([name]) => name)).toEqual(["nightly"]);
  view.leave();
});

test("the cost is the sum of what the sessions of its tasks reported", () => {
  const listeners = new Set<() => void>();
  const session = (id: string, task: string, cost?: number) => [id, { session: { id, by: `task:${task}`, usage: cost === undefined ? {} : { cost } } }] as const;
  const board = { jobs: new Map([["j", job("j", 1000)]]), rows: new Map([session("1", "t", 0.5), session("2", "t", 0.25), session("3", "other", 9), session("4", "t")]), subscribe: () => () => listeners.clear() };
  const view = new JobsView({ board } as unknown as ViewContext);
  document.body.replaceChildren(view.element);
  expect(rows()[0]!.at(-1)).toBe("$0.75");
  view.leave();
});
