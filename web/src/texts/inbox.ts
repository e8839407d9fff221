/** Texts of the inbox. */

import { plural } from "./plural";

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
} as const;
