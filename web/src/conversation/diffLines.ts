/** A unified diff as data: its lines with their numbers, the words that changed, and the two sides beside each other. */

import { kindsOf, type LineKind } from "./diff";

export interface DiffLine {
  kind: LineKind;
  /** Without its sign. */
  text: string;
  old?: number;
  new?: number;
  /** What is different from its counterpart: from, to. */
  marks?: [from: number, to: number][];
}

export function linesOf(diff: string): DiffLine[] {
  const raw = diff.replace(/\n$/, "").split("\n");
  const kinds = kindsOf(raw);
  let [before, after] = [1, 1];
  const found = raw.map((line, index): DiffLine => {
    const kind = kinds[index] ?? "same";
    if (kind === "hunk") {
      const [, old = "1", now = "1"] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line) ?? [];
      [before, after] = [Number(old), Number(now)];
      return { kind, text: line };
    }
    if (kind === "file" || line.startsWith("\\")) return { kind: "file", text: line };
    const text = /^[ +-]/.test(line) ? line.slice(1) : line;
    if (kind === "added") return { kind, text, new: after++ };
    if (kind === "removed") return { kind, text, old: before++ };
    return { kind, text, old: before++, new: after++ };
  });
  markWords(found);
  return found;
}

/** So long a line has no words to find. */
const WORDS_MAX = 400;

/** So many pairs of words are compared in one change: some milliseconds. */
const PAIRS_MAX = 1_000_000;
/** Of lines that could be the same, so many are looked at. */
const NEAR = 8;
/** What shares less than this part of its letters is another line. */
const ALIKE = 0.3;

/** Removed lines that are followed by added ones are the same lines, changed: each goes with the one that is most like it. */
function markWords(lines: DiffLine[]): void {
  const budget = { left: PAIRS_MAX };
  for (let at = 0; at < lines.length; ) {
    if (lines[at]?.kind !== "removed") {
      at++;
      continue;
    }
    const removed = run(lines, at, "removed");
    const added = run(lines, at + removed.length, "added");
    at += removed.length + added.length;
    const [few, many] = removed.length <= added.length ? [removed, added] : [added, removed];
    let from = 0;
    few.forEach((line, index) => {
      const near = many.slice(from, Math.min(many.length - (few.length - index) + 1, from + NEAR));
      const found = near.map((other) => compare(line.text, other.text, budget));
      const best = found.reduce((most, { shared }, each) => (shared > (found[most]?.shared ?? 0) ? each : most), 0);
      const [other, { shared, marks } = NOTHING] = [near[best], found[best]];
      from += best + 1;
      if (!other || shared < ALIKE * Math.min(letters(line.text), letters(other.text)) || shared === 0) return;
      if (marks[0].length) line.marks = marks[0];
      if (marks[1].length) other.marks = marks[1];
    });
  }
}

type Marks = [from: number, to: number][];
interface Compared {
  /** Letters of the words that both have. */
  shared: number;
  marks: [Marks, Marks];
}
const NOTHING: Compared = { shared: 0, marks: [[], []] };
const wordsOf = (text: string): string[] => text.match(/\w+|\s+|[^\w\s]/g) ?? [];
const letters = (text: string) => text.replace(/\s/g, "").length;

/** By whole words: what they share at both ends, and in the same order between. */
function compare(one: string, other: string, budget: { left: number }): Compared {
  if (one.length > WORDS_MAX || other.length > WORDS_MAX) return NOTHING;
  const [left, right] = [wordsOf(one), wordsOf(other)];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (tail < left.length - head && tail < right.length - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
  const [from, to] = [left.slice(head, left.length - tail), right.slice(head, right.length - tail)];
  budget.left -= from.length * to.length;
  const kept = budget.left > 0 ? common(from, to) : [];
  const same = (side: 0 | 1, length: number) => new Set([...kept.map((pair) => pair[side] + head), ...Array(head).keys(), ...Array.from({ length: tail }, (_, index) => length - 1 - index)]);
  const mine = same(0, left.length);
  return { shared: [...mine].reduce((sum, index) => sum + letters(left[index] ?? ""), 0), marks: [marksOf(left, mine), marksOf(right, same(1, right.length))] };
}

/** The longest row of words that both have, as places in each. */
function common(one: string[], other: string[]): [number, number][] {
  const width = other.length + 1;
  const best = new Uint16Array((one.length + 1) * width);
  const at = (i: number, j: number) => best[i * width + j] ?? 0;
  for (let i = one.length - 1; i >= 0; i--) for (let j = other.length - 1; j >= 0; j--) best[i * width + j] = one[i] === other[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const found: [number, number][] = [];
  for (let i = 0, j = 0; i < one.length && j < other.length; ) {
    if (one[i] === other[j]) found.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return found;
}

/** Positions of the words that differ; space between two of them is marked, too. */
function marksOf(words: string[], same: ReadonlySet<number>): Marks {
  const marks: Marks = [];
  let at = 0;
  words.forEach((word, index) => {
    const last = marks.at(-1);
    if (!same.has(index)) {
      if (last && words.join("").slice(last[1], at).trim() === "") last[1] = at + word.length;
      else marks.push([at, at + word.length]);
    }
    at += word.length;
  });
  return marks;
}

function run(lines: DiffLine[], from: number, kind: LineKind): DiffLine[] {
  let to = from;
  while (lines[to]?.kind === kind) to++;
  return lines.slice(from, to);
}

export type Pair = [left: DiffLine | undefined, right: DiffLine | undefined];

/** Side by side: what was removed beside what came in its place. */
export function pairs(lines: DiffLine[]): Pair[] {
  const found: Pair[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (line?.kind === "removed" || line?.kind === "added") {
      const removed = run(lines, at, "removed");
      const added = run(lines, at + removed.length, "added");
      for (let row = 0; row < Math.max(removed.length, added.length); row++) found.push([removed[row], added[row]]);
      at += removed.length + added.length;
    } else {
      found.push([line, line]);
      at++;
    }
  }
  return found;
}

/** A diff of several files, file by file. */
export function filesOf(diff: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const part of diff.split(/^(?=diff --git )/m)) {
    const name = /^\+\+\+ b\/(.*)$/m.exec(part)?.[1] ?? /^--- a\/(.*)$/m.exec(part)?.[1] ?? /^diff --git a\/.* b\/(.*)$/m.exec(part)?.[1];
    if (name) found.set(name.replace(/\t$/, ""), part);
  }
  return found;
}

export function countOf(lines: DiffLine[]): { added: number; removed: number } {
  let [added, removed] = [0, 0];
  for (const { kind } of lines) {
    if (kind === "added") added++;
    else if (kind === "removed") removed++;
  }
  return { added, removed };
}
