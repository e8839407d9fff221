/** The unchanged lines that a diff leaves out: how many there are, and what is shown of them when they are opened. */

import type { DiffLine } from "./diffLines";
import { plural } from "../texts/plural";
import { GAPS } from "../texts/review";

export interface Gap {
  kind: "gap";
  /** The numbers of its first line. */
  old: number;
  new: number;
  /** Undefined: to the end of the file, which a diff does not contain. */
  count: number | undefined;
  /** The function or heading that contains the next lines. */
  title: string;
}

export type Shown = DiffLine | Gap;

/** Lines of the file as it is now: from, to. */
export type Opened = readonly [from: number, to: number];

/** Git shows so many lines around a change; where there are fewer, the file ends. */
const AROUND = 3;

/** The lines with gaps in the place of the lines that begin a hunk. */
export function withGaps(lines: DiffLine[]): Shown[] {
  const found: Shown[] = [];
  let [before, after] = [1, 1];
  for (const line of lines) {
    if (line.kind === "hunk") {
      const [, from = "1", size = "1", title = ""] = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line.text) ?? [];
      const count = Number(from) + (size === "0" ? 1 : 0) - after; // a side without lines is named by the line before it
      if (count > 0) found.push({ kind: "gap", old: before, new: after, count, title });
      continue;
    }
    if (line.old !== undefined) before = line.old + 1;
    if (line.new !== undefined) after = line.new + 1;
    found.push(line);
  }
  const end = lines.slice(-AROUND);
  if (lines.length > AROUND && end.every(({ kind }) => kind === "same")) found.push({ kind: "gap", old: before, new: after, count: undefined, title: "" });
  return found;
}

/** Opened ranges are lines; the rest stays a gap. */
export function opened(shown: Shown[], content: readonly string[], ranges: readonly Opened[]): Shown[] {
  return shown.flatMap((item) => (item.kind === "gap" ? openGap(item, content, ranges) : [item]));
}

function openGap(gap: Gap, content: readonly string[], ranges: readonly Opened[]): Shown[] {
  const count = gap.count ?? Math.max(0, content.length - gap.new + 1);
  const found: Shown[] = [];
  for (let at = 0; at < count; at++) {
    const number = gap.new + at;
    const last = found.at(-1);
    if (ranges.some(([from, to]) => number >= from && number <= to)) found.push({ kind: "same", text: content[number - 1] ?? "", old: gap.old + at, new: number });
    else if (last?.kind === "gap") last.count = (last.count ?? 0) + 1;
    else found.push({ ...gap, old: gap.old + at, new: number, count: 1 });
  }
  return found;
}

/** A click opens so many lines at each end of a long gap; a short one is opened as a whole. */
export const STEP = 20;
/** Most lines that one click opens: a file of a million lines must not stop the page. */
export const MOST_OPENED = 1_000;

export interface Opening {
  text: string;
  /** A label for screen readers. */
  label: string;
  range: Opened;
}

/** What can be opened of a gap: some lines after what is above it, all of them, some before what is below it. */
export function openings({ new: from, count }: Gap, atTop: boolean): Opening[] {
  if (count === undefined) return [{ text: GAPS.theRestOfTheFile, label: GAPS.showTheRest, range: [from, from + MOST_OPENED - 1] }];
  const to = from + count - 1;
  const many = count > MOST_OPENED ? GAPS.ofLines(MOST_OPENED, count) : plural(count, "line");
  const all: Opening = { text: many, label: GAPS.showThatDidNotChange(many, from), range: [from, Math.min(to, from + MOST_OPENED - 1)] };
  if (count <= STEP) return [all];
  const down: Opening = { text: `${STEP} ↓`, label: GAPS.showLinesFromLine(STEP, from), range: [from, from + STEP - 1] };
  const up: Opening = { text: `${STEP} ↑`, label: GAPS.showLinesUpToLine(STEP, to), range: [to - STEP + 1, to] };
  return atTop ? [all, up] : [down, all, up];
}
