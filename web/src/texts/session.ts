/** Texts of an open session: its head and the line with what happens now. */

export const SESSION = {
  untitled: "New session",
  back: "Back to the list",
  conversation: "Conversation",
  queue: "Waiting messages",
  showPanel: "Show panel",
  stop: "Stop",
  stopKey: "Esc Esc",
  status: { idle: "", running: "Working", waiting: "Needs you", failed: "Failed", closed: "Closed", archived: "Archived", interrupted: "Interrupted", stopped: "Stopped", queued: "Queued", lost: "Not connected" },
  now: {
    lost: "The host cannot be reached",
    waiting: "Waiting for you",
    model: "Waiting for the model",
    running: "Running",
    changing: "Changing",
    looking: "Looking at",
    using: "Using",
    thinking: "Thinking",
    writing: "Writing",
    helper: (name: string) => `${name} helps`,
  },
  missing: "There is no such session",
  missingText: (id: string) => `No session of this host is called ${id}. It may have been deleted.`,
  allSessions: "All sessions",
  notFound: "Not found",
} as const;
