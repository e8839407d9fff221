/** The lifetime of a view (src/scope.ts): what it starts ends with it, rests while it is paused, and is retried in one way. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { isTemporary, Refused } from "../src/failure";
import { Backoff, Scope } from "../src/scope";
import { Net } from "./net";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

describe("only scope.ts starts what must end", () => {
  const source = resolve(import.meta.dirname, "../src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts") && name !== "scope.ts");
  const FORBIDDEN = [/\b(document|window)\.addEventListener\b/, /\bsetInterval\(/, /\bnew EventSource\b/, /\bfetch\(/];
  /** The login pages have no key and one request; they load nothing else. */
  const ALLOWED: Record<string, RegExp> = { "login.ts": /\bfetch\(/, "pair.ts": /\bfetch\(/ };

  test("there are files to check", () => expect(files.length).toBeGreaterThan(100));
  test.each(files)("%s", (name) => {
    const text = readFileSync(join(source, name), "utf8");
    const found = FORBIDDEN.filter((pattern) => pattern.test(text) && ALLOWED[name]?.source !== pattern.source);
    expect(found, "use the Scope of the view, or `page` of scope.ts").toEqual([]);
  });
});

test.each<[string, unknown, boolean]>([
  ["the host out of reach", new TypeError("Failed to fetch"), true],
  ["502 of a proxy", new Refused(502, ""), true],
  ["503", new Refused(503, ""), true],
  ["too many requests", new Refused(429, ""), true],
  ["a login that ended", new Refused(401, ""), true],
  ["a request that timed out", new DOMException("", "TimeoutError"), true],
  ["404", new Refused(404, ""), false],
  ["403", new Refused(403, ""), false],
  ["a request that was aborted", new DOMException("", "AbortError"), false],
  ["a mistake of ours", new RangeError(""), false],
])("%s: is it worth another try?", (_, error, wanted) => expect(isTemporary(error)).toBe(wanted));

test("each retry waits twice as long, up to five seconds, and a success starts over", () => {
  const backoff = new Backoff();
  expect([1, 2, 3, 4, 5, 6].map(() => backoff.next())).toEqual([500, 1000, 2000, 4000, 5000, 5000]);
  backoff.reset();
  expect(backoff.next()).toBe(500);
});

test("listeners and timers: active, paused, resumed and ended", async () => {
  const net = new Net({});
  const [scope, happened] = [new Scope(), [] as string[]];
  scope.on(document, "click", () => happened.push("click"));
  scope.every(1000, () => happened.push("tick"));
  scope.after(1500, () => happened.push("late"));
  document.dispatchEvent(new Event("click"));
  await tick(1000);
  scope.pause();
  await tick(5000);
  scope.resume();
  await tick(1000);
  expect(happened).toEqual(["click", "tick", "late", "tick"]);
  scope.end();
  document.dispatchEvent(new Event("click"));
  await tick(5000);
  expect([happened.length, net.listeners, vi.getTimerCount()]).toEqual([4, 0, 0]);
});

test("a part of a view is paused, resumed and ended with it, and can end earlier", async () => {
  const [scope, ticks] = [new Scope(), { long: 0, short: 0 }];
  const [long, short] = [scope.child(), scope.child()];
  long.every(10, () => (ticks.long += 1));
  short.every(10, () => (ticks.short += 1));
  await tick(10);
  short.end();
  scope.pause();
  await tick(10);
  expect(ticks).toEqual({ long: 1, short: 1 });
  scope.resume();
  await tick(10);
  expect(ticks).toEqual({ long: 2, short: 1 });
  scope.end();
  expect([long.ended, vi.getTimerCount()]).toEqual([true, 0]);
  const late = scope.child();
  late.every(10, () => (ticks.long += 1));
  await tick(50);
  expect([late.ended, ticks.long]).toEqual([true, 2]);
});

