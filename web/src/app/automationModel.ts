/** What an automation is, in words, and how its form's fields become a plan. Pure. */

import { clock, cost, span, tokens } from "../time";
import type { Icon } from "../icons";
import type { AutomationInfo, AutomationPlan, MissedTimes, RunSummary } from "../rest";
import { AUTOMATION } from "../texts/automations";

export type Trigger = "schedule" | "hook" | "files" | "after" | "none";
type Json = Record<string, unknown>;

export type Plan = AutomationPlan;
export type Automation = AutomationInfo;

/** A run, or due times without one (`missed`). A status that is its default, pending, is left out. */
export type Run = Partial<Omit<RunSummary, "status">> & Pick<RunSummary, "id" | "automation" | "name" | "cause" | "due" | "by"> & { status?: RunSummary["status"] | "missed" };

// -- words ------------------------------------------------------------------------------------------------------------

export type Look = "ok" | "work" | "bad" | "";

export function stateOf(automation: Automation): { word: string; look: Look; reason: string } {
  const reason = automation.enabled ? "" : named(automation.reason ?? "");
  if (automation.open?.length) return { word: AUTOMATION.working, look: "work", reason };
  if (automation.enabled) return { word: automation.trigger === "none" ? AUTOMATION.byHand : AUTOMATION.on, look: automation.trigger === "none" ? "" : "ok", reason };
  if (automation.stopped) return { word: AUTOMATION.stopped, look: "bad", reason };
  return { word: reason ? AUTOMATION.paused : AUTOMATION.off, look: "", reason };
}

/** The host names people as `token:phone`. Pages show only the name, and keys of the plan in words. */
export function named(text: string): string {
  return text.replace(/\b(?:token|person|user):(\S*\w)/g, "$1").replace(/ \((?:stop_after_failures|stop_after_runs|stop_at)\)/g, "");
}

/** Also in a list of several. */
export const hasTrigger = ({ trigger, triggers = [] }: Automation, kind: Trigger): boolean => trigger === kind || triggers.includes(kind);

export function triggerWords({ trigger, triggers = [], when = "" }: Automation): string {
  if (trigger === "none") return AUTOMATION.manually;
  if (triggers.length > 1) return when.charAt(0).toUpperCase() + when.slice(1);
  if (trigger === "hook") return AUTOMATION.hook(when.replace(/^POST /, ""));
  if (trigger === "files") return AUTOMATION.when(when);
  return when.charAt(0).toUpperCase() + when.slice(1);
}

export function startsWords({ job, prompt }: Plan): string {
  if (job) return AUTOMATION.job(job.job);
  const text = (prompt?.text ?? "").trim().replace(/\s+/g, " ");
  return `${prompt?.agent ? `${prompt.agent}: ` : ""}${text.length > 140 ? `${text.slice(0, 139)}…` : text}`;
}

/** A time to come: "in 40 s", "in 12 min", "today 17:00", "tomorrow 7:00", "Fri, 3 Nov 7:00". */
export function dueWords(time: number, now: number): string {
  const left = time - now;
  if (left < 1000) return "now";
  if (left < 3_600_000) return `in ${left < 60_000 ? `${Math.round(left / 1000)} s` : `${Math.round(left / 60_000)} min`}`;
  return `${dayWords(time, now)} ${clock(time)}`;
}

