/** A real shell in a real browser: typed into, found again after a reload, lost with its host. */

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

/** One host, one browser and, until a test needs another, one page: each test opens a shell of its own in it. */
const host = new RealHost();
let person: Person;

beforeAll(async () => {
  await host.start();
  person = await Person.arrive();
  await person.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await person.page.goto(host.login);
  await person.page.goto(`${host.url}/terminal.html`);
});
afterEach(() => expect(person.trouble).toEqual([]));
afterAll(async () => {
  await person.leave();
  await host.close();
});

const rows = () => person.page.locator(".xterm-rows");

/** Waits until the terminal shows it. */
async function shows(text: string): Promise<void> {
  await rows().locator("div", { hasText: text }).first().waitFor();
}

async function opened(): Promise<void> {
  const { page } = person;
  const answer = page.waitForResponse((response) => response.request().method() === "POST" && response.url().endsWith("/v1/terminals"));
  await page.click("#new");
  const { id } = (await (await answer).json()) as { id: string };
  await page.waitForURL((url) => url.searchParams.get("id") === id);
  await page.locator(".shell-status", { hasText: "×" }).waitFor();
  await page.waitForSelector(".xterm-cursor");
}

async function run(line: string): Promise<void> {
  await person.page.keyboard.type(line);
  await person.page.keyboard.press("Enter");
}

test("the first shell, which the list may know before its answer is here, stands there once", async () => {
  const other = await Person.arrive();
  const { page } = other;
  await page.goto(host.login);
  let answered = () => {};
  const answer = new Promise<void>((resolve) => (answered = resolve));
  await page.route("**/screen*.js", async (route) => {
    await answer;
    await route.continue();
  });
  await page.goto(`${host.url}/terminal.html`);
  await page.route("**/v1/terminals", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    const response = await route.fetch();
    await page.locator("#tabs [role=tab]").waitFor();
    await route.fulfill({ response });
    answered();
  });
  await page.click("#new");
  await answer; // the service worker may have the screen's code before it
  await page.waitForSelector(".xterm-cursor");
  expect(await page.locator(".xterm").count()).toBe(1);
  expect(await page.locator("#tabs [role=tab]").count()).toBe(1);
  expect(other.trouble).toEqual([]);
  await other.leave();
});

test("a shell is typed into, keeps its colours, takes the size of the page and is there after a reload", async () => {
  const { page } = person;
  await opened();
  await run("echo $((40 + 2))-is-the-answer");
  await shows("42-is-the-answer");
  await run("printf '\\033[38;2;10;120;30mtrue\\033[0m\\n'; printf '\\033[31mred\\033[0m\\n'");
  const colours = page.locator(".xterm-rows span", { hasText: /^(true|red)$/ });
  await colours.nth(1).waitFor();
  const seen = await colours.evaluateAll((all) => all.map((each) => getComputedStyle(each).color));
  expect(seen).toEqual(["rgb(10, 120, 30)", "rgb(176, 36, 28)"]);
  await page.setViewportSize({ width: 700, height: 500 });
  const status = page.locator(".shell-status");
  await status.filter({ hasText: /· [5-9]\d × [12]\d$/ }).waitFor();
  const [, size] = (await status.textContent())!.split(" · ");
  await run("stty size");
  await shows(size!.split(" × ").reverse().join(" "));
  await page.reload();
  await shows("42-is-the-answer");
  await run("echo still-$((1 + 1))");
  await shows("still-2");
  expect(await person.barriers()).toEqual([]);
});

test("what is selected is copied, and pasted into the shell", async () => {
  const { page } = person;
  await opened();
  await run("echo copied-$((40 + 2))");
  await shows("copied-42");
  // The screen lies over its letters and takes the clicks, for a person as well.
  await page.locator(".xterm-rows span", { hasText: /^copied-42$/ }).dblclick({ force: true });
  await page.keyboard.press("Control+c");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()) === "copied-42");
  await page.keyboard.type("echo pasted-");
  await page.keyboard.press("Control+v");
  await shows("echo pasted-copied-42");
  await page.keyboard.press("Enter");
  await rows().locator("div", { hasText: /^pasted-copied-42/ }).waitFor();
});

