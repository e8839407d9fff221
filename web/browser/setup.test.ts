/** Coming in, and the view before a session begins. */

import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

const texts = (person: Person, selector: string) => person.page.$$eval(selector, (all) => all.map((each) => each.textContent));

describe("coming in", () => {
  test("strangers see the login, a wrong token is told so, the right one opens the door", async () => {
    const person = await somebody();
    const { page } = person;
    await person.context.clearCookies();
    await page.goto(`${host.url}/index.html`);
    expect(new URL(page.url()).pathname).toBe("/login");
    expect(await page.isHidden("#login-error")).toBe(true);
    await page.fill("#login-token", "wrong");
    await page.click("button[type=submit]");
    await page.waitForSelector("#login-error", { state: "visible" });
    await page.fill("#login-token", host.token);
    await page.click("button[type=submit]");
    await page.waitForURL(/\/app/);
    await page.waitForSelector("#agents input");
    expect(page.url()).not.toContain(host.token);
    expect(person.trouble).toEqual([]);
  });

  test("the cookie is out of reach for scripts and other sites", async () => {
    const { context, page } = await somebody();
    await page.goto(host.login);
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", secure: false });
    expect(await page.evaluate(() => document.cookie)).toBe("");
  });

  test("a cookie that does not count any more leads to the login, and from there back", async () => {
    const person = await somebody();
    const { page } = person;
    await person.startSession(host.url);
    await person.context.clearCookies();
    // Whatever the page asks for first sends it there: the draft that is kept while one types, or the message.
    const left = page.waitForURL(/\/login/);
    await page.fill("#request-textarea", "hello");
    await Promise.race([left, page.click("#send-button").catch(() => undefined)]);
    await left;
    await page.fill("#login-token", host.token);
    await page.click("button[type=submit]");
    await page.waitForSelector("#start-button:enabled, #send-button:enabled");
  });

  test("test.html says what the host says", async () => {
    const person = await somebody();
    await person.page.goto(`${host.url}/test.html`);
    await person.page.waitForFunction(() => document.body.textContent === "Hello, world!");
    expect(await person.page.innerText("body")).toBe("Hello, world!");
    await person.page.click("text=Open the workbench");
    await person.page.waitForURL(`${host.url}/app**`);
    expect(person.trouble).toEqual([]);
  });
});

test("every page has the way to all others, and says where one is", async () => {
  const { page } = await somebody();
  const names = ["Open the workbench", "Agents", "Jobs", "Terminals"];
  const pages: [string, string | null][] = [
    ["/", null],
    [`/jobs.html?wb=${host.folder}`, "Jobs"],
    ["/jobTracking.html?jobName=shapes", "Jobs"],
    ["/agents.html", "Agents"],
    ["/jobHistory.html", "Jobs"],
    ["/terminal.html", "Terminals"],
  ];
  for (const [path, current] of pages) {
    await page.goto(host.url + path);
    const links = await page.$$eval(".bar nav a", (all) => all.map((each) => each.textContent));
    const marked = await page.$$eval(".bar nav a[aria-current]", (all) => all.map((each) => each.textContent));
    expect([path, links, marked]).toEqual([path, names, current === null ? [] : [current]]);
    expect(await page.$eval(".bar .home", (home) => (home as HTMLAnchorElement).href)).toBe(`${host.url}/`);
  }
});

