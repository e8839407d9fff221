/** Texts of the page Usage. */

export const USAGE = {
  title: "Usage",
  about: "Tokens and cost. ~ marks an estimate from list prices when the agent reports no cost.",
  period: "Period",
  loading: "Loading…",
  empty: "Nothing was used in this period.",
  numbers: "Numbers",
  cost: "cost",
  inAndOut: "in and out",
  unpriced: "turns with unknown cost",
  unknown: "unknown",
  columns: ["Turns", "Tokens in", "Cached input", "Tokens out", "Cost"],
  by: { day: "By day", agent: "By agent", model: "By model", session: "By session", job: "By job", automation: "By automation", person: "By person" },
  heading: { day: "Day", agent: "Agent", model: "Model", session: "Session", job: "Job", automation: "Automation", person: "Person" },
  last: (days: number) => (days === 365 ? "Last 12 months" : `Last ${days} days`),
  none: (what: string) => `No ${what} ran in this period.`,
} as const;
