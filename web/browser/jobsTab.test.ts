/** The Jobs tab of a phone: it lists jobs, and its plus starts one. */

import { expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

test("a job is started on the Jobs tab, and listed there", async () => {
  const { page } = await somebody({ phone: true });
  await page.goto(`${host.url}/app`);
  await page.tap('#tabbar >> text="Jobs"');
  await page.tap('.brandrow [aria-label="Start a job"]');
  await page.tap('main button:has-text("Start"):visible');
  await page.waitForURL(/\/app\/j\/job-1/);
  await page.goto(`${host.url}/app/jobs`);
  await page.waitForSelector("a[href$='/app/j/job-1']:visible");
  await page.tap('#tabbar >> text="Sessions"');
  expect(await page.getAttribute(".brandrow a.icon", "aria-label")).toBe("New session");
});
