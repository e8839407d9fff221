/** What can go wrong with a request, and the text that a page shows for it. */

import { root } from "./root";
import { FAILURE } from "./texts/failure";

/** The host answered with a status other than 200. Network failures stay TypeError, as fetch throws them. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Seconds the host asks us to wait. */
    readonly retryAfter = 0,
    /** The place in the input that is wrong, where the host names one. */
    readonly field = "",
  ) {
    super(message);
  }
}

/**
 * The same request may succeed later: the host is out of reach, restarts behind a proxy (502, 503, 504) or is busy (429).
 * A timeout counts, because the connection may be dead (a laptop that slept), and so does 401: the login page opens.
 */
export function isTemporary(error: unknown): boolean {
  if (error instanceof Refused) return error.status >= 500 || error.status === 429 || error.status === 401;
  return error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
}

export async function reason(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") return error;
    if (error && typeof error === "object" && "message" in error) return String(error.message);
  } catch {
    // Not JSON, for example the page of a proxy: only the status is known.
  }
  return FAILURE.theHostAnsweredWithStatus(response.status);
}

export function goToLogin(): void {
  const here = window.location.pathname + window.location.search;
  window.location.assign(`${root}/login?next=${encodeURIComponent(here)}`);
}

const EXPLANATIONS: Record<string, string> = {
  ModelIdNotFound: FAILURE.thisModelIsNotAvailable,
  WorkingDirectoryNotAbsolutePath: FAILURE.theWorkingDirectoryMust,
  WorkingDirectoryNotExists: FAILURE.theWorkingDirectoryDoes,
  SessionNotFound: FAILURE.thisSessionIsClosed,
  JobNotFound: FAILURE.thereIsNoSuchJob,
};

/** Errors of tasks and jobs are JSON with a name and a stack; only the message is shown. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text; // not JSON: a message already
  }
}

/** The text that a page shows for an error: a sentence, with the API's own code in brackets. */
export function explain(error: unknown): string {
  if (error instanceof TypeError) return FAILURE.theHostCannotBeReached;
  const text = messageOf(error instanceof Error ? error.message : String(error));
  const sentence = EXPLANATIONS[text];
  return sentence ? `${sentence} (${text})` : text;
}
