/** Numbers and names as people read them. */

import { count, dollars } from "../time";
import type { Approval, Status, Usage } from "./state";

export { span as duration } from "../time";

export const STATUS: Record<Status, string> = { idle: "Ready", running: "Working", waiting: "Needs you", failed: "Failed" };

/** What clients of other protocols call themselves, by their ids. */
const clientNames = new Map<string, string>();

export function addClientNames(names: Record<string, string> | undefined): void {
  for (const [id, name] of Object.entries(names ?? {})) clientNames.set(id, name);
}

export function who(by: string): string {
  const [kind = "", name = ""] = by.split(/:(.*)/s);
  if (kind === "token") return name === "owner" ? "You" : name;
  if (kind === "client") return clientNames.get(name.replace(/#[^#]*$/, "")) ?? "An editor";
  if (kind === "task") return "The job";
  if (kind === "agent") return "The agent";
  if (kind === "job") return `The job ${name}`;
  return name || kind;
}

/** Who stopped a turn. */
export function stoppedWords(by = ""): string {
  const name = who(by);
  return !by || by === "agent" || by === "host" ? "Stopped" : `Stopped by ${name === "You" ? "you" : name}`;
}

export function words(usage: Usage | null | undefined): string {
  if (!usage || (!usage.input && !usage.output && !usage.cost)) return "";
  const tokens = `${count(usage.input ?? 0)} tokens in${usage.cached ? ` (${count(usage.cached)} cached)` : ""}, ${count(usage.output ?? 0)} out`;
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

export function ago(milliseconds: number, now = Date.now()): string {
  const minutes = Math.floor((now - milliseconds) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return new Date(milliseconds).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** How long an answer is remembered. */
export const ENDS = { once: "", session: " in this session", project: " in this folder" };

/** Who allowed or denied what, and for how long. */
export function verdictOf({ by = "", allowed, option, options }: Approval, what = "it"): string {
  return `${who(by)} ${allowed ? "allowed" : "denied"} ${what}${ENDS[options.find(({ id }) => id === option)?.grant ?? "once"]}`;
}
