/** The changed lines of one file: unified or side by side, with colours, comments, and a button on every line number. */

import { lineView, SPOKEN, signed } from "../conversation/diff";
import { colourLines } from "../conversation/diffColours";
import { type DiffLine, pairs } from "../conversation/diffLines";
import { type Gap, opened, type Opened, openings, type Shown, withGaps } from "../conversation/gaps";
import { exact } from "../conversation/pieces";
import { make, makeButton } from "../page";
import { binaryView, type ReadSide } from "./binary";
import type { FileView } from "./changeSource";
import { type Comment, linesWord } from "./comments";
import { FILE_DIFF } from "../texts/review";

export interface LineActs {
  comments: Comment[];
  moved(comment: Comment): boolean;
  /** `from`: the first of several lines, of which `line` is the last. */
  write(line: DiffLine, side: "old" | "new", from?: number): void;
  remove(comment: Comment): void;
  /** The file as a whole, before or after the change. */
  side: ReadSide;
  unfolded: Unfolded | undefined;
  /** Shows these lines, too; without it they stay hidden. */
  unfold?(range: Opened): void;
}

/** The file as it is now, and what of its unchanged lines is shown. */
export interface Unfolded {
  content: string[];
  ranges: Opened[];
}

/** More lines of one file are drawn on request. */
const MOST = 3000;

export function fileDiff(content: HTMLElement, file: FileView, beside: boolean, acts: LineActs): void {
  if (file.binary) return void binaryView(content, file.path, acts.side);
  if (!file.lines) return content.replaceChildren(make("p", "soft pad", FILE_DIFF.theChangeIsTooLong));
  const all = shownOf(file.lines, acts);
  const view = make("div", beside ? "diff beside" : "diff unified");
  const spans: [HTMLElement, DiffLine][] = [];
  for (const item of runs(all.slice(0, MOST))) {
    if (!Array.isArray(item)) view.append(gapView(item, acts, view.childElementCount === 0));
    else if (beside) drawBeside(view, item, acts, spans);
    else drawUnified(view, item, acts, spans);
  }
  if (all.length > MOST) view.append(make("p", "soft pad", FILE_DIFF.moreLines(all.length - MOST)));
  const lost = acts.comments.filter((comment) => !view.querySelector(`[data-comment="${CSS.escape(comment.id)}"]`));
  content.replaceChildren(view, ...lost.map((comment) => noteView(comment, acts)));
  void colourLines(file.path, spans);
}

function shownOf(lines: DiffLine[], { unfold, unfolded }: LineActs): Shown[] {
  if (!unfold) return lines;
  return unfolded ? opened(withGaps(lines), unfolded.content, unfolded.ranges) : withGaps(lines);
}

/** Adjacent lines, and the gaps between them. */
function runs(shown: Shown[]): (DiffLine[] | Gap)[] {
  const found: (DiffLine[] | Gap)[] = [];
  for (const item of shown) {
    const last = found.at(-1);
    if (item.kind === "gap") found.push(item);
    else if (Array.isArray(last)) last.push(item);
    else found.push([item]);
  }
  return found;
}

/** Unchanged lines, folded: a click shows all of them, or some more at either end. */
function gapView(gap: Gap, acts: LineActs, atTop: boolean): HTMLElement {
  const row = make("div", "dl diff-hunk diff-gap");
  for (const { text, label: said, range } of openings(gap, atTop)) {
    const button = makeButton("gap-lines", text, () => acts.unfold?.(range));
    button.setAttribute("aria-label", said);
    row.append(button);
  }
  if (gap.title) row.append(make("span", "gap-title", gap.title));
  return row;
}

function drawUnified(view: HTMLElement, lines: DiffLine[], acts: LineActs, spans: [HTMLElement, DiffLine][]): void {
  for (const line of lines) {
    const row = lineView(line);
    addComments(row, line, line.kind === "removed" ? "old" : "new", acts, spans);
    view.append(row, ...notesAt(line, line.kind === "removed" ? "old" : "new", acts));
  }
}

function drawBeside(view: HTMLElement, lines: DiffLine[], acts: LineActs, spans: [HTMLElement, DiffLine][]): void {
  for (const [left, right] of pairs(lines)) {
    if (left && left === right && (left.kind === "hunk" || left.kind === "file")) {
      view.append(lineView(left));
      continue;
    }
    const row = make("div", "pair");
    row.append(half(left, "old", acts, spans), half(right, "new", acts, spans));
    view.append(row, ...(left && left !== right ? notesAt(left, "old", acts) : []), ...(right ? notesAt(right, "new", acts) : []));
  }
}

function half(line: DiffLine | undefined, side: "old" | "new", acts: LineActs, spans: [HTMLElement, DiffLine][]): HTMLElement {
  if (!line) return make("div", "dl nothing");
  const row = make("div", `dl diff-${line.kind}`);
  row.append(make("i", "", String(line[side] ?? "")), ...signed(line));
  addComments(row, line, side, acts, spans);
  return row;
}

/** The number where a pointer went down, to comment on the lines from there on. */
let drag: { row: HTMLElement; side: "old" | "new"; number: number } | undefined;

/** The number becomes a button that opens a comment. Its label names what the color shows. */
function addComments(row: HTMLElement, line: DiffLine, side: "old" | "new", acts: LineActs, spans: [HTMLElement, DiffLine][]): void {
  const number = line[side];
  if (number === undefined) return;
  row.dataset[side] = String(number);
  const cell = [...row.querySelectorAll("i")].findLast((each) => each.textContent === String(number));
  const button = makeButton("line-number", String(number), () => acts.write(line, side));
  button.tabIndex = line.kind === "same" ? -1 : 0;
  button.setAttribute("aria-label", FILE_DIFF.commentOn(SPOKEN[line.kind] ?? "", number));
  cell?.replaceChildren(button);
  row.addEventListener("click", ({ target }) => {
    // Who marks text to copy it does not want to comment.
    if (target !== button && document.getSelection()?.isCollapsed !== false) acts.write(line, side);
  });
  cell?.addEventListener("pointerdown", () => (drag = { row, side, number }));
  row.addEventListener("pointerup", () => {
    const begun = drag;
    drag = undefined;
    const together = begun && begun.side === side && begun.row.closest(".diff") === row.closest(".diff");
    if (together && begun.number < number) acts.write(line, side, begun.number);
  });
  const text = row.lastElementChild as HTMLElement | null;
  if (text && line.text.trim()) spans.push([text, line]);
}

function notesAt(line: DiffLine, side: "old" | "new", acts: LineActs): HTMLElement[] {
  return acts.comments.filter((comment) => comment.side === side && comment.line === line[side]).map((comment) => noteView(comment, acts));
}

function noteView(comment: Comment, acts: LineActs): HTMLElement {
  const note = make("div", "note");
  note.dataset["comment"] = comment.id;
  const head = make("small", "", FILE_DIFF.you(linesWord(comment)));
  const remove = makeButton("link", FILE_DIFF.remove, () => acts.remove(comment));
  head.append(" ", remove);
  const text = make("div", "", comment.text);
  text.dir = "auto";
  note.append(head);
  if (acts.moved(comment)) note.append(make("p", "bad", FILE_DIFF.thisLineHasChangedSince), make("code", "", exact(comment.quote)));
  note.append(text);
  return note;
}
