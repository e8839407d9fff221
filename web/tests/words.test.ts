/** What pages say in words: what a command would lose, what a job decided, which lines a comment is about. */

import { html, render } from "../src/render";
import { expect, test } from "vitest";
import { hasMoved, linesWord, messageOf, quoteOf } from "../src/app/comments";
import { size } from "../src/conversation/pieces";
import { fileTree } from "../src/app/fileTree";
import { facts, plainReason } from "../src/app/reasons";
import { dayWords } from "../src/app/usage";
import { lostBy } from "../src/conversation/danger";
import { linesOf } from "../src/conversation/diffLines";
import { counted } from "../src/conversation/pieces";
import type { ChangedFile } from "../src/v1";

const file = (path: string, status: ChangedFile["status"] = "added"): ChangedFile => ({ path, status, added: 1, removed: 0, binary: false });
const FILES = [file("old/a.sql"), file("old/b.sql"), file("older.txt"), file("src/x.py", "modified"), file("gone.py", "deleted")];

test.each([
  ["rm -r old", "Lost for good: 2 files not in git."],
  ["rm -rf ./old/", "Lost for good: 2 files not in git."],
  ["cd . && rm old/*", "Lost for good: 2 files not in git."],
  ["rm 'older.txt'", "Lost for good: 1 file not in git."],
  ["rm src/x.py", "Lost for good: 1 file with changes that are not committed."],
  ["rm -r .", "Lost for good: 3 files not in git, 1 file with changes that are not committed."],
  ["git reset --hard", "Lost for good: 3 files not in git, 1 file with changes that are not committed."],
  ["git clean -fd", "Lost for good: 3 files not in git, 1 file with changes that are not committed."],
  ["rm -r build", ""],
  ["rm gone.py", ""],
  ["ls old", ""],
  ["", ""],
])("%s", (command, words) => expect(lostBy(command, FILES)).toBe(words));

test.each([
  ["[CRITERIA] Criteria condition passed", "The check passed"],
  ['[CRITERIA] Criteria condition failed. Condition: ["Are all tests green?","Say why."]', "The check failed: Are all tests green? Say why."],
  ["[CRITERIA] Criteria failed on retry #2", "The check failed at retry 2"],
  ["[OPERATION] Starting retry #1", "Retry 1 begins"],
  ["[DECISION] Retry budget drained after 0 retries", "No retries left"],
  ["[TASK SUCCEEDED] Decision: task succeeded", "The step succeeded"],
  ["[DECISION] Retry budget drained after 3 retries", "All 3 retries are used up"],
  ["[TASK FAILED] Decision: task failed (criteria not satisfied)", "The step failed: its check did not pass"],
  ["[CRITERIA] toolExecuted check failed: missing tools: edit, bash", "The check failed: it has not used edit, bash"],
  ["[CRITERIA] Command failed with exit code 1: make", "Command failed with exit code 1: make"],
  ["Criteria condition passed, said the agent", "Criteria condition passed, said the agent"],
  ['{"name":"Error","message":"It broke."}', "It broke."],
])("%s is said as", (reason, words) => expect(plainReason(reason)).toBe(words));

const LINES = linesOf("--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n one\n-two\n+deux\n+trois\n four\n");

test("lines that a comment quotes, and whether they are still there", () => {
  expect(quoteOf(LINES, "new", 2, 3)).toBe("deux\ntrois");
  expect(quoteOf(LINES, "old", 2, 2)).toBe("two");
  expect(quoteOf(LINES, "new", 90, 91)).toBeUndefined();
  const comment = { id: "1", path: "x", side: "new" as const, from: 2, line: 3, quote: "deux\ntrois", text: "Why?" };
  expect([hasMoved(comment, LINES), hasMoved({ ...comment, quote: "deux" }, LINES), hasMoved(comment, undefined)]).toEqual([false, true, true]);
  expect([linesWord(comment), linesWord({ line: 3 })]).toEqual(["lines 2 to 3", "line 3"]);
  expect(messageOf([comment])).toBe("A comment on your changes:\n\n`x`, lines 2 to 3:\n> deux\n> trois\n\nWhy?");
});

test.each([
  [0, "0 bytes"],
  [1, "1 byte"],
  [1536, "1.5 KB"],
  [3 * 1024 * 1024, "3.0 MB"],
])("%d bytes are %s", (bytes, words) => expect(size(bytes)).toBe(words));

test.each([
  [3, 1, "+3 −1"],
  [3, 0, "+3"],
  [0, 2, "−2"],
  [0, 0, "+0"],
])("%d lines more and %d fewer are %s", (added, removed, words) => expect(counted(added, removed).textContent).toBe(words));

test("very many files are listed by their folders, which are filled as they are opened", () => {
  const files = ["src/b.py", "src/a.py", "README.md"].map((path) => ({ ...file(path), added: 2 }));
  const [place, open] = [document.createElement("div"), new Set<string>()];
  const show = () => render(fileTree(files, ({ path }) => html`<button>${path}</button>`, open, show), place);
  show();
  const folders = [...place.querySelectorAll("details")];
  expect([folders.map(({ textContent }) => textContent), place.querySelectorAll("button").length]).toEqual([[". 1 file +2", "src 2 files +4"], 0]);
  folders[1]!.open = true;
  folders[1]!.dispatchEvent(new Event("toggle"));
  expect([[...place.querySelectorAll("button")].map(({ textContent }) => textContent), [...place.querySelectorAll("details")]]).toEqual([["src/b.py", "src/a.py"], folders]);
});

test("days as people say them", () => {
  expect(dayWords("2019-11-03")).toMatch(/3.*2019|2019.*3/);
  expect(dayWords(`${new Date().getFullYear()}-11-03`)).not.toContain(String(new Date().getFullYear()));
  expect(dayWords("some day")).toBe("some day");
});

const CRASH = '{"name":"Error","message":"stub crash","stack":"Error: stub crash"}';
test.each<[string, [text: string, ok: boolean | undefined][], [text: string, ok: boolean | undefined][]]>([
  [
    "crashed five times, and failed for that",
    [...Array.from({ length: 5 }, (): [string, boolean] => [`[SESSION CRASHED] ${CRASH}`, false]), [`[TASK FAILED] Task error: ${CRASH}`, false], [CRASH, false]],
    [["stub crash (5 times)", false]],
  ],
  [
    "failed its check",
    [["[CRITERIA] Criteria condition failed. Condition: [\"x\"]", false], ["[DECISION] Retry budget drained after 0 retries", false], ["[TASK FAILED] Decision: task failed (criteria not satisfied)", false]],
    [["The check failed: x", false], ["No retries left", undefined]],
  ],
  [
    "passed at the second attempt",
    [["[CRITERIA] Criteria condition failed. Condition: [\"x\"]", false], ["[OPERATION] Starting retry #1", undefined], ["[CRITERIA] Criteria condition passed", true], ["[TASK SUCCEEDED] Decision: task succeeded", true]],
    [["The check failed: x", false], ["Retry 1 begins", undefined], ["The check passed", true], ["The step succeeded", true]],
  ],
  ["failed for a reason that no check gave", [["[TASK FAILED] Decision: task failed (criteria not satisfied)", false]], [["The step failed: its check did not pass", false]]],
])("a step that %s has one line for each fact", (_name, given, lines) => {
  const found = facts(given.map(([text, ok], time) => ({ time, text, ok })));
  expect(found.map(({ text, ok }) => [text, ok])).toEqual(lines);
});
