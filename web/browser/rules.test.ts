import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const host = new RealHost();
let people: Person[] = [];

beforeAll(() => host.start());
afterAll(() => host.close());
afterEach(async () => {
  await Promise.all(people.map((person) => person.leave()));
  people = [];
});

async function somebody(look: { phone?: boolean; dark?: boolean } = {}): Promise<Person> {
  const person = await Person.arrive(look);
  people.push(person);
  await person.page.goto(host.login);
  return person;
}

const HOSTILE = [
  "# Hostile",
  "**bold** <img src=x onerror=alert(1)> <script>alert(2)</script>",
  "<p style='position:fixed'>styled</p> <svg onload=alert(3)></svg>",
  "[api](/api/stop) [script](javascript:alert(4)) ![pixel](https://pixel.example/secret.png)",
].join("\n\n");

describe("coming in", () => {
  test("strangers see the login, a wrong token is told so, the right one opens the door", async () => {
    const person = await Person.arrive();
    people.push(person);
    const { page } = person;
    await page.goto(`${host.url}/index.html`);
    expect(await page.isHidden("#login-error")).toBe(true);
    await page.fill("#login-token", "wrong");
    await page.click("button[type=submit]");
    await page.waitForSelector("#login-error", { state: "visible" });
    expect(await person.barriers()).toEqual([]);
    await page.fill("#login-token", new URL(host.login).searchParams.get("tkn")!);
    await page.click("button[type=submit]");
    await page.waitForSelector("#start-button:enabled");
    expect(person.trouble).toEqual([]);
  });

  test("test.html says what the host says", async () => {
    const { page } = await somebody();
    await page.goto(`${host.url}/test.html`);
    await page.waitForFunction(() => document.body.textContent === "Hello, world!");
  });
});

