/** Parts of the frame: the panel and its tabs, the filter of the list, menus of rows, the border between columns, sessions of other programs. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Elsewhere } from "../src/app/elsewhere";
import type { Entry } from "../src/app/entries";
import type { BoardStore } from "../src/app/boardStore";
import { FilterField } from "../src/app/filterField";
import { openMenu } from "../src/app/floatingMenu";
import { grip } from "../src/app/grip";
import { Panel, type PanelContext } from "../src/app/panel";
import "../src/app/details"; // loaded on demand
import "../src/app/review";
import { openRowMenu } from "../src/app/rowMenu";
import type { OpenSession } from "../src/app/view";
import { evidenceView, filesOf } from "../src/conversation/evidence";
import { V1Host } from "./v1Host";

let host: V1Host;
const style = vi.hoisted(() => ({ style: async () => undefined }));
vi.mock("../src/app/style", () => style);

beforeEach(() => {
  localStorage.clear();
  document.body.replaceChildren();
  for (const name of Object.keys(document.body.dataset)) delete document.body.dataset[name];
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) { this.open = true; };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) { this.open = false; this.dispatchEvent(new Event("close")); };
  host = new V1Host({ "GET /grants": { grants: [] }, "GET /sessions/s1/changes": { git: true, files: [] }, "GET /sessions/s1/changes/own": {} });
});
afterEach(() => vi.unstubAllGlobals());

const click = (text: string, within: ParentNode = document) => [...within.querySelectorAll<HTMLElement>("button")].find(({ textContent }) => textContent?.startsWith(text))!.click();

describe("the panel", () => {
  const session = (id: string) => ({ id, state: { id, agent: "a", model: "", cwd: "/w", pos: 1, turns: [] }, agentName: "A", attempt: async () => true }) as unknown as OpenSession;

  function made(width = 1400, files = 0) {
    vi.stubGlobal("innerWidth", width);
    const element = document.createElement("aside");
    element.hidden = true;
    document.body.append(element);
    const noted: unknown[] = [];
    const view = session("s1");
    const context = { board: { rows: new Map([["s1", { session: { changes: { files } } }]]) } as unknown as BoardStore, session: view, phone: false, noteTab: (...given: unknown[]) => noted.push(given), landmarks: () => undefined } as PanelContext;
    return { panel: new Panel(element, context), element, noted, view };
  }
  const selected = (element: HTMLElement) => element.querySelector("[role=tab][aria-selected=true]")?.id;

  test("a tab is opened, noted in the address and remembered; closing it is remembered as well", async () => {
    const { panel, element, noted, view } = made();
    panel.follow(view);
    panel.open("details");
    await vi.waitFor(() => expect(element.querySelector(".details-tab")).not.toBeNull());
    expect([panel.isOpen, element.hidden, selected(element), noted]).toEqual([true, false, "tab-details", [["details", undefined, undefined]]]);
    panel.close();
    expect([panel.isOpen, element.hidden, noted.at(-1)]).toEqual([false, true, []]);
    panel.follow(session("s2"));
    expect(panel.isOpen).toBe(false);
  });

  test("arrow keys go round the tabs, with the focus", async () => {
    const { panel, element, view } = made();
    panel.follow(view);
    panel.open("changes");
    await vi.waitFor(() => expect(selected(element)).toBe("tab-changes"));
    element.querySelector("[role=tablist]")!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", cancelable: true }));
    await vi.waitFor(() => expect(selected(element)).toBe("tab-details"));
    expect([document.activeElement?.id, [...element.querySelectorAll<HTMLElement>("[role=tab]")].map(({ tabIndex }) => tabIndex)]).toEqual(["tab-details", [-1, -1, 0]]);
  });

  test.each<[string, number, number, string | undefined, boolean]>([
    ["a wide window and a change", 1400, 2, undefined, true],
    ["no change", 1400, 0, undefined, false],
    ["a small window", 1000, 2, undefined, false],
    ["closed by the user before", 1400, 2, "closed", false],
  ])("opens automatically at the first change of a session: %s", async (_, width, files, remembered, open) => {
    if (remembered) localStorage.setItem("portico.panel.middle", remembered);
    const { panel, view } = made(width, files);
    panel.follow(view);
    panel.changed(view, "state");
    expect(panel.isOpen).toBe(open);
  });

  test("it opens automatically only once for a session, and counts changed files", () => {
    const { panel, element, view } = made(1400, 3);
    panel.follow(view);
    panel.changed(view, "state");
    expect([panel.isOpen, element.querySelector(".count")?.textContent]).toEqual([true, "3"]);
    panel.close(true);
    localStorage.removeItem("portico.panel.middle");
    document.body.dataset["panel"] = "closed";
    panel.changed(view, "state");
    expect(panel.isOpen).toBe(false);
  });

  test("a key opens it and moves the focus in; the same key returns it", async () => {
    const { panel, element, view } = made();
    const before = document.createElement("button");
    document.body.append(before);
    before.focus();
    panel.follow(view);
    panel.toggle("details");
    await vi.waitFor(() => expect(element.contains(document.activeElement)).toBe(true));
    panel.toggle("details");
    expect([panel.isOpen, document.activeElement]).toEqual([false, before]);
  });

  test("without a session it does not open", () => {
    const { panel } = made();
    panel.open("changes");
    expect([panel.isOpen, panel.toggle()]).toEqual([false, false]);
  });
});

describe("the filter", () => {
  function made(search = "") {
    window.history.replaceState(null, "", `/app${search}`);
    const changed = vi.fn();
    const field = new FilterField({ entries: () => [] } as unknown as BoardStore, changed);
    document.body.append(field.element, field.chips);
    return { field, changed, chips: () => [...field.chips.querySelectorAll("button")].map(({ textContent }) => textContent) };
  }

  test("words are searched, terms become chips, and a chip removes its term", () => {
    const { field, changed, chips } = made();
    field.set("is:failed login folder:api");
    expect([field.words, chips(), changed.mock.calls.length]).toEqual(["login", ["is:failed", "folder:api"], 1]);
    click("is:failed", field.chips);
    expect([field.text, chips()]).toEqual(["login folder:api", ["folder:api"]]);
    expect(field.chips.querySelector("button")?.getAttribute("aria-label")).toBe("Remove the filter folder:api");
  });

  test("an unfinished term is no chip", () => {
    const { field, chips } = made();
    field.set("is: folder");
    expect([chips(), field.words]).toEqual([[], "folder"]);
  });

  test("an address can carry a filter", () => {
    expect(made("?filter=by:ann").field.text).toBe("by:ann");
    window.history.replaceState(null, "", "/");
  });
});

describe("menus of rows", () => {
  const entry = (more: Partial<Entry> = {}): Entry => ({ key: "s/s1", kind: "session", id: "s1", title: "Fix it", state: "done", line: "", folder: "api", cwd: "/w", agent: "a", owner: "", time: 0, unread: false, archived: false, words: "", ...more });
  const opened = (given: Entry) => {
    const button = document.createElement("button");
    document.body.append(button);
    openRowMenu(given, button, () => button.focus());
    return { button, texts: () => [...document.querySelectorAll(".menu [role=menuitem]")].map(({ textContent }) => textContent) };
  };

  test.each<[string, Partial<Entry>, string[], string[]]>([
    ["a finished session", {}, ["Mark as unread", "Archive", "Rename", "Delete…"], ["Resume", "Share…"]],
    ["an unread one", { unread: true }, ["Mark as read"], ["Mark as unread"]],
    ["one that works cannot be archived", { state: "work" }, ["Rename"], ["Archive", "Mark as unread"]],
    ["an interrupted one", { state: "interrupted" }, ["Resume"], []],
    ["one with an owner can be shared", { shares: {} }, ["Share…"], []],
    ["a failed job", { kind: "job", state: "failed" }, ["Resume", "Run again"], ["Rename", "Stop…"]],
    ["a running job", { kind: "job", state: "work" }, ["Stop…"], ["Run again", "Resume"]],
  ])("%s", (_, more, there, missing) => {
    const texts = opened(entry(more)).texts();
    expect([there.filter((text) => !texts.includes(text)), missing.filter((text) => texts.includes(text))]).toEqual([[], []]);
  });

  test("a choice is sent to the host; an error is shown over the list", async () => {
    const { button } = opened(entry());
    click("Archive", document.querySelector(".menu")!);
    expect([document.querySelector(".menu"), document.activeElement]).toEqual([null, button]);
    await vi.waitFor(() => expect(document.querySelector("dialog")?.textContent).toContain("refused with 404"));
    expect(host.bodies.get("PATCH /sessions/s1")).toEqual({ archived: true });
  });

  test("Delete asks first, with the title", async () => {
    host.answers["DELETE /sessions/s1"] = {};
    opened(entry());
    click("Delete…", document.querySelector(".menu")!);
    expect([document.querySelector("dialog")?.textContent?.includes("“Fix it”"), host.calls]).toEqual([true, []]);
    [...document.querySelectorAll<HTMLElement>("dialog button.danger")].at(-1)!.click();
    await vi.waitFor(() => expect(host.calls).toEqual(["DELETE /sessions/s1"]));
  });

  test("arrows go round, letters are no keys of the page, Escape and a click outside close it", () => {
    const [button, closed, pressed] = [document.createElement("button"), vi.fn(), vi.fn()];
    document.body.append(button);
    document.body.addEventListener("keydown", pressed);
    const list = openMenu(button, "More", [{ text: "One" }, { text: "Two" }], closed);
    const key = (name: string) => list.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    expect([document.activeElement?.textContent, button.getAttribute("aria-expanded")]).toEqual(["One", "true"]);
    key("ArrowUp");
    expect(document.activeElement?.textContent).toBe("Two");
    key("e");
    key("Escape");
    expect([pressed.mock.calls.length, closed.mock.calls.length, list.isConnected, button.getAttribute("aria-expanded")]).toEqual([0, 1, false, "false"]);
    const again = openMenu(button, "More", [{ text: "One" }], closed);
    document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
    expect([again.isConnected, closed.mock.calls.length]).toEqual([false, 1]);
    document.body.removeEventListener("keydown", pressed);
  });
});

describe("the border between columns", () => {
  function made() {
    vi.stubGlobal("innerWidth", 1400);
    const column = document.createElement("div");
    document.body.append(column);
    grip(column, { name: "side", property: "--side", label: "Width of the list", first: 288, least: 220, most: 460, others: () => 480, towards: 1 });
    const width = () => document.documentElement.style.getPropertyValue("--side");
    column.getBoundingClientRect = () => ({ width: parseFloat(width()) || 288 }) as DOMRect;
    return { handle: column.querySelector<HTMLElement>(".grip")!, width };
  }
  const press = (handle: HTMLElement, key: string) => handle.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));

  test("arrow keys move it within its limits, and it is remembered", () => {
    const { handle, width } = made();
    press(handle, "ArrowRight");
    expect([width(), localStorage.getItem("portico.width.side.middle"), handle.getAttribute("aria-valuenow")]).toEqual(["304px", "304", "304"]);
    for (let time = 0; time < 20; time++) press(handle, "ArrowRight");
    expect(width()).toBe("460px");
    for (let time = 0; time < 40; time++) press(handle, "ArrowLeft");
    expect(width()).toBe("220px");
  });

  test("a double click sets it back", () => {
    const { handle, width } = made();
    press(handle, "ArrowRight");
    handle.dispatchEvent(new Event("dblclick"));
    expect([width(), localStorage.getItem("portico.width.side.middle")]).toEqual(["", null]);
  });

  test("it is a separator with a name and values for screen readers", () => {
    const { handle } = made();
    expect(["role", "aria-label", "aria-valuemin", "aria-valuemax", "aria-orientation"].map((name) => handle.getAttribute(name))).toEqual(["separator", "Width of the list", "220", "460", "vertical"]);
  });
});

describe("sessions of other programs", () => {
  const found = (id: string, cwd: string, updated: number, more: object = {}) => ({ agent: "codex", id, title: `Title ${id}`, cwd, updated, ...more });
  const page = { agents: [{ agent: "codex", sessions: [found("first", "/w/api", 1), found("newest", "/w/shop", 3), found("middle", "/w/api", 2)] }, { agent: "goose", sessions: [], problem: "not installed" }] };

  async function made(answer: object | number = page) {
    host.answers["GET /native-sessions?start=false"] = answer;
    host.answers["GET /native-sessions?"] = answer;
    const changed = vi.fn();
    const group = new Elsewhere({ agentName: (id: string) => id } as unknown as BoardStore, changed);
    await vi.waitFor(() => expect(changed).toHaveBeenCalled());
    return { group, texts: () => [...group.element.querySelectorAll(".elsewhere-folder, .t, .elsewhere-note")].map(({ textContent }) => textContent) };
  }

  test("they are folded and counted; opening them asks the agents, by folder, newest first", async () => {
    const { group, texts } = await made();
    expect([group.render(""), group.element.querySelector(".group-count")?.textContent, texts()]).toEqual([true, "3", []]);
    group.element.querySelector<HTMLElement>(".group-head")!.click();
    await vi.waitFor(() => expect(host.calls).toContain("GET /native-sessions?"));
    await vi.waitFor(() => {
      group.render("");
      expect(texts()).toEqual(["shop", "Title newest", "api", "Title middle", "Title first", "goose: not installed"]);
    });
  });

  test("the filter finds them without opening the group; nothing that fits hides it", async () => {
    const { group, texts } = await made();
    expect([group.render("middle"), texts()]).toEqual([true, ["api", "Title middle", "goose: not installed"]]);
    expect(group.render("zzz")).toBe(false);
  });

  test("a host that refuses shows no group", async () => {
    const { group } = await made(403);
    expect(group.render("")).toBe(false);
  });

  test("a click adopts one and opens it", async () => {
    let body: { confirm?: boolean } = {};
    host.answers["POST /sessions/adopt"] = (given) => ((body = given as typeof body), { id: "s9" });
    const { group } = await made();
    group.render("first");
    group.element.querySelector<HTMLElement>(".elsewhere-row")!.click();
    await vi.waitFor(() => expect(window.location.pathname).toBe("/app/s/s9"));
    expect(body).toEqual({ agent: "codex", native: "first", cwd: "/w/api", confirm: false });
    window.history.replaceState(null, "", "/");
  });
});

describe("what a question is about", () => {
  const diff = 'diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y.py b/y.py\n--- a/y.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n';

  test("the files of a diff have their own names", () => expect(filesOf(diff).map(({ path }) => path)).toEqual(["x.py", "y.py"]));

  test("diffs are open up to three files, texts are folded, and only pictures of known types are shown", () => {
    const view = evidenceView([
      { type: "diff", title: "", text: diff },
      { type: "text", title: "pytest", text: "<b>1 failed</b>" },
      { type: "image", title: "Page", data: "AAAA", mimeType: "image/png" },
      { type: "image", title: "Script", data: "AAAA", mimeType: "image/svg+xml" },
    ]);
    expect([...view.querySelectorAll("details")].map((each) => [each.querySelector("summary")?.textContent, each.open])).toEqual([["x.py", true], ["y.py", true], ["pytest", false]]);
    const text = view.querySelectorAll("details")[2]!;
    expect([view.querySelectorAll("img").length, text.querySelector("b"), text.querySelector("pre")?.textContent]).toEqual([1, null, "<b>1 failed</b>"]);
  });
});
