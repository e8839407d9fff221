/** Unchanged lines that a diff leaves out, and what can be opened of them. */

import { describe, expect, test } from "vitest";
import { fileDiff, type LineActs } from "../src/app/fileDiff";
import { linesOf } from "../src/conversation/diffLines";
import { type Gap, MOST_OPENED, opened, openings, type Shown, withGaps } from "../src/conversation/gaps";

const hunk = (old: number, now: number, title = "") => `@@ -${old},7 +${now},7 @@${title && ` ${title}`}\n a\n b\n c\n-d\n+D\n e\n f\n g\n`;
const brief = (shown: Shown[]) => shown.map((item) => (item.kind === "gap" ? `gap ${item.old}/${item.new} ${item.count ?? "rest"}${item.title && ` ${item.title}`}` : item.kind === "same" ? `${item.old}/${item.new}${item.text}` : item.kind[0]));

describe("gaps", () => {
  test.each<[string, string, string[]]>([
    ["before, between and after hunks, with the function they stand in", hunk(25, 25, "def add():") + hunk(60, 60), ["gap 1/1 24 def add():", "25/25a", "26/26b", "27/27c", "r", "a", "29/29e", "30/30f", "31/31g", "gap 32/32 28", "60/60a", "61/61b", "62/62c", "r", "a", "64/64e", "65/65f", "66/66g", "gap 67/67 rest"]],
    ["none before the first line", "@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n d\n", ["r", "a", "2/2b", "3/3c", "4/4d", "gap 5/5 rest"]],
    ["none where the file ends sooner", "@@ -1,3 +1,3 @@\n-a\n+A\n b\n c\n", ["r", "a", "2/2b", "3/3c"]],
    ["none in a new file", "@@ -0,0 +1,4 @@\n+a\n+b\n+c\n+d\n", ["a", "a", "a", "a"]],
    ["none in a deleted file", "@@ -1,4 +0,0 @@\n-a\n-b\n-c\n-d\n", ["r", "r", "r", "r"]],
    ["sides that are apart after a change", "@@ -1,1 +1,2 @@\n a\n+b\n@@ -10,2 +11,2 @@\n x\n-y\n+Y\n", ["1/1a", "a", "gap 2/3 8", "10/11x", "r", "a"]],
    ["a hunk without lines around it", "@@ -5,0 +6,1 @@\n+x\n", ["gap 1/1 5", "a"]],
    ["hunks that touch", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -3,2 +3,2 @@\n-c\n+C\n d\n", ["1/1a", "r", "a", "r", "a", "4/4d"]],
  ])("%s", (_, diff, wanted) => expect(brief(withGaps(linesOf(diff)))).toEqual(wanted));

  const content = Array.from({ length: 70 }, (_, n) => `line ${n + 1}`);
  const shown = withGaps(linesOf(hunk(25, 26)));

  test.each<[string, [number, number][], string[]]>([
    ["nothing", [], ["gap 1/1 25"]],
    ["all", [[1, 25]], content.slice(0, 25).map((text, n) => `${n + 1}/${n + 1}${text}`)],
    ["its end", [[24, 25]], ["gap 1/1 23", "24/24line 24", "25/25line 25"]],
    ["its beginning and its end", [[1, 1], [25, 25]], ["1/1line 1", "gap 2/2 23", "25/25line 25"]],
    ["something in the middle, told twice", [[10, 11], [11, 12]], ["gap 1/1 9", "10/10line 10", "11/11line 11", "12/12line 12", "gap 13/13 13"]],
  ])("opened is %s", (_, ranges, wanted) => {
    expect(brief(opened(shown, content, ranges)).slice(0, wanted.length + 1)).toEqual([...wanted, "25/26a"]);
  });

  test("the rest of a file ends where the file ends, and numbers of both sides go on", () => {
    expect(brief(opened(shown, content, [[69, 1_000]])).slice(-4)).toEqual(["31/32g", "gap 32/33 36", "68/69line 69", "69/70line 70"]);
    expect(brief(opened(shown, content.slice(0, 32), [[33, 900]])).at(-1)).toBe("31/32g");
  });

  test.each<[string, Partial<Gap>, boolean, [string, readonly [number, number]][]]>([
    ["a short one", { new: 5, count: 20 }, false, [["20 lines", [5, 24]]]],
    ["one line", { new: 5, count: 1 }, false, [["1 line", [5, 5]]]],
    ["a longer one", { new: 5, count: 24 }, false, [["20 ↓", [5, 24]], ["24 lines", [5, 28]], ["20 ↑", [9, 28]]]],
    ["the first", { new: 1, count: 24 }, true, [["24 lines", [1, 24]], ["20 ↑", [5, 24]]]],
    ["the rest", { new: 67, count: undefined }, false, [["The rest of the file", [67, 66 + MOST_OPENED]]]],
    ["an endless one", { new: 1, count: 5_000 }, true, [["1000 of 5000 lines", [1, 1_000]], ["20 ↑", [4_981, 5_000]]]],
  ])("what can be opened of %s", (_, gap, atTop, wanted) => expect(openings({ kind: "gap", old: 1, new: 1, count: 1, title: "", ...gap }, atTop).map(({ text, range }) => [text, range])).toEqual(wanted));
});

describe.each([["unified", false], ["side by side", true]] as const)("a file's change, %s", (_, beside) => {
  const file = { path: "a.txt", added: 1, removed: 1, status: "modified" as const, binary: false, lines: linesOf(hunk(25, 25)) };
  const draw = (more: Partial<LineActs>): HTMLElement => {
    const content = document.createElement("div");
    fileDiff(content, file, beside, { comments: [], moved: () => false, write: () => undefined, remove: () => undefined, side: () => Promise.resolve(undefined), unfolded: undefined, ...more });
    return content;
  };

  test("its unchanged lines are folded, and each button opens its own", () => {
    const asked: unknown[] = [];
    const buttons = [...draw({ unfold: (range) => asked.push(range) }).querySelectorAll<HTMLButtonElement>(".diff-gap button")];
    expect(buttons.map((button) => [button.textContent, button.getAttribute("aria-label")])).toEqual([
      ["24 lines", "Show 24 lines that did not change, from line 1"],
      ["20 ↑", "Show 20 lines up to line 24"],
      ["The rest of the file", "Show the rest of the file"],
    ]);
    for (const button of buttons) button.click();
    expect(asked).toEqual([[1, 24], [5, 24], [32, 31 + MOST_OPENED]]);
  });

  test("what was opened stands there with its numbers, and can be commented", () => {
    const written: unknown[] = [];
    const view = draw({ unfold: () => undefined, unfolded: { content: Array.from({ length: 40 }, (__, n) => `line ${n + 1}`), ranges: [[23, 24]] }, write: (line, side) => written.push([line.new, side]) });
    const row = view.querySelector('[data-new="23"]');
    expect(row?.textContent).toContain("line 23");
    row?.querySelector("button")?.click();
    expect(written).toEqual([[23, "new"]]);
    expect(view.querySelector(".diff-gap button")?.textContent).toBe("22 lines");
  });

  test("what the host cannot show is named by its line", () => {
    const view = draw({});
    expect([view.querySelectorAll(".diff-gap").length, view.querySelector(".diff-hunk")?.textContent]).toEqual([0, "Line 25"]);
  });

  test("changed lines say what they are", () => {
    const view = draw({ unfold: () => undefined });
    expect([...view.querySelectorAll(".spoken")].map((each) => each.textContent)).toEqual(["removed, line 28, ", "added, line 28, "]);
    expect([...view.querySelectorAll(".diff-added > b, .diff-removed > b")].map((each) => each.getAttribute("aria-hidden"))).toEqual(["true", "true"]);
  });
});
