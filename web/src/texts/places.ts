/** Names of the places of the workbench. */

export const PLACE_NAMES = {
  inbox: "Inbox",
  jobs: "Jobs",
  job: "Job",
  automations: "Automations",
  usage: "Usage",
  settings: "Settings",
  more: "More",
  newSession: "New session",
} as const;
