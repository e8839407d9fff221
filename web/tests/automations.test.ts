/** Automations in words, and how the fields of their form become a plan. */

import { describe, expect, test } from "vitest";
import { type Automation, browserZone, causeWords, cronOf, dailyOf, dueWords, fieldFor, filterLine, inOrder, lastWords, named, nextWords, type Plan, planOf, type Run, startsWords, stateOf, triggerWords, usedWords, valuesOf } from "../src/app/automationModel";
import { placeOf, pathOf } from "../src/app/router";

const automation = (given: Partial<Automation> = {}): Automation => ({ id: "automation-1", name: "morning", plan: { prompt: { text: "hi" } }, trigger: "schedule", enabled: true, by: "token:owner", source: "door", created: 0, modified: 0, when: "at 07:00 (UTC)", ...given });
const run = (given: Partial<Run> = {}): Run => ({ id: "run-1", automation: "automation-1", name: "morning", cause: "schedule", due: 0, status: "succeeded", by: "automation:automation-1", ...given });
const NOW = new Date(2026, 10, 16, 12, 0).getTime();
const at = (day: number, hour: number) => new Date(2026, 10, day, hour, 0).getTime();

test.each<[Partial<Automation>, string, string]>([
  [{}, "On", ""],
  [{ open: ["run-1"] }, "Working", ""],
  [{ trigger: "none" }, "By hand", ""],
  [{ enabled: false }, "Off", ""],
  [{ enabled: false, reason: "Paused by token:owner." }, "Paused", "Paused by owner."],
  [{ enabled: false, reason: "On holiday" }, "Paused", "On holiday"],
  [{ enabled: false, stopped: true, reason: "5 runs failed in a row (stop_after_failures). Look at them, then resume it." }, "Stopped", "5 runs failed in a row. Look at them, then resume it."],
])("the state of %j is %s", (given, word, reason) => expect(stateOf(automation(given))).toMatchObject({ word, reason }));

test.each<[Partial<Automation>, string]>([
  [{}, "At 07:00 (UTC)"],
  [{ trigger: "hook", when: "POST /hooks/morning" }, "When another system calls /hooks/morning"],
  [{ trigger: "files", when: "*.csv in /data change" }, "When *.csv in /data change"],
  [{ trigger: "after", when: "after the job x (failed)" }, "After the job x (failed)"],
  [{ trigger: "none", when: "by hand" }, "Manually"],
])("the trigger of %j: %s", (given, words) => expect(triggerWords(automation(given))).toBe(words));

test.each<[number, RegExp]>([
  [NOW, /^now$/],
  [NOW + 40_000, /^in 40 s$/],
  [NOW + 12 * 60_000, /^in 12 min$/],
  [at(16, 17), /^today \D?5:00|^today 17:00/],
  [at(17, 7), /^tomorrow 0?7:00/],
  [at(20, 7), /Fri.* 0?7:00/],
])("%d is due %s", (time, words) => expect(dueWords(time, NOW)).toMatch(words));

test("what comes next, and what was last", () => {
  expect(nextWords(automation({ next: [NOW + 60_000] }), NOW)).toBe("Next: in 1 min");
  expect(nextWords(automation(), NOW)).toBe("Not due any more");
  expect(nextWords(automation({ enabled: false }), NOW)).toBe("Starts nothing on its own");
  expect(nextWords(automation({ trigger: "hook" }), NOW)).toBe("");
  expect(lastWords(undefined, NOW)).toBe("Has not run yet");
  expect(lastWords(run({ status: "skipped", due: at(15, 7) }), NOW)).toMatch(/^Skipped yesterday 0?7:00/);
  expect(startsWords({ job: { job: "nightly" } })).toBe("Job nightly");
  expect(startsWords({ prompt: { text: "Look\nat it", agent: "demo" } })).toBe("demo: Look at it");
});

test.each<[Partial<Run>, string, string]>([
  [{ started: 1, input: 900, output: 600, cost: 0.18 }, "by its schedule", "2 k tokens, $0.18"],
  [{ started: 1, cost: 0.18, estimated: true, late: true }, "by its schedule, made up for", "~$0.18"],
  [{ started: 1, cause: "person", by: "token:phone" }, "by phone", "cost unknown"],
  [{ started: 1, status: "running", cause: "hook" }, "by its hook", ""],
  [{ status: "skipped", cause: "files" }, "by changed files", ""],
])("who started %j and what it used", (given, cause, used) => {
  expect(causeWords(run(given))).toBe(cause);
  expect(usedWords(run(given))).toBe(used);
});

test("names of people lose their kind", () => expect(named("Paused by person:ana@example.org.")).toBe("Paused by ana@example.org."));

