/** Texts of editing a message, and of trying an answer again. */

import { plural } from "./plural";

export const RESEND = {
  editAndResend: "Edit and resend",
  editHere: "Edit here",
  tryAgain: "Try again",
  replaceThisAnswer: "Replace this answer",
  continueInACopy: "Continue in a copy",
  removes: (turns: number) => `This removes everything after this message (${plural(turns, "turn")}) from the session. Files are not touched. To keep it, continue in a copy.`,
} as const;