describe("a session", () => {
  test("the setup offers the models by name, with the usual one chosen, and names a wrong folder", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/index.html?project=nowhere`);
    await page.waitForSelector("#start-button:enabled");
    const names = await page.$$eval("#model-select option", (all) => all.map((each) => each.textContent!));
    expect(names).toEqual([...names].sort((a, b) => a.localeCompare(b)));
    expect(await page.inputValue("#model-select")).toBe("gpt-5.2");
    expect(await page.inputValue("#working-dir")).toMatch(/[/\\]nowhere$/);
    expect(await person.barriers()).toEqual([]);
    await page.click("#start-button");
    await page.waitForSelector("#start-button:enabled");
    expect(person.trouble).toEqual([expect.stringContaining("WorkingDirectoryNotExists")]);
  });

  test("blocks receive, complete, open and close; hostile text stays text", async () => {
    const person = await somebody();
    const { page } = person;
    await person.startSession(host.url);
    await person.say(`[[deltas:4]] [[gap:300]] [[tool:job_prepare_document|x]] [[say:${HOSTILE}\n\n${"line\n".repeat(60)}]]`);
    await page.waitForSelector(".message-block-message.receiving");
    const receiving = await page.$eval(".message-block-message .message-block-body", (body) => [body.clientHeight, body.scrollHeight - body.scrollTop - body.clientHeight]);
    expect(receiving).toEqual([150, 0]);
    expect(await page.isVisible(".session-response-awaiting")).toBe(true);
    await person.answered();
    expect(await person.headers()).toEqual(["User", "Reasoning", "Tool (job_prepare_document)", "Message"]);
    expect(await page.$$eval(".message-block.collapsed", (all) => all.length)).toBe(2);
    expect(await page.locator(".message-block-message h1").textContent()).toBe("Hostile");
    expect(await page.locator(".message-block-body :is(img, script, svg, [style], a[href*='/api/'], a[href^='javascript'])").count()).toBe(0);
    await page.click(".message-block-message .message-block-header button");
    expect(await page.locator(".message-block-message .message-block-body").textContent()).toContain("# Hostile");
    await page.click(".message-block-tool .message-block-header");
    expect(await page.locator(".message-block-tool .message-block-body").isVisible()).toBe(true);
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a failed query says so and gives Send back", async () => {
    const person = await somebody();
    await person.startSession(host.url);
    await person.say("[[crash]]");
    await person.page.waitForSelector(".session-response-notice");
    await person.answered();
    expect(await person.page.textContent(".session-response-notice")).toContain("stub crash");
    expect(person.trouble).toEqual([]);
  });

  test("two browsers share a session, live", async () => {
    const [ann, bob] = [await somebody(), await somebody()];
    await ann.startSession(host.url);
    await bob.page.goto(ann.page.url());
    await ann.say("[[stamp]] [[deltas:20]] [[gap:40]]");
    await bob.page.waitForSelector(".message-block-message.receiving");
    const lag = await bob.page.$eval(".message-block-message .message-block-body", (body) => Date.now() - Number(/.*t=(\d+)/.exec(body.textContent!)![1]));
    expect(lag).toBeLessThan(1000);
    await bob.say("hello from Bob");
    await ann.page.waitForFunction(() => document.body.textContent!.includes("hello from Bob"));
    await ann.answered();
    await bob.answered();
    expect(await ann.bodies()).toEqual(await bob.bodies());
  });

  test("a reload in mid-stream brings both sides back, and the stream goes on", async () => {
    const person = await somebody();
    await person.startSession(host.url);
    await person.say("count on [[deltas:30]] [[gap:60]]");
    await person.page.waitForSelector(".message-block-message.receiving");
    await person.page.reload();
    await person.page.waitForSelector(".message-block-message.receiving");
    expect(await person.page.isDisabled("#send-button")).toBe(true);
    await person.answered();
    expect(await person.headers()).toEqual(["User", "Reasoning", "Message"]);
    expect((await person.bodies())[2]).toBe(`Hello${"!".repeat(28)}.`);
    expect(person.trouble).toEqual([]);
  });

  test("a host killed in mid-stream comes back, and so does the page", async () => {
    const person = await somebody();
    await person.startSession(host.url);
    await person.say("count on [[deltas:100]] [[gap:60]]");
    await person.page.waitForSelector(".message-block-message.receiving");
    await host.kill();
    await person.page.waitForSelector(".connection-lost", { state: "visible" });
    await host.start();
    await person.page.waitForSelector(".connection-lost", { state: "hidden" });
    await person.answered();
    expect(await person.headers()).toEqual(["User", "Reasoning", "Message"]);
    await person.say("and on");
    await person.answered();
    expect((await person.bodies()).slice(3)).toEqual(["and on", "think0 think1 ", "Hello!."]);
  });

  test("the bar between the parts moves by mouse and keyboard, within bounds", async () => {
    const person = await somebody();
    await person.startSession(host.url);
    const { page } = person;
    const height = async () => (await page.locator("#request-part").boundingBox())!.height;
    expect(await height()).toBe(300);
    const bar = (await page.locator("#resize-bar").boundingBox())!;
    await page.mouse.move(700, bar.y + 4);
    await page.mouse.down();
    await page.mouse.move(700, bar.y - 96);
    expect(await height()).toBe(400);
    await page.mouse.move(700, 0);
    expect(await height()).toBe(800);
    await page.mouse.move(700, 899);
    await page.mouse.up();
    expect(await height()).toBe(100);
    await page.focus("#resize-bar");
    await page.keyboard.press("ArrowUp");
    expect(await height()).toBe(124);
  });

  test("Close Session ends it", async () => {
    const person = await somebody();
    await person.startSession(host.url);
    await person.page.click("#close-session-button");
    await person.page.waitForFunction(() => document.body.textContent === "Session ended — you may close this tab.");
    expect(person.trouble).toEqual([]);
  });
});

describe("jobs", () => {
  test("pages without what they need lead to the start", async () => {
    const { page } = await somebody();
    for (const path of ["/jobs.html", "/jobTracking.html", "/jobTracking.html?jobId=job-1"]) {
      await page.goto(host.url + path);
      await page.waitForURL(`${host.url}/index.html`);
    }
    await page.goto(`${host.url}/jobTracking.html?jobName=nope`);
    await page.waitForFunction(() => document.body.textContent!.includes('Job "nope" not found.'));
  });

  test("choose, preview, start, watch it go green, read what was said", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/jobs.html?wb=${encodeURIComponent(host.folder)}`);
    const start = page.locator("#start-job-button");
    await page.click('[data-job-name="plan-and-write"]');
    expect(await start.textContent()).toBe("Start Job: plan-and-write");
    await page.click('[data-job-name="plan-and-write"]');
    expect([await start.textContent(), await start.isDisabled(), await page.isDisabled("#preview-button")]).toEqual(["Job Not Selected", true, true]);
    await page.click('[data-job-name="hello"]');
    expect(await page.isDisabled("#user-input-textarea")).toBe(true);
    await page.click('[data-job-name="plan-and-write"]');
    await page.fill("#user-input-textarea", "A small tool");
    expect(await person.barriers()).toEqual([]);

    const preview = await person.tab(() => page.click("#preview-button"));
    await preview.waitForSelector("g.node");
    expect(await preview.textContent("#job-status-label")).toBe("JOB: PREVIEW");
    expect(await preview.locator("#stop-job-button").count()).toBe(0);
    expect(Object.keys(JSON.parse((await preview.textContent("#session-response-part pre"))!))).toEqual(["job", "chart"]);

    const tracking = await person.tab(() => start.click());
    await tracking.waitForFunction(() => document.getElementById("job-status-label")!.textContent === "JOB: SUCCEEDED");
    expect(await tracking.isDisabled("#stop-job-button")).toBe(true);
    const review = tracking.locator("g.node", { hasText: "reviewer1" });
    await review.click();
    expect(await review.locator("> :first-child").evaluate((shape) => (shape as SVGElement).style.strokeWidth)).toBe("5px");
    await tracking.waitForFunction(() => document.querySelectorAll(".tab-header-btn").length === 2);
    expect(await tracking.$$eval(".tab-header-btn", (all) => all.map((each) => each.textContent))).toEqual(["Driving", "Attempt #1"]);
    await tracking.click("text=Driving");
    await tracking.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")!.textContent!.includes("[TASK SUCCEEDED]"));
    expect(await person.barriers(tracking)).toEqual([]);
    await review.click();
    expect(await tracking.locator("#session-response-part pre").count()).toBe(1);
    expect(person.trouble).toEqual([]);
  });

  test("on a phone a node opens full-screen, and Back leads back", async () => {
    const person = await somebody({ phone: true, dark: true });
    const { page } = person;
    await page.goto(`${host.url}/jobs.html?wb=${encodeURIComponent(host.folder)}`);
    await page.click('[data-job-name="hello"]');
    const tracking = await person.tab(() => page.click("#start-job-button"));
    await tracking.waitForSelector(".task-status-indicator");
    expect(await tracking.isVisible("#session-response-part")).toBe(false);
    await tracking.locator("g.node").first().click();
    expect([await tracking.isVisible("#session-response-part"), await tracking.isVisible("#job-part")]).toEqual([true, false]);
    await tracking.click("text=Back");
    expect([await tracking.isVisible("#session-response-part"), await tracking.isVisible("#job-part")]).toEqual([false, true]);
    expect(person.trouble).toEqual([]);
  });
});
