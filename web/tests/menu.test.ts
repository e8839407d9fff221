/** The menu of a view: its choices, its keys, and no listener of the document while it is closed. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { menu } from "../src/app/menu";
import { Net } from "./net";

const run = vi.fn();
let net: Net;
let details: HTMLDetailsElement;
let count = 0;

beforeEach(() => {
  net = new Net({});
  run.mockReset();
  count = 0;
  details = menu("m", "More of this", () => [
    { id: "first", text: `Choice ${++count}`, key: "R", run },
    { text: "Delete…", danger: true },
    { text: "Export", href: "./export" },
  ]) as HTMLDetailsElement;
  document.body.replaceChildren(details);
});
afterEach(() => {
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function toggle(open: boolean): void {
  details.open = open;
  details.dispatchEvent(new Event("toggle"));
}

const items = () => [...details.querySelectorAll<HTMLElement>(".menu > *")];
const press = (key: string) => (document.activeElement ?? details).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

test("its choices are made when it opens, with their keys outside of their names", () => {
  expect([items().length, details.querySelector("summary")!.getAttribute("aria-label")]).toEqual([0, "More of this"]);
  toggle(true);
  toggle(false);
  toggle(true);
  expect(items().map(({ tagName, textContent, className }) => [tagName, textContent, className])).toEqual([["BUTTON", "Choice 2R", ""], ["BUTTON", "Delete…", "danger"], ["A", "Export", ""]]);
  expect([items()[0]!.getAttribute("aria-keyshortcuts"), items()[0]!.querySelector("kbd")!.getAttribute("aria-hidden")]).toEqual(["R", "true"]);
});

/** The bug: one listener of the document per menu kept the view of every session in memory. */
test("the document has a listener only while a menu is open", () => {
  for (let views = 0; views < 10; views++) menu(`m${views}`, "More", () => []);
  expect(net.listeners).toBe(0);
  toggle(true);
  expect(net.listeners).toBe(1);
  toggle(false);
  expect(net.listeners).toBe(0);
});

test("a click outside closes it, a click inside does not", () => {
  toggle(true);
  details.querySelector("summary")!.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  details.open = true;
  document.body.click();
  expect(details.open).toBe(false);
});

test("a choice closes it and runs", () => {
  toggle(true);
  items()[0]!.click();
  expect([details.open, run.mock.calls.length]).toEqual([false, 1]);
});

test("arrows walk and wrap, Home and End go to the ends, Escape closes and returns the focus", () => {
  toggle(true);
  items()[0]!.focus();
  const at = (key: string) => (press(key), items().indexOf(document.activeElement as HTMLElement));
  expect([at("ArrowDown"), at("ArrowDown"), at("ArrowDown"), at("ArrowUp"), at("Home"), at("End")]).toEqual([1, 2, 0, 2, 0, 2]);
  press("Escape");
  expect([details.open, document.activeElement]).toEqual([false, details.querySelector("summary")]);
});
