/** The palette (src/app/palette.ts): what it finds for a text, in which order, and what a choice does. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Entry } from "../src/app/entries";
import { openPalette } from "../src/app/palette";
import type { Key, Workbench } from "../src/app/workbench";
import { V1Host } from "./v1Host";

const entry = (title: string, state: Entry["state"], time: number, since?: number): Entry => ({
  key: `s/${title}`, kind: "session", id: title, title, state, line: `${title} line`, folder: "api", cwd: "/w/api", agent: "codex", owner: "", time, unread: false, archived: false, words: title.toLowerCase(), ...(since === undefined ? {} : { since }),
});

let host: V1Host;
const opened: string[] = [];
const added: string[] = [];

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) { this.open = true; };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) { this.open = false; this.dispatchEvent(new Event("close")); };
  Element.prototype.scrollIntoView ??= () => undefined;
  host = new V1Host({ "GET /search?q=bucket": { hits: [{ session: "s9", turn: "t1", excerpt: "the bucket takes a clock" }] } });
  opened.length = added.length = 0;
});
afterEach(() => {
  document.querySelector("dialog")?.remove();
  vi.unstubAllGlobals();
});

const KEYS: Key[] = [
  { keys: "c", text: "New session", run: () => void opened.push("command: New session") },
  { keys: "Esc", text: "Close or leave the field" },
];

function workbench(more: object = {}): Workbench {
  const entries = [entry("Fix the login", "done", 50), entry("Rate limit", "need", 10, 5), entry("Older question", "ask", 10, 1), entry("Bucket clock", "work", 90)];
  const board = { entries: () => entries, rows: new Map([["s9", { session: { title: "Token bucket" } }]]) };
  return { board, open: (each: Entry) => opened.push(each.title), go: (...given: unknown[]) => opened.push(JSON.stringify(given)), session: undefined, ...more } as unknown as Workbench;
}

const options = () => [...document.querySelectorAll<HTMLElement>("dialog [role=option]")];
const texts = () => options().map((option) => option.querySelector("span")?.textContent ?? option.textContent);
const groups = () => [...document.querySelectorAll<HTMLElement>("dialog [role=group]")].map(({ ariaLabel, dataset }) => dataset["group"] ?? ariaLabel);
const input = () => document.querySelector<HTMLInputElement>("dialog input")!;
const type = (text: string) => {
  input().value = text;
  input().dispatchEvent(new Event("input"));
};
const press = (key: string) => input().dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
const chosen = () => options().findIndex((option) => option.getAttribute("aria-selected") === "true");

describe("without a text", () => {
  test("what needs you comes first, longest waiting first; then the newest, then commands", () => {
    openPalette(workbench(), KEYS);
    expect([groups(), texts()]).toEqual([["Needs you", "Sessions and jobs", "Commands"], ["Older question", "Rate limit", "Bucket clock", "Fix the login", "New session"]]);
    expect([chosen(), document.activeElement, input().getAttribute("aria-activedescendant")]).toEqual([0, input(), "palette-0"]);
  });

  test("there is only one", () => {
    openPalette(workbench(), KEYS);
    openPalette(workbench(), KEYS);
    expect(document.querySelectorAll("dialog.palette").length).toBe(1);
  });
});

test("what was typed before it was loaded is its text", () => {
  openPalette(workbench(), KEYS, "login");
  expect([input().value, texts()]).toEqual(["login", ["Fix the login"]]);
});

test("text in messages is found as well, and marked in the title", async () => {
  openPalette(workbench(), KEYS);
  type("bucket");
  expect(texts()).toEqual(["Bucket clock"]);
  expect(document.querySelector("mark")?.textContent).toBe("Bucket");
  await vi.waitFor(() => expect(texts()).toEqual(["Bucket clock", "the bucket takes a clock"]));
  expect([groups(), options()[1]!.querySelector("small")?.textContent]).toEqual([["Sessions and jobs", "In messages"], "Token bucket"]);
  options()[1]!.click();
  expect([opened, document.querySelector("dialog")]).toEqual([[JSON.stringify([{ at: "session", id: "s9" }, false, "#turn=t1&find=bucket"])], null]);
});

test("an older answer does not replace the results of a newer text", async () => {
  let arrive: (answer: object) => void = () => undefined;
  host.answers["GET /search?q=bucket"] = () => new Promise<object>((done) => (arrive = done));
  openPalette(workbench(), KEYS);
  type("bucket");
  type("login");
  arrive({ hits: [{ session: "s9", excerpt: "the bucket takes a clock" }] });
  await new Promise((done) => setTimeout(done));
  expect(texts()).toEqual(["Fix the login"]);
});

test.each<[string, string, string[]]>([
  ["> lists only commands", ">new", ["New session"]],
  ["commands without an action are not offered", ">close", ["No matches"]],
  ["nothing fits", "zzz", ["No matches"]],
])("%s", (_, text, wanted) => {
  openPalette(workbench(), KEYS);
  type(text);
  expect(texts()).toEqual(wanted);
});

test("@ finds files of the open session, and puts one into the message", async () => {
  host.answers["GET /sessions/s1/suggestions?q=@lim"] = { items: [{ text: "@src/limits.py" }] };
  openPalette(workbench({ session: { id: "s1", composer: { add: (text: string) => added.push(text) } } }), KEYS);
  type("@lim");
  await vi.waitFor(() => expect(texts()).toEqual(["src/limits.py"]));
  press("Enter");
  expect([added, document.querySelector("dialog")]).toEqual([["@src/limits.py"], null]);
});

test("arrows go round, Enter runs, and a host out of reach leaves the local results", async () => {
  host.down = true;
  openPalette(workbench(), KEYS);
  press("ArrowUp");
  expect(chosen()).toBe(4);
  press("ArrowDown");
  press("ArrowDown");
  expect(chosen()).toBe(1);
  press("Enter");
  expect(opened).toEqual(["Rate limit"]);
  openPalette(workbench(), KEYS, "login");
  await new Promise((done) => setTimeout(done));
  expect(texts()).toEqual(["Fix the login"]);
});

test("a click beside it closes it", () => {
  openPalette(workbench(), KEYS);
  document.querySelector("dialog")!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(document.querySelector("dialog")).toBeNull();
});
