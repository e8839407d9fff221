/** Texts of the message box, of a new session, and of what is offered while a message is written. */

export const COMPOSER = {
  sendNow: "Send now",
  denyWithThisNote: "Deny with this note",
  allowWithThisNote: "Allow with this note",
  message: "Message",
  send: "Send",
  separateCopy: "Separate copy",
  run: "Run",
  runsInTheFolder: "Runs in the folder",
  queue: "Queue",
  sentWhenTheAgent: "Sent when the agent is done",
  runsInTheFolderText: "Runs in the folder of the session, without the agent.",
  sandbox: (sandbox: string) => `Sandbox: ${sandbox}`,
  sandboxText: "Sandbox",
  itWorksInASeparate: (branch: string) => `It works in a separate copy of the folder, on the branch ${branch}`,
  notConnectedWhatYouWrite: "Not connected. What you write is kept here",
  onlyTheAgent: "Only the agent that has started it writes here",
  thisSessionIsClosedReopen: "This session is closed. Reopen it under More.",
  answerAboveOrWriteHere: "Answer above, or write here",
  sayWhatToChange: "Say what to change, or queue a message",
  sayWhatToChangeText: "Say what to change",
  sentWhenTheAgentText: "Sent when the agent is done. Ctrl+Enter sends now",
  messageTheAgentFile: "Message the agent. @ file or session, / command, ! shell",
  messageTheAgent: "Message the agent",
} as const;

export const MESSAGE_BOX = {
  askBeforeChanges: "Ask before changes",
  allowEverything: "Allow everything",
  readOnly: "Read only",
  addFilesOrPictures: "Add files or pictures",
  model: "Model",
  whatTheAgentMayDo: "What the agent may do",
  hasMbAMessageTakes: (name: string, round: number) => `${name} has ${round} MB; a message takes 4 MB. Put it into the folder and name it with @.`,
  session: (slice: string) => `Session: ${slice}`,
  remove: (label: string) => `Remove ${label}`,
} as const;

export const SUGGESTIONS = {
  suggestions: "Suggestions",
} as const;
