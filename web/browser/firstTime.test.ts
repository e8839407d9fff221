/** Somebody who has never seen it, with a phone: from the address to a green chart. */

import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RealHost } from "./host";
import { visitors } from "./visitors";

/** As `make run` starts it on a machine without any agent. */
const host = new RealHost([], true);
const somebody = visitors(host);

test("opens the link, starts a session, answers an approval, runs the demo job and watches the chart go green", async () => {
  const person = await somebody({ phone: true, size: { width: 390, height: 844 } });
  const { page } = person;
  const fits = async () => expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);

  // The link leads to the empty list, that to the form; everything but the message is filled in.
  await page.goto(host.login);
  await page.tap(".list-empty a:text-is('New session')");
  await page.fill("#first", "Please write a file");
  await fits();
  await page.tap("#start:enabled");
  const yes = page.locator(".approval button.primary");
  await yes.waitFor();
  await fits();
  // The whole answer is in sight without scrolling, and nothing was written so far.
  const end = () => page.locator(".approval").boundingBox().then((card) => card!.y + card!.height);
  await expect.poll(end).toBeLessThanOrEqual(844);
  const button = (await yes.boundingBox())!;
  expect(button.y).toBeGreaterThanOrEqual(0);
  expect(button.height).toBeGreaterThanOrEqual(32);
  expect(await person.barriers()).toEqual([]);
  const written = join(host.folder, "portico-demo.md");
  expect(existsSync(written)).toBe(false);
  await yes.tap();
  await page.waitForSelector("#transcript :text('Done: I wrote')");
  await page.waitForSelector("#status.idle", { state: "attached" });
  expect(await page.locator(".approval button.primary").count()).toBe(0);
  expect(existsSync(written)).toBe(true);

  await page.goto(`${host.url}/index.html`);
  await page.waitForSelector("#start-button:enabled");
  await page.tap("#jobs-button");
  await page.tap("text=plan and write");
  await fits();
  await page.fill("#user-input-textarea", "A small tool");
  const tracking = await person.tab(() => page.tap("#start-job-button"));
  await tracking.waitForFunction(() => document.getElementById("job-status-label")!.textContent === "JOB: SUCCEEDED");
  const marks = await tracking.$$eval(".task-status-indicator", (all) => all.map((each) => each.textContent));
  // The work of the branch that was not taken has no mark.
  expect([new Set(marks), marks.length]).toEqual([new Set(["✅"]), 7]);
  expect(person.trouble).toEqual([]);
});

test("the first visit says that no coding agent was found, and offers three ways", async () => {
  const person = await somebody({ size: { width: 1440, height: 900 } });
  const { page } = person;
  await page.goto(`${host.url}/app/new`);
  await page.waitForSelector('h2:text-is("No coding agent was found on this machine")');
  expect(await page.locator(".connect-card h3").allTextContents()).toEqual(["Connect an agent", "Connect a model", "Try the demo"]);
  const commands = await page.locator(".connect-list code").allTextContents();
  expect(commands).toContain("portico agents add claude");
  expect(commands).toContain("portico agents add codex");
  expect(await page.textContent("#model")).toBe("Demo · scripted replies, no AI (free)");
  expect(await person.barriers(page, "moderate")).toEqual([]);
  await page.getByRole("button", { name: "Check again" }).first().click();
  await page.waitForSelector("text=No new agent was found");
  // Once there is a program, it is found without a restart.
  writeFileSync(join(host.folder, "home", "settings.toml"), `[agents.acp.mine]\ncommand = ["${join(host.folder, "bin", "mine")}"]\n`);
  await page.getByRole("button", { name: "Check again" }).first().click();
  await page.waitForSelector('#agents input[value="acp:mine"]');
  rmSync(join(host.folder, "home", "settings.toml"));
  await page.getByRole("button", { name: "Try the demo" }).click();
  expect(await page.inputValue("#first")).toBe("help");
  await page.click("#start:enabled");
  await page.waitForSelector("#transcript .end");
  await page.goto(`${host.url}/app/settings/agents`);
  await page.waitForSelector('h2:text-is("Add an agent or a model")');
  expect(await person.barriers(page, "moderate")).toEqual([]);
  expect(person.trouble).toEqual([]);
});

test("the portal asks for an approval within the screen of a phone", async () => {
  const person = await somebody({ phone: true, size: { width: 390, height: 844 } });
  const { page } = person;
  const fits = async () => expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  const written = join(host.folder, "portico-demo.md");
  rmSync(written, { force: true });
  await page.goto(host.url);
  await page.tap("#start-button:enabled");
  await page.waitForSelector("#session-ui", { state: "visible" });
  await fits();
  await page.fill("#request-textarea", "Please write a file");
  await page.tap("#send-button");
  const yes = page.locator("#asked-part .approval button.primary");
  await yes.waitFor();
  await fits();
  const [button, part] = [(await yes.boundingBox())!, (await page.locator("#asked-part").boundingBox())!];
  expect(part.y + part.height).toBeLessThanOrEqual(844);
  expect(button.height).toBeGreaterThanOrEqual(32);
  expect(await person.barriers()).toEqual([]);
  expect(existsSync(written)).toBe(false);
  await yes.tap();
  await page.waitForSelector("#asked-part", { state: "hidden" });
  await page.waitForFunction(() => [...document.querySelectorAll(".message-block-message.completed")].some((each) => each.textContent!.includes("Done: I wrote")));
  await page.waitForSelector("#send-button:enabled");
  expect(existsSync(written)).toBe(true);
  expect(person.trouble).toEqual([]);
});

test("a question is answered in the same place", async () => {
  const person = await somebody({ phone: true, size: { width: 390, height: 844 }, dark: true });
  const { page } = person;
  await page.goto(host.url);
  await page.tap("#start-button:enabled");
  await page.waitForSelector("#session-ui", { state: "visible" });
  await page.fill("#request-textarea", "ask me");
  await page.tap("#send-button");
  await page.fill("#asked-part .question input", "blue");
  expect(await person.barriers()).toEqual([]);
  // After a reload it still waits.
  await page.reload();
  await page.fill("#asked-part .question input", "blue");
  await page.press("#asked-part .question input", "Enter");
  await page.waitForSelector("#asked-part", { state: "hidden" });
  await page.waitForSelector("#send-button:enabled");
  expect((await person.bodies()).at(-1)).toContain("A good choice.");
  expect(person.trouble).toEqual([]);
});
