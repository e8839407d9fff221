/** Texts of the pages of the portal: sessions, jobs, their history, and one job. */

export const JOB_HISTORY = {
  running: "Running",
  needsYou: "Needs you",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled",
  noJobYet: "No job yet",
  aJobIsATree: "A job is a tree of tasks that agents do one after the other or side by side. Start one with New job and watch its chart go green.",
  allSessions: "All sessions",
} as const;

export const TRACKING = {
  jobNotFound: (jobName: string) => `Job "${jobName}" not found.`,
  chooseATaskToRead: "Choose a task to read its messages.",
  theHostDoesNotKnow: "The host does not know this job any more.",
  job: (status: string) => `JOB: ${status}`,
} as const;

export const JOB_MATRIX = {
  theJobsCould: (reason: string) => `The jobs could not be loaded. ${reason}`,
  stopServer: "Stop Server",
  availableJobs: "Available Jobs",
  theEntryOfThisHost: "The entry of this host has no job. Give it one with “portico serve --entry FILE”.",
  jobNotSelected: "Job Not Selected",
  startJob: (name: string) => `Start Job: ${name}`,
  whatShouldTheJobDo: "What should the job do?",
  chooseAJobFirst: "Choose a job first.",
  thisJobNeedsNoInput: "This job needs no input.",
  theHostGaveNoJob: "The host gave no job.",
  serverStoppedYouMayClose: "Server stopped — you may close this tab.",
} as const;

export const SESSION_PAGE = {
  sessionEndedYouMayClose: "Session ended — you may close this tab.",
  portico: "Portico",
  theAgentIsDone: "The agent is done.",
  theAgentWaits: "The agent waits for your answer.",
  writeToTheAgent: "Write to the agent",
  theTasksCould: (reason: string) => `The tasks could not be loaded. ${reason}`,
  thisSessionIsClosed: "This session is closed.",
  theHostGaveNoTask: "The host gave no task.",
  theTaskFailed: (name: string, reason: string) => `The task “${name}” failed. ${reason}`,
  notSent: (reason: string) => `Not sent. ${reason}`,
} as const;

export const SESSION_LIST = {
  thatSessionIsClosed: "That session is closed, and nothing of it is stored. Start another one.",
} as const;

export const NOTIFICATIONS = {
  notificationsAre: "Notifications are on",
  notifyMe: "Notify me",
  theBrowserDoesNotAllow: "The browser does not allow notifications of this page. Its settings for this address can change that.",
} as const;

export const TABS = {
  back: "Back",
  noSessionDataForThis: "No session data for this task.",
} as const;
