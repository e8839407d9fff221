/** The pure parts of the workbench: what stands in the list, times, addresses, changes, comments, jobs, usage, entries. */

import type { Event } from "../src/rest";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { awayNotices } from "../src/app/awayNotices";
import type { FileView } from "../src/app/changeSource";
import { type Comment, hasMoved, messageOf } from "../src/app/comments";
import { type Entry, entryOfJob, entryOfSession, fits, groupOf, grouped, type JobRow, lastName, type Row } from "../src/app/entries";
import { lostWords } from "../src/app/commit";
import { newer } from "../src/app/review";
import { splitHtml } from "../src/conversation/diffColours";
import { JobHistory, lanesOf, type Run, stepsOf, treeOf, type TreeNode, type WorkTree } from "../src/app/jobModel";
import { plainReason } from "../src/app/reasons";
import { offersAt, placeIn } from "../src/app/jsonPlace";
import { markWords } from "../src/app/marks";
import { pathOf, type Place, placeOf } from "../src/app/router";
import { nowOf } from "../src/app/sessionView";
import { wordAt } from "../src/app/word";
import { cost, elapsed, span, tokens, when } from "../src/time";
import { costWords, sourceWords, sums } from "../src/app/usage";
import { CallRow } from "../src/conversation/callRows";
import { joined } from "../src/app/composer";
import { changeCounts, commandOf, kindOf, linesRead, lookWords, planOf, tailOf } from "../src/conversation/calls";
import { dangers } from "../src/conversation/danger";
import { countOf, filesOf, linesOf, pairs } from "../src/conversation/diffLines";
import type { Approval, CallPart, Turn } from "../src/conversation/state";
import { languageOfFile } from "../src/highlight";
import type { ChangedFile } from "../src/v1";
import { loadCards } from "../src/conversation/loadCards";

beforeAll(loadCards);

const NOON = new Date(2026, 5, 10, 12).getTime();
const session = (more: Partial<Row["session"]> = {}): Row["session"] => ({ id: "s1", agent: "codex", model: "m", cwd: "/home/me/api", title: "Fix it", status: "idle", created: 0, modified: NOON, turns: 1, ...more });
const row = (more: Partial<Row["session"]> = {}, rest: Partial<Row> = {}): Row => ({ session: session(more), ...rest });

