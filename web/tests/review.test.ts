/** The changes of a session (src/app/review.ts): what stays while an agent writes on, and comments that become a message. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Review } from "../src/app/review";
import type { OpenSession } from "../src/app/view";
import type { SessionState } from "../src/conversation/state";
import { V1Host } from "./v1Host";

const diffOf = (path: string, line: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,2 +1,2 @@\n same\n-old\n+${line}\n`;
const fileOf = (path: string) => ({ path, status: "modified", added: 1, removed: 1, binary: false });

let host: V1Host;
let lines: Record<string, string>;
let shown: Review | undefined;

beforeEach(() => {
  localStorage.clear();
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) { this.open = true; };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) { this.open = false; this.dispatchEvent(new Event("close")); };
  Element.prototype.scrollIntoView ??= () => undefined;
  vi.stubGlobal("CSS", { escape: (text: string) => text.replace(/[^\w-]/g, (each) => `\\${each}`) });
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
  lines = { "a.py": "new a", "b.py": "new b" };
  host = new V1Host();
  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    const url = new URL(address, "http://host");
    const name = `${init.method ?? "GET"} ${url.pathname.replace(/^.*\/v1/, "")}`;
    host.calls.push(name);
    if (typeof init.body === "string") host.bodies.set(name, JSON.parse(init.body));
    if (name.endsWith("/diff")) return new Response(Object.keys(lines).map((path) => diffOf(path, lines[path] ?? "")).join(""));
    if (name.endsWith("/changes") || name.endsWith("/uncommitted")) return Response.json({ git: true, state: "x", files: Object.keys(lines).map(fileOf) });
    if (name.endsWith("/changes/own")) return Response.json({ files: Object.keys(lines) });
    return Response.json({});
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  document.body.replaceChildren();
  shown = undefined;
});

async function opened(state: Partial<SessionState> = {}) {
  const errors: string[] = [];
  const view = { id: "s1", state: { id: "s1", agent: "a", model: "", cwd: "/w", pos: 1, turns: [{ id: "t1", message: { text: "go" }, by: "", started: 0, ended: 1, outcome: "completed" }], ...state }, attempt: async (work: () => Promise<unknown>) => work().then(() => true, (error: Error) => (errors.push(error.message), false)), conversation: { toEnd: () => undefined } };
  const review = (shown = new Review(view as unknown as OpenSession, () => undefined));
  document.body.replaceChildren(review.element);
  await review.load();
  return { review, errors };
}

const sections = () => [...shown!.element.querySelectorAll<HTMLElement>(".file-diff")];
const names = () => [...shown!.element.querySelectorAll<HTMLElement>("button.file")];
const added = (at: number) => sections()[at]?.querySelector<HTMLElement>(".diff-added");
const button = (text: string) => [...shown!.element.querySelectorAll<HTMLElement>("button")].find(({ textContent }) => textContent === text)!;

describe("what is shown", () => {
  test("names with counts, the lines of each file, and the sum", async () => {
    await opened();
    expect(names().map(({ dataset }) => dataset["name"])).toEqual(["a.py", "b.py"]);
    expect([sections().length, added(0)?.textContent?.includes("new a"), shown!.element.querySelector(".ph .pm")?.textContent]).toEqual([2, true, "+2 −2"]);
  });

  test("a file that did not change keeps its lines, an open comment and the focus when another one changes", async () => {
    const { review } = await opened();
    const before = added(0)!;
    before.querySelector<HTMLElement>("button.line-number")!.click();
    const area = sections()[0]!.querySelector("textarea")!;
    area.value = "half a thought";
    lines["b.py"] = "newer b";
    await review.load(true);
    expect([added(0), sections()[0]!.querySelector("textarea"), area.value, document.activeElement]).toEqual([before, area, "half a thought", area]);
    expect(added(1)?.textContent).toContain("newer b");
  });

  test("a viewed file is folded and can be shown again; one that changed is to be viewed again", async () => {
    const { review } = await opened();
    const box = () => sections()[0]!.querySelector<HTMLInputElement>("input[type=checkbox]")!;
    box().click();
    expect([added(0), box().checked, names()[0]?.querySelector(".vh")?.textContent]).toEqual([null, true, "viewed"]);
    sections()[0]!.querySelector<HTMLElement>("button.link")!.click();
    expect(added(0)).not.toBeNull();
    lines["a.py"] = "again";
    await review.load(true);
    expect([box().checked, added(0)?.textContent?.includes("again")]).toEqual([false, true]);
  });

  test("unified and side by side show the same change, and the choice is remembered", async () => {
    await opened();
    button("Side by side").click();
    expect([sections()[0]!.querySelector(".diff.beside") !== null, button("Side by side").getAttribute("aria-pressed")]).toEqual([true, "true"]);
    button("Unified").click();
    expect([sections()[0]!.querySelector(".diff.unified") !== null, button("Unified").getAttribute("aria-pressed")]).toEqual([true, "true"]);
  });
});

describe("comments", () => {
  const comment = (text: string) => {
    added(0)!.querySelector<HTMLElement>("button.line-number")!.click();
    const form = sections()[0]!.querySelector("form")!;
    form.querySelector("textarea")!.value = text;
    form.querySelector<HTMLElement>("button.primary")!.click();
  };

  test("are kept at their line, counted, and become one message", async () => {
    await opened();
    comment("Shorter, please");
    expect([sections()[0]!.querySelector(".note")?.textContent?.includes("Shorter, please"), button("Send 1 comment").hidden]).toEqual([true, false]);
    button("Send 1 comment").click();
    await vi.waitFor(() => expect(host.bodies.has("POST /sessions/s1/messages")).toBe(true));
    const { text } = host.bodies.get("POST /sessions/s1/messages") as { text: string };
    expect([text.includes("a.py"), text.includes("Shorter, please"), text.includes("new a")]).toEqual([true, true, true]);
    await vi.waitFor(() => expect(sections()[0]!.querySelector(".note")).toBeNull());
  });

  test("an empty one is none; Remove takes one away; they survive a reload", async () => {
    await opened();
    comment("  ");
    expect(sections()[0]!.querySelector(".note, form")).toBeNull();
    comment("Keep me");
    await opened();
    expect(sections()[0]!.querySelector(".note")?.textContent).toContain("Keep me");
    [...sections()[0]!.querySelectorAll<HTMLElement>(".note button")].find(({ textContent }) => textContent === "Remove")!.click();
    expect(sections()[0]!.querySelector(".note")).toBeNull();
  });

  test.each([
    [true, "Click a line to comment"],
    [false, "Tap a line to comment"],
  ])("until there is one, a hint names the way; fine pointer %s", async (fine, hint) => {
    vi.stubGlobal("matchMedia", (query: string) => ({ matches: fine && query.includes("fine"), addEventListener: () => undefined }));
    await opened();
    expect(shown!.element.querySelector(".hint")?.textContent).toBe(hint);
    comment("Shorter");
    expect(shown!.element.querySelector(".hint")?.textContent).toBe("");
  });

  test("a line that changed since is asked about first, and Send anyway sends it", async () => {
    await opened();
    comment("Why?");
    lines["a.py"] = "something else";
    button("Send 1 comment").click();
    await vi.waitFor(() => expect(document.querySelector("dialog")?.textContent).toContain("Some lines have changed since"));
    expect([host.bodies.has("POST /sessions/s1/messages"), shown!.element.textContent?.includes("This line has changed since")]).toEqual([false, true]);
    [...document.querySelectorAll<HTMLElement>("dialog button")].find(({ textContent }) => textContent === "Send anyway")!.click();
    await vi.waitFor(() => expect(host.bodies.has("POST /sessions/s1/messages")).toBe(true));
  });
});

test("an error of the host is shown in place of the files", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("down")));
  await opened();
  expect([shown!.element.querySelector(".review-note")?.textContent, sections().length]).toEqual(["The host cannot be reached.", 0]);
});
