/** Texts about the host: its agents, the first visit, logins and errors. */

export const AGENTS = {
  takesTheSessionsTools: "takes the session's tools",
  canBeSteeredWhileIt: "can be steered while it works",
  resumesAfterARestart: "resumes after a restart",
  notReady: "Not ready",
  ready: "Ready",
  newSession: "New session",
  newSessionNamed: (name: string) => `New session with ${name}`,
  allSessions: "All sessions",
  noAgentHere: "No agent here",
  startTheHost: "Start the host with an agent. The demo agent needs nothing at all:",
  porticoServeAgentDemo: "portico serve --agent demo",
  thisCommandLists: "This command lists what the machine could use:",
  can: (all: string[]) => `It ${all.join(", ")}.`,
} as const;

export const SETUP = {
  theModelsCould: (reason: string) => `The models could not be loaded. ${reason}`,
  noAgentOfThisHost: "No agent of this host offers a model. See “portico doctor” on the host's command line.",
  theRunningJobsCould: (reason: string) => `The running jobs could not be loaded. ${reason}`,
  theHostGaveNoSession: "The host gave no session.",
  view: "View",
  viewNamed: (jobName: string) => `View ${jobName}`,
} as const;

export const LOGIN = {
  sign: (oidc: string) => `Sign in with ${oidc}`,
} as const;

export const DIALOGS = {
  leaveAFieldCloseThis: "Leave a field, close this",
  thisList: "This list",
  keys: "Keys",
  close: "Close",
} as const;
