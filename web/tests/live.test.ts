import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveElement } from "../src/api";
import { Lanes, Live } from "../src/live";
import { FakeHost } from "./host";

let host: FakeHost;
let lives: Live[] = [];

beforeEach(() => {
  host = new FakeHost();
});
afterEach(() => {
  for (const live of lives) live.stop();
  lives = [];
  document.body.replaceChildren();
  vi.unstubAllGlobals();
});

function follow(entity: string): { live: Live; seen: LiveElement[]; ends: string[]; tellings: () => number } {
  const [kind, id] = entity.split("/") as ["session", string];
  const seen: LiveElement[] = [];
  const ends: string[] = [];
  let tellings = 1;
  const live = new Live(kind, id, {
    elements: (list, again) => {
      if (again) {
        seen.length = 0;
        tellings++;
      }
      seen.push(...list);
    },
    ended: (error) => ends.push(error),
  });
  lives.push(live);
  return { live, seen, ends, tellings: () => tellings };
}

const one = (text: string): LiveElement => ({ callback: "onMessage", messageId: "1", delta: text });

describe("a live loop", () => {
  it("asks one after the other with one token, and tells everything in order", async () => {
    host.push("session/s", one("a"));
    const { seen } = follow("session/s");
    await vi.waitFor(() => expect(seen).toEqual([one("a")]));
    host.push("session/s", one("b"), one("c"));
    await vi.waitFor(() => expect(seen).toEqual([one("a"), one("b"), one("c")]));
    expect(new Set(host.paths("/live/"))).toEqual(new Set(["copilot/session/s/live/token-1"]));
    expect(host.paths("/live/")).toHaveLength(3);
  });

  it("asks again after a timeout and after a parallel call", async () => {
    let answers = [{ error: "HttpRequestTimeout" }, { error: "ParallelCallNotSupported" }, { responses: [one("x")] }, { error: "SessionClosed" }];
    vi.stubGlobal("fetch", (path: string) => Promise.resolve(Response.json(path.includes("token") ? { token: "t" } : answers.shift())));
    const { seen, ends, live } = follow("session/s");
    await live.over;
    expect(seen).toEqual([one("x")]);
    expect(ends).toEqual(["SessionClosed"]);
  });

  it.each(["SessionClosed", "TaskClosed", "JobsClosed", "JobNotFound"])("ends on %s", async (error) => {
    host.push("session/s", one("a"));
    host.close("session/s", error);
    const { ends, live, seen } = follow("session/s");
    await live.over;
    expect(seen).toEqual([one("a")]);
    expect(ends).toEqual([error]);
  });

  it("comes back by itself after a broken connection, and tells the story anew", async () => {
    host.push("session/s", one("a"));
    const { seen, tellings } = follow("session/s");
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    host.drop();
    await vi.waitFor(() => expect(document.querySelector<HTMLElement>(".connection-lost")?.hidden).toBe(false));
    host.push("session/s", one("while away"));
    host.down = false;
    await vi.waitFor(() => expect(seen).toEqual([one("a"), one("while away")]), { timeout: 3000 });
    expect(tellings()).toBe(2);
    expect(document.querySelector<HTMLElement>(".connection-lost")?.hidden).toBe(true);
    expect(host.paths("/live/").at(-1)).toContain("token-2");
  });

  it("reads what is stored when the live calls have forgotten it", async () => {
    host.answers.set("copilot/session/old/history", { responses: [one("long ago")] });
    const { seen, ends, live } = follow("session/old");
    await live.over;
    expect(seen).toEqual([one("long ago")]);
    expect(ends).toEqual(["SessionNotFound"]);
  });

  it("ends without a word when nothing is stored either", async () => {
    const { seen, ends, live } = follow("session/never");
    await live.over;
    expect([seen, ends]).toEqual([[], ["SessionNotFound"]]);
  });

  it("says nothing after it was stopped", async () => {
    host.push("session/s", one("a"));
    const { live, seen, ends } = follow("session/s");
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    live.stop();
    await live.over;
    host.push("session/s", one("b"));
    expect(seen).toHaveLength(1);
    expect(ends).toEqual([]);
  });
});

describe("lanes", () => {
  it("let what is on the screen go at once and the rest two at a time, new ones first", async () => {
    const lanes = new Lanes(2);
    const order: string[] = [];
    const gates = new Map<string, () => void>();
    const run = (name: string, rank: () => number) =>
      lanes.run(rank, () => {
        order.push(name);
        return new Promise<void>((go) => gates.set(name, go));
      });
    const all = [run("a", () => 2), run("b", () => 2), run("c", () => 2), run("new", () => 1), run("seen", () => 0)];
    await vi.waitFor(() => expect(order).toEqual(["a", "b", "seen"]));
    gates.get("a")!();
    await vi.waitFor(() => expect(order).toEqual(["a", "b", "seen", "new"]));
    gates.get("b")!();
    await vi.waitFor(() => expect(order).toContain("c"));
    for (const go of gates.values()) go();
    await Promise.all(all);
  });

  it("let somebody out of the queue who comes to the screen", async () => {
    const lanes = new Lanes(1);
    let rank = 2;
    const order: string[] = [];
    let end = () => {};
    const first = lanes.run(() => 2, () => new Promise<void>((go) => (end = go)));
    const second = lanes.run(() => rank, async () => void order.push("second"));
    rank = 0;
    lanes.promote();
    await second;
    expect(order).toEqual(["second"]);
    end();
    await first;
  });
});
