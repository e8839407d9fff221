/** Where a real connection, focus, press or heap matters: views of the workbench through restarts, quick switches and re-rendering. */

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const host = new RealHost();
const visitor = visitors(host, ...entryOptions(host.folder));

/** Counts the event streams of the page. */
const COUNT_STREAMS = () => {
  const all: EventSource[] = [];
  const Real = window.EventSource;
  window.EventSource = class extends Real {
    constructor(address: string | URL) {
      super(address);
      all.push(this);
    }
  };
  Object.assign(window, { openStreams: () => all.filter(({ readyState }) => readyState !== 2).length });
};
const openStreams = (page: Page) => page.evaluate(() => (window as unknown as { openStreams(): number }).openStreams());

async function atEndlessJob() {
  const person = await visitor();
  const job = await host.startJob("endless");
  await person.page.addInitScript(COUNT_STREAMS);
  await person.page.goto(`${host.url}/app/j/${job}`);
  await person.page.waitForSelector('.head .pill:text-matches("Working, [12] of 3")');
  await person.page.waitForSelector('.tn[aria-current]:has-text("endless")');
  return { person, page: person.page, job };
}

const clock = (page: Page) => page.textContent('.tn:has-text("endless") .tn-time');
const nextSecond = async (page: Page) => {
  const before = await clock(page);
  await page.waitForFunction((text) => [...document.querySelectorAll(".tn")].find((each) => each.textContent!.includes("endless"))!.querySelector(".tn-time")!.textContent !== text, before);
};

test("a running job: the focus stays on its step, and a press that lasts over a render is a click", async () => {
  const { person, page, job } = await atEndlessJob();
  await page.focus('.tn[data-work="0"]');
  for (let second = 0; second < 2; second++) {
    await nextSecond(page);
    expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset["work"])).toBe("0");
  }
  for (const work of ["0", "2"]) {
    const { x, y, width, height } = (await page.locator(`.tn[data-work="${work}"]`).boundingBox())!;
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await nextSecond(page);
    await page.mouse.up();
    expect(await page.getAttribute(`.tn[data-work="${work}"]`, "aria-current")).toBe("true");
  }
  await host.ask(`/v1/jobs/${job}/stop`, {});
  await page.waitForSelector('.head .pill:text-is("Stopped")');
  expect(person.trouble).toEqual([]);
});

test("the host restarts behind a proxy that answers 502, and the job is stopped: its page shows it, and so does one that was loading", async () => {
  const { person, page, job } = await atEndlessJob();
  let refused = 0;
  const broken = "**/v1/**";
  await page.route(broken, (route) => {
    refused += 1;
    return route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" });
  });
  await host.kill();
  await host.start();
  await host.ask(`/v1/jobs/${job}/stop`, {});
  await expect.poll(() => refused, { timeout: 30_000 }).toBeGreaterThan(2);
  await page.unroute(broken);
  await page.waitForSelector('.head .pill:text-is("Stopped")');
  expect(await openStreams(page)).toBeLessThanOrEqual(2);
  const loading = await person.context.newPage();
  let first = true;
  await loading.route(`**/v1/jobs/${job}`, (route) => {
    if (!first) return route.continue();
    first = false;
    return route.fulfill({ status: 502, body: "" });
  });
  await loading.goto(`${host.url}/app/j/${job}`);
  await loading.waitForSelector('.head .pill:text-is("Stopped")');
  expect(first).toBe(false);
});

test("sessions switched quickly while their requests wait: one stream is open", async () => {
  const person = await visitor();
  const { page } = person;
  const ids: string[] = [];
  for (let number = 0; number < 4; number++) ids.push((await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: `Switch ${number}` })).id);
  await page.addInitScript(COUNT_STREAMS);
  await page.goto(`${host.url}/app/new`);
  await page.waitForSelector(`.entry:has-text("Switch 3")`);
  let release: () => void = () => undefined;
  const held = new Promise<void>((go) => (release = go));
  await page.route(/\/v1\/sessions\/[^/?]+$/, async (route) => {
    await held;
    await route.continue().catch(() => undefined); // aborted by the page
  });
  for (let times = 0; times < 8; times++) await page.click(`.entry:has-text("Switch ${times % 4}")`);
  release();
  await page.waitForSelector('#title:text-is("Switch 3")');
  await page.waitForSelector("#transcript:has-text('No messages yet')");
  expect(await openStreams(page)).toBe(1);
  expect(new URL(page.url()).pathname).toBe(`/app/s/${ids[3]}`);
  expect(await page.title()).toContain("Switch 3");
});

const VISITED = Number(process.env["VISITED"] ?? 10);

test(`after ${VISITED} opened sessions three views are in memory`, async () => {
  const person = await visitor();
  const { page } = person;
  const ids: string[] = [];
  for (let number = 0; number < VISITED; number++) ids.push((await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: `Memory ${number}.` })).id);
  await page.goto(`${host.url}/app/new`);
  for (let number = 0; number < VISITED; number++) {
    await page.evaluate((path) => {
      window.history.pushState(null, "", path);
      window.dispatchEvent(new PopStateEvent("popstate"));
    }, `/app/s/${ids[number]}`);
    // No handle of an element: the test would keep the view in memory.
    await page.waitForFunction((title) => document.getElementById("title")?.textContent === title, `Memory ${number}.`);
    await page.click("#menu summary"); // an open menu listens for clicks
    await page.waitForFunction(() => document.querySelector("#menu[open] button") !== null);
    await page.evaluate(() => {
      const kept = window as unknown as { views?: WeakRef<Element>[] };
      (kept.views ??= []).push(new WeakRef(document.querySelector("section.session")!));
    });
  }
  const devtools = await person.context.newCDPSession(page);
  const alive = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return page.evaluate(() => (window as unknown as { views: WeakRef<Element>[] }).views.filter((view) => view.deref()).length);
  };
  await expect.poll(alive, { timeout: 20_000 }).toBe(3);
  expect(person.trouble).toEqual([]);
});
