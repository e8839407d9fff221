/** Texts of terminals. */

export const PANE = {
  terminal: "Terminal",
  connecting: "Connecting …",
  thisShellWasClosed: "This shell was closed.",
  thisShellHasEnded: "This shell has ended: the host was started anew, and its shells ended with it.",
  anEditorOrAnAgent: "an editor or an agent has it: watch only",
  leaves: " leaves the terminal",
  ended: (code: number | null | undefined) => `The shell has ended${code === undefined || code === null ? "" : ` with code ${code}`}.`,
} as const;

export const TERMINAL_PAGE = {
  terminals: "Terminals",
  endThisShell: "End this shell?",
  theShellAndAllPrograms: "The shell and all programs that run in it are ended.",
  endIt: "End it",
  thisShellIsNoMore: "This shell is no more",
  itWasClosed: "It was closed, or the host was restarted: shells end with the host. Changes to your files stay.",
  newTerminal: "New terminal",
  closeTheTerminal: "Close the terminal",
  typeIntoTheTerminal: "Type into the terminal",
  allSessions: "All sessions",
  leaveTheTerminal: "Leave the terminal",
  copyIfSomethingIsSelected: "Copy, if something is selected",
  paste: "Paste",
} as const;

export const SCREEN = {
  theBrowserDoesNotLet: "The browser does not let this page copy. Use its own menu: right click, Copy.",
} as const;

export const TERMINAL_TAB = {
  startATerminal: "Start a terminal",
  noTerminalIsOpen: "No terminal is open in this session.",
  whichTerminal: "Which terminal",
  openInANewTab: "Open in a new tab",
  newTerminal: "New terminal",
} as const;
