/** Numbers and names as people read them. */

import { count, dollars } from "../time";
import type { Approval, Status, Usage } from "./state";
import { WORDS } from "../texts/conversation";

export { span as duration } from "../time";

export const STATUS: Record<Status, string> = { idle: WORDS.ready, running: WORDS.working, waiting: WORDS.needsYou, failed: WORDS.failed };

/** What clients of other protocols call themselves, by their ids. */
const clientNames = new Map<string, string>();

export function addClientNames(names: Record<string, string> | undefined): void {
  for (const [id, name] of Object.entries(names ?? {})) clientNames.set(id, name);
}

export function who(by: string): string {
  const [kind = "", name = ""] = by.split(/:(.*)/s);
  if (kind === "token") return name === "owner" ? WORDS.you : name;
  if (kind === "client") return clientNames.get(name.replace(/#[^#]*$/, "")) ?? WORDS.anEditor;
  if (kind === "task") return WORDS.theJob;
  if (kind === "agent") return WORDS.theAgent;
  if (kind === "job") return WORDS.theJobNamed(name);
  return name || kind;
}

/** Who stopped a turn. */
export function stoppedWords(by = ""): string {
  const name = who(by);
  return !by || by === "agent" || by === "host" ? WORDS.stopped : name === WORDS.you ? WORDS.stoppedByYou : WORDS.stoppedBy(name);
}

export function words(usage: Usage | null | undefined): string {
  if (!usage || (!usage.input && !usage.output && !usage.cost)) return "";
  const tokens = WORDS.tokens(count(usage.input ?? 0), usage.cached ? count(usage.cached) : "", count(usage.output ?? 0));
  return usage.cost ? `${tokens}, ${dollars(usage.cost)}` : tokens;
}

/** The end of a long path, which distinguishes folders. */
export function folder(path: string): string {
  const names = path.split(/[\\/]/).filter(Boolean);
  return names.length <= 2 ? path : `…/${names.slice(-2).join("/")}`;
}

export function price(multiplier: number | undefined): string {
  if (multiplier === undefined || multiplier === 1) return "";
  return multiplier === 0 ? "free" : `×${multiplier}`;
}

/** How long an answer is remembered. */
export const ENDS = WORDS.remembered;

/** Who allowed or denied what, and for how long. */
export function verdictOf({ by = "", allowed, option, options }: Approval, what = "it"): string {
  return `${who(by)} ${allowed ? "allowed" : "denied"} ${what}${ENDS[options.find(({ id }) => id === option)?.grant ?? "once"]}`;
}
