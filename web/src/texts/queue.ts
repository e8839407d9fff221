/** Texts of the messages that wait. */

export const QUEUE = {
  held: "Held after an interruption",
  next: "Sent when the agent is done",
  continue: "Continue",
  sendNow: "Send now",
  up: "Move up",
  down: "Move down",
  edit: "Edit",
  remove: "Remove",
  message: "Waiting message",
  save: "Save",
  cancel: "Cancel",
  about: (action: string, text: string) => `${action}: ${text.slice(0, 40)}`,
  notNow: "This agent accepts no message while it works; it stays in the queue.",
} as const;
