/** Every page and state as a picture, light and dark, desktop and phone, in `screenshots/`. */

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const folder = resolve(import.meta.dirname, "../../screenshots");
/** Slow enough for a job to be seen at work. */
const host = new RealHost(["--agent", "scripted", "--agent", "demo", "--script-delay", "700"]);

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  await host.start();
});
afterAll(() => host.close());

const FOUR_K = { width: 3840, height: 2160 };
const ANSWER = "# A plan\n\nThis is **bold** and `code`.\n\n- one\n- two\n\n| step | who |\n|---|---|\n| build | agent |\n\n```js\nlet answer = 42;\n```";

describe.each([
  { name: "desktop-light", phone: false, dark: false },
  { name: "desktop-dark", phone: false, dark: true },
  { name: "phone-light", phone: true, dark: false },
  { name: "phone-dark", phone: true, dark: true },
  { name: "4k-light", phone: false, dark: false, size: FOUR_K },
])("$name", ({ name, ...look }) => {
  test("all pages", { timeout: 300_000 }, async () => {
    const person = await Person.arrive(look);
    const { page } = person;
    const take = async (state: string, of: Page = page) => {
      await of.waitForTimeout(200); // colours fade in
      await of.screenshot({ path: `${folder}/${state}-${name}.png` });
    };
    await page.goto(`${host.url}/login?error=1`);
    await take("login");
    await page.goto(host.login);
    await person.startSession(host.url);
    await take("session-empty");
    await person.say(`[[tool:job_prepare_document|PLAN.md]] [[say:${ANSWER}]]`);
    await person.answered();
    await take("session-answered");
    await person.say("[[deltas:40]] [[gap:50]]");
    await page.waitForSelector(".message-block-message.receiving");
    await take("session-receiving");
    await person.say("[[crash]]");
    await page.waitForSelector(".session-response-notice");
    await take("session-failed");
    await page.goto(`${host.url}/jobs.html?wb=${encodeURIComponent(host.folder)}`);
    await page.click('[data-job-name="plan-and-write"]');
    await page.fill("#user-input-textarea", "A small tool");
    await take("jobs");
    const preview = await person.tab(() => page.click("#preview-button"));
    await preview.waitForSelector("g.node");
    await take("job-preview", preview);
    const tracking = await person.tab(() => page.click("#start-job-button"));
    await tracking.waitForFunction(() => document.querySelectorAll(".task-status-indicator").length === 3);
    await take("job-running", tracking);
    await tracking.waitForFunction(() => /SUCCEEDED|FAILED/.test(document.getElementById("job-status-label")!.textContent!));
    await take("job-ended", tracking);
    await tracking.locator("g.node", { hasText: "reviewer1" }).click();
    await tracking.waitForSelector(".message-block");
    await take("job-inspected", tracking);
    await page.goto(host.url);
    await page.waitForSelector(".running-job");
    await page.waitForSelector("#start-button:enabled");
    await take("setup");
    await person.leave();
  });
});