describe("the form", () => {
  const rules = { missed: "last", missed_limit: 10, parallel: 2, stop_after_failures: 5, stop_after_runs: 0, keep_days: 30, keep_runs: 200 };
  test.each<Plan>([
    { schedule: { cron: "0 7 * * 1-5", zone: "Europe/Berlin" }, prompt: { text: "hi", agent: "demo", worktree: true, config: { approvals: "deny", effort: "high" }, base: "main" } as Plan["prompt"] & object },
    { schedule: { every: "2h" }, job: { job: "nightly", input: "x" }, title: "Nightly", missed: "all", overlap: "queue" },
    { schedule: { at: "2027-01-31T09:00", zone: "UTC" }, prompt: { text: "hi" }, stop_at: "2028-01-01T00:00" },
    { hook: { filter: [{ pointer: "/action", equals: "opened" }, { pointer: "/n", equals: 3 }, { pointer: "/s", equals: "3" }, { pointer: "/ref", matches: "refs/.*" }], per_minute: 5 }, prompt: { text: "{{payload}}" } },
    { files: { folder: "/data", globs: ["*.csv", "*.json"], excludes: ["tmp/*"], quiet: 2.5 }, prompt: { text: "hi" } },
    { after: { automation: "other", outcomes: ["failed", "canceled"] }, job: { job: "nightly" } },
    { on: [{ schedule: { every: "2h" } }, { hook: {} }], prompt: { text: "hi" } },
    { prompt: { text: "hi" }, meta_of_later: 1 } as Plan,
  ])("shows %j and sends it as it was", (plan) => expect(planOf(valuesOf(plan), plan)).toEqual({ ...rules, ...plan }));

  test.each<[cron: string, daily: { days: string; time: string } | undefined]>([
    ["0 7 * * 1-5", { days: "1-5", time: "07:00" }],
    ["30 18 * * *", { days: "*", time: "18:30" }],
    ["5 0 * * 0", { days: "0", time: "00:05" }],
    ["0 7 * * 1,3", undefined],
    ["0 7 1 * *", undefined],
    ["*/5 * * * *", undefined],
    ["0 25 * * *", undefined],
    ["@daily", undefined],
    ["", undefined],
  ])("the cron line %s as days and a time", (cron, daily) => {
    expect(dailyOf(cron)).toEqual(daily);
    if (daily) expect(cronOf(daily.days, daily.time)).toBe(cron);
    expect(planOf(valuesOf({ schedule: { cron, zone: "UTC" }, prompt: { text: "hi" } })).schedule).toEqual({ cron, zone: "UTC" });
  });

  test("a time that is due in another zone is marked as the reader's time", () => {
    const due = (zone: string) => nextWords(automation({ plan: { schedule: { cron: "0 7 * * *", zone } }, next: [NOW + 10 * 3_600_000] }), NOW);
    expect([due(browserZone()).endsWith("(your time)"), due("Pacific/Kiritimati").endsWith("(your time)")]).toEqual([false, true]);
  });

  test("another trigger or another start takes the place of the one before", () => {
    const plan: Plan = { hook: { per_minute: 5 }, job: { job: "nightly" } };
    expect(planOf({ ...valuesOf({ on: [{ hook: {} }], prompt: { text: "hi" } }), when: "none" }, { on: [{ hook: {} }] })["on"]).toBe(undefined);
    expect(planOf({ ...valuesOf(plan), when: "every", "schedule.every": "1h", what: "prompt", "prompt.text": "hi" }, plan)).toEqual({ ...rules, schedule: { every: "1h" }, prompt: { text: "hi" } });
  });

  test("what is no number is the host's to refuse", () => expect(planOf({ ...valuesOf({}), parallel: "two" })["parallel"]).toBe("two"));

  test.each([
    ["/a = opened", { pointer: "/a", equals: "opened" }],
    ["/a = true", { pointer: "/a", equals: true }],
    ['/a = "true"', { pointer: "/a", equals: "true" }],
    ["/a ~ x=.*", { pointer: "/a", matches: "x=.*" }],
    ["/a", { pointer: "/a" }],
  ])("the filter %s", (line, filter) => expect(filterLine(line)).toEqual(filter));

  test.each([
    ["schedule.cron", "schedule.cron"],
    ["plan.parallel", "parallel"],
    ["hook.filter[1].pointer", "hook.filter"],
    ["after", "after.automation"],
    ["nowhere", undefined],
    ["", undefined],
  ])("an error at %s stands at %s", (wrong, field) => expect(fieldFor(["name", "parallel", "schedule.cron", "hook.filter", "after.automation", "after.job"], wrong)).toBe(field));
});

test.each([
  ["/app/automations", { at: "automations" }],
  ["/app/automations/new", { at: "automations", form: true }],
  ["/app/automations/automation-1", { at: "automations", id: "automation-1" }],
  ["/app/automations/automation-1/edit", { at: "automations", id: "automation-1", form: true }],
] as const)("the address %s", (path, place) => {
  expect(placeOf(path)).toEqual(place);
  expect(pathOf(place).endsWith(path)).toBe(true);
});

test("due times without a run stand in the history where they were", () => {
  const missed = { count: 6, first: at(15, 1), last: at(15, 6), reason: "The host did not run.", more: true };
  const shown = inOrder([run({ id: "run-2", due: at(16, 7) }), run({ due: at(14, 7) })], [missed], NOW);
  expect(shown.map(({ id, status }) => [id, status])).toEqual([["run-2", "succeeded"], ["", "missed"], ["run-1", "succeeded"]]);
  expect(shown[1]?.reason).toMatch(/^More than 6 due times, the last .*\. The host did not run\.$/);
  expect(inOrder([], [{ ...missed, count: 1, last: missed.first, more: false }], NOW)[0]?.reason).toBe("1 due time. The host did not run.");
});
