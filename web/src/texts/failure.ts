/** Texts of errors that every page shows. */

export const FAILURE = {
  theHostAnsweredWithStatus: (status: number) => `The host answered with status ${status}.`,
  thisModelIsNotAvailable: "This model is not available any more. Reload the page for the current list.",
  theWorkingDirectoryMust: "The working directory must be an absolute path.",
  theWorkingDirectoryDoes: "The working directory does not exist.",
  thisSessionIsClosed: "This session is closed, or the host does not know it.",
  thereIsNoSuchJob: "There is no such job.",
  theHostCannotBeReached: "The host cannot be reached.",
} as const;

export const CONNECTION = {
  connectionLostTryingAgain: "Connection lost. Trying again …",
} as const;

export const PAGE = {
  confirmStop: "Stop the server? Running sessions and jobs are interrupted, and the host has to be started again on its machine.",
} as const;
