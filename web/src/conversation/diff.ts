/** A unified diff, coloured line by line; the signs stay, so that colour is never the only difference. */

import { make } from "../page";
import { countOf, type DiffLine, linesOf } from "./diffLines";
import { DIFF } from "../texts/conversation";

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

const SIGNS: Partial<Record<LineKind, string>> = { added: "+", removed: "−" };

/** With the path of its file it gets the colours of its language. */
export function diffView(text: string, most = LINES, path = ""): HTMLElement {
  const all = linesOf(text);
  const view = make("div", "diff");
  view.tabIndex = 0;
  const { added, removed } = countOf(all);
  view.setAttribute("aria-label", DIFF.changeLinesAddedRemoved(added, removed));
  view.setAttribute("role", "group");
  const shown = all.filter(({ kind }) => kind !== "file" || all.length < 3);
  const rows = shown.slice(0, most).map((line) => [lineView(line), line] as const);
  view.append(...rows.map(([row]) => row));
  const spans = rows.flatMap(([row, line]) => (line.text.trim() && row.lastElementChild instanceof HTMLSpanElement ? [[row.lastElementChild, line] as [HTMLElement, DiffLine]] : []));
  void import("./diffColours").then(({ colourLines }) => colourLines(path, spans), () => undefined); // plain code is code, too
  if (shown.length > most) view.append(make("div", "dl diff-hunk", DIFF.moreLines(shown.length - most)));
  return view;
}

/** One line: numbers, sign, text. Signs and hidden words express the color for users who do not see it. */
export function lineView(line: DiffLine): HTMLElement {
  const view = make("div", `dl diff-${line.kind}`);
  if (line.kind === "hunk" || line.kind === "file") {
    view.textContent = line.kind === "hunk" ? hunkTitle(line.text) : line.text;
    return view;
  }
  view.append(make("i", "", String(line.old ?? "")), make("i", "", String(line.new ?? "")), ...signed(line));
  return view;
}

export const SPOKEN: Partial<Record<LineKind, string>> = { added: "added", removed: "removed" };

/** The sign, its text for screen readers ("added, line 22, …"), and the text. */
export function signed(line: DiffLine): HTMLElement[] {
  const [sign, text, said] = [make("b", "", SIGNS[line.kind] ?? ""), make("span"), SPOKEN[line.kind]];
  sign.setAttribute("aria-hidden", "true");
  text.append(...marked(line));
  return said ? [sign, make("em", "vh spoken", DIFF.spoken(said, line.new ?? line.old)), text] : [sign, text];
}

function hunkTitle(text: string): string {
  const [, line = "", title = ""] = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/.exec(text) ?? [];
  return line ? DIFF.line(line, title ?? "") : text;
}

/** The text with what changed in marks. */
export function marked({ text, marks = [] }: DiffLine): (string | HTMLElement)[] {
  const found: (string | HTMLElement)[] = [];
  let at = 0;
  for (const [from, to] of marks) {
    found.push(text.slice(at, from), make("mark", "", text.slice(from, to)));
    at = to;
  }
  found.push(text.slice(at));
  return found.filter((piece) => piece !== "");
}

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
