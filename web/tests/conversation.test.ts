import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { changedFiles } from "../src/conversation/changes";
import { Conversation } from "../src/conversation/conversation";
import { diffView, kindsOf, unified } from "../src/conversation/diff";
import { CallRow, LookRow } from "../src/conversation/callRows";
import { type Actions, exact, pretty, relative } from "../src/conversation/pieces";
import { markdownReady, pieceEnd, QuestionRow, TextRow } from "../src/conversation/rows";
import type { CallPart, QuestionPart, SessionState } from "../src/conversation/state";
import { type Row, Transcript } from "../src/conversation/transcript";
import { duration, folder, addClientNames, who, words } from "../src/conversation/words";
import { ago } from "../src/time";
import { count } from "../src/time";
import { loadCards } from "../src/conversation/loadCards";

describe("a diff", () => {
  test("a removed line that begins with dashes is no file name", () => {
    expect(kindsOf(["--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", "--- old", "+++ new", " same"])).toEqual(["file", "file", "hunk", "removed", "added", "same"]);
  });

  test("without hunks the signs decide", () => {
    expect(kindsOf(["-a", "+b", "c"])).toEqual(["removed", "added", "same"]);
  });

  test("two texts become one hunk that says what changed", () => {
    const text = unified("x", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n");
    expect(text).toBe("--- x\n+++ x\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n");
    expect(diffView(text).getAttribute("aria-label")).toBe("Change: 1 lines added, 1 removed");
  });

  test("markup in a change stays text", () => {
    expect(diffView("+<img src=x onerror=alert(1)>").querySelector("img")).toBeNull();
  });
});

describe("what somebody is about to allow", () => {
  test("nothing is hidden: escapes, direction marks and empty characters are shown", () => {
    expect(exact("ls \x1b]0;rm -rf ~\x07 \u202ecod.exe\u200b")).toBe("ls ␛]0;rm -rf ~␇ \\u{202e}cod.exe\\u{200b}");
  });

  test("no value can pose as another field", () => {
    expect(pretty('{"content":"a\\npath: /etc/passwd","path":"x"}')).toBe("content:\n  a\n  path: /etc/passwd\npath: x");
  });

  test("a path outside the folder, or one that climbs, is shown whole", () => {
    expect(["/w/a/b", "/web/a", "/w/../etc", "/w"].map((path) => relative(path, "/w"))).toEqual(["a/b", "/web/a", "/w/../etc", "/w"]);
  });

  test("half an input is shown as it is", () => {
    expect(pretty('{"path":"x')).toBe('{"path":"x');
  });
});

describe("the files changed", () => {
  const call = (id: string, more: Partial<CallPart>): CallPart => ({ part: "call", id, tool: "write", done: true, ok: true, ...more });
  test("come from approvals and from what agents report; what failed or was refused does not count", () => {
    const approval = { id: "a", kind: "write", title: "", input: "", expires: 0, options: [], path: "/w/a", diff: "+x", answered: true };
    const parts = [call("1", { approvals: [approval] }), call("2", { content: [{ type: "diff", path: "/w/b", old: null, new: "y\n" }] }), call("3", { ok: false, approvals: [{ ...approval, path: "/w/c" }] })];
    const state: SessionState = { id: "s", agent: "", model: "", cwd: "", pos: 0, turns: [{ id: "t", message: { text: "" }, by: "", started: 0, parts }] };
    expect([...changedFiles(state).keys()]).toEqual(["/w/a", "/w/b"]);
  });
});

describe("the conversation", () => {
  const acts = { cwd: () => "/w", fork: vi.fn(), resume: vi.fn(), files: vi.fn(), attempt: vi.fn(async (work: () => Promise<unknown>) => (await work(), true)) };
  let view: HTMLElement;
  const state = (): SessionState => ({ id: "s", agent: "", model: "", cwd: "", pos: 0, turns: [] });
  beforeAll(loadCards);
beforeEach(() => {
    document.body.innerHTML = '<div id="v"></div><button id="b"></button>';
    view = document.getElementById("v")!;
  });

  test("teaches while it is empty, then grows and updates in place", async () => {
    await markdownReady;
    const now = state();
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    shown.open(now);
    expect(view.textContent).toContain("No messages yet");
    now.turns!.push({ id: "t1", message: { text: "<b>hi</b>" }, by: "token:owner", started: 0, parts: [] });
    shown.move(now, [{ type: "turn.started", turn: "t1" }]);
    const part = { part: "text" as const, id: "p1", kind: "text" as const, text: "He", done: false };
    now.turns![0]!.parts!.push(part);
    shown.move(now, [{ type: "part.started", turn: "t1", part: "p1" }]);
    const row = view.querySelector(".row.text");
    Object.assign(part, { text: "Hello **you**", done: true });
    shown.move(now, [{ type: "part.ended", turn: "t1", part: "p1" }]);
    expect([view.querySelector(".row.text"), view.querySelector("strong + strong, .markdown strong")?.textContent]).toEqual([row, "you"]);
    expect(view.querySelector(".message b")).toBeNull();
    Object.assign(now.turns![0]!, { outcome: "failed", error: { code: "x", message: "Broken." }, ended: 100 });
    shown.move(now, [{ type: "turn.ended", turn: "t1" }]);
    expect(view.querySelector(".outcome")!.textContent).toContain("Broken.");
    view.querySelector<HTMLButtonElement>(".outcome button")!.click();
    expect(acts.resume).toHaveBeenCalled();
    now.turns![0]!.outcome = null;
    shown.move(now, [{ type: "turn.resumed", turn: "t1" }]);
    expect(view.querySelector(".outcome")).toBeNull();
  });

  test("what failed says so in a sentence, and keeps what is for machines in a fold", () => {
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    const failed = (message: string) => {
      shown.open({ ...state(), turns: [{ id: "t", message: { text: "" }, by: "", started: 0, parts: [], outcome: "failed", error: { code: "x", message } }] });
      const note = view.querySelector(".outcome")!;
      return [[...note.children].filter(({ tagName }) => tagName === "SPAN").map(({ textContent }) => textContent), note.querySelector("details .box")?.textContent];
    };
    const todo = "Try again, or tell the agent what to do differently.";
    expect(failed("The key has expired.")).toEqual([["The key has expired.", todo], undefined]);
    expect(failed('Overloaded: 529. {"type":"error"}')).toEqual([["Overloaded: 529.", todo], 'Overloaded: 529. {"type":"error"}']);
    expect(failed("It broke.\n  at f (x.js:1)")).toEqual([["It broke.", todo], "It broke.\n  at f (x.js:1)"]);
  });

  test("a turn leads to its changes only where something may have changed", () => {
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    const leads = (...calls: Partial<CallPart>[]) => {
      const parts = calls.map((more, n): CallPart => ({ part: "call", id: `c${n}`, tool: "t", done: true, ok: true, ...more }));
      shown.open({ ...state(), turns: [{ id: "t", message: { text: "" }, by: "", started: 0, ended: 5, parts, outcome: "completed" }] });
      return view.textContent?.includes("Changes of this turn");
    };
    expect([leads({ kind: "edit" }), leads({ kind: "execute" }), leads({ kind: "edit", ok: false }), leads({ kind: "read" }), leads({ tool: "screenshot" }), leads()]).toEqual([true, true, false, false, false, false]);
  });

  test("pictures and files have a name and a size", () => {
    const attachments = [{ type: "resource", label: "a.png", contentType: "image/png", data: "aGVsbG8=" }, { type: "resource", label: "b.txt", contentType: "text/plain", data: "aGVsbG8h" }, { uri: "file:///w/c.py", label: "c.py" }];
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    shown.open({ ...state(), turns: [{ id: "t", message: { text: "", attachments }, by: "", started: 0, parts: [] }] });
    expect([...view.querySelectorAll(".attached figcaption, .attached .attachment")].map(({ textContent }) => textContent)).toEqual(["a.png · 5 bytes", "b.txt · 6 bytes", "c.py"]);
  });

  test("the message that was left last at the top is known, also where it is not built", () => {
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    shown.open({ ...state(), turns: ["a", "b", "c", "d"].map((id) => ({ id, message: { text: id }, by: "", started: 0, parts: [] })) });
    const tops = new Map([...view.querySelectorAll(".row.message")].map((row, index) => [row, index * 100 - 250]));
    const measure = vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
      const top = tops.get(this) ?? 0;
      return { top, bottom: top + 30 } as DOMRect;
    });
    expect(shown.passed()?.id).toBe("c"); // they end at -220, -120, -20 and 80
    measure.mockReturnValue({ top: 50, bottom: 80 } as DOMRect);
    expect(shown.passed()).toBeUndefined();
    measure.mockRestore();
  });

  test("an approval is a card until it is answered", () => {
    const now = state();
    const approval = { id: "s.a", kind: "shell", title: "run", input: "{}", expires: 0, command: "ls", options: [{ id: "yes", label: "Allow", allow: true }, { id: "no", label: "Deny", allow: false }] };
    const call: CallPart = { part: "call", id: "c", tool: "run", ready: true, input: "{}", approvals: [approval] };
    now.turns!.push({ id: "t", message: { text: "" }, by: "", started: 0, parts: [call] });
    const shown = new Conversation(view, document.querySelector("button")!, acts);
    shown.open(now);
    expect([...view.querySelectorAll(".approval button")].map((each) => [each.textContent, each.getAttribute("aria-keyshortcuts"), each.querySelector("kbd")?.ariaHidden ?? each.querySelector("kbd")?.getAttribute("aria-hidden")])).toEqual([["AllowY", "Y", "true"], ["DenyN", "N", "true"]]);
    expect(view.querySelector(".approval")!.textContent).not.toContain("nobody answers by");
    Object.assign(approval, { answered: true, allowed: true, by: "token:ann" });
    shown.move(now, [{ type: "approval.answered", turn: "t", approval: "s.a" }]);
    expect(view.querySelector(".approval")).toBeNull();
    expect(shown.press("y")).toBe(false);
  });
});

