/** Texts of a new session. */

export const START = {
  newSession: "New session",
  backToTheList: "Back to the list",
  oneAgentOneFolderIt: "One agent, one folder. It keeps running when you close this page.",
  startAJob: "Start a job",
  whatShouldTheAgentDo: "What should the agent do?",
  findOutWhyTheLogin: "Find out why the login test is flaky, and fix it",
  start: "Start",
  anAbsolutePath: "An absolute path",
  foldersUsedLast: "Folders used last",
  agent: "Agent",
  folder: "Folder",
  theAgentWorks: "The agent works in a separate copy of the folder, on a separate branch",
  workInASeparateCopy: "Work in a separate copy",
  noCodingAgentWasFound: "No coding agent was found on this machine",
  thisHostHasNoAgent: "This host has no agent. ",
  checkAgain: "Check again",
  checking: "Checking…",
} as const;

export const WHERE = {
  place: "Place",
  whereItsFolder: "Where its folder is",
  onlyAtAHost: "Only at a host with the label",
  anyHost: "Any host",
} as const;
