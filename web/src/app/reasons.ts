/** Why a job or a step ended as it did, in everyday words. */

/** What the portal's protocol says in its own fixed words, in everyday ones. */
const EVERYDAY: [pattern: RegExp, words: string][] = [
  [/^Criteria condition passed$/, "The check passed"],
  [/^Criteria condition failed\. Condition: (.*)$/s, "The check failed: $1"],
  [/^Criteria (passed|failed) on retry #(\d+)$/, "The check $1 at retry $2"],
  [/^Starting retry #(\d+)$/, "Retry $1 begins"],
  [/^Retry budget drained after 0 retries$/, "It may not try again"],
  [/^Retry budget drained after (\d+) retries$/, "All $1 retries are used up"],
  [/^task succeeded$/, "The step succeeded"],
  [/^task failed \(criteria not satisfied\)$/, "The step failed: its check did not pass"],
  [/^toolExecuted check failed: missing tools: (.*)$/s, "The check failed: it has not used $1"],
];

/** Without the tag that the portal's protocol puts before a reason, and without the JSON it has around an error. */
export function said(reason: string): string {
  const text = reason.replace(/^\[[A-Z ]+\] (?:Decision: )?/, "");
  const everyday = EVERYDAY.find(([pattern]) => pattern.test(text));
  if (everyday) return text.replace(...everyday).replace(/: \["(.*)"\]$/s, (_, inner: string) => `: ${inner.replace(/","/g, " ").replace(/\\n/g, "\n").replace(/\\"/g, '"')}`);
  if (!text.startsWith('{"name":')) return text;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" && message ? message : text;
  } catch {
    return text; // it only begins like one
  }
}
