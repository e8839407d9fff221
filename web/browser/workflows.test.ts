/** Workflows in the workbench: the form, the page of a job with many items, a run from a step, and a draft. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const FAN = `about: Compile many files; some of them fail.
inputs:
  many: {type: number, default: 400, about: How many files}
  note: {about: A note}
steps:
  - {id: list, run: "seq {{ inputs.many }} | sed 's/.*/\\"file-&.py\\"/' | paste -sd, | sed 's/.*/[&]/'", output: json}
  - id: work
    each: "{{ steps.list.output }}"
    as: file
    name: "{{ file }}"
    parallel: 8
    may_fail: true
    steps:
      - {id: compile, run: "case {{ file }} in *77.py) echo bad syntax in {{ file }} >&2; exit 1;; *) true;; esac"}
  - {id: report, run: "echo {{ inputs.note }} > report.md"}
result: "{{ steps.work.failed | length }} failed"
artifacts: [report.md]
`;
const BROKEN = `about: Fails at its second step.
steps:
  - {id: prepare, run: echo ready}
  - {id: test, name: Run the tests, run: "echo 3 tests failed >&2; exit 2"}
`;
const CHECK = `about: Asks a person.
steps:
  - {id: decision, ask: Ship it?, choices: [Ship, Wait]}
result: "{{ steps.decision.answer }}"
`;
const DRAFT = "about: Say hello.\nsteps:\n  - {id: hello, name: Greet, run: echo hello}\n";
const SCRIPT = {
  rules: [
    { match: "portico check", steps: [{ do: "say", text: `\`\`\`yaml\n${DRAFT}\`\`\`` }] },
    { match: "Write a workflow", steps: [{ do: "say", text: "```yaml\nsteps:\n  - {id: hello, runn: echo hello}\n```" }] },
  ],
};

const host = new RealHost();
const jobs = join(host.folder, ".portico/jobs");
mkdirSync(jobs, { recursive: true });
for (const [name, text] of Object.entries({ fan: FAN, broken: BROKEN, check: CHECK })) writeFileSync(join(jobs, `${name}.yaml`), text);
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"));

const wide = async (page: import("playwright-core").Page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

test.each([["a phone", { phone: true, size: { width: 390, height: 844 } }], ["a desktop", {}]])("on %s, a workflow of 400 items is started by its form, and its failed items are found by name", async (_, look) => {
  const person = await somebody(look);
  const { page } = person;
  await page.goto(`${host.url}/app/new/job?job=fan`);
  await page.waitForSelector(".plan-steps");
  expect(await page.textContent(".job-about")).toBe("Compile many files; some of them fail.");
  expect(await person.barriers()).toEqual([]);
  await page.fill("#input-note", "it's \"quoted\"");
  await page.click("#start-job");
  await page.waitForURL(/\/app\/j\/job-/);
  await page.waitForSelector(".strip.ok");
  expect(await page.textContent(".job-result")).toContain("4 failed");
  expect(await page.textContent(".artifacts a")).toBe("report.md");
  expect(await page.$$eval(".item-row", (all) => all.length)).toBeLessThan(60);
  await page.click('[data-filter="failed"]');
  expect(await page.$$eval(".item-row .tn-name", (all) => all.map((each) => each.textContent))).toEqual(["file-77.py", "file-177.py", "file-277.py", "file-377.py"]);
  await page.click(".item-row .tn");
  await page.waitForSelector(".step-result:has-text('bad syntax in file-77.py')");
  expect([await wide(page), await person.barriers(), person.trouble]).toEqual([0, [], []]);
});

test("a failed job has its reason as the headline, and runs again from a step", async () => {
  const person = await somebody();
  const { page } = person;
  const { job } = await host.ask<{ job: string }>("/v1/jobs", { job: "broken", cwd: host.folder });
  await page.goto(`${host.url}/app/j/${job}`);
  await page.waitForSelector(".strip.bad");
  expect(await page.textContent(".strip b")).toMatch(/^Failed: Run the tests: .*exit code 2.*3 tests failed/s);
  await page.click('[aria-label="Retry from here: Run the tests"]');
  await page.waitForURL((url) => url.pathname.includes("/app/j/job-") && !url.pathname.endsWith(job));
  await page.waitForSelector(".strip.bad");
  const works = await host.ask<{ rows: { step: string }[] }>(`/v1/jobs/${page.url().split("/").at(-1)}`);
  expect(works.rows.map(({ step }) => step)).toEqual(["test"]);
  expect(person.trouble).toEqual([]);
});

test("a question of a job is answered by one tap on its page", async () => {
  const person = await somebody({ phone: true, size: { width: 390, height: 844 } });
  const { page } = person;
  const { job } = await host.ask<{ job: string }>("/v1/jobs", { job: "check", cwd: host.folder });
  await page.goto(`${host.url}/app/j/${job}`);
  await page.tap('.strip button:has-text("Show and answer")');
  await page.waitForSelector(".question .option");
  expect(await page.$$eval(".question button", (all) => all.map((each) => each.textContent?.replace(/^\d/, "").trim()))).toEqual(["Ship", "Wait"]);
  await page.waitForTimeout(500); // early taps have no effect
  await page.tap('.question .option:has-text("Ship")');
  await page.waitForSelector(".strip.ok", { state: "attached" });
  expect((await host.ask<{ result: string }>(`/v1/jobs/${job}/result`)).result).toBe("Ship");
  expect(person.trouble).toEqual([]);
});

test("a job is described, corrected by the agent, saved, and not started", async () => {
  const person = await somebody();
  const { page } = person;
  const before = (await host.ask<{ jobs: object[] }>("/v1/jobs")).jobs.length;
  await page.goto(`${host.url}/app/new/job`);
  await page.click('[data-way="describe"]');
  await page.fill("#describe", "Say hello");
  await page.selectOption("#draft-agent", "scripted");
  await page.click("#write-draft");
  await page.waitForSelector(".plan-steps:has-text('Greet')");
  expect(await page.inputValue("#workflow-text")).toBe(DRAFT);
  await page.fill("#workflow-name", "greet");
  await page.click("#save-workflow");
  await page.waitForSelector(".good:has-text('greet.yaml')");
  expect((await host.ask<{ jobs: object[] }>("/v1/jobs")).jobs.length).toBe(before);
  expect([await person.barriers(), person.trouble]).toEqual([[], []]);
});
