/** Writing: what `@`, `/` and `!` offer, what a message carries, and what is run instead of sent. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Composer } from "../src/app/composer";
import { lineOf, wordAt } from "../src/app/word";
import type { SessionState } from "../src/conversation/state";
import { attachmentView } from "../src/conversation/rows";
import { V1Host } from "./v1Host";

describe("the word before the cursor", () => {
  test.each<[text: string, at: number, wanted: string | undefined]>([
    ["see @src/l", 10, "@src/l@4"],
    ["see @src/l now", 10, "@src/l@4"],
    ["line\n@x", 7, "@x@5"],
    ["tab\t@x", 6, "@x@4"],
    ["me@example", 10, undefined],
    ["@", 1, "@@0"],
    ["/he", 3, "/he@0"],
    ["a /he", 5, undefined],
    ["\n/he", 4, undefined],
    ["!make te", 8, "!make te@0"],
    ["!make te", 5, "!make@0"],
    ["!", 1, "!@0"],
    ["!make", 0, undefined],
    ["a !make", 7, undefined],
    ["!make @x", 8, "!make @x@0"],
    ["!one\ntwo", 8, undefined],
    ["plain", 5, undefined],
    ["", 0, undefined],
  ])("%j at %i", (text, at, wanted) => {
    const found = wordAt(text, at);
    expect(found && `${found.sign}${found.word}@${found.from}`).toBe(wanted);
  });

  test.each([
    ["!make", "make"],
    ["! make test ", "make test"],
    ["!", ""],
    ["!  ", ""],
    [" !make", ""],
    ["make", ""],
  ])("%j runs %j", (text, line) => expect(lineOf(text)).toBe(line));
});

let host: V1Host;
let composer: Composer;
let said: string[];
const SUGGEST = "GET /sessions/s1/suggestions?q=";
const state = (more: Partial<SessionState> = {}) => ({ id: "s1", agent: "demo", model: "", cwd: "/w", title: "T", turns: [], config: {}, ...more }) as unknown as SessionState;
const options = () => [...document.querySelectorAll<HTMLElement>("[role=option]")];
const press = (key: string, more: KeyboardEventInit = {}) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  composer.area.dispatchEvent(event);
  return event.defaultPrevented;
};
const write = async (text: string) => {
  composer.area.value = text;
  composer.area.setSelectionRange(text.length, text.length);
  composer.area.dispatchEvent(new Event("input", { bubbles: true }));
  await vi.dynamicImportSettled();
  await vi.advanceTimersByTimeAsync(200);
};
const sendName = () => document.getElementById("send")!.getAttribute("aria-label");
const chips = () => [...document.querySelectorAll(".attached-item")].map((each) => each.textContent);

beforeEach(() => {
  vi.useFakeTimers();
  Element.prototype.scrollIntoView = () => undefined; // jsdom has none
  localStorage.clear();
  host = new V1Host({
    "GET /agents": { agents: [], default: null },
    "PUT /sessions/s1/draft": {},
    "POST /sessions/s1/messages": { turn: "t1" },
    "POST /commands": { turn: "t1" },
    "GET /sessions/s2/reference": { type: "chat", resource: "s2", label: "The session 'Flaky test' (s2, demo in /w)", modelRepresentation: "User: hi" },
    [`${SUGGEST}@fl`]: { items: [{ text: "@flow.py" }, { text: "@Flaky test", about: "Session · s2", session: "s2" }] },
    [`${SUGGEST}!`]: { items: [{ text: "!make test" }, { text: "!make" }] },
    [`${SUGGEST}!make`]: { items: [{ text: "!make test" }, { text: "!make" }] },
  });
  said = [];
  const attempt = async (work: () => Promise<unknown>) => work().then(() => true, (error: unknown) => (said.push(String((error as Error).message)), false));
  composer = new Composer("s1", attempt, (text) => said.push(text));
  document.body.replaceChildren(composer.element);
  composer.render(state());
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("a session behind @", () => {
  test("is a choice with a name; the message carries what was said there", async () => {
    await write("as in @fl");
    expect(options().map((each) => each.textContent)).toEqual(["@flow.py", "@Flaky testSession · s2"]);
    press("ArrowDown");
    expect(composer.area.getAttribute("aria-activedescendant")).toBe(options()[1]!.id);
    press("Enter");
    expect([composer.area.value, chips()]).toEqual(["as in @Flaky test ", ["Session: Flaky test"]]);
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect(host.bodies.get("POST /sessions/s1/messages")).toEqual({ text: "as in @Flaky test ", busy: "queue", attachments: [expect.objectContaining({ resource: "s2", modelRepresentation: "User: hi" })] });
    expect(chips()).toEqual([]);
  });

  test("is carried once, and not at all where its chip was removed", async () => {
    for (const text of ["@fl", "@Flaky test and @fl"]) {
      await write(text);
      press("ArrowUp");
      press("Tab");
    }
    expect(chips()).toEqual(["Session: Flaky test"]);
    document.querySelector<HTMLElement>('[aria-label="Remove Session: Flaky test"]')!.click();
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect(host.bodies.get("POST /sessions/s1/messages")).not.toHaveProperty("attachments");
  });

  test("that is gone leaves the words where they were", async () => {
    host.answers["GET /sessions/s2/reference"] = 404;
    await write("@fl");
    press("ArrowDown");
    press("Enter");
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect([composer.area.value, chips(), said]).toEqual(["@Flaky test ", ["Session: Flaky test"], ["refused with 404"]]);
    expect(host.calls).not.toContain("POST /sessions/s1/messages");
  });

  test.each([
    [{ type: "chat", resource: "s2", label: "Flaky" }, "./app/s/s2"],
    [{ type: "chat", resource: "ahp-chat:/x", label: "Flaky" }, null],
    [{ type: "chat", resource: "javascript:alert(1)", label: "Flaky" }, null],
    [{ type: "resource", resource: "s2", label: "Flaky" }, null],
  ])("in a message %j leads to %s", (attached, wanted) => expect(attachmentView(attached).getAttribute("href")).toBe(wanted));
});

describe("a line behind !", () => {
  const run = { command: "command.run", arguments: { session: "s1", line: "make" } };

  test("runs without the agent, as it is written, and says so before", async () => {
    expect([sendName(), document.getElementById("runs")!.textContent]).toEqual(["Send", ""]);
    await write("!make");
    expect(options().map((each) => each.textContent)).toEqual(["!make test"]);
    expect(composer.area.hasAttribute("aria-activedescendant")).toBe(false);
    expect([sendName(), document.getElementById("runs")!.textContent]).toEqual(["Run", "Runs in the folder of the session, without the agent."]);
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect(host.bodies.get("POST /commands")).toEqual(run);
    expect([composer.area.value, sendName(), options().length === 0 || document.getElementById("suggestions")!.hidden]).toEqual(["", "Send", true]);
    expect(host.calls).not.toContain("POST /sessions/s1/messages");
  });

  test.each([
    ["ArrowDown", "!make test"],
    ["ArrowUp", "!make"],
  ])("of before is chosen with %s and Enter, and not run yet", async (key, wanted) => {
    await write("!");
    press(key);
    expect(press("Enter")).toBe(true);
    expect([composer.area.value, host.calls.includes("POST /commands")]).toEqual([wanted, false]);
  });

  test("is completed with Tab", async () => {
    await write("!");
    press("Tab");
    expect(composer.area.value).toBe("!make test");
  });

  test("is a message for those who may not run one", async () => {
    host.answers[`${SUGGEST}!make`] = 403;
    await write("!make");
    expect([sendName(), document.getElementById("runs")!.textContent]).toEqual(["Send", ""]);
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect(host.bodies.get("POST /sessions/s1/messages")).toEqual({ text: "!make", busy: "queue" });
    expect(host.calls).not.toContain("POST /commands");
  });

  test("is not lost when the host refuses it, nor is what is attached", async () => {
    host.answers["POST /commands"] = 409;
    await write("@fl");
    press("ArrowDown");
    press("Tab");
    await write("!make");
    press("Enter");
    await vi.advanceTimersByTimeAsync(0);
    expect([composer.area.value, chips(), said]).toEqual(["!make", ["Session: Flaky test"], ["refused with 409"]]);
  });

  test("goes nowhere beside a running turn but to the host, which answers for it", async () => {
    composer.render(state({ turns: [{ id: "t", started: 1, message: { text: "x" }, parts: [] }], active: "t" } as unknown as Partial<SessionState>));
    await write("!make");
    expect([sendName(), document.getElementById("steer")!.hidden]).toEqual(["Run", true]);
    await write("make");
    expect([sendName(), document.getElementById("steer")!.hidden]).toEqual(["Queue", false]);
  });
});
