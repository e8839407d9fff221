/** How quick a session of 10,000 blocks is: it prints numbers and judges nothing, since machines differ. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const TURNS = 2_500;
const STEPS = 300;
const host = new RealHost();

beforeAll(async () => {
  const turns = Array.from({ length: TURNS }, (_, index) => ({
    prompt: `Question ${index}`,
    reasoning: "Let me think about it.",
    answer: `Answer **${index}**:\n\n- one\n- two\n\n\`\`\`py\nprint(${index})\n\`\`\``,
  }));
  const script = { providers: [{ id: "long", name: "Long", models: [{ id: "m", name: "M" }], sessions: [{ title: "Long", cwd: host.folder, turns }] }] };
  writeFileSync(join(host.folder, "script.json"), JSON.stringify(script));
  await host.start("--script", join(host.folder, "script.json"));
});
afterAll(() => host.close());

/** Time the page's main thread has worked, in ms: on a busy machine it says more than the clock. */
async function work(page: Page): Promise<() => Promise<number>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => Math.round(1000 * ((await devtools.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0));
}

test("10,000 blocks on the portal's page", { timeout: 180_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  await person.startSession(host.url);
  const elements = Array.from({ length: TURNS }, (_, index) => [
    { callback: "onUserPrompt", prompt: `Question ${index}` },
    { callback: "onEndReasoning", reasoningId: `r${index}`, completeContent: "Let me think about it." },
    { callback: "onEndToolExecution", toolCallId: `t${index}`, result: { content: "found" } },
    { callback: "onEndMessage", messageId: `m${index}`, completeContent: `Answer **${index}**:\n\n- one\n- two` },
    { callback: "onIdle" },
  ]).flat();
  // What the tests' own proxy takes is not the page's: from the moment the answer is read to the frame that shows its end.
  await page.addInitScript(() => {
    const read = Response.prototype.json;
    Response.prototype.json = async function (this: Response) {
      const answer = (await read.call(this)) as unknown;
      if (this.url.includes("/live/")) {
        const from = performance.now();
        const tell = () => (document.querySelectorAll(".message-block").length > 0 ? requestAnimationFrame(() => (document.body.dataset["opened"] = String(Math.round(performance.now() - from)))) : requestAnimationFrame(tell));
        tell();
      }
      return answer;
    };
  });
  for (let round = 0; round < 3; round++) {
    let told = false;
    await page.route("**/live/**", (route) => (told ? route.continue() : ((told = true), route.fulfill({ json: { responses: elements } }))));
    await page.reload();
    await page.waitForSelector("body[data-opened]");
    console.log("the portal's page, from the answer to the screen", await page.evaluate(() => ({ opened: document.body.dataset["opened"], blocks: document.querySelectorAll(".message-block").length })));
    await page.unroute("**/live/**");
  }
  await person.leave();
});

test("a session of 10,000 blocks", { timeout: 180_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  const { sessions } = await host.ask<{ sessions: { id: string; title: string }[] }>("/v1/sessions");
  const id = sessions.find(({ title }) => title === "Long")!.id;
  const worked = await work(page);
  for (let round = 0; round < 3; round++) {
    await page.goto(`${host.url}/agents.html`);
    await page.waitForSelector(".agent");
    const before = await worked();
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForFunction((text) => document.querySelector("#transcript")?.textContent?.includes(text), `Question ${TURNS - 1}`);
    const found = await page.evaluate(() => {
      const [state] = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/v1/sessions/")) as PerformanceResourceTiming[];
      const round = (value = 0) => Math.round(value);
      return { fetched: round(state?.responseEnd), kilobytes: round((state?.encodedBodySize ?? 0) / 1024), shown: round(performance.now()), elements: document.querySelectorAll("*").length };
    });
    console.log("opened", { ...found, worked: (await worked()) - before });
  }
  const before = await worked();
  const frames = await page.evaluate(async (steps) => {
    const view = document.querySelector("#transcript")!;
    const found: number[] = [];
    for (let [step, before] = [0, performance.now()]; step < steps; step++) {
      view.scrollTop -= 400;
      await new Promise(requestAnimationFrame);
      found.push(performance.now() - before);
      before = performance.now();
    }
    return found.sort((one, other) => one - other);
  }, STEPS);
  const part = (share: number) => Math.round(frames[Math.floor(share * (STEPS - 1))] ?? 0);
  console.log("a frame while scrolling 400 px at a time", { median: part(0.5), p95: part(0.95), worst: part(1), worked: ((await worked()) - before) / STEPS });
  expect(person.trouble).toEqual([]);
  await person.leave();
});

test("typing while 2,000 deltas a second arrive", { timeout: 180_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "long" });
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector("#message:enabled");
  await page.evaluate(() => {
    const found = ((window as unknown as { long: number[] }).long = []) as number[];
    new PerformanceObserver((list) => found.push(...list.getEntries().map(({ duration }) => Math.round(duration)))).observe({ type: "longtask" });
  });
  const heap = () => page.evaluate(() => Math.round(((performance as unknown as { memory?: { usedJSHeapSize: number } }).memory?.usedJSHeapSize ?? 0) / 1e6));
  const before = await heap();
  const worked = await work(page);
  const from = await worked();
  await host.ask(`/v1/sessions/${id}/messages`, { text: "[[reasoning:0]] [[deltas:40000]] [[gap:0.5]]" });
  await page.waitForSelector("#status.running");
  const waits: number[] = [];
  for (let key = 0; key < 60; key++) {
    const start = Date.now();
    await page.locator("#message").pressSequentially("x");
    await page.evaluate(() => new Promise(requestAnimationFrame));
    waits.push(Date.now() - start);
  }
  await host.cancel(id);
  waits.sort((one, other) => one - other);
  const long = await page.evaluate(() => (window as unknown as { long: number[] }).long);
  console.log("typing while it streams", { median: waits[30], p95: waits[56], worst: waits[59], longTasks: long.length, longest: Math.max(0, ...long), worked: (await worked()) - from, heapMB: [before, await heap()] });
  await person.leave();
});
