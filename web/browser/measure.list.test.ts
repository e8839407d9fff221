/** How soon a list of 10,000 sessions stands there, and another session that was seen before. Numbers only, as in measure.test.ts. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { tell } from "./measured";
import { Person } from "./person";
import { median, Trace } from "./trace";

const SESSIONS = Number(process.env["LIST_SESSIONS"] ?? 10_000);
const ROUNDS = 5;
const host = new RealHost();
const ids: string[] = [];

beforeAll(async () => {
  await host.start();
  for (let from = 0; from < SESSIONS; from += 50) {
    const made = await Promise.all(Array.from({ length: 50 }, (_, n) => host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title: `Session ${from + n}` })));
    ids.push(...made.map(({ id }) => id));
  }
  for (const id of ids.slice(-2)) for (let turn = 0; turn < 10; turn++) await host.ask(`/v1/sessions/${id}/messages`, { text: `hello ${turn}` });
}, 600_000);
afterAll(() => host.close());

test("the list, from what is kept and live, and a session seen before", { timeout: 300_000 }, async () => {
  const person = await Person.arrive({ size: { width: 1440, height: 900 } });
  const { page } = person;
  await person.logIn(host);
  const [one = "", other = ""] = ids.slice(-2);
  await page.addInitScript(() => {
    performance.mark("begun");
    let [cached, live] = [false, false];
    const look = () => {
      if (!cached && document.querySelector(".list .entry")) (cached = true), performance.mark("listed");
      if (!live && document.querySelector(".foot")?.textContent?.startsWith("Connected")) (live = true), performance.mark("live");
      if (!cached || !live) requestAnimationFrame(look);
    };
    look();
    document.addEventListener("click", ({ target }) => {
      if (!(target as Element).closest?.(".list .entry")) return;
      performance.mark("clicked");
      requestAnimationFrame(() => performance.mark("switched"));
    }, true);
  });
  await page.goto(`${host.url}/app/s/${one}`);
  await page.waitForSelector("#transcript .end");
  await page.waitForFunction(() => localStorage.getItem("portico.board") !== null);
  const clock: { cached: number; live: number; paint: number }[] = [];
  const opened = await Trace.of(page, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await page.reload();
      await page.waitForSelector("#transcript .end");
      await page.waitForFunction(() => performance.getEntriesByName("live").length > 0);
      clock.push(await page.evaluate(() => {
        const at = (name: string) => Math.round(performance.getEntriesByName(name)[0]?.startTime ?? 0);
        return { cached: at("listed"), live: at("live"), paint: at("first-contentful-paint") };
      }));
    }
  });
  tell("list", {
    sessions: SESSIONS,
    rows: await page.locator(".list .entry").count(),
    elements: await page.evaluate(() => document.querySelectorAll("*").length),
    cachedWorked: median(opened.between("begun", "listed")),
    liveWorked: median(opened.between("begun", "live")),
    cached: median(clock.map(({ cached }) => cached)),
    live: median(clock.map(({ live }) => live)),
    paint: median(clock.map(({ paint }) => paint)),
  });
  const go = async (id: string) => {
    await page.click(`.list [data-key="s/${id}"]`);
    await page.waitForFunction((wanted) => window.location.pathname.endsWith(wanted) && document.querySelector("#transcript .end") !== null, id);
  };
  for (const id of [other, one]) await go(id);
  const switched = await Trace.of(page, async () => {
    for (let round = 0; round < 2 * ROUNDS; round++) await go(round % 2 ? one : other);
  });
  tell("switched", { worked: median(switched.between("clicked", "switched")) });
  expect(person.trouble).toEqual([]);
  await person.leave();
});
