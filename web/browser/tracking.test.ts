/** One job: its status, its chart with live marks, and what each work says. */

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Look, Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

const address = (jobName: string, jobId?: string) => `${host.url}/jobTracking.html?${new URLSearchParams({ jobName, ...(jobId ? { jobId } : {}) })}`;
const status = (page: Page, text: string) => page.waitForFunction((wanted) => document.getElementById("job-status-label")!.textContent === `JOB: ${wanted}`, text);
const marks = (page: Page) => page.$$eval(".task-status-indicator", (all) => Object.fromEntries(all.map((each) => [(each as SVGElement).dataset["workId"], each.textContent])));
const node = (page: Page, workId: number) => page.locator("g.node[role=button]").nth(workId);
const tabs = (page: Page) => page.$$eval(".tab-header-btn", (all) => all.map((each) => each.textContent));
const shown = (page: Page) => page.locator(".tab-panel:not([hidden])");

async function watching(jobName: string, look: Look = {}): Promise<Person & { jobId: string }> {
  const jobId = await host.startJob(jobName, "the input");
  const person = await somebody(look);
  await person.page.goto(address(jobName, jobId));
  return Object.assign(person, { jobId });
}

describe("without a job to follow", () => {
  test("no name leads to the start; an unknown one is told so", async () => {
    const { page } = await somebody();
    for (const path of ["/jobTracking.html", "/jobTracking.html?jobId=job-1"]) {
      await page.goto(host.url + path);
      await page.waitForURL(`${host.url}/index.html`);
    }
    await page.goto(address("nope"));
    await page.waitForFunction(() => document.body.textContent!.includes('Job "nope" not found.'));
  });

  test.each<[string, string | undefined, string]>([["an id of nothing", "job-999", "UNKNOWN"], ["no id", undefined, "PREVIEW"]])("with %s an unknown name is told so on a phone, too, and nothing is said to run", async (_, jobId, label) => {
    const { page } = await somebody({ phone: true });
    await page.goto(address("nope", jobId));
    await page.getByText('Job "nope" not found.').and(page.locator(":visible")).waitFor();
    expect(await page.textContent("#job-status-label")).toBe(`JOB: ${label}`);
    expect(await page.locator("#stop-job-button:enabled").count()).toBe(0);
  });

  test("a preview shows the chart and the job, asks for nothing else, and clicks do nothing", async () => {
    const person = await somebody();
    const { page } = person;
    const polls = person.requests(/^\/api\/.*(live|status|token)/);
    await page.goto(address("shapes"));
    await page.waitForSelector("#job-part svg g.node");
    expect(await page.textContent("#job-status-label")).toBe("JOB: PREVIEW");
    expect(await page.locator("#stop-job-button").count()).toBe(0);
    const text = (await page.textContent("#session-response-part pre"))!;
    const { job, chart } = JSON.parse(text) as { job: object; chart: object };
    const all = await host.ask<{ jobs: Record<string, object>; chart: Record<string, object> }>("/api/copilot/job");
    expect([job, chart]).toEqual([all.jobs["shapes"], all.chart["shapes"]]);
    expect(text).toBe(JSON.stringify({ job, chart }, null, 4));
    await page.locator("g.node").first().click();
    expect(await page.locator("#session-response-part pre").count()).toBe(1);
    expect(polls).toEqual([]);
    expect(person.trouble).toEqual([]);
  });
});

