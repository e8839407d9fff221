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

/** Runs of removed lines that are followed by as many added ones are the same lines, changed. */
function markWords(lines: DiffLine[]): void {
  for (let at = 0; at < lines.length; ) {
    if (lines[at]?.kind !== "removed") {
      at++;
      continue;
    }
    const removed = run(lines, at, "removed");
    const added = run(lines, at + removed.length, "added");
    removed.forEach((line, index) => {
      const other = added[index];
      if (other && line.text.length <= WORDS_MAX && other.text.length <= WORDS_MAX) markPair(line, other);
    });
    at += removed.length + added.length;
  }
}

function run(lines: DiffLine[], from: number, kind: LineKind): DiffLine[] {
  let to = from;
  while (lines[to]?.kind === kind) to++;
  return lines.slice(from, to);
}

/** What they share at both ends, by whole words, is the same; lines that share nothing are simply other lines. */
function markPair(one: DiffLine, other: DiffLine): void {
  const [left, right] = [one.text.match(/\w+|\s+|[^\w\s]/g) ?? [], other.text.match(/\w+|\s+|[^\w\s]/g) ?? []];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (tail < left.length - head && tail < right.length - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
  const size = (words: string[]) => words.join("").length;
  const start = size(left.slice(0, head));
  const end = size(left.slice(left.length - tail));
  if (one.text.slice(0, start).trim() === "" && one.text.slice(one.text.length - end).trim() === "") return;
  for (const line of [one, other]) if (line.text.length - end > start) line.marks = [[start, line.text.length - end]];
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