describe("follow", () => {
  const following = (more = {}) => {
    const [scope, seen, gone] = [new Scope(), [] as string[], vi.fn()];
    scope.follow({ address: () => "/v1/events?channel=job/j1", message: (data) => seen.push(data), gone, ...more });
    return { scope, seen, gone };
  };

  test("a refused connection is opened again, later each time, and one that works starts over", async () => {
    const net = new Net({});
    net.refused = 2;
    const { seen, scope } = following();
    await tick();
    expect([net.sources.length, net.open.length]).toEqual([1, 0]);
    await tick(500);
    expect([net.sources.length, net.open.length]).toEqual([2, 0]);
    await tick(999);
    expect(net.sources.length).toBe(2);
    await tick(1);
    expect([net.sources.length, net.open.length]).toEqual([3, 1]);
    net.open[0]!.send({ pos: 1 });
    expect(seen).toEqual(['{"pos":1}']);
    net.open[0]!.refuse();
    await tick(500);
    expect([net.sources.length, net.open.length]).toEqual([4, 1]);
    scope.end();
  });

  test("the state is loaded before the events, and again only after a refusal", async () => {
    const net = new Net({});
    const loads: boolean[] = [];
    const { scope } = following({ load: async (_: AbortSignal, refused: boolean) => loads.push(refused), loaded: () => undefined });
    await tick();
    net.open[0]!.refuse();
    await tick(500);
    expect([loads, net.open.length]).toEqual([[false, true], 1]);
    scope.end();
  });

  test.each<[string, unknown, boolean]>([
    ["502 while loading is retried", new Refused(502, ""), false],
    ["out of reach while loading is retried", new TypeError(""), false],
    ["404 while loading is final", new Refused(404, ""), true],
  ])("%s", async (_, error, final) => {
    const net = new Net({});
    let tries = 0;
    const load = () => (tries++ === 0 ? Promise.reject(error as Error) : Promise.resolve({}));
    const { scope, gone } = following({ load });
    await tick(500);
    expect([gone.mock.calls.length, tries, net.open.length]).toEqual(final ? [1, 1, 0] : [0, 2, 1]);
    scope.end();
  });

  /** The bug: leaving and returning while the first request ran opened a second stream, and only the last one was closed. */
  test("however often it is paused and resumed while it loads, there is one connection at most", async () => {
    const net = new Net({ "GET /sessions/s1": {} });
    net.hold();
    const loaded = vi.fn();
    const { scope } = following({ load: (signal: AbortSignal) => fetch("./v1/sessions/s1", { signal }), loaded });
    for (let times = 0; times < 8; times++) {
      scope.pause();
      scope.resume();
    }
    expect(net.waiting).toBe(1);
    await net.release();
    expect([loaded.mock.calls.length, net.open.length]).toEqual([1, 1]);
    scope.pause();
    expect(net.open.length).toBe(0);
    scope.resume();
    await tick();
    expect(net.open.length).toBe(1);
    scope.end();
    expect([net.open.length, vi.getTimerCount()]).toEqual([0, 0]);
  });

  test("an answer that arrives after the end changes nothing and opens nothing", async () => {
    const net = new Net({});
    let answer: (value: object) => void = () => undefined;
    const loaded = vi.fn();
    const { scope } = following({ load: () => new Promise((done) => (answer = done)), loaded });
    scope.end();
    answer({});
    await tick();
    expect([loaded.mock.calls.length, net.sources.length]).toEqual([0, 0]);
  });

  test("a hidden page closes it after 30 s when nothing is expected, and opens it when it is seen", async () => {
    const net = new Net({});
    let idle = false;
    const hidden = vi.spyOn(document, "hidden", "get");
    const look = (value: boolean) => {
      hidden.mockReturnValue(value);
      document.dispatchEvent(new Event("visibilitychange"));
    };
    const { scope } = following({ idle: () => idle });
    await tick();
    look(true);
    await tick(30_000);
    expect(net.open.length, "it expects events").toBe(1);
    idle = true;
    await tick(30_000);
    expect(net.open.length).toBe(0);
    look(false);
    await tick();
    expect(net.open.length).toBe(1);
    scope.pause();
    look(true);
    look(false);
    await tick();
    expect(net.open.length, "its view is not shown").toBe(0);
    scope.end();
    expect(net.listeners).toBe(0);
  });

  test("one of several can be closed alone", async () => {
    const net = new Net({});
    const scope = new Scope();
    const [first] = ["a", "b"].map((name) => scope.follow({ address: () => `/v1/events?channel=${name}`, message: () => undefined }));
    await tick();
    first!.close();
    expect(net.open.map(({ channel }) => channel)).toEqual(["b"]);
    scope.pause();
    scope.resume();
    await tick();
    expect(net.open.map(({ channel }) => channel)).toEqual(["b"]);
    scope.end();
  });
});