describe("a running job", () => {
  test("the stored job, status, live in this order; marks and the label are live; Stop Job cancels", async () => {
    const person = await somebody();
    const { page } = person;
    const jobId = await host.startJob("endless");
    const asked = person.requests(/^\/(api\/copilot\/job|v1\/jobs)/);
    await page.goto(address("endless", jobId));
    await status(page, "RUNNING");
    await page.waitForFunction(() => document.querySelectorAll(".task-status-indicator").length === 3);
    await page.waitForFunction(() => [...document.querySelectorAll(".task-status-indicator")].filter((each) => each.textContent === "✅").length === 2);
    expect(await marks(page)).toEqual({ "0": "✅", "1": "▶️", "2": "✅" });
    // In the order in which each was first asked for; the host's own list of jobs ("/job") is not needed.
    const kinds = () => [...new Set(asked.map((each) => /\/(live|status)|\/job$|\/v1\/jobs\/job-[^/]+$/.exec(each)![0]))];
    await expect.poll(kinds, { timeout: 30_000 }).toEqual([`/v1/jobs/${jobId}`, "/status", "/live"]); // the status may show it all
    expect(await page.isEnabled("#stop-job-button")).toBe(true);
    expect(await page.textContent("#stop-job-button")).toBe("Stop Job");
    expect([await page.textContent("#job-name"), await page.isVisible(".chart-hint")]).toEqual(["endless", true]);
    await page.click("#stop-job-button");
    await status(page, "CANCELED");
    expect(await page.isDisabled("#stop-job-button")).toBe(true);
    await page.waitForFunction(() => document.querySelector('.task-status-indicator[data-work-id="1"]')!.textContent === "❌");
    expect(person.trouble).toEqual([]);
  });

  test("marks stand left of their node, outside its border", async () => {
    const { page, jobId } = await watching("endless");
    await page.waitForSelector('.task-status-indicator[data-work-id="0"]');
    // Both in one look: a mark is replaced when its work goes on.
    const { mark, border } = await node(page, 0).evaluate((shape) => ({
      mark: document.querySelector('.task-status-indicator[data-work-id="0"]')!.getBoundingClientRect().right,
      border: shape.firstElementChild!.getBoundingClientRect().left,
    }));
    expect(mark).toBeLessThanOrEqual(border + 1);
    await host.ask(`/api/copilot/job/${jobId}/stop`);
  });

  test("inspecting: exclusive, a thick border, tabs of sessions that are followed live, and back to the job", async () => {
    const person = await watching("endless");
    const { page } = person;
    await page.waitForSelector('.task-status-indicator[data-work-id="1"]');
    const thick = () => page.$$eval("g.node", (all) => all.filter((each) => each.querySelector<SVGElement>("rect, polygon, circle, ellipse, path")!.style.strokeWidth === "5px").length);
    await node(page, 0).click();
    await node(page, 1).click();
    expect(await thick()).toBe(1);
    expect(await node(page, 1).locator("> :first-child").evaluate((shape) => (shape as SVGElement).style.strokeWidth)).toBe("5px");
    await page.waitForSelector(".tab-container .tab-headers .tab-header-btn");
    await page.waitForSelector(".tab-container .tab-content .message-block-message.receiving");
    const body = shown(page).locator(".message-block-message .message-block-body");
    const length = (await body.textContent())!.length;
    await page.waitForFunction((least) => document.querySelector(".tab-panel:not([hidden]) .message-block-message .message-block-body")!.textContent!.length > least, length + 5);
    // A session that is not on the screen is followed as well.
    await node(page, 0).click();
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")?.textContent?.includes("Quick."));
    await node(page, 0).click();
    expect(await page.locator("#session-response-part pre").count()).toBe(1);
    expect(await thick()).toBe(0);
    await host.ask(`/api/copilot/job/${person.jobId}/stop`);
    expect(person.trouble).toEqual([]);
  });

  test("a parallel call is no end: the loops of job, task and session ask again", async () => {
    const person = await somebody();
    const { page } = person;
    const refused = new Set<string>();
    await page.route("**/live/**", (route) => {
      const kind = /copilot\/(\w+)\//.exec(route.request().url())![1]!;
      return refused.has(kind) ? route.continue() : (refused.add(kind), route.fulfill({ json: { error: "ParallelCallNotSupported" } }));
    });
    const jobId = await host.startJob("hello world");
    await page.goto(address("hello world", jobId));
    await status(page, "SUCCEEDED");
    await node(page, 0).click();
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")?.textContent?.includes("Quick."));
    expect(refused).toEqual(new Set(["job", "task", "session"]));
    expect(person.trouble).toEqual([]);
  });

  test("a work that has not begun has no session data", async () => {
    const person = await somebody();
    const { page } = person;
    const jobId = await host.startJob("broken");
    // The host seems to know nothing about its works yet.
    await page.route(/\/job\/[^/]+\/(live\/.*|status)/, (route) => (route.request().url().includes("status") ? route.fulfill({ json: { jobId, jobName: "broken", startTime: new Date().toISOString(), status: "Running", tasks: [] } }) : undefined));
    await page.goto(address("broken", jobId));
    await page.waitForSelector("g.node");
    await node(page, 1).click();
    expect(await page.textContent(".tab-content")).toBe("No session data for this task.");
  });

  test("a reload and a lost connection bring everything back", async () => {
    const person = await watching("endless");
    const { page } = person;
    await page.waitForSelector('.task-status-indicator[data-work-id="1"]');
    await page.reload();
    await page.waitForSelector('.task-status-indicator[data-work-id="1"]');
    await node(page, 1).click();
    await page.waitForSelector(".tab-content .message-block-message.receiving");
    await person.context.setOffline(true);
    await page.waitForSelector(".connection-lost", { state: "visible" });
    await person.context.setOffline(false);
    await page.waitForSelector(".connection-lost", { state: "hidden" });
    await page.waitForSelector(".tab-content .message-block-message.receiving");
    await host.ask(`/api/copilot/job/${person.jobId}/stop`);
    await status(page, "CANCELED");
    expect(await tabs(page)).toEqual(["Driving"]);
  });

  test("a host killed in the middle: the page comes back, and the job goes on", async () => {
    const person = await watching("endless");
    const { page } = person;
    await page.waitForSelector('.task-status-indicator[data-work-id="1"]');
    await node(page, 1).click();
    await page.waitForSelector(".tab-content .message-block-message.receiving");
    await host.kill();
    await page.waitForSelector(".connection-lost", { state: "visible" });
    await host.start();
    await page.waitForSelector(".connection-lost", { state: "hidden" });
    await page.waitForSelector(".tab-content .message-block-message.receiving");
    expect(await page.textContent("#job-status-label")).toBe("JOB: RUNNING");
    await page.click("#stop-job-button");
    await status(page, "CANCELED");
  });
});

