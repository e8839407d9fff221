/** Texts of the rows of a conversation: messages, answers, calls and the ends of turns. */

export const CONVERSATION = {
  resend: "Edit and resend",
  copy: "Continue in a copy",
  showAll: "Show all of it",
  showLess: "Show less",
  thinking: "Thinking",
  thought: (took: string) => `Thought about it${took ? ` · ${took}` : ""}`,
  tryAgain: "Try again",
  tryAgainHint: "Try again, or tell the agent what to do differently.",
  resume: "Resume",
  turnChanges: "Changes of this turn",
  copyAnswer: "Copy answer",
  copyFromHere: "Continue in a copy from here",
  copyLink: "Copy link",
  failed: "The turn failed.",
  interrupted: "Interrupted: the host stopped.",
  interruptedAt: (time: string) => `Interrupted: the host stopped at ${time}.`,
  details: "Details",
} as const;

/** Texts of tool calls. */
export const CALL = {
  state: { waiting: "waits for you", running: "running", ok: "done", bad: "failed", refused: "denied", stopped: "stopped" },
  notDone: "not done",
  exit: (code: number) => `exit ${code}`,
  wrote: "Wrote ",
  notWritten: "Did not write ",
  changes: "Changes ",
  answered: (yes: boolean, reason: string) => `Answered ${yes ? "yes" : "no"}: ${reason}`,
  fetched: "Fetched ",
  notFetched: "Could not fetch ",
  fetches: "Fetches ",
  showInChanges: "Show it in the changes",
  plan: (done: number, all: number) => `Plan, ${done} of ${all} done`,
  byRule: (denied: boolean, rule: string) => `${denied ? "Denied" : "Allowed"} by a rule: ${rule}`,
  inputOf: (tool: string) => `Input of ${tool}`,
  watch: "Watch it in its terminal",
  wholeOutput: "The whole output",
  nothingYet: "Nothing yet.",
  nothing: "Nothing.",
  output: "Output",
  copyOutput: "Copy the output",
  terminal: "Open a terminal here",
  change: "Change",
  looksAt: "Looks at ",
  lookedAt: "Looked at ",
  looks: "Looks around",
  looked: "Looked around",
  failed: (count: number) => `${count} failed`,
} as const;

export const WORDS = {
  ready: "Ready",
  working: "Working",
  needsYou: "Needs you",
  failed: "Failed",
  you: "You",
  anEditor: "An editor",
  theJob: "The job",
  theAgent: "The agent",
  theJobNamed: (name: string) => `The job ${name}`,
  stopped: "Stopped",
  stoppedBy: (name: string) => `Stopped by ${name}`,
  stoppedByYou: "Stopped by you",
  tokens: (input: string, cached: string, output: string) => `${input} tokens in${cached ? ` (${cached} cached)` : ""}, ${output} out`,
  remembered: { once: "", session: " in this session", project: " in this folder" },
} as const;

export const DANGER = {
  deletesFiles: "Deletes files",
  mayDeleteOrRun: "May delete or run for every file it finds",
  runsAsAnotherUser: "Runs as another user",
  overwritesABranch: "Overwrites a branch on the server",
  throwsAwayChangesThatAre: "Throws away changes that are not committed",
  usesTheNetwork: "Uses the network",
  changesTheDiskOrMany: "Changes the disk or many files",
  touchesSecrets: "Touches secrets",
  runsWhatAnotherProgramPrints: "Runs what another program prints",
  outsideTheProjectFolder: "Outside the project folder",
  notInGit: (count: string) => `${count} not in git`,
  withChangesThatAre: (count: string) => `${count} with changes that are not committed`,
  lost: (all: string[]) => `Lost for good: ${all.join(", ")}.`,
} as const;

export const CODE = {
  copy: "Copy",
  wrap: "Wrap",
  wrapLongLines: "Wrap long lines",
  textOfTheDiagram: "Text of the diagram",
  copied: "Copied",
  notAllowedHere: "Not allowed here",
} as const;

export const DIFF = {
  changeLinesAddedRemoved: (added: number, removed: number) => `Change: ${added} lines added, ${removed} removed`,
  moreLines: (most: number) => `${most} more lines`,
  spoken: (kind: string, line: number | undefined) => `${kind}, line ${line}, `,
  line: (line: string, title: string) => `Line ${line}${title ? `, ${title}` : ""}`,
} as const;

export const CALL_WORDS = {
  line: (to: number) => `, line ${to}`,
  lines: (value: number, to: number) => `, lines ${value} to ${to}`,
  aHelper: "A helper",
  fromLine: (line: number | string) => `, from line ${line}`,
} as const;

export const TRANSCRIPT = {
  noMessagesYet: "No messages yet",
  writeBelowWhatYouWant: "Write below what you want done. The agent works in the folder above and asks here before it changes anything; it keeps running when you close this page.",
  newBelow: "New below ↓",
  jumpToLatest: "Jump to latest ↓",
} as const;

export const CHANGES = {
  noneChangesThatTheAgent: "None. Changes that the agent reports or asks for appear here, file by file.",
} as const;
