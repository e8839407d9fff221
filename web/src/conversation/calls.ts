/** What a tool call is to a reader: a command, a change, a look around, a plan, or some other tool; and how it went. */

import { changesOf } from "./changes";
import { countOf, linesOf } from "./diffLines";
import { plain } from "./pieces";
import { type CallPart, waitingApproval } from "./state";
import { plural } from "../texts/plural";
import { CALL_WORDS } from "../texts/conversation";

export type CallKind = "command" | "change" | "look" | "plan" | "tool";

const COMMAND_TOOLS = /^(bash|shell|sh|run|execute|run_command|terminal|powershell|local_shell)$/i;
const CHANGES = new Set(["edit", "delete", "move"]);
const LOOKS = new Set(["read", "search"]);

export function kindOf(call: CallPart): CallKind {
  if (call.tool === "plan" && call.kind === "think") return "plan";
  if (call.kind === "execute" || COMMAND_TOOLS.test(call.tool) || call.approvals?.some(({ command }) => command)) return "command";
  if (CHANGES.has(call.kind ?? "") || changesOf(call).length > 0) return "change";
  return LOOKS.has(call.kind ?? "") || /^(read|read_file|grep|glob|search|list_files|ls|view)$/i.test(call.tool) ? "look" : "tool";
}

const NAMES = ["command", "cmd", "path", "file_path", "file", "query", "pattern", "url"];

function inputOf(call: CallPart): Record<string, unknown> {
  try {
    return (JSON.parse(call.input ?? "") as Record<string, unknown> | null) ?? {};
  } catch {
    return {}; // half an input, or none
  }
}

/** Falls back to the name of the tool. */
function argument(call: CallPart): string {
  const input = inputOf(call);
  return NAMES.map((name) => input[name]).find((value) => typeof value === "string" && value !== "") as string | undefined ?? "";
}

/** What an agent that judges gives as its reason: the one text among the arguments. */
export const reasonOf = (call: CallPart): string => Object.values(inputOf(call)).find((value) => typeof value === "string") as string | undefined ?? "";

export function commandOf(call: CallPart): string {
  return call.approvals?.findLast(({ command }) => command)?.command ?? (argument(call) || call.title || call.tool);
}

/** What a look was at. */
export const subjectOf = (call: CallPart): string => argument(call) || call.title || call.tool;

const number = (value: unknown) => (typeof value === "number" && value > 0 ? Math.floor(value) : undefined);

/** Which lines of it, where the agent asked for some: ", lines 10 to 49". */
export function linesRead(call: CallPart): string {
  const input = inputOf(call);
  const [shown] = [input["view_range"] ?? []] as unknown[][];
  const from = number(input["start_line"] ?? input["startLine"] ?? input["offset"] ?? input["line"] ?? shown?.[0]);
  const count = number(input["limit"]);
  const to = number(input["end_line"] ?? input["endLine"] ?? shown?.[1]) ?? (count && (from ?? 1) + count - 1);
  if (!from && !to) return "";
  return !to ? CALL_WORDS.fromLine(from ?? 1) : (from ?? 1) === to ? CALL_WORDS.line(to) : CALL_WORDS.lines(from ?? 1, to);
}

/** The last lines of a command's output. */
export function tailOf(output: string, lines = 3): string {
  return output.trimEnd().split("\n").slice(-lines).join("\n");
}

export interface Counted {
  path: string;
  added: number;
  removed: number;
}

export function changeCounts(call: CallPart): Counted[] {
  return changesOf(call).map(({ path, diff }) => ({ path, ...countOf(linesOf(diff)) }));
}

const READING = /read|view|open|cat/i;

/** "read 4 files, searched twice". */
export function lookWords(calls: CallPart[]): string {
  const reads = calls.filter((call) => call.kind === "read" || (call.kind !== "search" && READING.test(call.tool))).length;
  const searches = calls.length - reads;
  const times = searches === 1 ? "once" : searches === 2 ? "twice" : `${searches} times`;
  return [reads ? `read ${plural(reads, "file")}` : "", searches ? `searched ${times}` : ""].filter(Boolean).join(", ");
}

/** What the helper is called that a call started; empty where it started none. */
export function helperName(call: CallPart): string {
  const found = (call.content ?? []).find(({ type }) => type === "subagent");
  return found ? plain(String(found["agent"] || found["title"] || CALL_WORDS.aHelper)) : "";
}

export type CallState = "waiting" | "running" | "ok" | "bad" | "refused" | "stopped";

export function stateOf(call: CallPart): CallState {
  if (call.done && call.ok) return "ok";
  if (call.done && refused(call)) return "refused";
  if (call.outcome === "cancelled" || call.outcome === "interrupted") return "stopped";
  if (call.done) return "bad";
  return waitingApproval(call) ? "waiting" : "running";
}

const ENDS = new Set(["cancelled", "interrupted", "failed", "completed"]);

/** Denied by a rule or a person. The end of a turn also denies, with its own reason. */
function refused(call: CallPart): boolean {
  const last = call.approvals?.at(-1);
  return call.denied === true || (last?.answered === true && !last.allowed && !ENDS.has(last.reason ?? ""));
}

/** The lines of a plan: "- [x] done", "- [>] now", "- [ ] to come". */
export function planOf(call: CallPart): { text: string; state: "done" | "work" | "todo" }[] {
  const text = (call.content ?? []).flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : [])).join("\n");
  return text.split("\n").flatMap((line) => {
    const [, sign = "", rest = ""] = /^\s*(?:[-*]\s+)?(?:\[(.)\]\s*)?(.*)$/.exec(line) ?? [];
    if (!rest.trim()) return [];
    return [{ text: rest.trim(), state: /[xX✓]/.test(sign) ? ("done" as const) : sign.trim() ? ("work" as const) : ("todo" as const) }];
  });
}