describe("the list", () => {
  test.each<[string, Row, Partial<Entry>]>([
    ["waits for an approval", row({ status: "waiting" }, { activity: "Wants to run make", since: NOON, waiting: [{ id: "a", kind: "approval", text: "" }] }), { state: "need", line: "Wants to run make", since: NOON }],
    ["asks", row({ status: "waiting" }, { activity: "Asks: why?", waiting: [{ id: "q", kind: "question", text: "" }] }), { state: "ask", line: "Asks: why?" }],
    ["works", row({ status: "running", read: false }, { activity: "Thinking", since: 5 }), { state: "work", line: "Thinking", unread: false }],
    ["was interrupted", row({ interrupted: true }), { state: "interrupted", line: "Interrupted: the host stopped" }],
    ["failed", row({ status: "failed" }), { state: "failed", line: "Failed" }],
    ["failed, and why", row({ status: "failed", error: "No key" }), { state: "failed", line: "Failed: No key" }],
    ["changed files", row({ read: false, changes: { additions: 3, deletions: 1, files: 2 } }), { state: "done", line: "2 files", changes: { additions: 3, deletions: 1 }, unread: true }],
    ["only answered", row(), { state: "done", line: "Answered, no files changed", folder: "api" }],
    ["answered where nobody counts files", row({}, { uncounted: true }), { state: "done", line: "Answered" }],
    ["is empty", row({ turns: 0 }), { line: "No messages yet" }],
  ])("a session that %s", (_, given, wanted) => expect(entryOfSession(given)).toMatchObject(wanted));

  test.each([
    ["/home/me/api", "api"],
    ["/home/me/api/", "api"],
    ["C:\\work\\api", "api"],
    ["/home/me/api.worktrees/session-7", "api"],
    ["/home/me/api.worktrees/session-7/src", "api"],
    ["/", "/"],
  ])("the folder %s is called %s", (path, name) => expect(lastName(path)).toBe(name));

  test("a session whose helper waits for a person waits, too, unless it asks something itself", () => {
    const asking = row({ id: "h1", status: "waiting" }, { activity: "Wants to run make", since: 7, waiting: [{ id: "a", kind: "approval", text: "" }] });
    expect(entryOfSession(row({ status: "running" }, { activity: "Reviewer helps", since: 1 }), asking)).toMatchObject({ id: "s1", state: "need", line: "Wants to run make", since: 7 });
    const own = row({ status: "waiting" }, { activity: "Asks: why?", waiting: [{ id: "q", kind: "question", text: "" }] });
    expect(entryOfSession(own, asking)).toMatchObject({ state: "ask", line: "Asks: why?" });
  });

  const job: JobRow = { id: "j1", name: "Release", status: "running", started: 1, cwd: "/w/docs", works: [{ work: 0, name: "collect", task: "task-1", status: "succeeded", started: 1 }, { work: 1, name: "draft", task: "task-2", status: "running", started: 2 }] };

  test("a job says what its step does, and goes where its most urgent step belongs", () => {
    expect(entryOfJob(job, [])).toMatchObject({ state: "work", line: "Working on draft", steps: ["done", "work"] });
    const asking = row({ id: "s2", by: "task:task-2", status: "waiting" }, { activity: "Wants to open a page", waiting: [{ id: "a", kind: "approval", text: "" }] });
    expect(entryOfJob(job, [asking])).toMatchObject({ state: "need", line: "draft wants to open a page", steps: ["done", "need"] });
    expect(entryOfJob({ ...job, status: "failed", reason: "2 of 9 checks" }, [])).toMatchObject({ state: "failed", line: "Failed: 2 of 9 checks" });
  });

  test("what waits longest comes first, elsewhere the newest; what stopped long ago needs nobody", () => {
    const entry = (key: string, state: Entry["state"], time: number, since?: number): Entry => ({ ...entryOfSession(row()), key, state, time, ...(since === undefined ? {} : { since }) });
    const all = [entry("a", "need", NOON, 2), entry("b", "need", NOON, 1), entry("c", "done", NOON - 1), entry("d", "done", NOON), entry("e", "failed", NOON - 40 * 86_400_000), entry("f", "interrupted", NOON - 86_400_000)];
    const groups = Object.fromEntries([...grouped(all, NOON)].map(([name, list]) => [name, list.map(({ key }) => key).join("")]));
    expect(groups).toEqual({ need: "ba", work: "", stopped: "f", pinned: "", today: "dc", yesterday: "", older: "e" });
    expect(["a", "d", "e", "f"].map((key) => groupOf(all.find((each) => each.key === key)!, NOON, new Set(["a", "d", "f"])))).toEqual(["need", "pinned", "older", "pinned"]);
    expect(groupOf(entry("g", "done", NOON - 86_400_000), NOON)).toBe("yesterday");
  });

  test("who looked away is told once what waits, by folder, and what is done", () => {
    const entry = (key: string, state: Entry["state"], folder = "api"): Entry => ({ ...entryOfSession(row({ title: key })), key, state, folder, line: `${key} asks` });
    const was = new Map<string, Entry["state"]>([["a", "work"], ["b", "need"], ["c", "work"], ["d", "work"], ["e", "done"]]);
    const now = [entry("a", "need"), entry("b", "need"), entry("c", "done", "web"), entry("d", "failed", "web"), entry("e", "done"), entry("f", "done"), entry("g", "ask", "docs")];
    expect(awayNotices(was, now).map(({ title, body, tag, entry: one }) => [title, body, tag, one?.key])).toEqual([
      ["2 things wait in api", "a, b", "need/api", undefined],
      ["g", "g asks", "need/docs", "g"],
      ["c", "Done.", "c", "c"],
      ["d", "d asks", "d", "d"],
    ]);
    expect(awayNotices(new Map(now.map(({ key, state }) => [key, state])), now)).toEqual([]);
  });

  test("a filter wants all of its words", () => {
    const entry = entryOfSession(row({ status: "failed" }));
    const cases: [string, boolean][] = [["fix", true], ["fix codex", true], ["folder:api", true], ["folder:web", false], ["agent:codex is:failed", true], ["is:done", false], ["is:job", false], ["FIX  it", true]];
    expect(cases.map(([text]) => [text, fits(entry, text)])).toEqual(cases);
  });

  test("hits are marked, and what a pattern would mean is text", () => {
    expect(markWords("a (b) A", ["a", "(b"]).map((each) => (typeof each === "string" ? each : `<${each.textContent}>`)).join("")).toBe("<a> <(b>) <A>");
  });
});

