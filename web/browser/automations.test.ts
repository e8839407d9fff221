/** Automations in the workbench: made, run, paused, changed and deleted by somebody who never saw a command line. */

import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));
const field = (path: string) => `[id="auto-field-${path}"]`;
const fits = async ({ page }: Person) => {
  for (const width of [360, 768, 1440, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth);
  }
};

test("from the empty page to a run with its history: errors at their fields, run now, pause, edit, delete", async () => {
  const person = await somebody();
  const { page } = person;
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector(".empty-inbox");
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForSelector('.autos-empty:has-text("portico automations add morning")');
  expect(await page.getAttribute('.navitem:has-text("Automations")', "aria-current")).toBe("page");
  expect(await person.barriers()).toEqual([]);

  await page.click("text=New automation");
  expect([await page.inputValue(field("daily.days")), await page.inputValue(field("daily.time"))]).toEqual(["1-5", "07:00"]);
  expect(await page.inputValue(field("schedule.zone"))).toBe(await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone));
  await page.selectOption(field("schedule.zone"), "Europe/Berlin");
  await page.waitForSelector('.auto-preview:has-text("At 07:00 on Monday through Friday (Europe/Berlin)")');
  await page.click("text=Create automation");
  await page.waitForSelector('[id="wrong-name"]:has-text("Enter a name"), [id="wrong-prompt.text"]:has-text("Write a prompt")');
  expect(await page.$$eval("[aria-invalid]", (all) => all.map((each) => each.id))).toEqual(["auto-field-name", "auto-field-prompt.text"]);
  await page.fill(field("name"), "Morning!");
  await page.selectOption(field("prompt.agent"), "demo");
  await page.fill(field("prompt.text"), "hello there");
  await page.click("text=Create automation");
  await page.waitForSelector('[id="wrong-name"]:has-text("is no name")');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("auto-field-name");
  await page.fill(field("name"), "morning");
  expect(await person.barriers()).toEqual([]);
  await fits(person);
  await page.click("text=Create automation");

  await page.waitForSelector('.facts-list:has-text("demo: hello there")');
  await page.waitForSelector("text=It has not run yet.");
  await page.click("text=Run now");
  await page.waitForSelector('.runs .job-state:has-text("Done")');
  expect(await page.textContent(".runs")).toContain("by owner");
  expect(await page.getAttribute(".runs a", "href")).toContain("/app/s/");
  expect(await person.barriers()).toEqual([]);
  await fits(person);
  await page.click("text=Pause");
  await page.waitForSelector('.facts-list .pill:text-is("Paused")');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Resume");
  await page.click("text=Resume");
  await page.waitForSelector('.facts-list .pill:text-is("On")');

  await page.click(".auto-acts >> text=Edit");
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[id="auto-field-name"]')?.value === "morning");
  await page.selectOption(field("when"), "every");
  await page.fill(field("schedule.every"), "2h");
  await page.selectOption(field("what"), "job");
  await page.selectOption(field("job.job"), "told");
  await page.fill(field("job.input"), "the notes"); // the job says that it needs it
  await page.click("button >> text=Save");
  await page.waitForSelector('.facts-list:has-text("Every 2h"):has-text("Job told")');
  expect(await host.ask("/v1/automations/morning")).toMatchObject({ plan: { schedule: { every: "2h" }, job: { job: "told" } } });

  await page.click("text=Delete…");
  await page.click('dialog[open] button:has-text("Close")');
  await page.click("text=Delete…");
  await page.click('dialog[open] .danger:has-text("Delete")');
  await page.waitForSelector(".autos-empty");
  expect(await host.ask("/v1/automations")).toEqual({ automations: [] });
  // Browsers report the refusals that were asked for here.
  expect(person.trouble.filter((each) => !each.includes("400"))).toEqual([]);
});

test("a hook's secret is shown once; a signed call is in the history; one that stopped itself says why", async () => {
  const person = await somebody({ phone: true });
  const { page } = person;
  await page.goto(`${host.url}/app/more`);
  await page.tap('.stack >> text="Automations"');
  await page.tap("text=New automation");
  await page.fill(field("name"), "on-call");
  await page.selectOption(field("when"), "hook");
  await page.fill(field("hook.filter"), "/action = opened");
  await page.fill(field("prompt.text"), "fail please");
  await page.selectOption(field("prompt.agent"), "demo");
  await page.tap("summary >> text=Missed runs");
  await page.fill(field("stop_after_failures"), "1");
  await page.tap("text=Create automation");
  const secret = (await page.textContent(".token-once code"))!;
  expect(secret).toMatch(/^whsec_/);
  expect(await page.getAttribute(".token-once button", "aria-label")).toContain("Copy");
  const deliver = (body: string) => fetch(`${host.url}/hooks/on-call`, { method: "POST", body, headers: { "X-Hub-Signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}` } });
  expect((await deliver('{"action": "opened"}')).status).toBe(202);
  await page.waitForSelector('.runs .job-state:has-text("Failed")');
  await page.waitForSelector('.facts-list:has-text("Stopped"):has-text("The last run failed.")');
  expect(await person.barriers()).toEqual([]);
  await page.tap('[aria-label="All automations"]');
  await page.waitForSelector('.auto:has-text("Stopped"):has-text("/hooks/on-call"):has-text("Failed")');
  expect(await person.barriers()).toEqual([]);
  await page.tap(".auto");
  await page.waitForSelector(".facts-list dd");
  expect(await page.locator(".token-once").count()).toBe(0);
  expect(person.trouble).toEqual([]);
});

test("a budget that is spent asks in the inbox, and its answer lets the turn go on", async () => {
  const person = await somebody();
  const { page } = person;
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: "Spent", config: { budget: { turns: 1 } } });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "hello there" });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "write something" });
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector(".card.question .option");
  expect(await page.locator(".card.question .option span").allTextContents()).toEqual(["Raise it by 1 turns", "Let this turn finish", "Stop"]);
  expect(await person.barriers()).toEqual([]);
  await page.click(".card.question .option >> text=Let this turn finish");
  // The turn goes on: what the agent wants to do is asked next.
  await page.waitForSelector(".card.approval");
  expect(person.trouble).toEqual([]);
});
