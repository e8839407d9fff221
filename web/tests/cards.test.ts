/** Cards: the steps of a question, what a remembered answer is about, marks over colours, decisions of a job. */

import type { Event } from "../src/rest";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { stepsOf, taskDecisions, treeOf, type WorkTree } from "../src/app/jobModel";
import { markRange } from "../src/conversation/diffColours";
import { approvalCard, refreshCard, undoButton, verdict } from "../src/conversation/approval";
import { coverWords, grantWords } from "../src/conversation/grants";
import type { CardActions } from "../src/conversation/pieces";
import { questionCard } from "../src/conversation/question";
import type { Approval, CallPart, Field, QuestionPart } from "../src/conversation/state";
import { ignoreEarlyClicks, takesClicks } from "../src/settle";
import { type ChangedFile, v1 } from "../src/v1";

afterEach(() => vi.restoreAllMocks());

const COLOUR: Field = { id: "c", title: "Which colour?", kind: "single-select", options: [{ id: "r", label: "Red", description: "As it was" }, { id: "g", label: "Green" }] };
const PAGES: Field = { id: "p", title: "Which pages?", kind: "multi-select", options: [{ id: 1, label: "Home" }, { id: 2, label: "Login" }] };
const WORDS: Field = { id: "w", title: "Anything else?" };

function asked(fields: Field[], more: Partial<QuestionPart> = {}) {
  const answer = vi.spyOn(v1, "answer").mockResolvedValue(undefined as never);
  const attempt = async (work: () => Promise<unknown>) => work().then(() => true);
  const card = questionCard({ part: "question", id: "q", text: "Some things are open.", fields, ...more }, { cwd: () => "/w", attempt });
  document.body.replaceChildren(card);
  const press = (text: string) => [...card.querySelectorAll("button")].find((button) => button.textContent?.includes(text))!.click();
  return { card, answer, press };
}

/** A card as it stands on a page; what git does not hold is what the host would say. */
function approving(more: Partial<Approval>, lost: ChangedFile[] = [], call: Partial<CallPart> = {}, attempt: CardActions["attempt"] = async () => true) {
  vi.spyOn(v1, "uncommitted").mockResolvedValue({ git: true, state: "x", files: lost });
  const options = [{ id: "y", label: "Allow once", allow: true }, { id: "n", label: "Deny", allow: false }];
  const approval: Approval = { id: "s.a", kind: "shell", title: "", input: "{}", expires: 0, options, ...more };
  const card = approvalCard(approval, { part: "call", id: "c", tool: "bash", ...call }, { cwd: () => "/w", attempt });
  document.body.replaceChildren(card);
  return { card, title: card.querySelector("h2")?.textContent, answers: () => [...card.querySelectorAll(".answers button")].map((button) => button.textContent), facts: () => [...card.querySelectorAll(".card-facts li")].map((item) => item.textContent) };
}