/** What the browser would observe, reported by hand. */
function observed(): [Set<Element>, (target: Element, isIntersecting: boolean, height?: number) => void] {
  const stand = new Set<Element>();
  let tell: (entries: object[]) => void = () => {};
  vi.stubGlobal(
    "IntersectionObserver",
    class {
      constructor(callback: typeof tell) {
        tell = callback;
      }
      observe(target: Element) {
        stand.add(target);
      }
      unobserve(target: Element) {
        stand.delete(target);
      }
      disconnect() {}
    },
  );
  return [stand, (target, isIntersecting, height = 0) => tell([{ target, isIntersecting, boundingClientRect: { height } }])];
}

describe("the transcript", () => {
  test("rows far from the view are not built", () => {
    vi.stubGlobal("IntersectionObserver", class { observe() {} unobserve() {} disconnect() {} });
    const built: number[] = [];
    const transcript = new Transcript(document.createElement("div"));
    transcript.append(...Array.from({ length: 10_000 }, (_, n) => ({ key: String(n), build: () => (built.push(n), document.createElement("p")) })));
    transcript.settle();
    expect([built.length, built.at(-1)]).toEqual([48, 9999]);
    transcript.update("3");
    expect(transcript.element("3")?.tagName).toBe("P");
    transcript.pop();
    expect([transcript.size, transcript.has("9999")]).toEqual([9999, false]);
    vi.unstubAllGlobals();
  });

  test("rows that leave the view come back as they were, and one in use stays", () => {
    const [stand, report] = observed();
    const [view, built] = [document.body.appendChild(document.createElement("div")), [] as string[]];
    const transcript = new Transcript(view);
    const row = (key: string) => ({ key, build: () => (built.push(key), document.createElement("input")) });
    transcript.append(...Array.from({ length: 100 }, (_, n) => row(`row-${n}`)));
    const [first, second] = view.querySelectorAll<HTMLElement>(".chunk");
    report(first!, true);
    report(second!, true);
    (first!.firstElementChild as HTMLInputElement).value = "kept";
    second!.querySelector("input")!.focus();
    report(first!, false, 321);
    report(second!, false, 321);
    expect([first!.children.length, first!.style.getPropertyValue("--height"), second!.children.length]).toEqual([0, "321px", 16]);
    report(first!, true);
    expect([(first!.firstElementChild as HTMLInputElement).value, built.length, stand.size]).toEqual(["kept", 32, 7]);
    view.remove();
    vi.unstubAllGlobals();
  });

  test("of a very long conversation only some sections have boxes, and what is long away is built anew", () => {
    const [stand, report] = observed();
    const view = document.createElement("div");
    document.body.append(view);
    const transcript = new Transcript(view);
    let built = 0;
    const row = (key: string) => ({ key, build: () => (built++, Object.assign(document.createElement("p"), { textContent: key })) });
    transcript.append(...Array.from({ length: 10_000 }, (_, n) => row(`row-${n}`)));
    transcript.settle();
    const sections = [...view.querySelectorAll<HTMLElement>(".chunks")];
    expect([sections.length, built, transcript.built("row-9999")?.textContent, sections[4]!.style.getPropertyValue("--height")]).toEqual([10, 48, "row-9999", "4096rem"]);
    report(sections[0]!, false, 777);
    expect([sections[0]!.children.length, sections[0]!.style.getPropertyValue("--height"), view.querySelectorAll(".chunk").length < 70]).toEqual([0, "777px", true]);
    report(sections[4]!, true);
    const chunks = [...sections[4]!.children];
    for (const chunk of chunks) report(chunk, true);
    expect([chunks.length, chunks[0]!.children.length, built]).toEqual([64, 16, 48 + 1024]);
    report(sections[4]!, false, 5000);
    expect(view.querySelectorAll(".chunk").length).toBeLessThan(70);
    // One more that leaves makes the oldest forget its elements.
    transcript.element("row-0");
    report(sections[0]!, false, 777);
    const before = built;
    transcript.element("row-4096");
    expect([built - before, transcript.built("row-4096")?.textContent, stand.size < 150]).toEqual([16, "row-4096", true]);
    view.remove();
    vi.unstubAllGlobals();
  });

  const acts = { attempt: () => Promise.resolve(true), cwd: () => "/w", agent: () => "A" } as unknown as Actions;
  const call = { part: "call" as const, id: "c", tool: "bash", kind: "execute", input: '{"command":"make"}', output: "one\ntwo", ready: true, done: true, ok: true };
  const rowKinds: [string, () => Row][] = [
    ["a text", () => new TextRow({ part: "text", id: "t", kind: "text", text: "**bold** words", done: true })],
    ["a thought", () => new TextRow({ part: "text", id: "r", kind: "reasoning", text: "Hm.", done: true })],
    ["a command", () => new CallRow(call, acts)],
    ["a look around", () => new LookRow({ ...call, kind: "read" }, acts)],
    ["a question", () => new QuestionRow({ part: "question", id: "q", response: "cancel", message: "Why?" } as unknown as QuestionPart, acts)],
  ];

  test.each(rowKinds)("%s that was forgotten holds nothing of what it built, and can be built again", async (_, make) => {
    await markdownReady;
    const row = make();
    const built = row.build();
    const text = built.textContent;
    expect(text).not.toBe("");
    row.forget?.();
    expect(Object.values(row).filter((value) => value instanceof Node && built.contains(value))).toEqual([]);
    expect(row.build().textContent).toBe(text);
  });

  test("what is long away is forgotten, unless somebody opened something in it", () => {
    const [, report] = observed();
    const view = document.body.appendChild(document.createElement("div"));
    const transcript = new Transcript(view);
    const forgotten: string[] = [];
    const row = (key: string) => ({ key, build: () => Object.assign(document.createElement("article"), { innerHTML: `<details ${key === "row-0" ? "open" : ""}></details>` }), forget: () => forgotten.push(key) });
    transcript.append(...Array.from({ length: 30 * 16 }, (_, n) => row(`row-${n}`)));
    const chunks = [...view.querySelectorAll(".chunk")];
    for (const chunk of chunks) report(chunk, true);
    for (const chunk of chunks) report(chunk, false, 100);
    expect(forgotten.length).toBe((30 - 16 - 1) * 16); // of 30, 16 are kept, and one has something open
    expect([forgotten[0], forgotten.includes("row-0")]).toEqual(["row-16", false]);
    view.remove();
    vi.unstubAllGlobals();
  });

  test.each<[string, string, number | "anywhere"]>([
    ["a paragraph", `${"word ".repeat(500)}\n\nNext `, 2502],
    ["a fence", "```\n" + "code\n\n".repeat(700), 0],
    ["a list", "- one\n\n".repeat(700), 0],
    ["a line", "x".repeat(5_000), 0],
    ["far too much code", "```\n" + "code\n\n".repeat(7000), "anywhere"],
    ["a line without end", "x".repeat(40_000), "anywhere"],
  ])("a long text is cut behind %s", (_, text, cut) => {
    const end = pieceEnd(`${text}- ${"y".repeat(4_000)}`, 0);
    if (cut === "anywhere") expect(end).toBeGreaterThan(30_000);
    else expect(end).toBe(cut);
  });

  test("code that is cut goes on as code, and a line that is no prose stays text", async () => {
    await markdownReady;
    const text = `\`\`\`py\n${"a = **1**\n".repeat(7_000)}\`\`\`\n\nThen **this**.\n\n${"!".repeat(5_000)}`;
    const element = new TextRow({ part: "text", id: "p", kind: "text", text, done: true }).build();
    expect([element.querySelectorAll("pre").length > 1, element.querySelectorAll("pre strong").length, element.querySelector("p strong")?.textContent]).toEqual([true, 0, "this"]);
    expect(element.querySelector(".markdown-piece:last-child")!.textContent).toContain("!".repeat(5_000));
  });

  test("a growing text is rendered in pieces and looks as it would in one", async () => {
    await markdownReady;
    const part = { part: "text" as const, id: "p", kind: "text" as const, text: "" };
    const row = new TextRow(part);
    const element = row.build();
    for (let n = 0; n < 60; n++) {
      part.text += `Paragraph **${n}** ${"of many words ".repeat(60)}\n\n`;
      row.update();
    }
    expect(element.querySelectorAll(".growing")).toHaveLength(1); // where the caret is
    Object.assign(part, { done: true });
    row.update();
    expect(element.querySelectorAll(".growing")).toHaveLength(0);
    expect(element.querySelectorAll(".markdown-piece").length).toBeGreaterThan(2);
    expect([element.querySelectorAll("p").length, element.querySelectorAll("strong").length, element.textContent!.includes("59")]).toEqual([60, 60, true]);
  });

  test("what is said while the end is away stands there when it comes back", () => {
    const [, report] = observed();
    const view = document.createElement("div");
    const transcript = new Transcript(view);
    const row = (key: string) => ({ key, build: () => Object.assign(document.createElement("p"), { textContent: key }) });
    transcript.append(row("one"), row("two"));
    transcript.settle();
    const box = view.querySelector(".chunk")!;
    report(box, false, 50);
    transcript.append(row("three"));
    transcript.pop();
    transcript.append(row("four"));
    expect(box.textContent).toBe("");
    report(box, true);
    expect(box.textContent).toBe("onetwofour");
    vi.unstubAllGlobals();
  });
});

test("numbers and names as people read them", () => {
  addClientNames({ "c#1": "VS Code" });
  expect([who("client:c#1#7.chat/turnStarted"), who("client:other#1.chat/turnStarted")]).toEqual(["VS Code", "An editor"]);
  expect([who("token:owner"), who("token:ann"), who("job:job-1"), who("timeout")]).toEqual(["You", "ann", "The job job-1", "timeout"]);
  expect([count(999), count(12_345), count(2_500_000)]).toEqual(["999", "12 k", "2.5 M"]);
  expect([duration(1234), duration(65_000), duration(600_000), duration(8 * 3_600_000)]).toEqual(["1.2 s", "1 min", "10 min", "8 h"]);
  expect([words({}), words({ input: 3, output: 2, cost: 0.5 })]).toEqual(["", "3 tokens in, 2 out, $0.50"]);
  expect([ago(0, 30_000), ago(0, 120_000), ago(0, 7_200_000)]).toEqual(["just now", "2 min ago", "2 h ago"]);
  expect([folder("/a"), folder("/a/b/c/d"), folder("C:\\x\\y\\z")]).toEqual(["/a", "…/c/d", "…/y/z"]);
});

