/** The table of all jobs: newest first, live, and with the focus where it was. */

import { afterEach, expect, test } from "vitest";
import { JobsView } from "../src/app/jobsView";
import type { ViewContext } from "../src/app/view";

afterEach(() => document.body.replaceChildren());

const job = (id: string, started: number, more = {}) => ({ id, name: id, status: "running", started, cwd: "/w/shop", works: [{ work: 0, name: "write", task: "t", status: "running", started }], ...more });

function open(...jobs: ReturnType<typeof job>[]) {
  const listeners = new Set<() => void>();
  const all = new Map<string, object>(jobs.map((each) => [each.id, each]));
  const feed = { jobs: all, rows: new Map(), watch: (listener: () => void) => (listeners.add(listener), () => listeners.delete(listener)) };
  const view = new JobsView({ feed } as unknown as ViewContext);
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
