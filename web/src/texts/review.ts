/** Texts of the changes of a session. */

import { plural } from "./plural";

export const REVIEW = {
  which: "Which changes",
  unified: "Unified",
  beside: "Side by side",
  lines: "Changed lines",
  thisTurn: "This turn",
  sinceLastVisit: "Since I last looked",
  whole: "Whole session",
  uncommitted: "Uncommitted",
  turn: (number: number, text: string) => `Turn ${number}: ${text}`,
  loading: "Loading…",
  nothingNew: "Nothing has changed since you last looked.",
  otherSession: "not this session",
  shared: "Another session is using this folder; some of these changes may be its own.",
  newer: (count: number) => `${plural(count, "newer change")}, show`,
  binary: "binary",
  changedSince: "changed since you last looked",
  notWritten: "not written yet",
  viewed: "Viewed",
  viewedMark: "viewed",
  status: { added: "new", modified: "", deleted: "deleted", renamed: "renamed" },
  showLines: (count: number) => `Show ${plural(count, "line")}`,
  showChange: "Show the change",
  noRest: (path: string) => `The rest of ${path} cannot be shown: it is too large, or has changed since.`,
  send: (comments: number) => `Send ${plural(comments, "comment")}`,
  commit: "Commit…",
  discard: "Discard…",
  hint: "Click a line to comment",
  tapHint: "Tap a line to comment",
  commentOn: (path: string, lines: string) => `Comment on ${path}, ${lines}`,
  addComment: "Add comment",
  cancel: "Cancel",
  moved: {
    title: "Some lines have changed since",
    text: (lines: string) => `You commented on lines that are different now: ${lines}. The message quotes the lines as they were.`,
    send: "Send anyway",
  },
  files: (count: number) => ` ${plural(count, "file")} `,
} as const;

export const COMMIT = {
  alsoNotCommittedBut: "Also not committed, but not among the changes that are shown:",
  nothingHasChangedSince: "Nothing has changed since the last commit.",
  commit: "Commit",
  message: "Message",
  discardChanges: "Discard changes?",
  discardTheseFiles: "Discard these files",
  theSelectedFilesAreRestored: "The selected files are restored to the last commit. You can undo this for ten seconds.",
  undo: "Undo",
  changed: (lines: number, files: number) => `${plural(lines, "changed line")} in ${plural(files, "file")}`,
  lost: (all: string[]) => `Lost: ${all.join("; ")}.`,
} as const;

export const FILE_DIFF = {
  theChangeIsTooLong: "The change is too long to be shown here.",
  moreLines: (most: number) => `${most} more lines`,
  you: (linesWord: string) => `You, ${linesWord}`,
  remove: "Remove",
  thisLineHasChangedSince: "This line has changed since. It was:",
  commentOn: (kind: string, line: number) => `Comment on ${kind ? `${kind} ` : ""}line ${line}`,
} as const;

export const COMMENTS = {
  lines: (from: number, line: number) => `lines ${from} to ${line}`,
  beforeTheChange: " (before the change)",
  lead: (count: number) => (count === 1 ? "A comment on your changes:" : `${plural(count, "comment")} on your changes:`),
} as const;

export const GAPS = {
  theRestOfTheFile: "The rest of the file",
  showTheRest: "Show the rest of the file",
  ofLines: (mostOpened: number, count: number) => `${mostOpened} of ${count} lines`,
  showThatDidNotChange: (many: string, from: number) => `Show ${many} that did not change, from line ${from}`,
  showLinesFromLine: (step: number, from: number) => `Show ${step} lines from line ${from}`,
  showLinesUpToLine: (step: number, to: number) => `Show ${step} lines up to line ${to}`,
} as const;

export const BINARY = {
  before: "Before",
  after: "After",
  readingBothSides: "Reading both sides…",
} as const;

export const CHANGE_SOURCE = {
  noFilesChangedYet: "No files changed yet.",
  onlyWhatTheAgentReported: (note: string) => `${note} Only what the agent reported is shown.`,
  thisTurnHasChanged: "This turn has changed no file.",
  everythingIsCommitted: "Everything is committed.",
  thisFolder: "This folder is not in git: these are the changes that the agent reported.",
} as const;