test("a job that waits for a word after a crash says so, and goes on with Resume", async () => {
  const person = await watching("careful");
  const { page } = person;
  await page.waitForSelector(".task-status-indicator");
  expect(await page.isVisible("#job-next")).toBe(false);
  await host.kill();
  await page.waitForSelector(".connection-lost", { state: "visible" });
  await host.start();
  await page.waitForSelector("#job-next", { state: "visible" });
  expect(await page.textContent("#job-next-text")).toContain("This job waits for you.");
  expect([await page.isVisible("#retry-job-button"), await page.textContent("#job-status-label")]).toEqual([false, "JOB: RUNNING"]);
  await page.click("#resume-job-button");
  await page.waitForSelector("#job-next", { state: "hidden" });
  await node(page, 0).click();
  await page.waitForSelector(".tab-content .message-block-message.receiving");
  await page.click("#stop-job-button");
  await status(page, "CANCELED");
});

describe("an ended job", () => {
  test("succeeded, also with a name that has to be encoded; its sessions can still be read after a reload", async () => {
    const person = await watching("hello world");
    const { page } = person;
    await status(page, "SUCCEEDED");
    expect(await page.isDisabled("#stop-job-button")).toBe(true);
    await page.reload();
    await status(page, "SUCCEEDED");
    await page.waitForSelector(".task-status-indicator");
    await node(page, 0).click();
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")?.textContent?.includes("Quick."));
    expect(person.trouble).toEqual([]);
  });

  test("failed: the marks say where, the decisions why", async () => {
    const person = await watching("broken");
    const { page } = person;
    await status(page, "FAILED");
    await page.waitForFunction(() => document.querySelectorAll(".task-status-indicator").length === 2);
    expect(await marks(page)).toEqual({ "0": "✅", "1": "❌" });
    await node(page, 1).click();
    await page.waitForFunction(() => document.querySelector(".tab-content")!.textContent!.includes("TaskDecision"));
    expect(person.trouble).toEqual([]);
  });

  test("a failed one goes on as another that keeps what succeeded, or begins again", async () => {
    const person = await watching("broken");
    const { page } = person;
    const another = async (button: string, before: string) => {
      await status(page, "FAILED");
      await page.click(button);
      await page.waitForURL((url) => url.searchParams.get("jobId") !== before);
      await status(page, "FAILED");
      return new URL(page.url()).searchParams.get("jobId")!;
    };
    const started = async (job: string) => (await host.ask<{ works: object[] }>(`/v1/jobs/${job}`)).works.length;
    const resumed = await another("#resume-job-button", person.jobId);
    expect(await started(resumed)).toBe(1);
    const retried = await another("#retry-job-button", resumed);
    expect(await started(retried)).toBe(2);
    expect(person.trouble).toEqual([]);
  });

  test("a work that starts again has forgotten its first round", async () => {
    const { page, jobId } = await watching("again");
    await status(page, "SUCCEEDED");
    const { responses } = await host.ask<{ responses: { callback?: string; workId?: number }[] }>(`/api/copilot/job/${jobId}/live/another-reader`);
    const started = responses.filter(({ callback }) => callback === "workStarted").map(({ workId }) => workId!);
    expect(started).toHaveLength(4);
    const bodyWork = Math.max(...started);
    await page.locator(`g.node:has([data-work-id="${bodyWork}"])`).click();
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")?.textContent?.includes("[TASK SUCCEEDED]"));
    expect(await tabs(page)).toEqual(["Driving"]);
    await shown(page).locator(".message-block-message").first().waitFor(); // the session's words come by a call of their own
    expect(await shown(page).locator(".message-block-message").count()).toBe(1);
    // What a condition said can be read as well.
    await page.click("g.node.CondNode");
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")?.textContent?.includes("Asked."));
  });

  test("a crash is an error of the job: FAILED, and it says what happened", async () => {
    const person = await watching("crashed");
    const { page } = person;
    await status(page, "FAILED");
    await page.waitForSelector("#job-error", { state: "visible" });
    expect(await page.textContent("#job-error")).toBe("stub crash");
    expect(person.trouble).toEqual([]);
  });

  test("a job with a driving session: Driving is the first tab, attempts are counted, decisions are never lost, tabs keep the focus", async () => {
    const person = await watching("judged");
    const { page } = person;
    await status(page, "SUCCEEDED");
    await node(page, 0).click();
    await page.waitForFunction(() => document.querySelectorAll(".tab-header-btn").length === 3);
    expect(await tabs(page)).toEqual(["Driving", "Attempt #1", "Attempt #2"]);
    await page.click("text=Driving");
    await page.waitForFunction(() => document.querySelector(".tab-panel:not([hidden])")!.textContent!.includes("[TASK SUCCEEDED]"));
    const headers = await shown(page).locator(".message-block-header-text").allTextContents();
    const decisions = headers.filter((header) => header === "User (TaskDecision)").length;
    const told = (path: string) => host.ask<{ responses: { callback: string; taskId: string }[] }>(`/api/copilot/${path}/live/another-reader`);
    const { taskId } = (await told(`job/${person.jobId}`)).responses.find(({ callback }) => callback === "workStarted")!;
    expect(decisions).toBe((await told(`task/${taskId}`)).responses.filter(({ callback }) => callback === "taskDecision").length);
    expect(decisions).toBeGreaterThan(2);
    expect(headers[0]).toBe("User (TaskDecision)");
    // Every prompt of a driving session stands before the decision that it led to.
    const order = headers.filter((header) => header?.startsWith("User")).map((header) => (header === "User (Task)" ? "prompt" : "decision"));
    expect(order.lastIndexOf("prompt")).toBeLessThan(order.lastIndexOf("decision"));
    expect(person.trouble).toEqual([]);
  });
});

