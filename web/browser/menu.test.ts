/** What one does with a session besides talking: its model, its remembered answers, its end; and what two people do at once. */

import { expect, test, vi } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);

async function sessionOf(agent: string, text: string): Promise<string> {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  return id;
}

const open = ({ page }: Person, id: string) => page.goto(`${host.url}/app/s/${id}`);
const ready = ({ page }: Person) => page.waitForSelector("#status.idle", { state: "attached" });
const choose = async ({ page }: Person, entry: string) => {
  await page.click("#menu summary");
  await page.click(entry);
};

test("another model answers from the next message on", async () => {
  const person = await somebody();
  const { page } = person;
  await open(person, await sessionOf("scripted", "hello"));
  await ready(person);
  const id = page.url().split("/").at(-1)!;
  await page.selectOption('#composer [aria-label="Model"]', "claude-opus-4.6");
  await vi.waitFor(async () => expect(await host.ask(`/v1/sessions/${id}`)).toMatchObject({ model: "claude-opus-4.6" }), 30_000);
  await page.click("#menu summary");
  await page.click("#details");
  await page.waitForSelector('.facts-list:has-text("scripted · claude-opus-4.6")');
  expect(person.trouble).toEqual([]);
});

test("an answer for the whole session is remembered until it is forgotten", async () => {
  const person = await somebody();
  const { page } = person;
  const again = async (turns: number) => {
    await page.fill("#message", "write again");
    await page.press("#message", "Control+Enter");
    await page.waitForFunction((count) => document.querySelectorAll("#transcript .message").length === count, turns);
  };
  await open(person, await sessionOf("demo", "write something"));
  await page.click('.approval button:has-text("Allow in this session")');
  await page.click('.scopes .option:has-text("Allow edits to portico-demo.md")');
  await ready(person);
  await again(2);
  await page.waitForFunction(() => document.querySelectorAll("#transcript .end").length === 2);
  await choose(person, "#grants");
  expect(await page.textContent(".grants li")).toContain("Allowed: write");
  expect(await person.barriers()).toEqual([]);
  await page.click("text=Forget");
  await page.waitForSelector('.grants:has-text("None.")');
  await page.keyboard.press("Escape");
  await again(3);
  await page.waitForSelector(".approval");
  expect(person.trouble).toEqual([]);
});

test("closed it takes no message, reopened it does; deleting asks first", async () => {
  const person = await somebody();
  const { page } = person;
  const id = await sessionOf("scripted", "hello");
  await open(person, id);
  await ready(person);
  await choose(person, "#close");
  await page.waitForSelector("#status.closed");
  expect([await page.isDisabled("#message"), await page.isDisabled("#send")]).toEqual([true, true]);
  await choose(person, "#close");
  await page.waitForSelector("#message:enabled");
  await choose(person, "#delete");
  await page.click('dialog[open] button:has-text("Close")');
  expect(await host.ask(`/v1/sessions/${id}`)).toMatchObject({ id });
  await choose(person, "#delete");
  await page.click('dialog[open] .danger:has-text("Delete")');
  await page.waitForURL((url) => !url.pathname.includes(id));
  await open(person, id);
  await page.waitForSelector("text=There is no such session");
  // What is not there is answered with 404, and browsers write that down.
  expect(person.trouble.filter((each) => !each.includes("404"))).toEqual([]);
});

test("of two people who are asked, the first answer counts, and both see whose it was", async () => {
  const [ann, bob] = [await somebody(), await somebody({ phone: true })];
  const id = await sessionOf("demo", "write something");
  await Promise.all([open(ann, id), open(bob, id)]);
  await Promise.all([ann, bob].map(({ page }) => page.waitForSelector(".approval button.primary")));
  await bob.page.tap(".approval .danger");
  for (const person of [ann, bob]) {
    await person.page.waitForSelector(".approval", { state: "detached" });
    await ready(person);
    await person.page.waitForSelector('.verdict:has-text("You denied it")');
  }
  expect([...ann.trouble, ...bob.trouble]).toEqual([]);
});

test("the history has every job, newest first, and each leads to its chart", async () => {
  const person = await somebody();
  const { page } = person;
  for (const job of ["hello", "second-opinion"]) await host.startJob(job);
  await page.goto(`${host.url}/jobHistory.html`);
  await page.waitForFunction(() => document.querySelectorAll(".session .status.good").length === 2);
  expect(await page.$$eval(".session-title", (all) => all.map((each) => each.textContent))).toEqual(["second-opinion", "hello"]);
  expect(await person.barriers()).toEqual([]);
  await page.click("text=hello");
  await page.waitForFunction(() => document.getElementById("job-status-label")!.textContent === "JOB: SUCCEEDED");
  await page.click(".bar >> text=Jobs");
  await page.click("#new-job");
  await page.waitForSelector(".matrix-job-btn");
  expect(person.trouble).toEqual([]);
});
