/** Texts of the cards: approvals, questions, and what was answered. */

import { plural } from "./plural";

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

export const APPROVAL = {
  theAgent: "The agent",
  use: "Use ",
  useResult: "Use the result of ",
  change: "Change ",
  read: "Read ",
  open: "Open ",
  connect: "Connect to ",
  run: "Run this command?",
  /** `danger`: a reason such as "Deletes files". */
  runDangerous: (danger: string) => `Run a command that ${lower(danger)}?`,
  wantsToRun: (folder: string) => `wants to run it in ${folder}. Nothing runs until you allow it.`,
  asks: "asks. Nothing happens until you answer.",
  wantsToWrite: (added: number, removed: number) => {
    const lines = (count: number) => plural(count, "line");
    const what = removed === 0 ? `write ${lines(added)}` : added === 0 ? `remove ${lines(removed)}` : `write ${lines(added)} and remove ${removed}`;
    return `wants to ${what}. Nothing is written until you allow it.`;
  },
  changesNothing: "would write the file with its current content. It changes nothing.",
  /** The host's reason, in the words of a card. */
  why: (text: string) => text.replace(/^It always asks: built-in rule '(.*)'\.$/, "Always asks (built-in rule: $1)").replace(/^It always asks: (.*)\.$/, "Always asks ($1)"),
  inside: "Inside the project folder",
  newFile: "A new file",
  notInGit: "Not in git: the old text is not kept",
  uncommitted: "Has changes that are not committed",
  undoable: "Can be undone",
  noLimit: "No time limit",
  tooLate: "No one answered in time",
  limit: (left: string, by: string) => `Not done if no one answers within ${left}, by ${by}`,
  showAll: (lines: number) => `Show all ${lines} lines`,
  exactInput: "The exact input",
  changeInput: "Change the input",
  input: "Input",
  note: "Note to the agent (optional)",
  allow: "Allow…",
  back: "Back",
  /** Reasons such as "Deletes files" and "Outside the project folder" as whole sentences. */
  sure: (reasons: string[]) => `${reasons.map((reason) => `This ${reason.startsWith("Outside") ? "is " : ""}${lower(reason)}.`).join(" ")} Allow it anyway?`,
  what: (label: string) => `${label}: what for?`,
  allowScope: (scope: string) => `Allow ${scope}`,
  notAskedAgain: (session: boolean) => `You won't be asked again ${session ? "in this session" : "in this folder"}. Revoke it under Details.`,
} as const;

export const VERDICT = {
  timeout: (by: string) => `No one answered ${by ? `by ${by}` : "in time"}, so it was not done.`,
  stopped: (who: string) => `Not run: ${who} stopped the turn.`,
  ended: "Not answered: the turn ended first.",
  undo: "Undo",
  undone: "Undone: it will ask again.",
} as const;

export const QUESTION = {
  only: (people: string[]) => `Only ${people.join(", ")} may answer.`,
  declinedBy: (who: string) => `Declined by ${who}.`,
  ended: "Not answered: the turn ended.",
  none: "none of them",
  yes: "Yes",
  no: "No",
  yourAnswer: "Your answer",
  step: (at: number, of: number) => `${at} of ${of}`,
  other: "Something else",
  otherMore: "Something else…",
  elsewhere: "Answer there instead",
  next: "Next",
  answer: "Answer",
  skip: "Leave it open",
  back: "Back",
  decline: "Decline",
  optional: "Optional",
  /** What a job writes above the choices of its question. */
  choose: "Choose",
} as const;

export const GRANTS = {
  title: "Remembered answers",
  none: "None. “Allow in this session” on an approval remembers the answer here, until you forget it or it expires.",
  forget: "Forget",
  session: "this session",
  project: "this project",
  until: (where: string, time: string) => `${where}, until ${time}`,
} as const;

export const COVERS = {
  everythingDoes: (exact: string) => `everything ${exact} does`,
  everyFileInThisProject: "every file in this project",
  everyFile: (relative: string) => `every file in ${relative}/`,
  allowed: "Allowed",
  refused: "Refused",
  edits: (what: string) => `edits to ${what}`,
  reads: (what: string) => `reading ${what}`,
  host: (name: string) => `connections to ${name}`,
  folder: (kind: "read" | "write", path: string) => `${kind === "read" ? "reading" : "reading and writing"} ${path}`,
  thisCall: "exactly this call",
} as const;

export const EVIDENCE = {
  theChange: "The change",
} as const;
