/** The matrix of jobs. */

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

async function atMatrix(look = {}): Promise<Person> {
  const person = await somebody(look);
  await person.page.goto(`${host.url}/jobs.html?wb=${encodeURIComponent(host.folder)}`);
  await person.page.waitForSelector(".matrix-job-btn");
  return person;
}

const choose = (page: Page, name: string) => page.click(`[data-job-name="${name}"]`);
const state = async (page: Page) => ({
  start: await page.textContent("#start-job-button"),
  enabled: [await page.isEnabled("#start-job-button"), await page.isEnabled("#preview-button"), await page.isEnabled("#user-input-textarea")],
  asks: await page.getAttribute("#user-input-textarea", "placeholder"),
});

test("without a folder it leads to the start", async () => {
  const { page } = await somebody();
  await page.goto(`${host.url}/jobs.html`);
  await page.waitForURL(`${host.url}/index.html`);
});

test("the matrix is the grid: keywords, jobs, empty cells, the title and Stop Server", async () => {
  const person = await atMatrix();
  const { page } = person;
  const rows = await page.$$eval("#matrix-table tr", (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  expect(rows).toEqual([["Available JobsStop Server"], ["one", "Hello", "", "Told"], ["two", "Broken", "", ""], ["three", "Crashed", "Endless", "Judged"], ["charts", "Shapes", "Large", "Again"]]);
  expect(await page.textContent(".matrix-title")).toBe("Available Jobs");
  expect(await page.$$eval(".matrix-keyword", (all) => all.map((each) => each.textContent))).toEqual(["one", "two", "three", "charts"]);
  expect(await page.textContent("#left-part #matrix-part #matrix-table #stop-server-button")).toBe("Stop Server");
  const [title, stop] = [(await page.locator(".matrix-title").boundingBox())!, (await page.locator("#stop-server-button").boundingBox())!];
  expect(stop.x).toBeGreaterThan(title.x + title.width);
  const sizes = await page.$$eval(".matrix-title, .matrix-keyword, .matrix-job-btn", (all) => all.map((each) => parseFloat(getComputedStyle(each).fontSize)));
  expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([28, 34]);
  expect(person.trouble).toEqual([]);
});

test("choosing is exclusive, says what Start would do, and opens the input where one is needed", async () => {
  const person = await atMatrix();
  const { page } = person;
  const selected = () => page.$$eval(".matrix-job-btn.selected", (all) => all.map((each) => (each as HTMLElement).dataset["jobName"]));
  expect(await state(page)).toEqual({ start: "Job Not Selected", enabled: [false, false, false], asks: "Choose a job first." });
  await choose(page, "told");
  expect([await selected(), await state(page)]).toEqual([["told"], { start: "Start Job: told", enabled: [true, true, true], asks: "What should the job do?" }]);
  await choose(page, "hello world");
  expect([await selected(), await state(page)]).toEqual([["hello world"], { start: "Start Job: hello world", enabled: [true, true, false], asks: "This job needs no input." }]);
  await choose(page, "hello world");
  expect([await selected(), await state(page)]).toEqual([[], { start: "Job Not Selected", enabled: [false, false, false], asks: "Choose a job first." }]);
  expect(person.trouble).toEqual([]);
});

test("the input is 800 px wide; the bar leaves at least 200 px on both sides; Preview is at the right", async () => {
  const { page } = await atMatrix();
  const width = async () => (await page.locator("#right-part").boundingBox())!.width;
  expect(await width()).toBe(800);
  const part = (await page.locator("#user-input-part").boundingBox())!;
  const preview = (await page.locator("#preview-button").boundingBox())!;
  expect(part.x + part.width - (preview.x + preview.width)).toBeLessThan(24);
  const bar = (await page.locator("#resize-bar").boundingBox())!;
  await page.mouse.move(bar.x + 2, 400);
  await page.mouse.down();
  await page.mouse.move(bar.x + 102, 400);
  expect(await width()).toBe(700);
  await page.mouse.move(0, 400);
  expect(await width()).toBe(1200);
  await page.mouse.move(1399, 400);
  await page.mouse.up();
  expect(await width()).toBe(200);
});

test("Start gives the job its folder and input, and shows it in a new tab; Preview shows its chart only", async () => {
  const person = await atMatrix();
  const { page } = person;
  await choose(page, "told");
  await page.fill("#user-input-textarea", "first line\nsecond line");
  const sent = page.waitForRequest(/job\/start\/told$/);
  const tracking = await person.tab(() => page.click("#start-job-button"));
  expect((await sent).postData()).toBe(`${host.folder}\nfirst line\nsecond line`);
  const address = new URL(tracking.url());
  expect([address.pathname, address.searchParams.get("jobName"), address.searchParams.get("jobId")]).toEqual(["/jobTracking.html", "told", expect.stringMatching(/^job-\d+$/)]);
  const preview = await person.tab(() => page.click("#preview-button"));
  expect(new URL(preview.url()).search).toBe("?jobName=told");
  expect(person.trouble).toEqual([]);
});

test("a job that cannot start says so in an alert, and can be tried again", async () => {
  const person = await somebody();
  const { page } = person;
  await page.goto(`${host.url}/jobs.html?wb=%2Fnowhere%2Fat%2Fall`);
  await choose(page, "hello world");
  await page.click("#start-job-button");
  await person.alerted(/WorkingDirectoryNotExists/);
  await page.waitForSelector("#start-job-button:enabled");
});

test("a phone shows the matrix above the input, without scrolling aside", async () => {
  const person = await atMatrix({ phone: true });
  const { page } = person;
  await choose(page, "told");
  const [matrix, input] = [(await page.locator("#left-part").boundingBox())!, (await page.locator("#right-part").boundingBox())!];
  expect(input.y).toBeGreaterThanOrEqual(matrix.y + matrix.height);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  expect(await page.isVisible("#start-job-button")).toBe(true);
  expect(person.trouble).toEqual([]);
});

test("Stop Server asks first: the host keeps running for one who does not confirm", async () => {
  const person = await atMatrix();
  await person.page.click("#stop-server-button");
  await person.alerted(/Stop the server\?/);
  expect(await person.page.textContent("#stop-server-button")).toBe("Stop Server");
  await host.ask("/v1/jobs");
});

// Last, because it takes the host away.
test("Stop Server stops the host when it is confirmed", async () => {
  const person = await atMatrix();
  await person.page.evaluate(() => (window.confirm = () => true));
  await person.page.click("#stop-server-button");
  await person.page.waitForFunction(() => document.body.textContent!.includes("you may close this tab"));
  await host.ended();
  expect(person.trouble).toEqual([]);
});