describe("the setup", () => {
  test("offers the models by name, ids as values, with the usual one chosen", async () => {
    const person = await somebody();
    const { page } = person;
    const { models } = await host.ask<{ models: { name: string; id: string }[] }>("/api/copilot/models");
    await page.goto(`${host.url}/index.html`);
    await page.waitForSelector("#start-button:enabled");
    const options = await page.$$eval("#model-select option", (all) => all.map((each) => ({ name: each.textContent!, id: (each as HTMLOptionElement).value })));
    expect(options).toEqual(models.map(({ name, id }) => ({ name, id })).sort((a, b) => a.name.localeCompare(b.name)));
    expect(await page.inputValue("#model-select")).toBe("gpt-5.2");
    expect(person.trouble).toEqual([]);
  });

  test("Start stays disabled until the models are there; without the usual model the first one is chosen", async () => {
    const { page } = await somebody();
    let release = () => {};
    const held = new Promise<void>((go) => (release = go));
    await page.route("**/api/copilot/models", async (route) => {
      await held;
      await route.fulfill({ json: { models: [{ name: "Zebra", id: "z", multiplier: 1 }, { name: "Ape", id: "a", multiplier: 1 }] } });
    });
    await page.goto(`${host.url}/index.html`);
    await page.waitForFunction(() => (document.getElementById("working-dir") as HTMLInputElement).value !== "");
    expect(await page.isDisabled("#start-button")).toBe(true);
    release();
    await page.waitForSelector("#start-button:enabled");
    expect(await page.inputValue("#model-select")).toBe("a");
  });

  test("the working directory is the repository, or the project beside it", async () => {
    const { page } = await somebody();
    const folder = () => page.inputValue("#working-dir");
    const filled = () => page.waitForFunction(() => (document.getElementById("working-dir") as HTMLInputElement).value !== "");
    const { repoRoot } = await host.ask<{ repoRoot: string }>("/api/config");
    await page.goto(`${host.url}/index.html`);
    await filled();
    expect(await folder()).toBe(repoRoot);
    await page.goto(`${host.url}/index.html?project=Other`);
    await filled();
    expect(await folder()).toBe(`${dirname(repoRoot)}/Other`);
    await page.route("**/api/config", (route) => route.fulfill({ json: { repoRoot: "C:\\Code\\Portico" } }));
    await page.reload();
    await filled();
    expect(await folder()).toBe("C:\\Code\\Other");
  });

  test("is centred, with two buttons at the left, Start at the right and the jobs below, equally wide", async () => {
    const person = await somebody();
    const { page } = person;
    await host.startJob("hello world");
    await page.goto(`${host.url}/index.html`);
    await page.waitForSelector(".running-job");
    expect(await texts(person, "#setup-buttons-left button")).toEqual(["New Job", "Refresh"]);
    expect(await page.$$eval("#setup-buttons-left button", (all) => all.map((each) => each.id))).toEqual(["jobs-button", "refresh-button"]);
    expect(await page.textContent("#start-button")).toBe("Start");
    const box = async (selector: string) => (await page.locator(selector).boundingBox())!;
    const [panel, left, start, jobs] = [await box("#setup-panel"), await box("#setup-buttons-left"), await box("#start-button"), await box("#running-jobs-list")];
    expect(panel.x + panel.width / 2).toBeCloseTo(700, 0);
    expect([jobs.x, jobs.width]).toEqual([panel.x, panel.width]);
    expect(jobs.y).toBeGreaterThanOrEqual(panel.y + panel.height);
    expect(start.x).toBeGreaterThan(left.x + left.width);
    expect(await page.isVisible("#session-ui")).toBe(false);
  });

  test("jobs are listed at the load and by Refresh only, and View shows one in a new tab", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/index.html`);
    await page.waitForSelector("#start-button:enabled");
    const asked = person.requests(/job\/running/);
    const before = await page.locator(".running-job").count();
    const jobId = await host.startJob("endless");
    await page.click("#refresh-button");
    await page.waitForFunction((count) => document.querySelectorAll(".running-job").length === count + 1, before);
    expect(asked).toHaveLength(1);
    const row = page.locator(".running-job").last();
    expect(await row.locator("> *").first().textContent()).toBe("View");
    expect(await row.textContent()).toContain("endless");
    expect(await row.locator(".running-job-status").getAttribute("class")).toMatch(/status-running/);
    const { jobs } = await host.ask<{ jobs: { jobId: string; startTime: string }[] }>("/api/copilot/job/running");
    const local = await page.evaluate((time) => new Date(time).toLocaleString(), jobs.find((job) => job.jobId === jobId)!.startTime);
    expect(await row.locator("time").textContent()).toBe(local);
    const tab = await person.tab(() => row.locator("button").click());
    expect(new URL(tab.url()).pathname + new URL(tab.url()).search).toBe(`/jobTracking.html?jobName=endless&jobId=${jobId}`);
    await host.ask(`/api/copilot/job/${jobId}/stop`);
    await page.click("#refresh-button");
    await page.waitForSelector(".running-job:last-child .status-canceled");
    expect(person.trouble).toEqual([]);
  });

  test("New Job takes the folder along", async () => {
    const { page } = await somebody();
    await page.goto(`${host.url}/index.html`);
    await page.waitForSelector("#start-button:enabled");
    await page.fill("#working-dir", "/some where/ünder");
    await page.click("#jobs-button");
    await page.waitForURL(/jobs\.html/);
    expect(new URL(page.url()).searchParams.get("wb")).toBe("/some where/ünder");
  });

  test("a wrong folder is named in an alert, and Start is there again", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/index.html?project=nowhere`);
    await page.waitForSelector("#start-button:enabled");
    await page.click("#start-button");
    await person.alerted(/WorkingDirectoryNotExists/);
    await page.waitForSelector("#start-button:enabled");
    await page.fill("#working-dir", "relative/path");
    await page.click("#start-button");
    await person.alerted(/WorkingDirectoryNotAbsolutePath/);
    await page.waitForSelector("#start-button:enabled");
    expect(await page.isVisible("#session-ui")).toBe(false);
  });

  test("Start puts the session in the place of the setup", async () => {
    const person = await somebody();
    const { page } = person;
    const posted = person.requests(/session\/start\//);
    await person.startSession(host.url);
    expect(posted).toEqual([`POST ${host.url}/api/copilot/session/start/gpt-5.2`]);
    expect(await page.isVisible("#setup-ui")).toBe(false);
    expect(person.trouble).toEqual([]);
  });
});
