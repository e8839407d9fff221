/** Comments on lines of a change: drafts until they are sent, one message with file, line and text. */

import type { DiffLine } from "../conversation/diffLines";

export interface Comment {
  id: string;
  path: string;
  side: "old" | "new";
  line: number;
  /** The line as it was when somebody wrote about it. */
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

/** The line that it is about is not what it was. */
export function hasMoved(comment: Comment, lines: DiffLine[] | undefined): boolean {
  return lines?.find((line) => line[comment.side] === comment.line && (line.kind !== "same" || comment.side === "new"))?.text !== comment.quote;
}

/** What the agent reads. */
export function messageOf(comments: Comment[]): string {
  const ordered = [...comments].sort((one, other) => one.path.localeCompare(other.path) || one.line - other.line);
  const lead = comments.length === 1 ? "A comment on your changes:" : `${comments.length} comments on your changes:`;
  return [
    lead,
    ...ordered.map(({ path, line, side, quote, text }) => `\`${path}\`, line ${line}${side === "old" ? " (before the change)" : ""}:\n${quote.trim() ? `> ${quote.trim()}\n` : ""}\n${text}`),
  ].join("\n\n");
}
