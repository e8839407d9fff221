/**
 * What a page holds while a session streams, quickly for three minutes; `STREAM_MINUTES=60 STREAM_GAP=20` for an hour as agents write. It
 * prints numbers and judges nothing: `python -m bench pages` sets them beside the budget.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { tell } from "./measured";
import { Person } from "./person";

const MINUTES = Number(process.env["STREAM_MINUTES"] ?? 3);
const SAMPLES = 30;
/** Milliseconds between two pieces. */
const GAP = Number(process.env["STREAM_GAP"] ?? 2);
const ANSWER = "The bucket takes a **clock** now, so a test can turn it.\n\n- `limits.py` has it\n- the route asks it\n\n```python\ndef allow(self) -> bool:\n    return self.left > 0\n```\n\n".repeat(8);
const STEPS = [
  { do: "reason", text: "Let me see how the route is built, and what counts requests here already. ".repeat(6), deltas: 60, gap: GAP },
  { do: "tool", name: "bash", kind: "execute", input: { command: "pytest -q" }, output: "....\n4 passed in 0.21s", exit_code: 0 },
  { do: "say", text: ANSWER, deltas: 400, gap: GAP },
];
const host = new RealHost();

beforeAll(async () => {
  writeFileSync(join(host.folder, "script.json"), JSON.stringify({ providers: [{ id: "stream", name: "Stream", models: [{ id: "m", name: "M" }] }], rules: [{ match: "go on", steps: STEPS }] }));
  await host.start("--script", join(host.folder, "script.json"));
});
afterAll(() => host.close());

/** What the page holds once the garbage is gone. */
async function held(page: Page): Promise<() => Promise<{ heap: number; nodes: number; listeners: number; said: number; elements: number }>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  return async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = (await devtools.send("Runtime.getHeapUsage")) as { usedSize: number };
    const { metrics } = await devtools.send("Performance.getMetrics");
    const of = (name: string) => metrics.find((each) => each.name === name)?.value ?? 0;
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    return { heap: Math.round(usedSize / 1e4) / 100, nodes: of("Nodes"), listeners: of("JSEventListeners"), said: 0, elements };
  };
}

test("what a page holds while a session streams", { timeout: (MINUTES + 5) * 60_000 }, async () => {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(host.login);
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "stream", title: "Streams" });
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector("#message:enabled");
  const look = await held(page);
  const from = Date.now();
  let [turns, sampled] = [0, 0];
  const end = from + MINUTES * 60_000;
  while (Date.now() < end) {
    await host.ask(`/v1/sessions/${id}/messages`, { text: `go on, ${++turns}` });
    await page.waitForSelector("#status.running", { state: "attached" });
    await page.waitForSelector("#status.idle", { state: "attached" });
    if (Date.now() < from + (sampled * MINUTES * 60_000) / SAMPLES) continue;
    sampled++;
    tell("streamed", { ...(await look()), minutes: Math.round((Date.now() - from) / 600) / 100, turns, said: Math.round((turns * (ANSWER.length + 460)) / 1e3) });
  }
  expect(person.trouble).toEqual([]);
  await person.leave();
});
