/** Texts of the menus of a session and of a row, and of their dialogs. */

export const ROW_MENU = {
  more: (title: string) => `More of ${title}`,
  copyTheLink: "Copy the link",
  markAsRead: "Mark as read",
  markAsUnread: "Mark as unread",
  takeOutOfTheArchive: "Take out of the archive",
  archive: "Archive",
  resume: "Resume",
  rename: "Rename",
  continueInACopy: "Continue in a copy",
  share: "Share…",
  deleteIt: "Delete…",
  runAgain: "Run again",
  stop: "Stop…",
  stopThisJob: "Stop this job?",
  whatRunsInIt: "What runs in it is stopped. What has succeeded stays, and the job can be resumed later.",
  stopTheJob: "Stop the job",
  thatDidNotWork: "That did not work",
} as const;

export const SESSION_DIALOGS = {
  deleteIt: (name: string) => `Delete ${name}?`,
  itsHistoryAndTheSessions: "Its history and the sessions that came out of it go with it. This cannot be undone.",
  rename: "Rename",
  title: "Title",
} as const;

export const ELSEWHERE = {
  startedElsewhere: "Started elsewhere",
  noFolder: "No folder",
  askingTheAgents: "Asking the agents…",
  noSessionsOfOtherPrograms: "No sessions of other programs.",
  openElsewhere: "Open elsewhere",
  adoptThisSession: (agentName: string) => `Adopt this session of ${agentName}`,
  thisSessionIsOpenElsewhere: "This session is open elsewhere",
  itChangedAFewSeconds: "It changed a few seconds ago in its own program. If both continue it, their messages mix. Close it there first.",
  adoptItAnyway: "Adopt it anyway",
  theSessionWasNotAdopted: "The session was not adopted",
  continueInTheTerminal: "Continue in the terminal",
  copy: "Copy",
  copied: "Copied",
  runThisOnTheHosts: "Run this on the host’s machine. New messages are imported before your next message here.",
} as const;

export const SHARE = {
  mayReadAndWrite: "may read and write to the agent",
  mayReadAndAnswer: "may read and answer what it asks",
  mayDoEverythingButShare: "may do everything but share and delete",
  everybody: "Everybody",
  share: (title: string) => `Share “${title}”`,
  nameOrForEverybody: "Name, or * for everybody",
  person: "Person",
  whatTheyMayDo: "What they may do",
  takeBack: "Take back",
  onlyYouAndTheAdmins: "Only you and the admins see it.",
  shareText: "Share",
  takeBackFrom: (name: string) => `Take back from ${name === "*" ? "everybody" : name}`,
} as const;
