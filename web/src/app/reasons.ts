/** Why a job or a step ended as it did, in everyday words. */

import { REASONS } from "../texts/reasons";

/** Fixed texts of the portal's protocol, in plain words. */
const EVERYDAY: [pattern: RegExp, words: string][] = [
  [/^Criteria condition passed$/, REASONS.theCheckPassed],
  [/^Criteria condition failed\. Condition: (.*)$/s, REASONS.theCheckFailedWith],
  [/^Criteria (passed|failed) on retry #(\d+)$/, REASONS.theCheckAtRetry],
  [/^Starting retry #(\d+)$/, REASONS.retryBegins],
  [/^Retry budget drained after 0 retries$/, REASONS.noRetriesLeft],
  [/^Retry budget drained after (\d+) retries$/, REASONS.allRetriesAreUsed],
  [/^task succeeded$/, REASONS.theStepSucceeded],
  [/^task failed \(criteria not satisfied\)$/, REASONS.theStepFailed],
  [/^toolExecuted check failed: missing tools: (.*)$/s, REASONS.theCheckMissedTools],
];

/** Without the tag that the portal's protocol puts before a reason, and without the JSON it has around an error. */
export function plainReason(reason: string): string {
  const text = reason.replace(/^\[[A-Z ]+\] (?:Decision: |Task error: )?/, "");
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

export interface StepDecision {
  time: number;
  text: string;
  ok: boolean | undefined;
  exit?: number;
  why?: string;
}

/** One line for each fact: a step that crashed five times, and failed for that, has one reason. */
export function facts(decisions: readonly StepDecision[]): StepDecision[] {
  const found: (StepDecision & { tag: string; times: number })[] = [];
  for (const each of decisions) {
    const [text, tag] = [plainReason(each.text), /^\[[A-Z ]+\]/.exec(each.text)?.[0] ?? ""];
    const same = each.ok === false ? found.find((other) => other.ok === false && other.text === text) : undefined;
    const failed = found.some(({ ok }) => ok === false);
    if (same) same.times += Number(tag === same.tag);
    else if (failed && /task failed \(criteria not satisfied\)$/.test(each.text)) continue; // its check is listed
    else found.push({ ...each, text, tag, times: 1, ...(failed && /Retry budget drained/.test(each.text) ? { ok: undefined } : {}) });
  }
  return found.map(({ tag: _tag, times, ...each }) => ({ ...each, text: times > 1 ? `${each.text} (${times} times)` : each.text }));
}