function dayWords(time: number, now: number): string {
  const date = new Date(time);
  const days = Math.round((new Date(time).setHours(0, 0, 0, 0) - new Date(now).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return "today";
  if (days === 1) return "tomorrow";
  if (days === -1) return "yesterday";
  const year = date.getFullYear() === new Date(now).getFullYear() ? {} : ({ year: "numeric" } as const);
  return date.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short", ...year });
}

/** A time of the history, with its day. */
export const timeWords = (time: number, now: number): string => `${dayWords(time, now)} ${clock(time)}`;

export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function nextWords(automation: Automation, now: number): string {
  const [first] = automation.next ?? [];
  // The trigger names the time in its zone; without this, the two times seem to differ.
  const zone = automation.plan.schedule?.zone;
  const elsewhere = zone && zone !== browserZone() && (first ?? 0) - now >= 3_600_000 ? AUTOMATION.yourTime : "";
  if (first !== undefined) return AUTOMATION.next(dueWords(first, now), elsewhere);
  if (!automation.enabled) return AUTOMATION.startsNothingOnItsOwn;
  return automation.trigger === "schedule" ? AUTOMATION.notDueAnyMore : "";
}

const OUTCOMES: Record<string, [word: string, icon: Icon, look: Look]> = {
  pending: [AUTOMATION.starts, "todo", "work"],
  running: [AUTOMATION.working, "work", "work"],
  succeeded: [AUTOMATION.done, "done", "ok"],
  failed: [AUTOMATION.failed, "failed", "bad"],
  canceled: [AUTOMATION.stopped, "stop", ""],
  interrupted: [AUTOMATION.interrupted, "interrupted", ""],
  skipped: [AUTOMATION.skipped, "next", ""],
  missed: [AUTOMATION.missed, "next", ""],
};

export function outcomeOf(run: Run): { word: string; icon: Icon; look: Look } {
  const [word, icon, look] = OUTCOMES[run.status ?? "pending"] ?? [run.status ?? "", "todo", ""];
  return { word, icon, look };
}

export function lastWords(run: Run | null | undefined, now: number): string {
  return run ? `${outcomeOf(run).word} ${timeWords(run.ended ?? run.started ?? run.due, now)}` : AUTOMATION.hasNotRunYet;
}

/** Runs and due times without one, the newest first. */
export function inOrder(runs: Run[], missed: MissedTimes[], now: number): Run[] {
  const lost = missed.map(({ count, first, last, reason, more }): Run => {
    const until = first === last ? "" : AUTOMATION.theLast(timeWords(last, now));
    return { id: "", automation: "", name: "", cause: "schedule", due: first, status: "missed", by: "", reason: AUTOMATION.runsMissed(count, more === true, until, reason) };
  });
  return [...runs, ...lost].sort((a, b) => b.due - a.due);
}

export const running = ({ status = "pending" }: Run): boolean => status === "pending" || status === "running";

const CAUSES: Record<string, string> = { schedule: AUTOMATION.bySchedule, hook: AUTOMATION.byHook, files: AUTOMATION.byFiles, after: AUTOMATION.afterWhatItFollows, none: "", person: "" };

export function causeWords(run: Run): string {
  const words = run.cause === "person" ? `by ${named(run.by)}` : (CAUSES[run.cause] ?? run.cause);
  return run.late ? AUTOMATION.madeUp(words) : words;
}

export function tookWords(run: Run): string {
  return run.started && run.ended ? span(run.ended - run.started) : "";
}

/** Usage that was not reported is unknown. A run that did not start used nothing. */
export function usedWords(run: Run): string {
  if (!run.started) return "";
  const all = (run.input ?? 0) + (run.output ?? 0);
  const money = run.cost ? `${run.estimated ? "~" : ""}${cost(run.cost)}` : running(run) ? "" : "cost unknown";
  return [all ? tokens(all) : "", money].filter(Boolean).join(", ");
}

export const MISSED: Record<string, string> = { last: AUTOMATION.theLatestMissedRun, skip: AUTOMATION.missedRunsAreSkipped, all: AUTOMATION.allMissedRunsAreMade };
export const OVERLAP: Record<string, string> = { "": AUTOMATION.asUsualHooksAndFollowers, skip: AUTOMATION.theNewRunIsSkipped, queue: AUTOMATION.theNewRunWaits, cancel: AUTOMATION.theOldRunIsStopped, parallel: AUTOMATION.bothRunSideBySide };

// -- the form -----------------------------------------------------------------------------------------------------------

/** By the path of the plan that a field is for, as the host's errors name it. A box is "yes" or nothing. */
export type Values = Record<string, string>;
export type When = "daily" | "cron" | "every" | "at" | "hook" | "files" | "after" | "several" | "none";

const lines = (text: string) => text.split(/[\n,]/).map((each) => each.trim()).filter(Boolean);

/** A line of a hook's filter: `/action = "opened"` or `/ref ~ refs/heads/.*`. */
export function filterLine(line: string): { pointer: string; equals?: unknown; matches?: string } {
  const [, pointer = line.trim(), sign = "", value = ""] = /^\s*(.*?)\s*([=~])\s*(.*?)\s*$/.exec(line) ?? [];
  if (sign === "~") return { pointer, matches: value };
  return sign ? { pointer, equals: scalar(value) } : { pointer };
}

function scalar(text: string): unknown {
  try {
    const found: unknown = JSON.parse(text);
    return found !== null && typeof found !== "object" ? found : text;
  } catch {
    return text;
  }
}

/** The days of `0 7 * * DAYS` that the form offers. */
export const DAYS: [cron: string, text: string][] = [["*", AUTOMATION.everyDay], ["1-5", AUTOMATION.everyWeekday], ["1", AUTOMATION.everyMonday], ["2", AUTOMATION.everyTuesday], ["3", AUTOMATION.everyWednesday], ["4", AUTOMATION.everyThursday], ["5", AUTOMATION.everyFriday], ["6", AUTOMATION.everySaturday], ["0", AUTOMATION.everySunday]];

/** The days and the time of day of a cron line; undefined where the form cannot show it so. */
export function dailyOf(cron: string): { days: string; time: string } | undefined {
  const [, minute = "", hour = "", days = ""] = /^(\d{1,2}) (\d{1,2}) \* \* (\S+)$/.exec(cron.trim()) ?? [];
  const known = DAYS.some(([each]) => each === days) && Number(minute) < 60 && Number(hour) < 24;
  return known ? { days, time: `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}` } : undefined;
}

export function cronOf(days: string, time: string): string {
  const [hour = "", minute = ""] = time.split(":");
  return hour && minute ? `${Number(minute)} ${Number(hour)} * * ${days}` : "";
}

export function whenOf(plan: Plan): When {
  if (plan.on?.length) return "several";
  if (plan.schedule) return plan.schedule.every ? "every" : plan.schedule.at ? "at" : dailyOf(plan.schedule.cron ?? "") ? "daily" : "cron";
  return plan.hook ? "hook" : plan.files ? "files" : plan.after ? "after" : "none";
}

const NUMBERS: [key: "missed_limit" | "parallel" | "stop_after_failures" | "stop_after_runs" | "keep_days" | "keep_runs", first: number][] = [["missed_limit", 10], ["parallel", 2], ["stop_after_failures", 5], ["stop_after_runs", 0], ["keep_days", 30], ["keep_runs", 200]];

export function valuesOf(plan: Plan, name = ""): Values {
  const { schedule, hook, files, after, job, prompt } = plan;
  const filters = (hook?.filter ?? []).map(({ pointer, equals, matches }) => (matches ? `${pointer} ~ ${matches}` : `${pointer} = ${typeof equals === "string" && scalar(equals) === equals ? equals : JSON.stringify(equals)}`));
  return {
    name,
    title: plan.title ?? "",
    when: whenOf(plan),
    "daily.days": dailyOf(schedule?.cron ?? "")?.days ?? "1-5",
    "daily.time": dailyOf(schedule?.cron ?? "")?.time ?? "07:00",
    "schedule.cron": schedule?.cron ?? "",
    "schedule.every": schedule?.every ?? "",
    "schedule.at": schedule?.at ?? "",
    "schedule.zone": schedule ? (schedule.zone ?? "UTC") : "",
    "hook.filter": filters.join("\n"),
    "hook.per_minute": String(hook?.per_minute ?? 60),
    "files.folder": files?.folder ?? "",
    "files.globs": (files?.globs ?? []).join(", "),
    "files.excludes": (files?.excludes ?? []).join(", "),
    "files.quiet": String(files?.quiet ?? 5),
    "after.automation": after?.automation ?? "",
    "after.job": after?.job ?? "",
    "after.outcomes": (after?.outcomes ?? []).join(" "),
    what: job ? "job" : "prompt",
    "prompt.text": prompt?.text ?? "",
    "prompt.agent": prompt?.agent ?? "",
    "prompt.model": prompt?.model ?? "",
    "prompt.cwd": prompt?.cwd ?? "",
    "prompt.place": prompt?.place ?? "",
    "prompt.label": prompt?.label ?? "",
    "prompt.worktree": prompt?.worktree ? "yes" : "",
    "prompt.config": String(prompt?.config?.["approvals"] ?? "ask"),
    "job.job": job?.job ?? "",
    "job.cwd": job?.cwd ?? "",
    "job.input": job?.input ?? "",
    "job.place": job?.place ?? "",
    "job.label": job?.label ?? "",
    missed: String(plan.missed ?? "last"),
    overlap: String(plan.overlap ?? ""),
    stop_at: String(plan.stop_at ?? ""),
    "budget.dollars": String(plan.budget?.dollars ?? ""),
    "budget.tokens": String(plan.budget?.tokens ?? ""),
    ...Object.fromEntries(NUMBERS.map(([key, first]) => [key, String(plan[key] ?? first)])),
  };
}

/** What is not a number is sent unchanged: the host reports what is wrong with it. */
const number = (text = "", first: number): unknown => (text.trim() === "" ? first : Number.isNaN(Number(text)) ? text : Number(text));

const bound = (text = ""): unknown => (text.trim() === "" ? undefined : number(text, 0));

/** Without what is empty; what the form does not show stays as it was. */
const filled = (before: object | undefined, values: Json): Json => Object.fromEntries(Object.entries({ ...before, ...values }).filter(([, value]) => value !== "" && value !== undefined && value !== false));

const TRIGGERS: Record<When, (values: Values, before: Plan) => Json> = {
  daily: (values) => ({ schedule: { cron: cronOf(values["daily.days"] ?? "*", values["daily.time"] ?? ""), zone: values["schedule.zone"] || "UTC" } }),
  cron: (values) => ({ schedule: { cron: values["schedule.cron"], zone: values["schedule.zone"] || "UTC" } }),
  every: (values) => ({ schedule: { every: values["schedule.every"] } }),
  at: (values) => ({ schedule: { at: values["schedule.at"], zone: values["schedule.zone"] || "UTC" } }),
  hook: (values) => ({ hook: { filter: (values["hook.filter"] ?? "").split("\n").filter((line) => line.trim()).map(filterLine), per_minute: number(values["hook.per_minute"], 60) } }),
  files: (values) => ({ files: { folder: values["files.folder"] ?? "", globs: lines(values["files.globs"] ?? ""), excludes: lines(values["files.excludes"] ?? ""), quiet: number(values["files.quiet"], 5) } }),
  after: (values) => ({ after: filled(undefined, { automation: values["after.automation"], job: values["after.job"], outcomes: (values["after.outcomes"] ?? "").split(" ").filter(Boolean) }) }),
  several: (_, { on }) => ({ on }),
  none: () => ({}),
};

/** `inputs`: those of the chosen workflow; undefined, if it has none or is not known here: then they stay as they were. */
export function planOf(values: Values, before: Plan = {}, inputs?: Json): Plan {
  const { schedule: _, hook: _1, files: _2, after: _3, on: _4, job, prompt, ...rules } = before;
  const trigger = TRIGGERS[(values["when"] ?? "none") as When](values, before);
  const started = values["what"] === "job" ? { job: { job: values["job.job"] ?? "", ...filled(job, { job: values["job.job"], cwd: values["job.cwd"], input: values["job.input"], place: values["job.place"], label: values["job.label"], ...inputsOf(values, job, inputs) }) } } : { prompt: promptOf(values, prompt) };
  const numbers = Object.fromEntries(NUMBERS.map(([key, first]) => [key, number(values[key], first)]));
  const budget = filled(before.budget, { dollars: bound(values["budget.dollars"]), tokens: bound(values["budget.tokens"]) });
  const limited = Object.keys(budget).length ? budget : undefined;
  return { ...filled(rules, { title: values["title"], missed: values["missed"], overlap: values["overlap"], stop_at: values["stop_at"], budget: limited }), ...numbers, ...trigger, ...started } as Plan;
}

/** Those of another job do not fit. */
function inputsOf(values: Values, before: Plan["job"], inputs: Json | undefined): Json {
  const kept = inputs ?? (before?.job === values["job.job"] ? before?.inputs : undefined);
  return { inputs: kept && Object.keys(kept).length ? kept : undefined };
}

function promptOf(values: Values, before: Plan["prompt"]): Json {
  const { approvals: _, ...config } = before?.config ?? {};
  const mode = values["prompt.config"] ?? "ask";
  if (mode !== "ask") config["approvals"] = mode;
  const given = { agent: values["prompt.agent"], model: values["prompt.model"], cwd: values["prompt.cwd"], worktree: values["prompt.worktree"] === "yes", place: values["prompt.place"], label: values["prompt.label"] };
  return { ...filled(before, { ...given, config: Object.keys(config).length ? config : undefined }), text: values["prompt.text"] ?? "" };
}

/** The field of the form that an error of the host is about: itself, what holds it, or the first within it. */
export function fieldFor(paths: string[], wrong: string): string | undefined {
  const field = wrong.replace(/^plan\./, "");
  if (!field) return undefined;
  return paths.find((path) => path === field) ?? paths.find((path) => field.startsWith(`${path}.`) || field.startsWith(`${path}[`)) ?? paths.find((path) => path.startsWith(`${field}.`));
}
