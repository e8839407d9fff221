/** Comments on lines of a change: drafts until they are sent, one message with file, line and text. */

import type { DiffLine } from "../conversation/diffLines";
import { COMMENTS } from "../texts/review";

export interface Comment {
  id: string;
  path: string;
  side: "old" | "new";
  line: number;
  /** The first of several lines, of which `line` is the last. */
  from?: number;
  /** The lines as they were when the comment was written. */
  quote: string;
  text: string;
}

const KEY = (session: string) => `portico.comments.${session}`;

export function loadComments(session: string): Comment[] {
  try {
    return JSON.parse(localStorage.getItem(KEY(session)) ?? "[]") as Comment[];
  } catch {
    return [];
  }
}

export function saveComments(session: string, comments: Comment[]): void {
  try {
    if (comments.length === 0) localStorage.removeItem(KEY(session));
    else localStorage.setItem(KEY(session), JSON.stringify(comments));
  } catch {
    // No room: they live as long as the page.
  }
}

/** The current text of these lines; undefined: there is none. */
export function quoteOf(lines: DiffLine[] | undefined, side: "old" | "new", from: number, to: number): string | undefined {
  const found = lines?.filter((line) => Number(line[side]) >= from && Number(line[side]) <= to && (line.kind !== "same" || side === "new"));
  return found?.length ? found.map(({ text }) => text).join("\n") : undefined;
}

/** The lines that it is about are not what they were. */
export function hasMoved({ side, from, line, quote }: Comment, lines: DiffLine[] | undefined): boolean {
  return quoteOf(lines, side, from ?? line, line) !== quote;
}

export const linesWord = ({ from, line }: Pick<Comment, "from" | "line">) => (from === undefined ? `line ${line}` : COMMENTS.lines(from, line));

/** What the agent reads. */
export function messageOf(comments: Comment[]): string {
  const ordered = [...comments].sort((one, other) => one.path.localeCompare(other.path) || one.line - other.line);
  const lead = COMMENTS.lead(comments.length);
  return [
    lead,
    ...ordered.map((comment) => {
      const quote = comment.quote.trim().replace(/\n/g, "\n> ");
      return `\`${comment.path}\`, ${linesWord(comment)}${comment.side === "old" ? COMMENTS.beforeTheChange : ""}:\n${quote ? `> ${quote}\n` : ""}\n${comment.text}`;
    }),
  ].join("\n\n");
}
