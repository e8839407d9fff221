/** Lists of the portal's other pages (Job History, Terminals) stay fresh through every interruption. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Net } from "./net";

const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetModules();
});
afterEach(async () => {
  (await import("../src/scope")).page.end();
  vi.resetModules();
  document.body.replaceChildren(); // other files of this worker share the document
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

async function begin() {
  const net = new Net({ "GET /v1": { log: { seq: 1 } }, "GET ": { log: { seq: 1 } } });
  const grow = (seq: number) => Object.assign(net.answers, { "GET ": { log: { seq } } });
  const [load, report] = [vi.fn(async () => undefined), vi.fn()];
  const { watch } = await import("../src/watch");
  watch(load, report);
  await tick();
  return { net, grow, load, report };
}

test("it loads now, and again only when the log has grown", async () => {
  const { load, grow } = await begin();
  expect(load).toHaveBeenCalledTimes(1);
  await tick(10_000);
  expect(load).toHaveBeenCalledTimes(1);
  grow(2);
  await tick(2000);
  expect(load).toHaveBeenCalledTimes(2);
});

/** The bug: one 502 ended all refreshing on the pages Job History and Terminals. */
test.each<["offline" | number]>([["offline"], [502], [503], [429]])("after a failed request (%s) it continues, and reports no error", async (how) => {
  const { load, grow, net, report } = await begin();
  net.failing = [how, how];
  grow(2);
  await tick(8000);
  expect([load.mock.calls.length, report.mock.calls.length]).toEqual([2, 0]);
});

test("a refused request is reported, and the report is removed when one succeeds", async () => {
  const { load, grow, report } = await begin();
  const { Refused } = await import("../src/failure");
  load.mockRejectedValueOnce(new Refused(403, "Not for you."));
  grow(2);
  await tick(2000);
  expect(report).toHaveBeenLastCalledWith(expect.objectContaining({ message: "Not for you." }));
  await tick(2000);
  expect(report).toHaveBeenLastCalledWith(undefined);
});

test("a hidden page asks nothing after its first answer", async () => {
  const { net } = await begin();
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  const before = net.calls.length;
  await tick(20_000);
  expect(net.calls.length).toBe(before);
});
