/**
 * How quick the pages are: it prints numbers and judges nothing, since machines differ. `python -m bench pages` runs it and
 * sets the numbers beside the budgets (`MEASURED` names the file they go to).
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { tell } from "./measured";
import { Person } from "./person";
import { median, Trace } from "./trace";

const TURNS = 2_500;
const STEPS = 300;
/** Longer than the typing takes, on a slow machine too. */
const DELTAS = 400_000;
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
    tell("portal", await page.evaluate(() => ({ opened: Number(document.body.dataset["opened"]), blocks: document.querySelectorAll(".message-block").length })));
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
    tell("opened", { ...found, worked: (await worked()) - before });
  }
  tell("scrolled", await scroll(page, worked));
  expect(person.trouble).toEqual([]);
  await person.leave();
});

async function scroll(page: Page, worked: () => Promise<number>): Promise<Record<string, number>> {
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
  return { median: part(0.5), p95: part(0.95), worst: part(1), worked: ((await worked()) - before) / STEPS, elements: await page.evaluate(() => document.querySelectorAll("*").length) };
}

test("100,000 blocks scroll", { timeout: 180_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "long" });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "[[say:Here.]]" });
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector("#transcript .end");
  const state = await host.ask<{ turns: object[] }>(`/v1/sessions/${id}`);
  // Made in the page: the tests' own proxy would take longer than everything else.
  await page.addInitScript((of) => {
    const read = Response.prototype.json;
    Response.prototype.json = async function (this: Response) {
      const answer = (await read.call(this)) as { turns: { parts: object[] }[] };
      if (!this.url.endsWith(`/v1/sessions/${of}`)) return answer;
      answer.turns[0]!.parts = Array.from({ length: 100_000 }, (_, n) => (n % 2 ? { part: "text", id: `x${n}`, kind: "text", text: `**Block** ${n}\n\n- one\n- two`, done: true } : { part: "call", id: `x${n}`, tool: "use", input: '{"path":"a"}', ready: true, done: true, ok: true, output: "text" }));
      return answer;
    };
  }, id);
  expect(state.turns.length).toBe(1);
  const worked = await work(page);
  const before = await worked();
  await page.reload();
  await page.waitForSelector("text=Block 99999");
  tell("opened 100,000", { worked: (await worked()) - before });
  tell("scrolled 100,000", await scroll(page, worked));
  expect(person.trouble).toEqual([]);
  await person.leave();
});

/** What the page holds after the garbage is gone, in MB. */
async function heapOf(page: Page): Promise<() => Promise<number>> {
  const devtools = await page.context().newCDPSession(page);
  return async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return Math.round(((await devtools.send("Runtime.getHeapUsage")) as { usedSize: number }).usedSize / 1e5) / 10;
  };
}

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
  const worked = await work(page);
  const from = await worked();
  await host.ask(`/v1/sessions/${id}/messages`, { text: `[[reasoning:0]] [[deltas:${DELTAS}]] [[gap:0.5]]` });
  await page.waitForSelector("#status.running");
  const waits: number[] = [];
  const trace = await Trace.of(page, async () => {
    for (let key = 0; key < 30; key++) {
      const start = Date.now();
      await page.locator("#message").pressSequentially("x");
      await page.evaluate(() => new Promise(requestAnimationFrame));
      waits.push(Date.now() - start);
    }
  });
  await host.cancel(id);
  waits.sort((one, other) => one - other);
  const long = await page.evaluate(() => (window as unknown as { long: number[] }).long);
  tell("typed", { median: waits[15] ?? 0, p95: waits[28] ?? 0, worst: waits[29] ?? 0, longTasks: long.length, longest: Math.max(0, ...long), longestWorked: trace.longest, keyWorked: median(trace.toPaint("input")), worked: (await worked()) - from });
  await person.leave();
});

test("memory, turn by turn", { timeout: 180_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "long" });
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector("#message:enabled");
  const heap = await heapOf(page);
  const sizes: number[] = [];
  let turns = 0;
  for (let round = 0; round < 6; round++) {
    for (let turn = 0; turn < 20; turn++) await host.ask(`/v1/sessions/${id}/messages`, { text: `Turn ${++turns} [[reasoning:0]] [[deltas:50]]` });
    await page.waitForSelector(`.message:has-text("Turn ${turns} ")`);
    await page.waitForSelector("#status.idle", { state: "attached" });
    sizes.push(await heap());
  }
  tell("memory", { first: sizes[1] ?? 0, last: sizes.at(-1) ?? 0, elements: await page.evaluate(() => document.querySelectorAll("*").length) });
  await person.leave();
});