describe("the parts of the page", () => {
  test("are where scripts of the original look for them; stylesheets are linked by relative names", async () => {
    const { page } = await somebody();
    await page.goto(address("shapes"));
    await page.waitForSelector("#left-part > #job-part svg g.node");
    expect(await page.locator("#right-part > #session-response-part pre").count()).toBe(1);
    for (const path of ["/jobTracking.html", "/index.html", "/jobs.html", "/jobHistory.html", "/agents.html", "/terminal.html"]) {
      const html = await (await page.request.get(host.url + path)).text();
      const styles = [...html.matchAll(/<link rel="stylesheet"[^>]* href="([^"]*)"/g)].map(([, href]) => href!);
      expect(styles.length, path).toBeGreaterThan(1);
      for (const href of styles) expect(href, path).toMatch(/^[a-zA-Z]+\.css$/);
    }
  });

  test("800 px at the right, the bar leaves 200 px on both sides", async () => {
    const { page } = await somebody();
    await page.goto(address("shapes"));
    await page.waitForSelector("g.node");
    const width = async () => (await page.locator("#session-response-part").boundingBox())!.width;
    expect(await width()).toBe(800);
    const bar = (await page.locator("#resize-bar").boundingBox())!;
    await page.mouse.move(bar.x + 2, 400);
    await page.mouse.down();
    await page.mouse.move(0, 400);
    expect(await width()).toBe(1200);
    await page.mouse.move(1399, 400);
    await page.mouse.up();
    expect(await width()).toBe(200);
  });

  test("on a phone a node opens full-screen, and Back, the last of the tab headers, leads back", async () => {
    const person = await watching("hello world", { phone: true, dark: true });
    const { page } = person;
    await page.waitForSelector(".task-status-indicator");
    const visible = async () => [await page.isVisible("#session-response-part"), await page.isVisible("#job-part")];
    expect(await visible()).toEqual([false, true]);
    await node(page, 0).click();
    expect(await visible()).toEqual([true, false]);
    expect(await page.locator("#session-response-part").boundingBox()).toEqual({ x: 0, y: 0, width: 360, height: 740 });
    expect(await page.$eval(".tab-headers", (headers) => headers.lastElementChild!.textContent)).toBe("Back");
    await page.click("text=Back");
    expect(await visible()).toEqual([false, true]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    expect(person.trouble).toEqual([]);
  });
});
