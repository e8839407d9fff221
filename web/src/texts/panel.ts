/** Texts of the panel next to a session. */

export const PANEL = {
  changes: "Changes",
  terminal: "Terminal",
  details: "Details",
  backToTheConversation: "Back to the conversation",
  panel: "Panel",
  closeThePanel: "Close the panel",
  changesTerminalAndDetails: "Changes, terminal and details",
  review: "Review",
} as const;