test("times and numbers have units, and nothing took 0.0 s", () => {
  expect([elapsed(38_000), elapsed(725_000), elapsed(3_723_000), elapsed(-5)]).toEqual(["0:38", "12:05", "1:02:03", "0:00"]);
  expect([span(0), span(400), span(9_990), span(59_000), span(240_000), span(7_200_000)]).toEqual(["", "0.4 s", "10 s", "59 s", "4 min", "2 h"]);
  expect([tokens(1), tokens(999), tokens(41_000), tokens(2_500_000)]).toEqual(["1 token", "999 tokens", "41 k tokens", "2.5 M tokens"]);
  expect([cost(0.18), cost(0.001), cost(0), cost(undefined, false)]).toEqual(["$0.18", "under $0.01", "cost unknown", ""]);
  expect([when(NOON - 20_000, NOON), when(NOON - 240_000, NOON)]).toEqual(["now", "4 min"]);
});

test("every place has an address that leads back to it", () => {
  const places: Place[] = [{ at: "home" }, { at: "inbox" }, { at: "jobs" }, { at: "usage" }, { at: "more" }, { at: "new", what: "job" }, { at: "new", what: "session" }, { at: "session", id: "a/b" }, { at: "session", id: "s", tab: "changes", file: "src/ü x.py" }, { at: "job", id: "j", step: "3" }, { at: "settings", section: "tokens" }];
  expect(places.map((place) => placeOf(pathOf(place)))).toEqual(places);
  expect([placeOf("/app/nowhere"), placeOf("/app/s/%E0%A4%A")]).toEqual([{ at: "unknown", path: "/app/nowhere" }, { at: "session", id: "%E0%A4%A" }]);
});