describe("latest", () => {
  /** Requests that are answered by the test. */
  function asking(settleMs = 50) {
    const [scope, open, taken, failed] = [new Scope(), [] as { done: (value: number) => void; fail: (error: unknown) => void }[], [] as number[], vi.fn()];
    let asked = 0;
    const refresh = scope.latest<number>(
      () => {
        asked += 1;
        return new Promise((done, fail) => open.push({ done, fail }));
      },
      (answer) => taken.push(answer),
      { debounceMs: settleMs, failed },
    );
    const answer = async (value: number) => {
      open.shift()!.done(value);
      await tick();
    };
    const fail = async (error: unknown) => {
      open.shift()!.fail(error);
      await tick();
    };
    return { scope, refresh, taken, failed, answer, fail, asked: () => asked };
  }

  test("changes that come together are one request; one that comes while it runs is asked about afterwards", async () => {
    const { refresh, answer, asked, taken, scope } = asking();
    refresh();
    refresh();
    await tick(50);
    expect(asked()).toBe(1);
    refresh();
    await tick(5000);
    expect(asked(), "no second request beside the first").toBe(1);
    await answer(1);
    await tick(50);
    expect(asked()).toBe(2);
    await answer(2);
    await tick(5000);
    expect([asked(), taken]).toEqual([2, [1, 2]]);
    scope.end();
  });

  test("a request that failed for now is retried, though nothing changes; one that was refused is not", async () => {
    const { refresh, fail, answer, asked, failed, taken, scope } = asking(0);
    refresh();
    await fail(new TypeError(""));
    await tick(499);
    expect(asked()).toBe(1);
    await tick(1);
    expect(asked()).toBe(2);
    await fail(new Refused(502, ""));
    await tick(1000);
    await answer(3);
    expect([asked(), taken, failed.mock.calls.length]).toEqual([3, [3], 2]);
    refresh();
    await fail(new Refused(404, ""));
    await tick(60_000);
    expect([asked(), failed.mock.calls.length]).toEqual([4, 3]);
    scope.end();
  });

  test("a view that is paused asks nothing, drops what arrives, and asks again when it is resumed", async () => {
    const { refresh, answer, asked, taken, scope } = asking(0);
    refresh();
    scope.pause();
    await answer(1);
    refresh();
    await tick(60_000);
    expect([asked(), taken]).toEqual([1, []]);
    scope.resume();
    await answer(2);
    expect([asked(), taken]).toEqual([2, [2]]);
    scope.end();
  });

  test.each(["running", "about to be asked", "about to be retried"])("a request that is %s ends with its view", async (when) => {
    const { refresh, fail, answer, asked, taken, scope } = asking(when === "about to be asked" ? 50 : 0);
    refresh();
    if (when === "about to be retried") await fail(new TypeError(""));
    const before = asked();
    scope.end();
    if (when === "running") await answer(1);
    refresh();
    await tick(60_000);
    expect([asked(), taken]).toEqual([before, []]);
  });
});

test("an action that fails is shown, the next one that works removes it, and a view that ended shows nothing", async () => {
  const texts: string[] = [];
  const scope = new Scope((text) => texts.push(text));
  expect(await scope.attempt(() => Promise.reject(new TypeError("Failed to fetch")))).toBe(false);
  expect(await scope.attempt(async () => undefined)).toBe(true);
  scope.end();
  expect(await scope.attempt(() => Promise.reject(new Refused(409, "No.")))).toBe(false);
  expect(texts).toEqual(["The host cannot be reached.", ""]);
});
