/** Texts of the inbox. */

import { plural } from "./plural";

/** The beginnings of the host's sentences about requests, and their form in a sentence about the answer. */
const ACTIONS: [pattern: RegExp, noun: string][] = [
  [/^Wants to change /, "the change to "],
  [/^Wants to run /, "running "],
  [/^Wants to read /, "reading "],
  [/^Wants to use /, "using "],
  [/^Asks: /, ""],
];

export const INBOX = {
  title: "Inbox",
  empty: "You're all caught up.",
  answered: "Answered today",
  interrupted: "Interrupted when the host stopped",
  jobs: "Jobs that wait for you",
  budgets: "Exhausted budgets",
  resumeAll: "Resume all",
  resume: "Resume",
  archive: "Archive",
  untitled: "New session",
  itsSession: "Its session",
  late: "This does not wait any more: it was answered, or its turn has ended. ",
  count: (items: number) => (items === 0 ? "You're all caught up" : `${plural(items, "item needs", "items need")} you, oldest first`),
  waits: (duration: string) => (duration ? `waiting ${duration}` : ""),
  interruptedAt: (time: string) => `interrupted at ${time}`,
  rules: (calls: number) => `Rules and remembered answers decided ${plural(calls, "call")} without asking.`,
  working: (titles: string[]) => (titles.length === 0 ? "No agent is running right now." : `Working: ${titles.slice(0, 5).join(", ")}${titles.length > 5 ? ` and ${titles.length - 5} more` : ""}.`),
  allowed: "Allowed: ",
  undo: "Undo",
  timeout: "No one answered in time:",
  verb: (question: boolean, allowed: boolean) => (question ? (allowed ? "answered" : "declined") : allowed ? "allowed" : "denied"),
  action: (text: string) => {
    const [pattern, noun] = ACTIONS.find(([each]) => each.test(text)) ?? [/^/, ""];
    return text.replace(pattern, noun) || "a question";
  },
  fromNowOn: (scope: string) => `, and ${scope} from now on`,
  inSession: (title: string) => ` in ${title}`,
} as const;