describe("changes", () => {
  const DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@ class A\n one\n-old = rate\n+old = rate * 2\n+new\n two\n\\ No newline at end of file\n";

  test("lines have both numbers, and words that changed are marked", () => {
    const lines = linesOf(DIFF).filter(({ kind }) => kind !== "file");
    expect(lines.map(({ kind, old, new: now }) => [kind, old, now])).toEqual([["hunk", undefined, undefined], ["same", 1, 1], ["removed", 2, undefined], ["added", undefined, 2], ["added", undefined, 3], ["same", 3, 4]]);
    expect(lines[3]?.marks).toEqual([[10, 14]]);
    expect(countOf(lines)).toEqual({ added: 2, removed: 1 });
  });

  test.each<[removed: string[], added: string[], marked: string[][]]>([
    [["def f(self, rate, size):"], ["def f(self, rate: float, size: int):"], [[], [": float", ": int"]]],
    // One line more: the first of them is another line, the second the same one, changed.
    [["    self.last = time.monotonic()"], ["    self.clock = clock", "    self.last = clock()"], [["time.monotonic"], [], ["clock"]]],
    [["a = one(x)", "b = two(y)"], ["b = two(y, z)"], [[], [], [", z"]]],
    [["import os"], ["return 4"], [[], []]],
    [["value = old thing"], ["value = new stuff"], [["old thing"], ["new stuff"]]],
  ])("of %j and %j these words are marked: %j", (removed, added, marked) => {
    const lines = linesOf(`@@ -1,${removed.length} +1,${added.length} @@\n${[...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)].join("\n")}\n`);
    expect(lines.slice(1).map(({ text, marks = [] }) => marks.map(([from, to]) => text.slice(from, to)))).toEqual(marked);
  });

  test("side by side what was removed stands beside what came for it", () => {
    const shown = pairs(linesOf(DIFF).filter(({ kind }) => kind !== "file")).map(([left, right]) => [left?.text, right?.text]);
    expect(shown.slice(1)).toEqual([["one", "one"], ["old = rate", "old = rate * 2"], [undefined, "new"], ["two", "two"]]);
  });

  test("a diff of several files is taken apart by their names", () => {
    const second = "diff --git a/b c b/b c\ndeleted file mode 100644\n--- a/b c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    expect([...filesOf(DIFF + second).keys()]).toEqual(["x.py", "b c"]);
  });

  test("while an agent works, files that were not shown, changed or went are newer", () => {
    const file = (path: string, diff = "+x"): FileView => ({ path, diff, added: 1, removed: 0, status: "modified", binary: false });
    const shown = [file("a"), file("b"), file("c")];
    expect([newer(shown, shown), newer(shown, [...shown, file("d")]), newer(shown, [file("a", "+y"), file("c"), file("d")])]).toEqual([0, 1, 3]);
  });

  test("what a discard takes is said in numbers", () => {
    const file = (status: ChangedFile["status"], added: number, removed: number): ChangedFile => ({ path: "x", status, added, removed, binary: false });
    expect([[], [file("modified", 1, 0)], [file("modified", 2, 3), file("deleted", 0, 1), file("added", 9, 0)]].map(lostWords)).toEqual(["", "Lost: 1 changed line in 1 file.", "Lost: 6 changed lines in 2 files; 1 new file, deleted."]);
  });

  test("a comment knows when its line has moved, and becomes a message", () => {
    const lines = linesOf(DIFF);
    const comment: Comment = { id: "1", path: "x.py", side: "new", line: 3, quote: "new", text: "Why?" };
    expect([hasMoved(comment, lines), hasMoved({ ...comment, quote: "other" }, lines), hasMoved(comment, undefined)]).toEqual([false, true, true]);
    expect(messageOf([comment])).toBe("A comment on your changes:\n\n`x.py`, line 3:\n> new\n\nWhy?");
    expect(messageOf([comment, { ...comment, line: 1, side: "old", quote: "" }])).toMatch(/^2 comments.*line 1 \(before the change\):\n\nWhy\?.*line 3:/s);
  });

  test("colours are cut at the ends of lines", () => {
    expect(splitHtml('<span class="a">x\ny</span> z')).toEqual(['<span class="a">x</span>', '<span class="a">y</span> z']);
    expect([languageOfFile("a/b.tsx"), languageOfFile("x.unknown")]).toEqual(["typescript", undefined]);
  });
});

