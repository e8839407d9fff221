/** Several rows of the list are archived at once: with Shift on a desktop, with the menu of a row on a phone. */

import { expect, test } from "vitest";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);

async function sessions(...titles: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const title of titles) {
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", title, cwd: host.folder });
    await host.ask(`/v1/sessions/${id}/messages`, { text: "hello there" });
    ids.push(id);
  }
  return ids;
}
const archived = async (ids: string[]) => Promise.all(ids.map(async (id) => Boolean((await host.ask<{ archived?: boolean }>(`/v1/sessions/${id}`)).archived)));

test("Shift selects a range, and what is selected is archived together", async () => {
  const person = await somebody();
  const { page } = person;
  const ids = await sessions("one", "two", "three", "four");
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector('.entry:has-text("four")');
  const row = (title: string) => page.locator(`.entry:has(.t:text-is("${title}"))`);
  await row("three").click({ modifiers: ["Shift"] });
  await page.waitForSelector(".selection");
  await row("one").click({ modifiers: ["Shift"] });
  await page.waitForSelector('.selection b:text-is("3 selected")');
  expect([new URL(page.url()).pathname, person.context.pages().length, await person.barriers()]).toEqual(["/app/inbox", 1, []]);
  await page.click('.selection button:text-is("Archive")');
  await page.waitForSelector(".selection", { state: "detached" });
  expect(await archived(ids)).toEqual([true, true, true, false]);
  expect(person.trouble).toEqual([]);
});

test("on a phone a row is selected in its menu, and further rows by a tap", async () => {
  const person = await somebody({ phone: true });
  const { page } = person;
  const ids = await sessions("five", "six");
  await page.goto(`${host.url}/app`);
  await page.waitForSelector('.entry:has-text("six")');
  await page.locator('.entry-row:has-text("six") .row-more').dispatchEvent("click");
  await page.waitForTimeout(500); // early taps have no effect
  await page.tap('[role="menuitem"]:has-text("Select")');
  await page.waitForSelector(".selection");
  await page.tap('.entry:has-text("five")');
  await page.waitForSelector('.selection b:text-is("2 selected")');
  await page.tap('.selection button:text-is("Archive")');
  await page.waitForSelector(".selection", { state: "detached" });
  expect(await archived(ids)).toEqual([true, true]);
  expect(person.trouble).toEqual([]);
});
