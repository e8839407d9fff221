/** A page that a feature of another package adds: the bookmarks of docs/guide/writing-a-feature.md, in a real host. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const guide = readFileSync(resolve(import.meta.dirname, "../../docs/guide/writing-a-feature.md"), "utf8");
const block = (language: string, number = 1) => guide.split(`\`\`\`${language}\n`)[number]?.split("```")[0] ?? "";

const host = new RealHost();
const site = join(host.folder, "site");
let session = "";

/** What an installer leaves. */
function install(): void {
  const [info, pages] = [join(site, "portico_bookmarks-1.0.dist-info"), join(site, "portico_bookmarks/pages")];
  for (const folder of [info, pages]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(info, "METADATA"), "Metadata-Version: 2.1\nName: portico-bookmarks\nVersion: 1.0\n");
  writeFileSync(join(info, "entry_points.txt"), "[portico.features]\nbookmarks = portico_bookmarks:Bookmarks\n");
  const broken = 'pages = {"broken": WorkbenchPage("Broken page", "pages/broken.js"), ';
  writeFileSync(join(site, "portico_bookmarks/__init__.py"), block("python").replace("pages = {", broken));
  writeFileSync(join(pages, "bookmarks.js"), block("js"));
  writeFileSync(join(pages, "broken.js"), "export default function () { throw new Error('no ink'); }");
}

beforeAll(async () => {
  install();
  host.environment = { PYTHONPATH: site };
  await host.start();
  session = (await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: "Rate limit", cwd: host.folder })).id;
});
afterAll(() => host.close());

test("its link leads to it, it follows the host, and it is left like any other page", async () => {
  const person = await Person.arrive({});
  const { page } = person;
  await page.goto(host.login);
  await page.click(".navs >> text=Bookmarks");
  await page.waitForSelector("text=No bookmarks yet.");
  expect([new URL(page.url()).pathname, await page.title(), await page.textContent(".feature-page h1")]).toEqual(["/app/bookmarks", "Bookmarks · Portico", "Bookmarks"]);
  expect(await page.getAttribute(".navs a[href$='/app/bookmarks']", "aria-current")).toBe("page");
  await host.ask(`/v1/sessions/${session}/bookmark`, { note: "look at the limits" });
  await page.waitForSelector(".feature-page a:has-text('look at the limits')");
  expect(await person.barriers(page, "moderate")).toEqual([]);
  await page.click(".feature-page a:has-text('look at the limits')");
  await page.waitForSelector("h1:has-text('Rate limit')");
  expect(await page.locator(".feature-page").count()).toBe(0);
  await page.goBack();
  await page.click(".feature-page button:has-text('Remove')");
  await page.waitForSelector("text=No bookmarks yet.");
  expect(person.trouble).toEqual([]);
  await person.leave();
});

test("its address opens it after a reload, the palette finds it, and a phone has it behind More", async () => {
  const person = await Person.arrive({});
  const { page } = person;
  await page.goto(host.login);
  await page.goto(`${host.url}/app/bookmarks`);
  await page.waitForSelector("text=No bookmarks yet.");
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector(".navs >> text=Bookmarks");
  await page.keyboard.press("Control+K");
  await page.keyboard.type("bookm");
  await page.click("[role=option]:has-text('Bookmarks')");
  await page.waitForSelector("text=No bookmarks yet.");
  await page.goto(`${host.url}/app/no-such-page`);
  await page.waitForSelector("h1:has-text('There is no such page')");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${host.url}/app/more`);
  await page.click(".settings .navitem:has-text('Bookmarks')");
  await page.waitForSelector("text=No bookmarks yet.");
  expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
  expect(person.trouble).toEqual([]);
  await person.leave();
});

test("a page that fails shows the reason, and the workbench works on", async () => {
  const person = await Person.arrive({});
  const { page } = person;
  await page.goto(host.login);
  await page.click(".navs >> text=Broken page");
  await page.waitForSelector("[role=alert]:has-text('The page Broken page cannot be shown: no ink')");
  await page.click(".navs >> text=Bookmarks");
  await page.waitForSelector("text=No bookmarks yet.");
  await person.leave();
});
