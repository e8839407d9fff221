/** Small parts around a session: announcements, the map of messages, details, the menu of a session, rewinding. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Announcer } from "../src/app/announcer";
import { Details } from "../src/app/details";
import { MessageMap } from "../src/app/messageMap";
import { resend, tryAgain } from "../src/app/resend";
import { sessionMenu } from "../src/app/sessionMenu";
import type { OpenSession, SessionContext } from "../src/app/view";
import type { SessionState, Turn } from "../src/conversation/state";
import { V1Host } from "./v1Host";

const turn = (id: string, more: Partial<Turn> = {}): Turn => ({ id, message: { text: `message ${id}` }, by: "token:owner", started: 0, ended: 2_000, outcome: "completed", parts: [], ...more });
const state = (more: Partial<SessionState> = {}): SessionState => ({ id: "s1", agent: "codex", model: "gpt", cwd: "/w/api", pos: 1, turns: [], ...more });

let host: V1Host;
beforeEach(() => {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) { this.open = true; };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) { this.open = false; this.dispatchEvent(new Event("close")); };
  host = new V1Host({ "GET /grants": { grants: [] } });
});
afterEach(() => {
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

function open(given: SessionState) {
  const errors: string[] = [];
  const written: string[] = [];
  const gone: unknown[] = [];
  const view = { id: given.id, state: given, agentName: "Codex", attempt: async (work: () => Promise<unknown>) => work().then(() => true, (error: Error) => (errors.push(error.message), false)), fork: vi.fn(), composer: { add: (text: string) => written.push(text) } };
  const frame = { go: (place: unknown) => gone.push(place), panelAt: (tab: string) => gone.push(tab) };
  return { view: view as unknown as OpenSession, frame: frame as unknown as SessionContext, errors, written, gone };
}

describe("announcements for screen readers", () => {
  const text = (id: string, words: string, done = false) => ({ part: "text" as const, id, kind: "text" as const, text: words, done });
  const now = (...parts: ReturnType<typeof text>[]) => state({ turns: [turn("t1", { parts })] });
  const polite = (announcer: Announcer) => announcer.element.querySelector("[aria-live=polite]")?.textContent;

  test("a text is read by finished paragraphs, and its rest when it is done", () => {
    const announcer = new Announcer();
    announcer.begin(now());
    announcer.announceText(now(text("a", "First para")));
    expect(polite(announcer)).toBe("");
    announcer.announceText(now(text("a", "First paragraph.\n\nSecond")));
    expect(polite(announcer)).toBe("First paragraph.");
    announcer.announceText(now(text("a", "First paragraph.\n\nSecond.", true)));
    expect(polite(announcer)?.trim()).toBe("Second.");
  });

  test("what was there before is not read again", () => {
    const announcer = new Announcer();
    announcer.begin(now(text("a", "Old.\n\nOlder.", true)));
    announcer.announceText(now(text("a", "Old.\n\nOlder.", true)));
    expect(polite(announcer)).toBe("");
  });

  test("a card is announced once with its question, and the announcement ends with it", () => {
    const announcer = new Announcer();
    const page = document.createElement("div");
    page.innerHTML = '<div id="transcript"><section class="card"><h2 id="title-1">Run this command?</h2></section></div>';
    const urgent = () => announcer.element.querySelector("[aria-live=assertive]")?.textContent;
    announcer.announceCard(page);
    expect(urgent()).toBe("Needs you: Run this command?");
    page.querySelector(".card")!.remove();
    announcer.announceCard(page);
    expect(urgent()).toBe("");
  });
});

describe("the map of messages", () => {
  const turns = (count: number) => Array.from({ length: count }, (_, index) => turn(`t${index}`));

  test("a short conversation has none; a long one has a mark for each message, and a click goes there", () => {
    const visited: string[] = [];
    const map = new MessageMap(({ id }) => visited.push(id));
    map.render(state({ turns: turns(3) }));
    expect([map.element.hidden, map.element.children.length]).toEqual([true, 0]);
    map.render(state({ turns: turns(4) }));
    const marks = [...map.element.querySelectorAll<HTMLElement>("i")];
    expect([map.element.hidden, marks.map(({ style }) => style.top), marks[1]?.title]).toEqual([false, ["0%", "25%", "50%", "75%"], "message t1"]);
    marks[2]!.click();
    expect(visited).toEqual(["t2"]);
  });

  test("of very many messages some are left out evenly", () => {
    const map = new MessageMap(() => undefined);
    map.render(state({ turns: turns(500) }));
    expect(map.element.querySelectorAll("i").length).toBe(100);
  });
});

describe("details", () => {
  const facts = (details: Details) => Object.fromEntries([...details.element.querySelectorAll(".facts-list dt")].map((name) => [name.textContent, name.nextElementSibling?.textContent]));

  test("agent, folder, usage and turns; unknown cost is not 0", async () => {
    const { view } = open(state({ usage: { input: 40_000, output: 2_000, cached: 10_000 }, turns: [turn("t1", { usage: { input: 40_000, output: 2_000 } }), turn("t2", { ended: null, outcome: null })], parent: "s0", config: { approvals: "ask", nested: {} } }));
    const details = new Details(view);
    expect(facts(details)).toEqual({ Agent: "Codex · gpt", Folder: "/w/api", Used: "42 k tokens (10 k tokens cached), cost unknown", Turns: "2", Session: "s1", "Came from": "s0", approvals: "ask" });
    const rows = [...details.element.querySelectorAll("table tr")].map((row) => [...row.children].map(({ textContent }) => textContent));
    expect(rows).toEqual([
      ["Message", "By", "Took", "Tokens", "Cost"],
      ["message t2", "You", "running", "unknown", "unknown"],
      ["message t1", "You", "2.0 s", "42 k tokens", "unknown"],
    ]);
    await vi.waitFor(() => expect(host.calls).toContain("GET /grants"));
  });

  test("remembered answers of this session can be forgotten; hosts that the sandbox reached are listed", async () => {
    const grant = { id: "g1", agent: "codex", tool: "bash", allow: true, expires: 0, session: "s1", covers: ["command:npm test"] };
    let grants: object[] = [grant, { ...grant, id: "g2", session: "other" }];
    host.answers["GET /grants"] = () => ({ grants });
    host.answers["DELETE /grants/g1"] = () => ((grants = []), {});
    host.answers["GET /sessions/s1/network"] = { hosts: [{ host: "pypi.org", port: 443, count: 2, refused: 1, sent: 2048, received: 0, last: Date.now(), allowed_by: ["policy"], refused_by: ["token:owner"] }] };
    const { view } = open(state());
    const details = new Details(view);
    await vi.waitFor(() => expect(details.element.textContent).toContain("Allowed: bash, npm test …, in this session"));
    expect(details.element.querySelectorAll(".grants li").length).toBe(1);
    const network = [...details.element.querySelectorAll("table td")].map(({ textContent }) => textContent);
    expect([network[0], network[1], network[4]]).toEqual(["pypi.org:443", "2, 1 refused or failed", "the policy, You"]);
    details.element.querySelector<HTMLElement>(".grants button")!.click();
    await vi.waitFor(() => expect(details.element.querySelector(".grants")).toBeNull());
  });
});

describe("the menu of a session", () => {
  const choices = (given: SessionState) => {
    const { view, frame, gone, errors } = open(given);
    const menu = sessionMenu(view, frame) as HTMLDetailsElement;
    document.body.append(menu);
    menu.open = true;
    menu.dispatchEvent(new Event("toggle"));
    return { menu, gone, errors, texts: [...menu.querySelectorAll(".menu > *")].map(({ firstChild }) => firstChild?.textContent), press: (id: string) => menu.querySelector<HTMLElement>(`#${id}`)!.click() };
  };

  test.each<[string, Partial<SessionState>, string, boolean]>([
    ["Resume after an interruption", { turns: [turn("t1", { outcome: "interrupted" })] }, "Resume", true],
    ["Resume after a failure", { turns: [turn("t1", { outcome: "failed" })] }, "Resume", true],
    ["no Resume after an answer", { turns: [turn("t1")] }, "Resume", false],
    ["an archived session can be taken out", { archived: true }, "Take out of the archive", true],
    ["a closed session can be reopened", { closed: true }, "Reopen", true],
  ])("%s", (_, more, text, there) => expect(choices(state(more)).texts.includes(text)).toBe(there));

  test("choices open the panel, or ask the host and close the menu", async () => {
    host.answers["PATCH /sessions/s1"] = {};
    const { menu, gone, press } = choices(state());
    press("details");
    expect([gone, menu.open]).toEqual([["details"], false]);
    menu.open = true;
    press("archive");
    await vi.waitFor(() => expect(host.bodies.get("PATCH /sessions/s1")).toEqual({ archived: true }));
  });

  test("exports are downloads", () => {
    const { menu } = choices(state());
    const links = [...menu.querySelectorAll("a")];
    expect(links.map(({ textContent, download }) => [textContent, download])).toEqual(["Markdown", "HTML", "JSON Lines"].map((name) => [`Export as ${name}`, ""]));
    expect(links.map(({ href }) => new URL(href).searchParams.get("format"))).toEqual(["markdown", "html", "jsonl"]);
  });
});

describe("rewinding", () => {
  const press = (text: string) => [...document.querySelectorAll<HTMLElement>("dialog button")].find(({ textContent }) => textContent === text)!.click();
  const three = [turn("t1"), turn("t2"), turn("t3")];

  test("the text counts what is removed, and editing here puts the message into the field", async () => {
    host.answers["POST /sessions/s1/truncate"] = {};
    const { view, frame, written } = open(state({ turns: three }));
    resend(view, frame, three[1]!);
    expect(document.querySelector("dialog p")?.textContent).toBe("This removes everything after this message (2 turns) from the session. Files are not touched. To keep it, continue in a copy.");
    press("Edit here");
    await vi.waitFor(() => expect(written).toEqual(["message t2"]));
    expect([host.bodies.get("POST /sessions/s1/truncate"), document.querySelector("dialog")]).toEqual([{ turn: "t1" }, null]);
  });

  test("in a copy the message is its draft, and this session stays as it is", async () => {
    host.answers["POST /sessions/s1/fork"] = { id: "s2" };
    host.answers["PUT /sessions/s2/draft"] = {};
    const { view, frame, gone } = open(state({ turns: three }));
    resend(view, frame, three[2]!);
    press("Continue in a copy");
    await vi.waitFor(() => expect(host.bodies.get("PUT /sessions/s2/draft")).toEqual({ text: "message t3" }));
    expect([gone, host.bodies.get("POST /sessions/s1/fork"), host.calls.some((call) => call.includes("truncate"))]).toEqual([[{ at: "session", id: "s2" }], { turn: "t2" }, false]);
  });

  test("the first message has nothing before it to copy: a new session is opened", () => {
    const { view, frame, gone } = open(state({ turns: three }));
    resend(view, frame, three[0]!);
    press("Continue in a copy");
    expect([gone, host.calls]).toEqual([[{ at: "new", what: "session" }], []]);
  });

  test("trying again sends the same message with its attachments; an error of the host is shown", async () => {
    const { view, frame, errors } = open(state({ turns: [turn("t1", { message: { text: "go", attachments: [{ label: "a.png" }] } })] }));
    tryAgain(view, frame, view.state!.turns![0]!);
    press("Replace this answer");
    await vi.waitFor(() => expect(errors).toEqual(["refused with 404"]));
    host.answers["POST /sessions/s1/truncate"] = {};
    host.answers["POST /sessions/s1/messages"] = { turn: "t9" };
    tryAgain(view, frame, view.state!.turns![0]!);
    press("Replace this answer");
    await vi.waitFor(() => expect(host.bodies.get("POST /sessions/s1/messages")).toEqual({ text: "go", attachments: [{ label: "a.png" }] }));
  });
});