describe("approvals", () => {
  test.each<[Partial<Approval>, string]>([
    [{ command: "make" }, "Run this command?"],
    [{ command: "rm -r old" }, "Run a command that deletes files?"],
    [{ command: "curl example.org" }, "Run a command that uses the network?"],
    [{ kind: "write", path: "/w/a.py", diff: "+x" }, "Change a.py?"],
  ])("%j asks", (given, title) => expect(approving(given).title).toBe(title));

  test("a connection out of the sandbox names its host, and every answer is one press", () => {
    const options = [
      { id: "allow-once", label: "Allow once", allow: true },
      { id: "allow-session", label: "Allow in this session", allow: true, grant: "session" as const },
      { id: "allow-folder", label: "Allow always in this folder", allow: true, grant: "project" as const },
      { id: "deny", label: "Deny", allow: false },
    ];
    const input = '{"host":"docs.example.com","port":443}';
    const title = "codex wants to reach docs.example.com:443, first time in this session";
    const card = approving({ kind: "other", title, input, options, why: "It always asks: it leaves the sandbox." }, [], { tool: "network", input });
    expect(card.title).toBe("Connect to docs.example.com:443?");
    expect(card.answers().map((text) => text?.replace(/[A-Z]$/, ""))).toEqual(options.map(({ label }) => label));
  });

  test("what opens an address names it in full, and a yes takes two steps", () => {
    const { title, answers, facts } = approving({ kind: "other", title: "web_fetch" }, [], { tool: "web_fetch", kind: "fetch", input: '{"url":"https://example.org/a?b=c"}' });
    expect([title, answers(), facts()]).toEqual(["Open https://example.org/a?b=c?", ["DenyN", "Allow…"], ["Uses the network", "No time limit"]]);
  });

  test("what a command would lose for good is said before anybody answers", async () => {
    const { facts } = approving({ command: "rm -r old" }, [{ path: "old/a.sql", status: "added", added: 1, removed: 0, binary: false }]);
    await vi.waitFor(() => expect(facts()).toEqual(["Lost for good: 1 file not in git.", "Deletes files", "No time limit"]));
  });

  test("a limit counts down in words", () => {
    vi.useFakeTimers({ now: new Date(2026, 5, 10, 12) });
    try {
      const { facts } = approving({ command: "make", expires: Date.now() + 10 * 60_000 });
      expect(facts()).toEqual([expect.stringMatching(/^Not done if no one answers within 10 min, by 12:10/)]);
      vi.advanceTimersByTime(9 * 60_000);
      expect(facts()).toEqual([expect.stringMatching(/within 60 s, by/)]);
      vi.advanceTimersByTime(61_000);
      expect(facts()).toEqual(["No one answered in time"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a countdown goes on for a card that was out of the page, and after the limit the card takes no answer", () => {
    vi.useFakeTimers({ now: new Date(2026, 5, 10, 12) });
    try {
      const { card, facts } = approving({ command: "make", expires: Date.now() + 60_000 });
      card.remove();
      vi.advanceTimersByTime(5_000);
      document.body.append(card);
      vi.advanceTimersByTime(1_000);
      expect(facts()).toEqual([expect.stringMatching(/within 54 s/)]);
      const enabled = () => [...card.querySelectorAll("button")].filter(({ disabled }) => !disabled).length;
      expect(enabled()).toBe(2);
      vi.advanceTimersByTime(54_000);
      expect([facts(), enabled()]).toEqual([["No one answered in time"], 0]);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("an answer that was refused after the limit leaves the card without answers", async () => {
    vi.useFakeTimers({ now: new Date(2026, 5, 10, 12) });
    try {
      const { card } = approving({ command: "make", expires: Date.now() + 1_500 }, [], {}, async () => (vi.advanceTimersByTime(2_000), false));
      card.querySelector<HTMLElement>("[data-answer=y]")!.click();
      await vi.advanceTimersByTimeAsync(0);
      expect([...card.querySelectorAll("button")].map(({ disabled }) => disabled)).toEqual([true, true]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("two quick clicks ask once what a remembered answer covers, and open one menu", async () => {
    const covers = vi.spyOn(v1, "covers").mockResolvedValue([{ breadth: "shown", covers: ["path:/w/a.py"] }, { breadth: "all", covers: ["folder:/w"] }]);
    const options = [{ id: "y", label: "Allow once", allow: true }, { id: "s", label: "Allow in this session", allow: true, grant: "session" as const }, { id: "n", label: "Deny", allow: false }];
    const approve = vi.spyOn(v1, "approve").mockResolvedValue(undefined as never);
    const receipts: unknown[] = [];
    const { card } = approving({ kind: "write", path: "/w/a.py", options }, [], {}, async (work, allows, scope) => (receipts.push([allows, scope]), await work(), true));
    const button = [...card.querySelectorAll("button")].find(({ textContent }) => textContent === "Allow in this session")!;
    button.click();
    button.click();
    await vi.waitFor(() => expect(card.querySelector(".scopes")).not.toBeNull());
    expect([covers.mock.calls.length, card.querySelectorAll(".scopes").length]).toEqual([1, 1]);
    expect([...card.querySelectorAll(".scopes .option")].map(({ textContent }) => textContent)).toEqual(["Allow edits to a.py", "Allow edits to every file in this project"]);
    card.querySelectorAll<HTMLElement>(".scopes .option")[1]!.click();
    expect(approve).toHaveBeenCalledWith("s.a", { option: "s", covers: "all" });
    expect(receipts.at(-1)).toEqual([true, "edits to every file in this project in this session"]);
    expect(card.querySelector(".scopes")).toBeNull();
  });
});

test.each([
  ["It always asks: built-in rule 'rm'.", "Always asks (built-in rule: rm)"],
  ["It always asks: a protected file.", "Always asks (a protected file)"],
  ["The policy asks for every write.", "The policy asks for every write."],
])("the reason %j is shown as %j", (why, shown) => expect(approving({ command: "make", why }).facts()[0]).toBe(shown));

test("an everyday question shows no reason", () => expect(approving({ command: "make", why: "No rule lets it pass." }).facts()).toEqual(["No time limit"]));

describe("a second render of an approval changes only what changed", () => {
  test("a countdown keeps the note, the focus and the button between press and release", () => {
    vi.useFakeTimers({ now: new Date(2026, 5, 10, 12) });
    try {
      const { card } = approving({ command: "make", editable: true, input: "{}", expires: Date.now() + 60_000 });
      const [note, area, yes] = [card.querySelector<HTMLInputElement>(".reason")!, card.querySelector("textarea")!, card.querySelector<HTMLElement>("[data-answer=y]")!];
      note.value = "careful";
      area.value = '{"x":1}';
      yes.focus();
      vi.advanceTimersByTime(10_000);
      expect([card.querySelector(".reason"), card.querySelector("textarea"), card.querySelector("[data-answer=y]"), document.activeElement]).toEqual([note, area, yes, yes]);
      expect([note.value, area.value]).toEqual(["careful", '{"x":1}']);
    } finally {
      vi.useRealTimers();
    }
  });

  test("the answer carries the note and the changed input; a denial has no input", async () => {
    const approve = vi.spyOn(v1, "approve").mockResolvedValue(undefined as never);
    for (const key of ["y", "n"]) {
      const { card } = approving({ command: "make", editable: true, input: "{}" }, [], {}, async (work) => (await work(), true));
      card.querySelector<HTMLInputElement>(".reason")!.value = "careful";
      card.querySelector("textarea")!.value = '{"x":1}';
      card.querySelector<HTMLElement>(`[data-answer=${key}]`)!.click();
    }
    expect(approve.mock.calls).toEqual([["s.a", { option: "y", reason: "careful", input: '{"x":1}' }], ["s.a", { option: "n", reason: "careful" }]]);
  });

  test("a refused answer can be given again", async () => {
    const { card } = approving({ command: "make" }, [], {}, async () => false);
    const enabled = () => [...card.querySelectorAll("button")].filter(({ disabled }) => !disabled).length;
    card.querySelector<HTMLElement>("[data-answer=y]")!.click();
    expect(enabled()).toBe(0);
    await vi.waitFor(() => expect(enabled()).toBe(2));
  });

  test("a danger: the second step has the focus on Back, and Back returns to the first", async () => {
    const { card, answers } = approving({ command: "rm -r old" }, [{ path: "old/a.sql", status: "added", added: 1, removed: 0, binary: false }]);
    const press = (text: string) => [...card.querySelectorAll("button")].find(({ textContent }) => textContent === text)!.click();
    await vi.waitFor(() => expect(card.querySelector(".card-facts")?.textContent).toContain("Lost for good"));
    press("Allow…");
    expect([answers(), document.activeElement?.textContent, card.querySelector(".careful")?.textContent]).toEqual([["Back", "Allow once"], "Back", "Lost for good: 1 file not in git. This deletes files. Allow it anyway?"]);
    press("Back");
    expect([answers(), card.querySelector(".careful")]).toEqual([["DenyN", "Allow…"], null]);
  });

  test("a name that is known later replaces the id of the agent", () => {
    let name = "codex";
    const approval: Approval = { id: "s.a", kind: "shell", title: "", input: "{}", expires: 0, command: "make", options: [] };
    const card = approvalCard(approval, { part: "call", id: "c", tool: "bash" }, { cwd: () => "/w", agent: () => name, attempt: async () => true });
    name = "Codex";
    refreshCard(card);
    expect(card.querySelector(".about")?.textContent).toBe("Codex wants to run it in /w. Nothing runs until you allow it.");
  });

  test("a write of the text that the file has already changes nothing, and is no dump", () => {
    const { card } = approving({ kind: "write", path: "/w/a.py", diff: "", input: '{"content":"same"}' });
    expect([card.querySelector(".about")?.textContent, card.querySelectorAll(":scope > .box").length, card.querySelector("details summary")?.textContent]).toEqual(["The agent would write the file with its current content. It changes nothing.", 0, "The exact input"]);
  });
});

describe("what was answered", () => {
  const call: CallPart = { part: "call", id: "c", tool: "bash" };
  const acts: CardActions = { cwd: () => "/w", attempt: async (work) => (await work(), true) };
  const base: Approval = { id: "s.a", kind: "shell", title: "", input: "{}", expires: 0, options: [{ id: "s", label: "", allow: true, grant: "session" }], answered: true };

  test.each<[Partial<Approval>, string]>([
    [{ by: "timeout", allowed: false }, "No one answered in time, so it was not done."],
    [{ by: "token:owner", allowed: false, reason: "cancelled" }, "Not run: you stopped the turn."],
    [{ by: "turn", allowed: false, reason: "cancelled" }, "Not answered: the turn ended first."],
    [{ by: "token:owner", allowed: true, option: "y" }, "You allowed it."],
    [{ by: "token:ann", allowed: false, option: "n", reason: "not now" }, "ann denied it: not now"],
  ])("%j", (given, text) => expect(verdict({ ...base, ...given }, call, acts).textContent).toBe(text));

  test("a remembered answer names its scope and can be undone once", async () => {
    vi.spyOn(v1, "grants").mockResolvedValue([{ id: "g1" }, { id: "kept" }] as never);
    const revoke = vi.spyOn(v1, "revoke").mockResolvedValue(undefined as never);
    const line = verdict({ ...base, by: "token:owner", allowed: true, option: "s", grant: "g1", covers: ["command:npm test"] }, call, acts);
    expect(line.textContent).toBe("You allowed npm test … in this session. Undo");
    line.querySelector("button")!.click();
    await vi.waitFor(() => expect(line.textContent).toBe("You allowed npm test … in this session. Undone: it will ask again."));
    expect([revoke.mock.calls, line.querySelector("button")]).toEqual([[["g1"]], null]);
  });

  test("what another reader has revoked has no Undo; a failed Undo can be tried again", async () => {
    vi.spyOn(v1, "grants").mockResolvedValue([{ id: "g1" }, { id: "kept" }] as never);
    const [gone, kept] = [undoButton("gone", async () => true), undoButton("kept", async () => false)];
    await vi.waitFor(() => expect(gone.querySelector("button")).toBeNull());
    kept.querySelector("button")!.click();
    await vi.waitFor(() => expect(kept.querySelector<HTMLButtonElement>("button:enabled")?.textContent).toBe("Undo"));
  });
});

test("what has just opened settles after 400 ms; a click by the page's own code, which checks before, passes", () => {
  const [box, button, clicked] = [document.createElement("div"), document.createElement("button"), vi.fn()];
  button.addEventListener("click", clicked);
  box.append(button);
  const now = vi.spyOn(performance, "now").mockReturnValue(1_000);
  ignoreEarlyClicks(box);
  button.click();
  expect([takesClicks(box), box.hasAttribute("data-settling"), clicked.mock.calls.length]).toEqual([false, true, 1]);
  now.mockReturnValue(1_401);
  expect(takesClicks(box)).toBe(true);
});

describe("questions", () => {
  test("several fields are steps; one can go back; a choice goes on at once, boxes and texts with the button", () => {
    const { card, answer, press } = asked([COLOUR, PAGES, WORDS]);
    expect(card.textContent).toContain("1 of 3");
    expect([...card.querySelectorAll(".option")].map((option) => option.getAttribute("aria-keyshortcuts"))).toEqual(["1", "2"]);
    press("Green");
    expect(card.textContent).toContain("2 of 3");
    press("Home");
    press("Login");
    press("Home");
    expect([...card.querySelectorAll("[role=checkbox]")].map((box) => box.getAttribute("aria-checked"))).toEqual(["false", "true"]);
    press("Back");
    expect(card.querySelector("[aria-pressed=true]")?.textContent).toContain("Green");
    press("Red");
    press("Login");
    press("Next");
    card.querySelector("input")!.value = "no";
    press("Answer");
    expect(answer).toHaveBeenCalledWith("q", { answers: { c: "r", p: [2], w: "no" } });
  });

  test.each([
    ["one choice is the answer", [COLOUR], "Red", { answers: { c: "r" } }],
    ["what is open may stay open", [COLOUR, { ...COLOUR, id: "d" }], "Leave it open", undefined],
    ["a no is a no", [COLOUR], "Decline", { response: "decline" }],
  ])("%s", (_name, fields, button, body) => {
    const { answer, press } = asked(fields);
    press(button);
    if (body) expect(answer).toHaveBeenCalledWith("q", body);
    else expect(answer).not.toHaveBeenCalled();
  });

  test("words of one's own, where they will do", () => {
    const { card, answer, press } = asked([{ ...COLOUR, allowFreeformInput: true }]);
    press("Something else");
    card.querySelector("input")!.value = "Blue";
    press("Answer");
    expect(answer).toHaveBeenCalledWith("q", { answers: { c: "Blue" } });
    expect(asked([COLOUR]).card.textContent).not.toContain("Something else");
  });

  test("each step has its own field: what was typed in one is not in the next, and is there again after Back", () => {
    const { card, answer, press } = asked([WORDS, { id: "n", title: "How many?", kind: "number" }, { id: "b", title: "Sure?", kind: "boolean" }]);
    const input = () => card.querySelector("input")!;
    input().value = "soon";
    press("Next");
    expect([input().value, input().type]).toEqual(["", "number"]);
    press("Back");
    expect(input().value).toBe("soon");
    press("Next");
    input().value = "3";
    press("Next");
    input().checked = true;
    press("Answer");
    expect(answer).toHaveBeenCalledWith("q", { answers: { w: "soon", n: 3, b: true } });
  });

  test("a choice keeps the focus where it is; the next step moves it to its first field", () => {
    const { card, press } = asked([PAGES, WORDS]);
    const home = card.querySelector<HTMLElement>(".option")!;
    home.focus();
    home.click();
    expect([document.activeElement, home.getAttribute("aria-checked")]).toEqual([home, "true"]);
    press("Next");
    expect(document.activeElement).toBe(card.querySelector("input"));
  });

  test("an answer that could not be sent can be sent again", async () => {
    const card = questionCard({ part: "question", id: "q", text: "Which?", fields: [COLOUR] }, { cwd: () => "/w", attempt: async () => false });
    document.body.replaceChildren(card);
    card.querySelector<HTMLElement>(".option")!.click();
    expect(card.querySelectorAll("button:enabled").length).toBe(0);
    await vi.waitFor(() => expect(card.querySelectorAll("button:enabled").length).toBe(3));
  });

  describe("of a job", () => {
    const CHECK: Field[] = [{ id: "answer", kind: "single-select", message: "Is it good?", required: true, options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }] }, { id: "reason", kind: "text", message: "Why?" }];
    const buttons = (card: HTMLElement) => [...card.querySelectorAll("button")].map((each) => each.textContent?.replace(/^\d/, "").trim());

    test("one tap answers a person check; there is no third button", () => {
      const { card, answer, press } = asked(CHECK);
      expect(buttons(card)).toEqual(["Yes", "No"]);
      press("Yes");
      expect(answer.mock.calls).toEqual([["q", { answers: { answer: "yes" } }]]);
    });

    test("the reason is next to it, and goes along", () => {
      const { card, answer, press } = asked(CHECK);
      card.querySelector<HTMLInputElement>("input.reason")!.value = " too slow ";
      card.dispatchEvent(new globalThis.Event("submit"));
      expect(answer).not.toHaveBeenCalled();
      press("No");
      expect(answer.mock.calls).toEqual([["q", { answers: { answer: "no", reason: "too slow" } }]]);
    });

    test("a step that asks offers its choices only; a question of an agent can be declined", () => {
      const [choice] = CHECK as [Field];
      expect(buttons(asked([{ ...choice, message: "Choose" }]).card)).toEqual(["Yes", "No"]);
      expect(buttons(asked([{ ...choice, id: "ok" }, { id: "note", title: "Note" }]).card)).toEqual(["Yes", "No", "Decline"]);
      expect(buttons(asked([{ ...choice, id: "colour" }]).card)).toEqual(["Yes", "No", "Decline"]);
    });
  });

  test("only some people may answer, and there is a link to the page of the question; other addresses are none", () => {
    const { card } = asked([], { people: ["ann", "bob"], url: "https://example.org/ask" });
    expect([card.querySelector("p.soft")?.textContent, card.querySelector("a")?.href]).toEqual(["Only ann, bob may answer.", "https://example.org/ask"]);
    expect(asked([], { url: "javascript:alert(1)" }).card.querySelector("a")).toBeNull();
  });

  test("what was answered is read by its names", () => {
    const { card } = asked([COLOUR, PAGES], { response: "accept", answers: { c: { value: { value: "g" } }, p: [1, 2] } });
    expect([...card.querySelectorAll("dd")].map((each) => each.textContent)).toEqual(["Green", "Home, Login"]);
  });
});

test.each([
  [["path:/w/src/a.py"], "src/a.py"],
  [["folder:/w/src"], "every file in src/"],
  [["folder:/w"], "every file in this project"],
  [["command:npm test", "line:ls -l"], "npm test …, ls -l"],
  [["call:0123"], "exactly this call"],
  [["host:docs.example.com:443"], "connections to docs.example.com:443"],
  [["read:/data", "write:/out"], "reading /data, reading and writing /out"],
  [[], "everything bash does"],
])("an answer that is remembered for %j", (covers, words) => {
  expect(coverWords(covers, "bash", "/w")).toBe(words);
  const grant = { id: "1", agent: "a", tool: "bash", allow: true, expires: 0, covers };
  expect(grantWords(grant, "/w")).toBe(covers.length ? `Allowed: bash, ${words}` : `Allowed: ${words}`);
});

/** The page of one session shows the same cards with style sheets of its own. A change to approve read "1+added, line 1, x" there, a choice "Redas it was". */
describe("on the page of one session", () => {
  const read = (name: string) => readFileSync(resolve(import.meta.dirname, "..", name), "utf8");
  const sheets = [...read("index.html").matchAll(/href="\.\/([\w-]+\.css)"/g)].map(([, name]) => read(`public/${name}`));
  const styled = (text: string) => new Set([...text.matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => name));
  const [there, here] = [styled(read("public/app.css") + read("public/app-conversation.css")), styled(sheets.join("\n"))];
  /** These two only say how a card stands beside the workbench's own field and answers. */
  const ELSEWHERE = ["reason", "question"];
  const missing = () => [...new Set([...document.querySelectorAll("body *")].flatMap((element) => [...element.classList]))].filter((name) => there.has(name) && !here.has(name) && !ELSEWHERE.includes(name));

  test.each<[string, () => unknown]>([
    ["a command", () => approving({ command: "make" })],
    ["a command that can be changed", () => approving({ command: "make", editable: true })],
    ["a danger", () => approving({ command: "rm -r old", why: "It always asks." })],
    ["a danger, at its second step", () => (approving({ command: "rm -r old" }), document.querySelector<HTMLElement>(".danger")?.click())],
    ["a change", () => approving({ kind: "write", path: "/w/a.py", diff: "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n same\n-old one\n+new one\n" })],
    ["a question", () => asked([])],
    ["a choice", () => asked([COLOUR])],
    ["a choice of several", () => asked([PAGES, WORDS])],
    ["an answered question", () => asked([COLOUR], { response: "accept", answers: { c: "r" }, by: "token:owner" })],
    ["what an answer is remembered for", () => {
      vi.spyOn(v1, "covers").mockResolvedValue([{ breadth: "all", covers: [] }]);
      Element.prototype.scrollIntoView ??= () => undefined;
      approving({ command: "make", options: [{ id: "s", label: "Allow in this session", allow: true, grant: "session" }] });
      document.querySelector<HTMLElement>(".answers button")?.click();
    }],
  ])("%s has every style that it has in the workbench", async (_, show) => {
    show();
    await new Promise((done) => setTimeout(done));
    expect(missing()).toEqual([]);
  });
});

test("marks go over colours", () => {
  const span = document.createElement("span");
  span.innerHTML = '<span class="k">def</span> name(<span class="n">a</span>)';
  markRange(span, 1, 7);
  expect(span.innerHTML).toBe('<span class="k">d<mark>ef</mark></span><mark> nam</mark>e(<span class="n">a</span>)');
});

test("what the tasks of a job decided, without what says only that they began or ended well", () => {
  const record = (pos: number, event: { type: string } & Record<string, unknown>) => ({ pos, time: pos, channel: "task/t", event: event as unknown as Event });
  const found = taskDecisions([
    record(1, { type: "task.decided", reason: "[SESSION STARTED] x" }),
    record(2, { type: "task.decided", reason: "[OPERATION] Criteria failed", passed: false }),
    record(3, { type: "task.decided", reason: "[DECISION] Starting retry #1" }),
    record(4, { type: "task.decided", reason: "[TASK SUCCEEDED] Decision: task succeeded", passed: true }),
    record(5, { type: "task.ended", error: "It crashed." }),
  ]);
  expect(found).toEqual([
    { time: 2, text: "[OPERATION] Criteria failed", task: "t", ok: false },
    { time: 3, text: "[DECISION] Starting retry #1", task: "t" },
    { time: 5, text: "It crashed.", task: "t", ok: false },
  ]);
});

test("works that ask, wait or repeat for every item are steps and groups of the tree", () => {
  const ref = (workIdInJob: number, taskId: string): WorkTree => ({ kind: "Ref", workIdInJob, taskId });
  const tree = treeOf(
    {
      kind: "Seq",
      works: [
        { kind: "Ask", workIdInJob: 0, question: ["Ship it?\nReally?"], choices: [{ label: "Yes", work: ref(1, "ship") }, { label: "No" }] },
        { kind: "Wait", workIdInJob: 2, hook: "deployed" },
        { kind: "Each", files: "*.md", body: ref(3, "check"), concurrency: 2 },
      ],
    },
    [],
  );
  expect(stepsOf(tree).map(({ work, name }) => [work, name])).toEqual([[0, "Ask: Ship it?"], [1, "ship"], [2, "Wait for deployed"], [3, "check"]]);
  expect(tree.flatMap((node) => (node.kind === "group" ? [`${node.title} ${node.about}`] : []))).toEqual(["If “Yes” ", "For each of *.md 2 at a time"]);
});