describe("calls", () => {
  const call = (more: Partial<CallPart>): CallPart => ({ part: "call", id: "c", tool: "t", ready: true, ...more });
  const acts = { cwd: () => "/w", attempt: async () => true, fork: () => undefined, resume: () => undefined, files: () => undefined };
  test.each<[Partial<CallPart>, string]>([
    [{ kind: "execute" }, "command"],
    [{ tool: "bash" }, "command"],
    [{ kind: "edit" }, "change"],
    [{ kind: "read" }, "look"],
    [{ tool: "grep" }, "look"],
    [{ tool: "plan", kind: "think" }, "plan"],
    [{ tool: "fetch" }, "tool"],
  ])("%j is a %s", (given, kind) => expect(kindOf(call(given))).toBe(kind));

  test("a command and the end of what it said", () => {
    const run = call({ kind: "execute", input: '{"command":"make"}' });
    expect([commandOf(run), tailOf("a\nb\nc\nd\n")]).toEqual(["make", "b\nc\nd"]);
  });

  test.each<[Partial<CallPart>, string]>([
    [{ ok: true, exit_code: 0 }, "exit 0"],
    [{ ok: true, exit_code: 2 }, "exit 2"],
    [{ ok: false, exit_code: 1, output: "exit code 7" }, "exit 1"],
    [{ ok: true, output: "exit code 7" }, "done"],
    [{ ok: false }, "failed"],
  ])("%j says %s: an exit code is data, never words", (given, word) => {
    const row = new CallRow(call({ kind: "execute", done: true, ...given }), acts).build();
    expect(row.querySelector(".call-word")?.textContent).toBe(word);
  });

  test("the open output of a running command is followed, until its reader goes up; a change leads to the panel", () => {
    const height = vi.spyOn(Element.prototype, "scrollHeight", "get").mockReturnValue(500);
    const running = call({ kind: "execute", output: "one\n" });
    const row = new CallRow(running, acts);
    const element = row.build();
    element.querySelector<HTMLDetailsElement>("details.call")!.open = true;
    row.update();
    const box = () => element.querySelector<HTMLElement>(".output .box")!;
    expect(box().scrollTop).toBe(500);
    box().scrollTop = 10;
    running.output += "two\n";
    row.update();
    expect([box().textContent, box().scrollTop]).toEqual(["one\ntwo\n", 10]);
    height.mockRestore();
    const wholeChange = vi.fn();
    const change = new CallRow(call({ kind: "edit", done: true, ok: true, content: [{ type: "diff", path: "/w/a.py", old: "x\n", new: "y\n" }] }), { ...acts, wholeChange });
    const view = change.build();
    view.querySelector<HTMLDetailsElement>("details.call")!.open = true;
    change.update();
    [...view.querySelectorAll("button")].find(({ textContent }) => textContent === "Show it in the changes")!.click();
    expect(wholeChange).toHaveBeenCalledWith("/w/a.py");
    view.querySelector<HTMLElement>("summary .file-link")!.click();
    expect(wholeChange).toHaveBeenCalledTimes(2);
  });

  test("a change counts the lines of the host's own diff: the panel says the same", () => {
    const diff = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,5 @@\n+first\n one\n two\n three\n+last\n";
    const sides = { type: "diff", path: "/w/a.py", old: "one\ntwo\nthree\n", new: "first\none\ntwo\nthree\nlast\n" };
    expect(changeCounts(call({ content: [{ ...sides, diff }] }))).toEqual([{ path: "/w/a.py", added: 2, removed: 0 }]);
    expect(changeCounts(call({ content: [sides] }))).toEqual([{ path: "/w/a.py", added: 5, removed: 3 }]); // as an older host told it
  });

  test.each<[Partial<Approval>, line: string | undefined, word: string | undefined]>([
    [{ allowed: true, by: "token:owner", option: "y" }, undefined, "You allowed it"],
    [{ allowed: true, by: "token:ann", option: "s" }, undefined, "ann allowed it in this session"],
    [{ allowed: true, by: "token:owner", option: "y", reason: "but only once" }, "You allowed it: but only once", undefined],
    [{ allowed: false, by: "token:owner", option: "n" }, "You denied it.", undefined],
    [{ allowed: false, by: "token:owner", option: "n", reason: "Another name" }, "You denied it: Another name", undefined],
    [{ allowed: true, by: "token:owner", option: "s", grant: "g", covers: ["folder:/w"] }, "You allowed every file in this project in this session. Undo", undefined],
    [{ allowed: true, by: "token:ann", option: "s", grant: "g", covers: ["path:/w/a.py"], kind: "write", reason: "go" }, "ann allowed edits to a.py in this session: go Undo", undefined],
    [{ allowed: false, by: "token:owner", reason: "cancelled" }, "Not run: you stopped the turn.", undefined],
    [{ allowed: false, by: "token:ann", reason: "cancelled" }, "Not run: ann stopped the turn.", undefined],
    [{ allowed: false, by: "host", reason: "interrupted" }, "Not answered: the turn ended first.", undefined],
    [{ allowed: false, by: "timeout" }, "No one answered in time, so it was not done.", undefined],
  ])("an answer %j is said once: %s %s", (given, line, word) => {
    const options = [{ id: "y", label: "Allow once", allow: true }, { id: "s", label: "Allow in this session", allow: true, grant: "session" as const }, { id: "n", label: "Deny", allow: false }];
    const answered: Approval = { id: "a", kind: "shell", title: "", input: "", expires: 0, options, command: "make", answered: true, ...given };
    const row = new CallRow(call({ kind: "execute", done: true, ok: given.allowed === true, approvals: [answered] }), acts).build();
    expect([row.querySelector("p.verdict")?.textContent, row.querySelector("summary .verdict")?.textContent]).toEqual([line, word]);
  });

  test.each<[object, string]>([
    [{ path: "a.py" }, ""],
    [{ path: "a.py", offset: 10, limit: 40 }, ", lines 10 to 49"],
    [{ path: "a.py", limit: 40 }, ", lines 1 to 40"],
    [{ path: "a.py", start_line: 3, end_line: 3 }, ", line 3"],
    [{ path: "a.py", startLine: 3, endLine: 9 }, ", lines 3 to 9"],
    [{ path: "a.py", view_range: [5, 8] }, ", lines 5 to 8"],
    [{ path: "a.py", view_range: [5, -1] }, ", from line 5"],
    [{ path: "a.py", line: 7 }, ", from line 7"],
    [{ path: "a.py", offset: "x", limit: {} }, ""],
  ])("of a file, %j reads%s", (input, wanted) => expect(linesRead(call({ input: JSON.stringify(input) }))).toBe(wanted));

  test.each(["", "[1", "null", "[]"])("half an input, %j, reads nothing in particular", (input) => expect(linesRead(call({ input }))).toBe(""));

  test.each([
    ["mine", "mine\nplease look", "mine", "mine\nplease look"],
    ["mine, longer", "mine\nplease look", "mine", "mine, longer\nplease look"],
    ["mine", "please look", "", "mine\nplease look"],
    ["mine, please look", "please look", "", "mine, please look"],
    ["", "please look", "", "please look"],
  ])("with %j here, the draft %j after %j leaves %j", (written, text, before, left) => expect(joined(written, text, before)).toBe(left));

  test("looks in words, and plans in lines", () => {
    expect(lookWords([call({ kind: "read" }), call({ kind: "read" }), call({ kind: "search" }), call({ kind: "search" })])).toBe("read 2 files, searched twice");
    expect(planOf(call({ content: [{ type: "text", text: "- [x] one\n- [>] two\n- [ ] three\n\nplain" }] })).map(({ text, state }) => `${state} ${text}`)).toEqual(["done one", "work two", "todo three", "todo plain"]);
  });

  test.each<[Partial<Approval>, boolean]>([
    [{ command: "pytest -q" }, false],
    [{ command: "rm -r build" }, true],
    [{ command: "cd x && sudo id" }, true],
    [{ command: "git push --force" }, true],
    [{ command: "curl x | sh" }, true],
    [{ command: "echo farm" }, false],
    [{ kind: "write", path: "/w/src/a.py" }, false],
    [{ kind: "write", path: "/etc/hosts" }, true],
    [{ kind: "write", path: "/w/../etc" }, true],
    [{ kind: "read", path: "/usr/include/x.h" }, false],
    [{ kind: "write", path: "/w/.env" }, true],
    [{ kind: "other" }, false],
  ])("%j is dangerous: %s", (given, wanted) => expect(dangers({ id: "a", kind: "shell", title: "", input: "", expires: 0, options: [], ...given }, "/w").length > 0).toBe(wanted));

  test.each<[Turn["parts"], number, string]>([
    [[call({ kind: "execute", input: '{"command":"make all"}' })], 0, "Running make all"],
    [[{ part: "text", id: "p", kind: "reasoning" }], 0, "Thinking "],
    [[{ part: "text", id: "p", kind: "text" }], 6000, "Waiting for the model "],
    [[{ part: "question", id: "q", text: "?" }], 0, "Waiting for you "],
    [[], 0, "Waiting for the model "],
    [[call({ kind: "think", content: [{ type: "subagent", title: "Review it", agent: "Reviewer" }] })], 0, "Reviewer helps "],
    [[call({ kind: "think", content: [{ type: "subagent", title: "Review it", agent: "Reviewer" }], done: true })], 0, "Waiting for the model "],
  ])("what happens now", (parts, silent, wanted) => expect(nowOf({ id: "t", message: { text: "" }, by: "", started: 0, parts: parts ?? [] }, silent).slice(1).join(" ")).toBe(wanted));
});

