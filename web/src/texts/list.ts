/** Texts of the list of sessions and jobs, and of the frame around it. */

export const LIST = {
  title: "Sessions and jobs",
  noMatch: "No matches in titles, folders, agents or messages.",
  noJobs: "No jobs yet.",
  startJob: "Start a job",
  noSessions: "No sessions yet.",
  newSession: "New session",
  newSessionKey: "New session (C)",
  newIn: (folder: string) => `New session in ${folder}`,
  inMessages: "In messages",
  archived: (count: number) => `Archived (${count})`,
  groups: { need: "Needs you", work: "Working", stopped: "Stopped", pinned: "Pinned", today: "Done today", yesterday: "Yesterday", older: "Older" },
  states: { need: "Needs you", ask: "Asks you", work: "Working", queued: "Queued", interrupted: "Interrupted", stopped: "Stopped", failed: "Failed", done: "Done" },
  unread: "new",
  actions: { more: "More of", pin: "Pin", unpin: "Unpin", resume: "Resume", archive: "Archive", unarchive: "Unarchive" },
  moreKey: "More (.)",
  selected: "Selected: ",
} as const;

export const FRAME = {
  name: "Portico",
  search: "Search or run a command…",
  searchKey: "Ctrl K",
  theme: "Switch theme",
  settings: "Settings",
  listWidth: "Width of the list",
  panelWidth: "Width of the panel",
  sessions: "Sessions",
  needYou: (count: number) => `${count} need you`,
  connected: (host: string) => `Connected to ${host}`,
  notConnected: "Not connected",
  connecting: "Connecting",
  unreachable: (since: string) => `The host cannot be reached since ${since}.`,
  retryIn: (seconds: number) => (seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again."),
  whileOffline: "You can read what is here and write drafts.",
  notFound: "Not found",
  noPage: "There is no such page",
  noPageText: (path: string) => `The workbench has nothing at ${path}. The address may be cut off, or from another version.`,
  openList: "Open the list",
  table: "Table",
  announced: (title: string) => `Needs you: ${title}`,
} as const;

export const FILTER = {
  filter: "Filter",
  wordsFolderAgent: "Words, folder:, agent:, by: or is:",
  filterSessionsAndJobs: "Filter sessions and jobs",
  removeTheFilter: (word: string) => `Remove the filter ${word}`,
} as const;

export const FILTER_OFFERS = {
  only: (text: string) => `Only ${text}`,
} as const;
