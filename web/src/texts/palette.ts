/** Texts of the palette. */

export const PALETTE = {
  title: "Search or run a command",
  placeholder: "Search, or > commands, @ files, # messages",
  results: "Results",
  none: "No matches",
  groups: { need: "Needs you", all: "Sessions and jobs", do: "Commands", messages: "In messages", files: "Files" },
  intoMessage: "put into the message",
} as const;
