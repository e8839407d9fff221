/** What is where, and how wide: the measures of the design at every width, and the borders that can be moved. */

import { beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);
let id = "";

beforeAll(async () => {
  ({ id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: "Measured" }));
  await host.ask(`/v1/sessions/${id}/messages`, { text: "hello" });
});

const boxes = ({ page }: Person) =>
  page.evaluate(() => {
    const width = (name: string) => Math.round(document.querySelector(name)?.getBoundingClientRect().width ?? 0);
    const height = (name: string) => Math.round(document.querySelector(name)?.getBoundingClientRect().height ?? 0);
    return { list: width("#side"), middle: width("main"), panel: width("#panel"), column: width("#transcript .row.message"), head: height(".session .head"), tabs: height("#panel .tabs"), words: height("#message"), tools: height(".tools"), row: height(".list .entry"), bar: height("#tabbar a") };
  });

test.each([
  { width: 768, list: 264, middle: 504, panel: 504, over: true },
  { width: 1024, list: 264, middle: 760, panel: 560, over: true },
  { width: 1280, list: 288, middle: 512, panel: 480, over: false },
  { width: 1440, list: 288, middle: 672, panel: 480, over: false },
  { width: 2560, list: 320, middle: 1165, panel: 1075, over: false },
])("at $width", async ({ width, list, middle, panel, over }) => {
  const person = await somebody({ size: { width, height: 900 } });
  const { page } = person;
  await page.goto(`${host.url}/app/s/${id}/details`);
  await page.waitForSelector("#transcript .end");
  await page.waitForSelector("#panel .facts-list");
  await page.waitForSelector(".list .entry");
  const found = await boxes(person);
  expect(found).toMatchObject({ list, middle, panel, head: 52, tabs: 52, row: 50, words: 46, tools: 40 });
  expect(found.column).toBeLessThanOrEqual(848); // 800 and the padding at both sides
  expect(await page.evaluate(() => getComputedStyle(document.querySelector("#panel")!).position === "fixed")).toBe(over);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBe(0);
});

test("on a phone one thing at a time, with a bar of 54 below the list", async () => {
  const person = await somebody({ phone: true, size: { width: 390, height: 844 } });
  const { page } = person;
  await page.goto(`${host.url}/app`);
  await page.waitForSelector(".list .entry");
  expect(await boxes(person)).toMatchObject({ list: 390, middle: 0, panel: 0, row: 60, bar: 54 });
  expect(await page.locator("#tabbar a").allTextContents()).toEqual(["Inbox", "Sessions", "Jobs", "More"].map((name) => expect.stringContaining(name)));
  await page.tap(".list .entry");
  await page.waitForSelector("#transcript .end");
  expect(await boxes(person)).toMatchObject({ list: 0, middle: 390, bar: 0 });
  await page.tap('[aria-label="Back to the list"]');
  await page.waitForSelector(".list .entry", { state: "visible" });
});

test("borders move with the arrow keys and the pointer, are remembered for a kind of screen, and set back by a double click", async () => {
  const person = await somebody({ size: { width: 1440, height: 900 } });
  const { page } = person;
  await page.goto(`${host.url}/app/s/${id}/details`);
  await page.waitForSelector("#panel .facts-list");
  const width = (name: string) => page.evaluate((of) => document.querySelector(of)!.getBoundingClientRect().width, name);
  await page.focus("#grip-side");
  for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
  expect(await width("#side")).toBe(288 + 16);
  expect(await page.getAttribute("#grip-side", "aria-valuenow")).toBe("304");
  await page.focus("#grip-panel");
  await page.keyboard.press("ArrowLeft");
  expect(await width("#panel")).toBe(480 + 16);
  const box = (await page.locator("#panel").boundingBox())!;
  await page.mouse.move(box.x + 2, 400);
  await page.mouse.down();
  await page.mouse.move(box.x - 38, 400, { steps: 4 });
  await page.mouse.up();
  expect(await width("#panel")).toBe(480 + 16 + 40);
  // Whatever is tried, the conversation keeps room enough, and nothing leaves the window.
  await page.focus("#grip-panel");
  for (let press = 0; press < 30; press++) await page.keyboard.press("ArrowLeft");
  expect([await width("main"), await page.evaluate(() => document.querySelector("#panel")!.getBoundingClientRect().right)]).toEqual([480, 1440]);
  await page.reload();
  await page.waitForSelector("#panel .facts-list");
  expect([await width("#side"), await width("main")]).toEqual([304, 480]);
  await page.setViewportSize({ width: 2560, height: 1200 });
  await page.waitForFunction(() => document.querySelector("#side")!.getBoundingClientRect().width === 320);
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.waitForFunction(() => document.querySelector("#side")!.getBoundingClientRect().width === 304);
  await page.locator("#grip-side").dblclick({ position: { x: 0, y: 500 }, force: true });
  await page.locator("#grip-panel").dblclick({ position: { x: 0, y: 500 }, force: true });
  expect([await width("#side"), await width("#panel")]).toEqual([288, 480]);
  await page.reload();
  await page.waitForSelector("#panel .facts-list");
  expect([await width("#side"), await width("#panel")]).toEqual([288, 480]);
  expect(person.trouble).toEqual([]);
});