describe("a job", () => {
  const ref = (taskId: string, workIdInJob: number): WorkTree => ({ kind: "Ref", taskId, workIdInJob });
  const work: WorkTree = { kind: "Seq", works: [ref("collect", 0), { kind: "Loop", body: { kind: "Par", works: [ref("style", 1), ref("facts", 2)] }, postCondition: [false, ref("good", 3)], maxIterations: 3 }, { kind: "Alt", condition: ref("small", 4), trueWork: ref("merge", 5) }] };
  const shown = (nodes: TreeNode[]): string[] => nodes.flatMap((node) => (node.kind === "step" ? [node.name + (node.condition ? "?" : "")] : [`${node.title} [${node.about}]`, ...shown(node.children).map((each) => `  ${each}`)]));

  test("its tree in plain words", () => {
    const runs: Run[] = [{ path: "r.1#1.0", work: 1, task: "t", attempt: 1, started: 0 }];
    expect(shown(treeOf(work, runs))).toEqual(["collect", "Repeat until “good” says yes [round 2 of at most 3]", "  At the same time []", "    style", "    facts", "  good?", "small?", "If yes []", "  merge"]);
  });

  test("runs, decisions and the time they took, from its events", () => {
    const history = new JobHistory();
    const events: [number, Record<string, unknown>][] = [
      [1000, { type: "job.started", by: "token:owner", input: "x" }],
      [1000, { type: "work.started", path: "r.0", work: 0, task: "task-1" }],
      [2000, { type: "work.ended", path: "r.0", work: 0, task: "task-1", outcome: "failed", error: "No." }],
      [2000, { type: "job.decided", path: "r", reason: "Again." }],
      [2000, { type: "work.started", path: "r.0", work: 0, task: "task-2", attempt: 2 }],
    ];
    events.forEach(([time, event], index) => history.apply({ pos: index + 1, time, event: event as unknown as Event }));
    expect(history.apply({ pos: 1, time: 0, event: { type: "job.ended", outcome: "succeeded" } as Event })).toBe(false);
    expect(history.decisions).toEqual([{ time: 2000, text: "Again." }]);
    const { lanes } = lanesOf(stepsOf(treeOf(work, history.runs)), history, 5000);
    expect(lanes.map(({ step, bars }) => [step.name, bars.map(({ left, width }) => [left, width])])).toEqual([["collect", [[0, 25], [25, 75]]]]);
  });
});

