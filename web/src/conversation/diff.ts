/** A unified diff, coloured line by line; the signs stay, so that colour is never the only difference. */

import { make } from "../page";

export type LineKind = "added" | "removed" | "hunk" | "file" | "same";

/** What the lines of a diff are. `---` and `+++` are a file's name only where no hunk is open. */
export function kindsOf(lines: string[]): LineKind[] {
  let [before, after] = [0, 0];
  if (!lines.some((line) => line.startsWith("@@"))) return lines.map((line) => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same"));
  return lines.map((line) => {
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (hunk) {
      [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      return "hunk";
    }
    if (before <= 0 && after <= 0) return "file";
    if (line.startsWith("+")) return after--, "added";
    if (line.startsWith("-")) return before--, "removed";
    if (!line.startsWith("\\")) before--, after--;
    return "same";
  });
}

/** Longer ones are cut: a generated file of a million lines must not stop the page. */
const LINES = 2000;

export function diffView(text: string): HTMLElement {
  const all = text.replace(/\n$/, "").split("\n");
  const lines = all.slice(0, LINES);
  const kinds = kindsOf(lines);
  const view = make("pre", "diff");
  view.tabIndex = 0;
  view.setAttribute("aria-label", `Change: ${count(kinds, "added")} lines added, ${count(kinds, "removed")} removed`);
  view.setAttribute("role", "group");
  view.append(...lines.map((line, index) => make("span", `diff-${kinds[index]}`, `${line || " "}\n`)));
  if (all.length > LINES) view.append(make("span", "diff-hunk", `… ${all.length - LINES} more lines\n`));
  return view;
}

const count = (kinds: LineKind[], wanted: LineKind) => kinds.filter((kind) => kind === wanted).length;

/** Two whole texts as one hunk: what they share at both ends is left out, but for three lines. */
export function unified(path: string, before: string, after: string): string {
  const [old, now] = [lines(before), lines(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const from = Math.max(0, head - 3);
  const lead = old.slice(from, head);
  const end = old.slice(old.length - tail, old.length - tail + 3);
  const [removed, added] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  const size = lead.length + end.length;
  const body = [...lead.map((line) => ` ${line}`), ...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`), ...end.map((line) => ` ${line}`)];
  return [`--- ${path}`, `+++ ${path}`, `@@ -${from + 1},${size + removed.length} +${from + 1},${size + added.length} @@`, ...body, ""].join("\n");
}

const lines = (text: string) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
