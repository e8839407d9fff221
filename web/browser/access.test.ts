/** Nobody is kept out: every page and state of the portal without a serious finding of axe, light and dark, and on a phone. */

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Look, Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

/** In both colours; and nothing may be wider than the window. */
async function sound(person: Person, state: string, page: Page = person.page): Promise<void> {
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Colours fade: what is measured halfway is nobody's colour.
    await page.evaluate(() => Promise.all(document.getAnimations().map((each) => each.finished.catch(() => undefined))));
    expect([state, colorScheme, await person.barriers(page)]).toEqual([state, colorScheme, []]);
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect([state, Math.max(0, wide)]).toEqual([state, 0]);
}

/** What fingers and pointers have to hit is 32 pixels high, on a phone 44. Bars of a timeline are a second way to the tree's rows. */
const low = (page: Page, least: number) =>
  page.$$eval(
    "main :is(button, summary, select, textarea, label:has(> input), input:not([type=checkbox], [type=radio])):not(.bar-run), .side :is(.brand, .find, .filter, .icon, .navitem)",
    (all, least) => all.filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < least - 0.5).map((each) => `${each.tagName} ${each.className} ${each.textContent}`),
    least,
  );

const LOOKS: [string, Look][] = [
  ["a desktop", {}],
  ["a phone", { phone: true }],
];

const MARKDOWN = "# A plan\n\nThis is **bold**, `code` and a [link](https://example.org).\n\n- one\n- two\n\n> quoted\n\n| step | who |\n|---|---|\n| build | agent |\n\n```js\nlet answer = 42;\n```";

test.each(LOOKS)("the portal on %s", async (_, look) => {
  const person = await somebody(look);
  const { page } = person;
  await page.goto(`${host.url}/login?error=1`);
  await sound(person, "login");
  await host.startJob("broken");
  await page.goto(`${host.url}/index.html`);
  await page.waitForSelector("#start-button:enabled");
  await page.waitForSelector(".running-job");
  await sound(person, "setup");
  await person.startSession(host.url);
  await sound(person, "empty session");
  await person.say(`[[tool:job_prepare_document|x]] [[say:${MARKDOWN}]]`);
  await page.waitForSelector(".message-block-message.completed");
  await person.say("[[crash]]");
  await page.waitForSelector(".session-response-notice");
  await person.say("[[hang]]");
  await page.waitForSelector(".message-block-message.receiving");
  await page.locator(".message-block-tool .message-block-header").first().click();
  await sound(person, "session");
  await page.goto(`${host.url}/jobs.html?wb=${encodeURIComponent(host.folder)}`);
  await page.click('[data-job-name="told"]');
  await sound(person, "jobs");
  await page.goto(`${host.url}/jobTracking.html?jobName=shapes`);
  await page.waitForSelector("g.node");
  await sound(person, "preview");
  const jobId = await host.startJob("judged");
  await page.goto(`${host.url}/jobTracking.html?jobName=judged&jobId=${jobId}`);
  await page.waitForFunction(() => document.getElementById("job-status-label")!.textContent === "JOB: SUCCEEDED");
  await page.waitForSelector(".task-status-indicator");
  await sound(person, "job");
  await page.click("g.node[role=button]");
  await page.waitForSelector(".message-block");
  await sound(person, "inspected work");
  expect(person.trouble).toEqual([]);
});

test.each(LOOKS)("the workbench on %s", async (_, look) => {
  const person = await somebody(look);
  const { page } = person;
  const start = async (text: string) => {
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo" });
    await host.ask(`/v1/sessions/${id}/messages`, { text });
    return `/app/s/${id}`;
  };
  const states: [string, string][] = [
    ["/app/inbox", ".inbox h1"],
    ["/app/new", "#agents input"],
    [await start("write something"), ".approval"],
    [await start("ask me"), ".question"],
    [await start("fail"), ".outcome.failed"],
    ["/agents.html", ".agent"],
    ["/jobHistory.html", ".session, #empty:not([hidden])"],
    ["/terminal.html", "#empty:not([hidden])"],
    ["/test.html", "body"],
  ];
  for (const [path, sign] of states) {
    await page.goto(host.url + path);
    await page.waitForSelector(sign);
    await sound(person, path);
    if (path.startsWith("/app")) expect([path, await low(page, look.phone ? 44 : 32)]).toEqual([path, []]);
  }
  expect(person.trouble).toEqual([]);
});

test("every other place of the workbench, also with more contrast, without a moderate finding", async () => {
  const person = await somebody();
  const { page } = person;
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", config: { approvals: "allow" } });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "write something" });
  const job = await host.startJob("shapes", "x");
  const states: [string, string][] = [
    [`s/${id}/changes`, ".file-diff"],
    [`s/${id}/details`, ".facts-list"],
    [`j/${job}`, ".tn"],
    ["jobs", ".entry"],
    ["new/job", "#job option"],
    ["automations", ".automations h1"],
    ["automations/new", ".auto-preview"],
    ["usage", ".plot"],
    ...["look", "agents", "tokens", "people", "audit", "hosts", "host"].map((section): [string, string] => [`settings/${section}`, ".settings-nav [aria-current]"]),
    ["nowhere", ".empty h1"],
  ];
  await page.emulateMedia({ contrast: "more", reducedMotion: "reduce" });
  for (const [path, sign] of states) {
    await page.goto(`${host.url}/app/${path}`);
    await page.waitForSelector(sign, { state: "attached" });
    expect([path, await person.barriers(page, "moderate")]).toEqual([path, []]);
    if (/^(j|new|usage|settings)/.test(path)) expect([path, await low(page, 32)]).toEqual([path, []]);
  }
  expect(person.trouble).toEqual([]);
});