test("usage: what nobody told is unknown", () => {
  const rows = [
    { day: "2026-01-02", session: "a", title: "A", agent: "x", model: "m", turns: 2, input: 10, output: 5, cost: 1.5 },
    { day: "2026-01-01", session: "b", agent: "y", model: "m", turns: 1, input: 7, output: 1, unpriced: 1, by: "task:t" },
  ];
  expect(sums(rows, "day").map(({ name }) => name)).toEqual(["2026-01-01", "2026-01-02"]);
  expect(sums(rows, "agent").map((sum) => [sum.name, costWords(sum)])).toEqual([["x", "$1.50"], ["y", "unknown"]]);
  expect(sums(rows, "model").map(costWords)).toEqual(["at least $1.50"]);
  expect(sums(rows, "job").map(({ name }) => name)).toEqual(["tasks of earlier runs"]);
  expect(sums([...rows, { day: "2026-01-02", session: "c", agent: "x", model: "n", estimated: 0.25 }], "agent").map(costWords)).toEqual(["~$1.75", "unknown"]);
  const more = [...rows, { day: "2026-01-02", session: "d", agent: "x", model: "m", turns: 1, job: "job-3", automation: "nightly", person: "ada", cost: 1 }];
  expect(sums(more, "job", (job) => `name of ${job}`).map(({ name }) => name)).toEqual(["name of job-3", "tasks of earlier runs"]);
  expect(sums(more, "automation").map(({ name, link }) => [name, link?.endsWith("/app/automations/nightly")])).toEqual([["nightly", true]]);
  const spenders = ["ada", "token:owner", "token:laptop"].map((person) => ({ ...more[2]!, person }));
  expect(sums([...more, ...spenders], "person").map(({ name }) => name).sort()).toEqual(["You", "ada", "laptop", "the host itself"]);
  expect(sourceWords({ prices: "genai-prices 1" })).toBe("");
  expect(sourceWords({ prices: "genai-prices 1", prices_date: "2026-10-20", priced_as: { "gpt-5.2-codex": "gpt-5.2" } })).toBe("~ by the list prices of genai-prices 1, the newest of 2026-10-20; gpt-5.2-codex as gpt-5.2.");
});

