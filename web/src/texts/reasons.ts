/** Texts of what the checks of a job report. */

export const REASONS = {
  theCheckPassed: "The check passed",
  theCheckFailedWith: "The check failed: $1",
  theCheckAtRetry: "The check $1 at retry $2",
  retryBegins: "Retry $1 begins",
  noRetriesLeft: "No retries left",
  allRetriesAreUsed: "All $1 retries are used up",
  theStepSucceeded: "The step succeeded",
  theStepFailed: "The step failed: its check did not pass",
  theCheckMissedTools: "The check failed: it has not used $1",
} as const;
