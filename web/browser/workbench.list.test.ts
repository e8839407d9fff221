/** A list that is longer than anybody scrolls: few rows in the page, nothing that jumps, everything to be found. */

import { beforeAll, expect, test, vi } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);
/** More than the host's first page and two that follow it. */
let sessions = 720;
const ids: string[] = [];

beforeAll(async () => {
  const title = (n: number) => `Session ${String(n).padStart(3, "0")}`;
  for (let from = 0; from < sessions; from += 20) {
    const made = await Promise.all(Array.from({ length: 20 }, (_, n) => host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: title(from + n) })));
    ids.push(...made.map(({ id }) => id));
  }
}, 300_000);

async function begin(title: string): Promise<void> {
  await host.ask("/v1/sessions", { agent: "demo", title });
  sessions++;
}

const drawn = ({ page }: Person) => page.$$eval(".list .entry", (all) => all.length);

async function arrived(): Promise<Person> {
  const person = await somebody({ size: { width: 1440, height: 900 } });
  const { page } = person;
  await page.goto(`${host.url}/app/s/${ids.at(-1)}`);
  await page.waitForSelector('.list [aria-current="true"]');
  await page.waitForFunction((count) => document.querySelector(".group-count")?.textContent === String(count), sessions);
  await page.mouse.move(900, 300);
  return person;
}

/** The row at the middle of the list, and where it stands. */
const middleRow = ({ page }: Person) =>
  page.evaluate(() => {
    const list = document.querySelector(".list")!.getBoundingClientRect();
    const row = document.elementFromPoint(list.left + 60, list.top + list.height / 2)?.closest<HTMLElement>(".entry");
    return { key: row?.dataset["key"], top: Math.round(row?.getBoundingClientRect().top ?? -1) };
  });

test("about thirty rows stand in the page, the host counts the rest, and older ones come by scrolling", async () => {
  const person = await arrived();
  const { page } = person;
  expect(await drawn(person)).toBeLessThan(45);
  expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(3_000);
  const asked = person.requests(/\/v1\/board$/);
  for (let wheel = 0; wheel < 60 && !(await page.isVisible('.list .entry:has-text("Session 000")')); wheel++) {
    await page.evaluate(() => document.querySelector(".list")!.scrollBy(0, 2_000));
    await page.waitForFunction(() => document.querySelectorAll(".list .ghost").length === 0);
    expect(await drawn(person)).toBeLessThan(45);
  }
  expect(await page.textContent(".group-count")).toBe(String(sessions));
  expect(asked.length).toBeGreaterThanOrEqual(2);
  expect(asked.every((address) => new URL(address.split(" ")[1]!).searchParams.get("limit") === "100")).toBe(true);
  expect(await person.barriers(page, "moderate")).toEqual([]);
  expect(person.trouble).toEqual([]);
});

test("what is read stays where it is while rows come above it, and no row moves under the pointer", async () => {
  const person = await arrived();
  const { page } = person;
  await page.evaluate(() => (document.querySelector(".list")!.scrollTop = 5_000));
  await vi.waitFor(async () => expect((await middleRow(person)).key).toBeDefined());
  const before = await middleRow(person);
  await begin("Newcomer");
  await page.waitForFunction((count) => document.querySelector(".group-count")?.textContent === String(count), sessions);
  expect(await middleRow(person)).toEqual(before);
  await page.evaluate(() => (document.querySelector(".list")!.scrollTop = 0));
  const first = page.locator(".list .entry").first();
  await first.waitFor();
  expect(await first.textContent()).toContain("Newcomer");
  await page.locator(".list .entry").nth(3).hover();
  const under = await page.$$eval(".list .entry", (all) => all.slice(0, 6).map((each) => (each as HTMLElement).dataset["key"]));
  await host.ask(`/v1/sessions/${ids[400]}`, { title: "Renamed now" }, "PATCH");
  await begin("Second newcomer");
  await page.waitForFunction((count) => document.querySelector(".group-count")?.textContent === String(count), sessions);
  expect(await page.$$eval(".list .entry", (all) => all.slice(0, 6).map((each) => (each as HTMLElement).dataset["key"]))).toEqual(under);
  await page.mouse.move(900, 300);
  await page.waitForFunction(() => document.querySelector(".list .entry")?.textContent?.includes("Second newcomer"));
});

test("the keys go through it, and the filter finds what is not loaded", async () => {
  const person = await arrived();
  const { page } = person;
  await page.keyboard.press("Escape");
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  const chosen = () => page.evaluate(() => {
    const [list, row] = [document.querySelector(".list")!.getBoundingClientRect(), document.querySelector('.list [aria-current="true"]')];
    const box = row?.getBoundingClientRect();
    return { text: row?.querySelector(".t")?.textContent, inView: box !== undefined && box.top >= list.top - 1 && box.bottom <= list.bottom + 1 };
  });
  const from = (await chosen()).text;
  for (let press = 0; press < 13; press++) await page.keyboard.press("j");
  await page.focus('.list [aria-current="true"]');
  for (let press = 0; press < 12; press++) await page.keyboard.press("ArrowDown");
  await page.waitForFunction((text) => document.querySelector('.list [aria-current="true"] .t')?.textContent !== text, from);
  expect((await chosen()).inView).toBe(true);
  expect((await chosen()).text).toBe("Session 694");
  for (let press = 0; press < 2; press++) await page.keyboard.press("k");
  await page.waitForFunction(() => document.querySelector('.list [aria-current="true"] .t')?.textContent === "Session 696");
  await page.fill("#filter", "session 003");
  await page.waitForSelector('.list .entry:has-text("Session 003")');
  expect(await drawn(person)).toBe(1);
  expect(await person.barriers()).toEqual([]);
  expect(person.trouble).toEqual([]);
});

test("what needs you stays in view while the list scrolls, and an old row below it can be chosen", async () => {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: "A question for you" });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "ask me" });
  sessions++;
  const person = await somebody({ size: { width: 1440, height: 900 } });
  const { page } = person;
  await page.goto(`${host.url}/app/s/${ids.at(-1)}`);
  await page.waitForSelector(".group.pinned .entry:has-text('A question for you')");
  const inView = () =>
    page.evaluate(() => {
      const [list, row] = [document.querySelector(".list")!, document.querySelector(".group.pinned .entry")!].map((each) => each.getBoundingClientRect());
      return row!.top >= list!.top && row!.bottom <= list!.bottom;
    });
  await page.evaluate(() => document.querySelector(".list")!.scrollBy(0, 8_000));
  await page.waitForFunction(() => document.querySelector(".list")!.scrollTop > 7_000);
  expect(await inView()).toBe(true);
  const old = await middleRow(person);
  await page.click(`.entry[data-key="${old.key}"]`);
  await page.waitForSelector(`.entry[data-key="${old.key}"][aria-current="true"]`);
  expect([await inView(), (await middleRow(person)).key]).toEqual([true, old.key]);
  // A row that the keys choose is not hidden below the pinned group.
  for (let step = 0; step < 12; step++) await page.keyboard.press("k");
  const free = await page.evaluate(() => {
    const [group, row] = [document.querySelector(".group.pinned")!, document.querySelector('.entry[aria-current="true"]')!].map((each) => each.getBoundingClientRect());
    return row!.top >= group!.bottom;
  });
  expect([free, await inView()]).toEqual([true, true]);
  await page.click(".group.pinned .entry");
  await page.waitForSelector("h1:has-text('A question for you')");
  expect(person.trouble).toEqual([]);
  await person.leave();
});
