/** Text that a search found: the row that contains it, and its occurrences. */

import { expect, test } from "vitest";
import { contains, rangesOf, textOf } from "../src/conversation/found";
import { answerOf } from "../src/conversation/rows";
import type { Part, Turn } from "../src/conversation/state";
import { hitHash } from "../src/app/router";

test("what a part contributes to a search", () => {
  const cases: [Part, string, boolean][] = [
    [{ part: "text", id: "1", kind: "text", text: "The Bucket is full" } as Part, "bucket is", true],
    [{ part: "text", id: "1", kind: "text" } as Part, "bucket", false],
    [{ part: "call", id: "2", tool: "shell", input: "ls bucket" }, "BUCKET", true],
    [{ part: "call", id: "2", tool: "shell", output: "one\nbucket" }, "bucket", true],
    [{ part: "call", id: "2", tool: "shell" }, "shell", false],
    [{ part: "question", id: "3", text: "Which bucket?" }, "bucket?", true],
  ];
  for (const [part, text, expected] of cases) expect([part, contains(textOf(part), text)]).toEqual([part, expected]);
});

test("every occurrence is a range, whatever the case, inside one text node", () => {
  const row = document.createElement("div");
  row.innerHTML = "<p>Bucket, <b>bucket</b> and BUCKETbucket</p><p>buc<i>ket</i></p>";
  expect(rangesOf(row, "bucket").map(String)).toEqual(["Bucket", "bucket", "BUCKET", "bucket"]);
});

test("the address of a hit survives any text", () => {
  expect(hitHash({ turn: null }, "x")).toBe("");
  for (const text of ["a b", "a&b=c", "100 %", "#1", "ä+b"]) {
    const found = new URLSearchParams(hitHash({ turn: "t/1" }, text).slice(1));
    expect([found.get("turn"), found.get("find")]).toEqual(["t/1", text]);
  }
});

test("the answer of a turn is its texts, without reasoning and calls", () => {
  const parts = [
    { part: "text", id: "1", kind: "reasoning", text: "Hm." },
    { part: "text", id: "2", kind: "text", text: "First.\n" },
    { part: "call", id: "3", tool: "shell", output: "x" },
    { part: "text", id: "4", kind: "text", text: "Then." },
  ] as Part[];
  expect(answerOf({ id: "t", message: { text: "" }, by: "", started: 0, parts } as Turn)).toBe("First.\n\nThen.");
  expect(answerOf({ id: "t", message: { text: "" }, by: "", started: 0 } as Turn)).toBe("");
});
