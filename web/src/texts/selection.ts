/** Texts of several rows that are selected in the list or in the inbox. */

import { plural } from "./plural";

export const SELECTION = {
  name: "Selected rows",
  count: (count: number) => `${count} selected`,
  select: "Select",
  archive: "Archive",
  unarchive: "Unarchive",
  resume: "Resume",
  read: "Mark read",
  delete: "Delete…",
  done: "Done",
  deleteTitle: (count: number) => `Delete ${plural(count, "session")}?`,
  deleteText: "Their histories and the sessions that came out of them are deleted, too. This cannot be undone.",
  deleteAction: "Delete",
  failed: (failed: number, all: number, reason: string) => `${failed} of ${all} not done: ${reason}`,
} as const;