test("words that ask for suggestions", () => {
  expect([wordAt("see @src/l", 10), wordAt("/he", 3), wordAt("a /he", 5), wordAt("plain", 5)].map((each) => each && `${each.sign}${each.word}@${each.from}`)).toEqual(["@src/l@4", "/he@0", undefined, undefined]);
});

describe("writing an entry", () => {
  const schema = { properties: { models: { additionalProperties: { type: "string" } }, tasks: { additionalProperties: { $ref: "#/$defs/Task" } }, grid: { items: { $ref: "#/$defs/Row" } } }, $defs: { Task: { properties: { prompt: {}, onInterrupt: { enum: ["retry", "fail", "ask"] }, model: { $ref: "#/$defs/Model" } } }, Model: { properties: { category: {}, id: {} } }, Row: { properties: { keyword: {}, jobs: {} } } } };
  const offers = (text: string) => {
    const place = placeIn(text, text.length);
    return place && offersAt(schema, place).map((each) => each.text);
  };
  test.each<[string, string[] | undefined]>([
    ['{"', ["models", "tasks", "grid"]],
    ['{"models": {}, "t', ["tasks"]],
    ['{"tasks": {"a": {"prompt": ["x"], "', ["onInterrupt", "model"]],
    ['{"tasks": {"a": {"onInterrupt": "f', ["fail"]],
    ['{"tasks": {"a": {"model": {"', ["category", "id"]],
    ['{"grid": [{"keyword": "x"}, {"', ["keyword", "jobs"]],
    ['{"models": {"driving": "x"} ', undefined],
  ])("%s", (text, wanted) => expect(offers(text)).toEqual(wanted));
});

/** A failed job showed its error as the JSON of the portal's protocol. */
test.each([
  ['{"name":"AgentUnavailable","message":"No agent is ready.","stack":"AgentUnavailable: No agent is ready."}', "No agent is ready."],
  ['{"name":"Odd"}', '{"name":"Odd"}'],
  ['{"name": not JSON', '{"name": not JSON'],
  ["[CRITERIA] Decision: exit 1", "exit 1"],
  ["plain words", "plain words"],
])("the error of a job in words: %s", (error, words) => expect(plainReason(error)).toBe(words));
