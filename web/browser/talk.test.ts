/** The session view: talking, and every way to be interrupted. */

import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

/** Goes on until it is cancelled. */
const ENDLESS = "[[deltas:6000]] [[gap:50]]";
const sessionOf = (page: Page) => new URL(page.url()).searchParams.get("session")!;

async function inSession(): Promise<Person> {
  const person = await somebody();
  await person.startSession(host.url);
  return person;
}

/** Waits until the last message has grown by some deltas more. */
async function grows({ page }: Person): Promise<void> {
  const body = page.locator(".message-block-message .message-block-body").last();
  const length = (await body.textContent())!.length;
  await page.waitForFunction((least) => [...document.querySelectorAll(".message-block-message .message-block-body")].at(-1)!.textContent!.length > least, length + 5);
}

/** What the host has of the last answer. */
async function answerOf(page: Page): Promise<string> {
  const { turns } = await host.ask<{ turns: { parts: { kind?: string; text?: string }[] }[] }>(`/v1/sessions/${sessionOf(page)}`);
  return turns.at(-1)!.parts.find(({ kind }) => kind === "text")!.text!;
}

describe("talking", () => {
  test("a question and its answer: Send, the text, the awaiting line and the blocks", async () => {
    const person = await inSession();
    const { page } = person;
    expect(await page.isVisible(".session-response-awaiting")).toBe(false);
    await page.fill("#request-textarea", "a question [[tool:job_prepare_document|x]] [[hang]]");
    await page.click("#send-button");
    await page.waitForSelector(".message-block-message.receiving");
    expect([await page.isDisabled("#send-button"), await page.inputValue("#request-textarea"), await page.isVisible(".session-response-awaiting")]).toEqual([true, "", true]);
    expect(await page.textContent(".session-response-awaiting")).toBe("Awaits responses ...");
    expect(await person.headers()).toEqual(["User", "Reasoning", "Tool (job_prepare_document)", "Message [receiving...]"]);
    await host.cancel(sessionOf(page));
    await person.answered();
    expect(await page.isVisible(".session-response-awaiting")).toBe(false);
    expect(await person.headers()).toEqual(["User", "Reasoning", "Tool (job_prepare_document)", "Message"]);
    expect(await page.$eval("#session-part", (part) => part.lastElementChild!.className)).toBe("session-response-awaiting");
    expect(person.trouble).toEqual([]);
  });

  test("Ctrl+Enter sends; nothing is sent while it works, nor an empty text", async () => {
    const person = await inSession();
    const { page } = person;
    const sent = person.requests(/\/query$/);
    await page.fill("#request-textarea", "  \n ");
    await page.press("#request-textarea", "Control+Enter");
    await page.click("#send-button");
    expect(await page.locator(".message-block").count()).toBe(0);
    await page.fill("#request-textarea", "one [[hang]]");
    await page.press("#request-textarea", "Control+Enter");
    await page.waitForSelector(".message-block-message.receiving");
    await page.fill("#request-textarea", "two");
    await page.press("#request-textarea", "Control+Enter");
    expect(await page.inputValue("#request-textarea")).toBe("two");
    await host.cancel(sessionOf(page));
    await person.answered();
    await page.press("#request-textarea", "Control+Enter");
    await page.waitForFunction(() => document.querySelectorAll(".message-block-message.completed").length === 2);
    await person.answered();
    expect(await page.$$eval(".message-block-user .message-block-body", (all) => all.map((each) => each.textContent))).toEqual(["one [[hang]]", "two"]);
    expect(sent).toHaveLength(2);
    expect(person.trouble).toEqual([]);
  });

  test("one token, and one call after the other", async () => {
    const person = await inSession();
    const { page } = person;
    const address = page.url();
    await page.goto("about:blank"); // what the first page asked does not count
    const open = new Set<Request>();
    let most = 0;
    page.on("request", (request) => request.url().includes("/live/") && (most = Math.max(most, open.add(request).size)));
    page.on("requestfinished", (request) => open.delete(request));
    page.on("requestfailed", (request) => open.delete(request));
    const live = person.requests(/\/live\//);
    const tokens = person.requests(/\/api\/token$/);
    await page.goto(address);
    for (const text of ["one", "two"]) {
      await person.say(text);
      await page.waitForFunction((count) => document.querySelectorAll(".message-block-message.completed").length === count, text === "one" ? 1 : 2);
    }
    await person.answered();
    expect(tokens).toHaveLength(1);
    expect(new Set(live.map((each) => each.replace(/.*\/live\//, ""))).size).toBe(1);
    expect(live.length).toBeGreaterThan(2);
    expect(most).toBe(1);
  });

  test("a timeout and a parallel call are no end: the next call follows, with the same token", async () => {
    const person = await inSession();
    const { page } = person;
    const address = page.url();
    await page.goto("about:blank");
    const errors = ["HttpRequestTimeout", "ParallelCallNotSupported", "HttpRequestTimeout"];
    await page.route("**/live/**", (route) => (errors.length > 0 ? route.fulfill({ json: { error: errors.shift() } }) : route.continue()));
    const live = person.requests(/\/live\//);
    await page.goto(address);
    await person.say("hello");
    await page.waitForSelector(".message-block-message.completed");
    await person.answered();
    expect(errors).toEqual([]);
    expect(new Set(live).size).toBe(1);
    expect(person.trouble).toEqual([]);
  });

  test("one step leads to everything else about the session", async () => {
    const person = await inSession();
    const { page } = person;
    await person.say("hello");
    await page.waitForSelector(".message-block-message.completed");
    const session = sessionOf(page);
    await page.click("text=Files, terminal, fork, export");
    await page.waitForSelector("#transcript .message");
    expect(new URL(page.url()).pathname).toBe(`/app/s/${session}`);
    expect(await page.textContent("#transcript .message .plain")).toBe("hello");
    expect(person.trouble).toEqual([]);
  });

  test("the task picker offers all tasks; a task's prompts come as User blocks, and only its end gives Send back", async () => {
    const person = await inSession();
    const { page } = person;
    await page.waitForSelector('#task-select option[value="told"]', { state: "attached" });
    const options = await page.$$eval("#task-select option", (all) => all.map((each) => [(each as HTMLOptionElement).value, each.textContent]));
    const { tasks } = await host.ask<{ tasks: { name: string }[] }>("/api/copilot/task");
    expect(options).toEqual([["", "(none)"], ...tasks.map(({ name }) => [name, name])]);
    expect(await page.textContent("label[for=task-select]")).toBe("Choose a Task:");
    const started = person.requests(/task\/start\//);
    await page.selectOption("#task-select", "told");
    await person.say("the earth is round");
    await page.waitForSelector(".message-block-message.completed");
    await person.answered();
    expect(started).toEqual([`POST ${host.url}/api/copilot/task/start/told/session/${sessionOf(page)}`]);
    expect((await person.headers())[0]).toBe("User (Task)");
    expect(await page.textContent(".message-block-user .message-block-body")).toContain("You were told: the earth is round");
    // A task that needs no input needs no text, and its second prompt comes before Send does.
    await page.selectOption("#task-select", "checked");
    await page.click("#send-button");
    await page.waitForFunction(() => document.querySelectorAll(".message-block-user").length === 3);
    await person.answered();
    expect((await person.headers()).filter((header) => header!.startsWith("User"))).toEqual(["User (Task)", "User (Task)", "User (Task)"]);
    expect((await person.bodies()).at(-1)).toBe("Asked.");
    expect(person.trouble).toEqual([]);
  });

  test("a failed task says why", async () => {
    const person = await inSession();
    const { page } = person;
    await page.waitForSelector('#task-select option[value="refused"]', { state: "attached" });
    await page.selectOption("#task-select", "refused");
    await page.click("#send-button");
    await page.waitForSelector(".session-response-notice");
    await person.answered();
    expect(await page.textContent(".session-response-notice")).toContain("refused");
    expect(person.trouble).toEqual([]);
  });

  test("a failed query says so and gives Send back", async () => {
    const person = await inSession();
    await person.say("[[crash]]");
    await person.page.waitForSelector(".session-response-notice");
    await person.answered();
    expect(await person.page.textContent(".session-response-notice")).toContain("stub crash");
    expect(person.trouble).toEqual([]);
  });

  test("a query that did not get through gives the words back", async () => {
    const person = await inSession();
    const { page } = person;
    await page.route("**/query", (route) => route.abort());
    await person.say("precious words");
    await page.waitForSelector(".session-response-notice");
    await person.answered();
    expect(await page.inputValue("#request-textarea")).toBe("precious words");
  });
});

describe("a draft that a program offers", () => {
  test("stands in every input, is not sent by itself, and goes from all of them when one person sends it", async () => {
    const { page } = await inSession();
    const other = (await somebody()).page;
    await other.goto(`${host.url}/app/s/${sessionOf(page)}`);
    await other.focus("#message:not([disabled])"); // somebody is about to write, and has not written yet
    await host.ask(`/v1/sessions/${sessionOf(page)}/draft`, { text: "please look" }, "PUT");
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#request-textarea")!.value === "please look");
    await other.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")!.value === "please look");
    expect((await host.ask<{ turns?: object[] }>(`/v1/sessions/${sessionOf(page)}`)).turns ?? []).toEqual([]);
    await page.click("#send-button");
    await other.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")!.value === "");
    expect(await page.inputValue("#request-textarea")).toBe("");
    expect((await host.ask<{ turns: { message: { text: string } }[] }>(`/v1/sessions/${sessionOf(page)}`)).turns.map(({ message }) => message.text)).toEqual(["please look"]);
  });
});

describe("the bar between the parts", () => {
  test("moves by mouse and keyboard, within bounds", async () => {
    const { page } = await inSession();
    const height = async () => (await page.locator("#request-part").boundingBox())!.height;
    expect(await height()).toBe(300);
    const bar = (await page.locator("#resize-bar").boundingBox())!;
    await page.mouse.move(700, bar.y + 4);
    await page.mouse.down();
    await page.mouse.move(700, bar.y - 96);
    expect(await height()).toBe(400);
    await page.mouse.move(700, 0);
    // It left 100 px of the window, and the bar on top of the page took half of them.
    expect((await page.locator("#session-part").boundingBox())!.height).toBe(100);
    await page.mouse.move(700, 899);
    await page.mouse.up();
    expect(await height()).toBe(100);
    await page.focus("#resize-bar");
    await page.keyboard.press("ArrowUp");
    expect(await height()).toBe(124);
  });
});

describe("interruptions", () => {
  test("two browsers share a session, live, and end with the same blocks", async () => {
    const [ann, bob] = [await inSession(), await somebody()];
    await bob.page.goto(ann.page.url());
    await ann.say(ENDLESS);
    await bob.page.waitForSelector(".message-block-message.receiving");
    await Promise.all([grows(ann), grows(bob)]);
    expect(await bob.page.isDisabled("#send-button")).toBe(true);
    await host.cancel(sessionOf(ann.page));
    await Promise.all([ann.answered(), bob.answered()]);
    await bob.say("hello from Bob");
    await ann.page.waitForFunction(() => document.querySelectorAll(".message-block-message.completed").length === 2);
    await Promise.all([ann.answered(), bob.answered()]);
    expect(await ann.bodies()).toEqual(await bob.bodies());
    expect(await ann.headers()).toEqual(["User", "Reasoning", "Message", "User", "Reasoning", "Message"]);
    expect([...ann.trouble, ...bob.trouble]).toEqual([]);
  });

  test("a reload in mid-stream brings both sides back, and the stream goes on", async () => {
    const person = await inSession();
    const { page } = person;
    await person.say(ENDLESS);
    await page.waitForSelector(".message-block-message.receiving");
    await page.reload();
    await page.waitForSelector(".message-block-message.receiving");
    expect(await page.isDisabled("#send-button")).toBe(true);
    await grows(person);
    await host.cancel(sessionOf(page));
    await person.answered();
    expect(await person.headers()).toEqual(["User", "Reasoning", "Message"]);
    expect(await person.bodies()).toEqual([ENDLESS, "think0 think1 ", await answerOf(page)]);
    expect(person.trouble).toEqual([]);
  });

  test("the history is there after a reload, also when the session is closed", async () => {
    const person = await inSession();
    const { page } = person;
    await person.say("remember this");
    await page.waitForSelector(".message-block-message.completed");
    await person.answered();
    const before = await person.bodies();
    await page.reload();
    await person.page.waitForSelector(".message-block-message.completed");
    await person.answered();
    expect(await person.bodies()).toEqual(before);
    await host.ask(`/api/copilot/session/${sessionOf(page)}/stop`);
    await page.waitForSelector(".session-response-notice");
    await page.reload();
    await page.waitForSelector('.session-response-notice:has-text("closed")');
    expect(await person.bodies()).toEqual(before);
    expect(await page.isDisabled("#send-button")).toBe(true);
    expect(person.trouble).toEqual([]);
  });

  test("a dropped connection comes back by itself, without a gap or a repeat", async () => {
    const person = await inSession();
    const { page } = person;
    await person.say(ENDLESS);
    await page.waitForSelector(".message-block-message.receiving");
    await person.context.setOffline(true);
    await page.waitForSelector(".connection-lost", { state: "visible" });
    await person.context.setOffline(false);
    await page.waitForSelector(".connection-lost", { state: "hidden" });
    await grows(person);
    await host.cancel(sessionOf(page));
    await person.answered();
    expect(await person.bodies()).toEqual([ENDLESS, "think0 think1 ", await answerOf(page)]);
  });

  test("a host killed in mid-stream comes back, and so does the page", async () => {
    const person = await inSession();
    const { page } = person;
    await person.say(ENDLESS);
    await page.waitForSelector(".message-block-message.receiving");
    await host.kill();
    await page.waitForSelector(".connection-lost", { state: "visible" });
    await host.start();
    await page.waitForSelector(".connection-lost", { state: "hidden" });
    await person.answered();
    expect(await person.headers()).toEqual(["User", "Reasoning", "Message"]);
    await person.say("and on");
    await page.waitForFunction(() => document.querySelectorAll(".message-block-message.completed").length === 2);
    await person.answered();
    expect((await person.bodies()).slice(3)).toEqual(["and on", "think0 think1 ", "Hello!."]);
  });

  test("a session nobody knows leads back to the start, and says so", async () => {
    const person = await somebody();
    await person.page.goto(`${host.url}/index.html?session=session-999`);
    await person.page.waitForSelector('#setup-error:has-text("closed")');
    expect(person.trouble).toEqual([]);
  });
});

describe("the end", () => {
  const ended = ({ page }: Person) => page.waitForFunction(() => document.body.textContent === "Session ended — you may close this tab.");

  test("Close Session stops the session and the polling", async () => {
    const person = await inSession();
    const { page } = person;
    const id = sessionOf(page);
    await page.click("#close-session-button");
    await ended(person);
    expect(await host.ask<object>(`/v1/sessions/${id}`)).toMatchObject({ closed: true });
    const live = person.requests(/\/live\//);
    // Another call of the page itself is a sure sign that a poll would have been sent by now.
    await page.evaluate(() => fetch(`/api/test?key=${window.localStorage.getItem("portico.key")}`));
    expect(live).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a tab that a page opened closes itself", async () => {
    const person = await inSession();
    const tab = await person.tab(() => person.page.evaluate(() => void window.open(window.location.href)));
    await tab.waitForSelector("#session-ui", { state: "visible" });
    const closed = tab.waitForEvent("close");
    // A little later, so that nobody waits for an answer of a page that is gone.
    await tab.evaluate(() => void setTimeout(() => document.getElementById("close-session-button")!.click()));
    await closed;
    expect(person.trouble).toEqual([]);
  });

  test("Stop Server asks first: without a confirmation, the session and the host keep running", async () => {
    const person = await inSession();
    await person.page.click("#stop-server-button");
    await person.alerted(/Stop the server\?/);
    await person.say("hello there");
    await person.answered();
    expect(await host.ask<object>(`/v1/sessions/${sessionOf(person.page)}`)).not.toMatchObject({ closed: true });
    expect(person.trouble).toEqual([]);
  });

  // Last, because it takes the host away.
  test("Stop Server stops the host when it is confirmed", async () => {
    const person = await inSession();
    await person.page.evaluate(() => (window.confirm = () => true));
    await person.page.click("#stop-server-button");
    await ended(person);
    await host.ended();
    await host.start();
    expect(person.trouble).toEqual([]);
  });
});
