/** What the hosts of these tests can run: one job for every state a page can show. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";

const MODEL = { category: "driving" };
const task = (...prompt: string[]) => ({ model: MODEL, prompt, requireUserInput: prompt.join().includes("$user-input") });
const ref = (taskId: string) => ({ kind: "Ref", taskId });
const seq = (...works: object[]) => ({ kind: "Seq", works });
const par = (...works: object[]) => ({ kind: "Par", works });
const asked = (answer: boolean) => ({
  condition: [`[[tool:job_boolean_${answer}|The reason.]] [[say:Asked.]]`],
  runConditionInSameSession: true,
  failureAction: { retryTimes: 0 },
});

/** 20 rows of 10 works, every one with a name of its own. */
const WIDE = 10;
const TALL = 20;
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

const ENTRY = {
  models: { driving: "gpt-5.2", other: "gpt-5.4" },
  drivingSessionRetries: [{ modelId: "gpt-5.2", retries: 1 }],
  promptVariables: {},
  tasks: {
    quick: task("[[say:Quick.]]"),
    told: task("You were told: $user-input", "[[say:Understood.]]"),
    checked: { ...task("[[say:Done.]]"), criteria: asked(true) },
    refused: { ...task("[[say:Tried.]]"), criteria: asked(false) },
    crashing: task("[[crash]]"),
    /** Streams for as long as anybody looks. */
    endless: task("[[deltas:6000]] [[gap:50]]"),
    /** The same, but it must not run twice without a word. */
    careful: { ...task("[[deltas:6000]] [[gap:50]]"), onInterrupt: "ask" },
    /** No at first, yes from then on. */
    enough: { ...task("[[say:Looked.]]"), criteria: { ...asked(true), condition: ["[[before:enough-no|1|job_boolean_false|No.]] [[after:enough-yes|1|job_boolean_true|Yes.]] [[say:Asked.]]"] } },
    /** Its own sessions and driving ones, and the second attempt is the good one. */
    twice: {
      prompt: ["[[say:An attempt.]]"],
      requireUserInput: false,
      criteria: {
        condition: ["[[before:twice-no|1|job_boolean_false|Not yet.]] [[after:twice-yes|1|job_boolean_true|Now.]] [[say:Judged.]]"],
        runConditionInSameSession: false,
        failureAction: { retryTimes: 2 },
      },
    },
  },
  jobs: {
    "hello world": { work: ref("quick") },
    told: { work: ref("told") },
    broken: { work: seq(ref("quick"), ref("refused")) },
    crashed: { work: ref("crashing") },
    endless: { work: seq(ref("quick"), par(ref("endless"), ref("quick"))) },
    careful: { work: ref("careful") },
    again: { work: { kind: "Loop", body: ref("quick"), postCondition: [false, ref("enough")] } },
    judged: { work: { ...ref("twice"), modelOverride: { category: "other" } } },
    shapes: {
      work: seq(
        ref("quick"),
        par(ref("quick"), ref("told")),
        { kind: "Loop", preCondition: [true, ref("checked")], body: ref("quick"), postCondition: [false, seq(ref("quick"), ref("checked"))], maxIterations: 2 },
        { kind: "Alt", condition: ref("checked"), trueWork: ref("quick"), falseWork: ref("refused") },
      ),
    },
    large: { work: seq(...numbers(TALL).map(() => par(...numbers(WIDE).map(() => ref("quick"))))) },
  },
  grid: [
    { keyword: "one", jobs: [{ name: "Hello", jobName: "hello world" }, null, { name: "Told", jobName: "told" }] },
    { keyword: "two", jobs: [{ name: "Broken", jobName: "broken" }] },
    { keyword: "three", jobs: [{ name: "Crashed", jobName: "crashed" }, { name: "Endless", jobName: "endless" }, { name: "Judged", jobName: "judged" }] },
    { keyword: "charts", jobs: [{ name: "Shapes", jobName: "shapes" }, { name: "Large", jobName: "large" }, { name: "Again", jobName: "again" }] },
  ],
};

export const LARGE = WIDE * TALL;

/** The options that give a host this entry. */
export function entryOptions(folder: string): string[] {
  const path = join(folder, "entry.json");
  writeFileSync(path, JSON.stringify(ENTRY));
  return ["--entry", path];
}
