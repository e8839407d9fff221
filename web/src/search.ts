/** Which sessions a search box leaves in a list. */

import type { Summary } from "./conversation/state";

/** Every word of the search is in the title, the agent, the model or the folder. */
export function matches(session: Summary, text: string): boolean {
  const all = [ofJob(session) ? "job" : "", session.title, session.agent, session.model, session.cwd, session.id].join(" ").toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** A task of a job began it, and no person. */
export const ofJob = ({ by = "" }: Summary) => by.startsWith("task:");