test("escape goes to the shell, shift and escape leaves it, and keys work then", async () => {
  const { page } = person;
  await opened();
  await run("cat -v");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await shows("^[");
  await page.keyboard.press("Control+c");
  await page.keyboard.press("Shift+Escape");
  await page.keyboard.press("?");
  await page.getByText("Leave the terminal").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("x");
  await page.click("dialog .danger");
  await page.getByText("This shell was closed.").waitFor();
});

test("the end of the shell is told", async () => {
  await opened();
  await run("exit 3");
  await person.page.getByText("The shell has ended with code 3.").waitFor();
});

test("what a program prints too fast is caught up with", async () => {
  await opened();
  await run("head -c 12000000 /dev/zero | tr '\\0' x | fold -w 79; echo; echo done-$((1 + 1))");
  await shows("done-2");
  await run("echo again-$((1 + 2))");
  await shows("again-3");
});

test("two pages on one terminal show the same, and each can type", async () => {
  await opened();
  const other = await person.context.newPage();
  await other.goto(person.page.url());
  await other.locator(".shell-status", { hasText: "×" }).waitFor();
  await other.keyboard.type("echo from-$((1 + 1))\n");
  await shows("from-2");
  await other.close();
});

test("a terminal stands on the page of a session, in its folder", async () => {
  const { page } = person;
  await page.goto(`${host.url}/app/new?agent=demo`);
  await page.waitForSelector("#model option", { state: "attached" });
  await page.click("#start");
  await page.waitForURL(/\/app\/s\//);
  await page.click("#menu summary");
  await page.click("#terminal");
  await page.waitForSelector(".xterm-cursor");
  await run("pwd");
  await shows(host.folder);
  await page.reload();
  await shows(host.folder); // the address says that the terminal is open
  expect(await page.evaluate(() => document.activeElement?.closest(".xterm") ?? null)).toBeNull(); // nobody asked for it here: letters are no commands
  expect(await person.barriers()).toEqual([]);
  await page.goto(`${host.url}/terminal.html`);
});

test("a shell ends with its host, and the page says so", async () => {
  const { page } = person;
  await opened();
  await run("echo before-$((1 + 1))");
  await shows("before-2");
  await host.kill();
  await page.waitForSelector(".connection-lost:not([hidden])");
  await host.start();
  await page.locator(".shell-status", { hasText: "the host was started anew" }).waitFor();
  await shows("before-2");
  person.trouble.length = 0; // the browser reports what could not be reached meanwhile
  await page.reload();
  await page.getByText("This shell is no more").waitFor();
  await page.click("#first");
  await page.waitForSelector(".xterm-cursor");
});

test("the panel attaches to a shell or offers one: going from session to session starts none", async () => {
  const other = await Person.arrive({ size: { width: 1440, height: 900 } });
  const { page } = other;
  await page.goto(host.login);
  const begin = async (title: string) => (await host.ask<{ id: string }>("/v1/sessions", { agent: "scripted", cwd: host.folder, title })).id;
  const sessions = [await begin("First"), await begin("Second"), await begin("Third")];
  await page.goto(`${host.url}/app/s/${sessions[0]}`);
  await page.click("#changes-button");
  await page.click("#tab-terminal");
  await page.waitForSelector(".terminal-tab .xterm-rows");
  await page.waitForSelector('.shell-leave:has-text("leaves the terminal")');
  const shells = async () => (await host.ask<{ terminals: { session?: string }[] }>("/v1/terminals")).terminals.filter(({ session }) => session !== undefined && sessions.includes(session)).length;
  expect(await shells()).toBe(1);
  for (const id of [sessions[1], sessions[2]]) {
    await page.click(`.list [data-key="s/${id}"]`);
    await page.waitForSelector('.terminal-tab button:text-is("Start a terminal")');
  }
  expect(await shells()).toBe(1);
  await page.click('.terminal-tab button:text-is("Start a terminal")');
  await page.waitForSelector(".terminal-tab .xterm-rows");
  expect(await shells()).toBe(2);
  await page.click(`.list [data-key="s/${sessions[0]}"]`);
  await page.waitForSelector(".terminal-tab .xterm-rows");
  expect(await shells()).toBe(2);
  expect(await other.barriers()).toEqual([]);
  await other.leave();
});
