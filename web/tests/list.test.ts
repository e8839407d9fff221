/** The list of thousands: which rows stand in the page, what stays where it is, and what is loaded. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { entryOfSession, type Entry, type Group, type Row } from "../src/app/entries";
import { BoardStore } from "../src/app/boardStore";
import { held, ListView } from "../src/app/list";
import { between, offsetsOf, spaced } from "../src/app/rowWindow";
import { V1Host } from "./v1Host";

const NOW = new Date(2026, 5, 10, 12).getTime();
const DAY = 86_400_000;
const row = (id: string, modified: number, more: Partial<Row["session"]> = {}): Row => ({ session: { id, agent: "codex", model: "m", cwd: "/home/me/api", title: `Session ${id}`, status: "idle", created: modified, modified, turns: 1, ...more } });

describe("which rows are near", () => {
  const same = offsetsOf(10, () => 50);
  const mixed = offsetsOf(4, (index) => (index % 2 ? 58 : 50));

  test.each<[string, Float64Array, number, number, [number, number]]>([
    ["the first two", same, 0, 100, [0, 2]],
    ["one that reaches in by a pixel, above and below", same, 49, 101, [0, 3]],
    ["none that only touches", same, 50, 100, [1, 2]],
    ["from above the list", same, -400, 60, [0, 2]],
    ["beyond its end", same, 480, 900, [9, 10]],
    ["all of it", same, -1, 9_999, [0, 10]],
    ["a view above the list", same, -500, -100, [0, 0]],
    ["an empty list", offsetsOf(0, () => 50), 0, 900, [0, 0]],
    ["rows of different heights", mixed, 50, 108, [1, 2]],
    ["and the next of them", mixed, 107, 109, [1, 3]],
  ])("%s", (_, offsets, from, to, wanted) => expect(between(offsets, from, to)).toEqual(wanted));

  test("a view below the list builds at most its last row", () => {
    const [first, end] = between(same, 9_000, 9_900);
    expect(end - first).toBeLessThan(2);
  });

  test.each<[string, number[], object[]]>([
    ["in the middle", [3, 4], [{ space: 150 }, { row: 3 }, { row: 4 }, { space: 250 }]],
    ["at the top", [0, 1], [{ row: 0 }, { row: 1 }, { space: 400 }]],
    ["at the end", [9], [{ space: 450 }, { row: 9 }]],
    ["with one far away that stays", [1, 8, 2], [{ space: 50 }, { row: 1 }, { row: 2 }, { space: 250 }, { row: 8 }, { space: 50 }]],
    ["once, if it is named twice", [5, 5], [{ space: 250 }, { row: 5 }, { space: 200 }]],
    ["none", [], [{ space: 500 }]],
  ])("space stands for the others: %s", (_, rows, wanted) => expect(spaced(rows, same)).toEqual(wanted));
});

describe("while the pointer is over the list", () => {
  const entry = (key: string, time: number, line = ""): Entry => ({ ...entryOfSession(row(key, time)), key, time, line });
  const before = [entry("a", 9, "old"), entry("b", 8), entry("c", 7)];
  const fresh = (...today: Entry[]) => new Map<Group, Entry[]>([["work", [entry("b", 20, "runs")]], ["today", today]]);

  test("rows say what is new where they are, also those that belong elsewhere now", () => {
    expect(held(before, [], fresh(entry("c", 30), entry("a", 9, "new"))).map(({ key, line }) => key + line)).toEqual(["anew", "bruns", "c"]);
  });

  test("one that is gone stays until the pointer leaves", () => {
    expect(held(before, [], fresh()).map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  test("older ones take the place that was kept for them, newer ones wait", () => {
    expect(held(before, [entry("new", 50), entry("d", 7), entry("e", 6)], fresh()).map(({ key }) => key)).toEqual(["a", "b", "c", "d", "e"]);
    expect(held([], [entry("d", 7)], fresh()).map(({ key }) => key)).toEqual(["d"]);
  });
});

/** A socket that a test speaks for. */
class FakeSocket {
  static last: FakeSocket;
  onmessage: ((event: { data: string }) => void) | undefined;
  onclose: (() => void) | undefined;
  constructor(readonly address: string) {
    FakeSocket.last = this;
  }
  say(page: object): void {
    this.onmessage?.({ data: JSON.stringify({ version: 1, ...page }) });
  }
}

describe("the board", () => {
  let asked: URL[] = [];
  let pages: Record<string, object> = {};
  beforeEach(() => {
    vi.useFakeTimers({ now: NOW, toFake: ["setTimeout", "setInterval", "clearTimeout", "clearInterval", "Date"] });
    localStorage.clear();
    [asked, pages] = [[], {}];
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("fetch", async (address: string) => {
      const url = new URL(address, "http://host");
      if (url.pathname.endsWith("/board")) asked.push(url);
      const key = url.searchParams.get("before") ?? url.searchParams.get("q") ?? url.pathname.split("/").at(-1) ?? "";
      return new Response(JSON.stringify(pages[key] ?? { jobs: [], agents: [], rows: [], hits: [] }), { headers: { "Content-Type": "application/json" } });
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function started(page: object): BoardStore {
    const board = new BoardStore();
    board.start();
    FakeSocket.last.say(page);
    return board;
  }

  test("asks the host to count by the reader's own days", () => {
    started({ rows: [] });
    expect(new URL(FakeSocket.last.address).searchParams.get("days")).toBe([new Date(2026, 5, 10).getTime(), new Date(2026, 5, 9).getTime()].join(","));
  });

  test("marks an agent that does not ask, wherever its name is shown", async () => {
    pages["agents"] = { agents: [{ id: "acp:kilo", name: "Kilo", label: "does not ask" }, { id: "demo", name: "Demo", label: "demo" }] };
    const board = started({ rows: [] });
    await vi.waitFor(() => expect(board.agentName("acp:kilo")).toBe("Kilo (does not ask)"));
    expect(board.agentName("demo")).toBe("Demo");
  });

  test("older ones come from where the host says, however old what runs is, and are counted down", async () => {
    const board = started({ rows: [row("new", NOW), row("runs", 5, { status: "running" })], before: 1_000, days: [1, 2, 30] });
    expect(board.left).toEqual({ today: 1, yesterday: 2, older: 30 });
    pages["1000"] = { rows: [row("b", 900), row("new", 1, { title: "stale" })], before: 900, days: [0, 0, 29] };
    await Promise.all([board.loadOlder(), board.loadOlder()]);
    expect(asked.map((url) => [url.searchParams.get("before"), url.searchParams.get("limit")])).toEqual([["1000", "100"]]);
    expect(board.left).toEqual({ today: 0, yesterday: 0, older: 28 }); // the one that runs is older, and here
    expect([...board.rows.keys()].sort()).toEqual(["b", "new", "runs"]);
    expect(board.rows.get("new")?.session.title).toBe("Session new"); // what was told live is newer than a page
    pages["900"] = { rows: [row("c", 7)], before: 0, days: [0, 0, 0] };
    await board.loadOlder();
    await board.loadOlder();
    expect([asked.length, board.left.older]).toEqual([2, 0]);
  });

  test.each<[string, Row, number]>([
    ["one that was left out", row("x", NOW, { created: 500 }), 9],
    ["a new one", row("x", NOW), 10],
    ["one that is here", row("runs", NOW, { created: 500 }), 10],
    ["a helper's", row("x", NOW, { created: 500, origin: { kind: "agent" } }), 10],
    ["one of a job", row("x", NOW, { created: 500, by: "task:1" }), 10],
  ])("told of %s, it counts what is left", (_, told, left) => {
    const board = started({ rows: [row("runs", 600, { created: 500, status: "running" })], before: 1_000, days: [0, 0, 10] });
    FakeSocket.last.say({ rows: [told] });
    expect(board.left.older).toBe(left);
  });

  test("a title is found among those that are not here", async () => {
    const board = started({ rows: [], before: 1_000, days: [0, 0, 10] });
    pages["kiwi"] = { rows: [row("far", 10, { title: "Kiwi" })] };
    await board.loadCalled("kiwi");
    expect([board.rows.has("far"), board.left.older]).toEqual([true, 9]);
    const all = started({ rows: [], before: 0 });
    asked = [];
    await all.loadCalled("kiwi");
    expect(asked).toEqual([]); // everything is here
  });

  test("a host out of reach leaves what is there", async () => {
    const board = started({ rows: [row("a", NOW)], before: 1_000, days: [0, 0, 10] });
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("down")));
    await board.loadOlder();
    await board.loadCalled("kiwi");
    await board.loadArchive();
    expect([board.rows.size, board.left.older]).toEqual([1, 10]);
  });

  test("the archive comes page by page", async () => {
    const board = started({ rows: [row("a", NOW)], before: 0 });
    pages["board"] = { rows: [row("x", 50, { archived: true })], before: 50 };
    pages["50"] = { rows: [row("y", 40, { archived: true })], before: 0 };
    await board.loadArchive();
    expect(board.entries(true).map(({ id }) => id)).toEqual(["x", "y"]);
    expect(board.entries().map(({ id }) => id)).toEqual(["a"]);
  });

  describe("the list", () => {
    const keys = (list: ListView) => [...list.element.querySelectorAll<HTMLElement>(".entry")].map((entry) => entry.dataset["key"]);
    const counts = (list: ListView) => Object.fromEntries([...list.element.querySelectorAll<HTMLElement>(".group")].map((group) => [group.dataset["group"], group.querySelector(".group-count")?.textContent]));

    function thousands(): BoardStore {
      localStorage.setItem("portico.folded", "");
      const board = started({ rows: Array.from({ length: 10_000 }, (_, n) => row(`s${n}`, n < 5_000 ? NOW - n : NOW - 3 * DAY - n)) });
      return board;
    }

    test("of 10,000 rows a screen is built, all have their room, and a job of scrolling builds others", () => {
      const list = new ListView(thousands(), () => undefined);
      document.body.replaceChildren(list.element);
      list.render();
      expect(counts(list)).toEqual({ today: "5000", older: "5000" });
      const shown = keys(list).length;
      expect(shown).toBeGreaterThan(20);
      expect(shown).toBeLessThan(60);
      expect(list.element.querySelectorAll("*").length).toBeLessThan(1_500);
      expect(list.element.querySelector<HTMLElement>('[data-group="today"] .group-body')?.style.height).toBe(`${5_000 * 50}px`);
      list.element.scrollTop = 100_000;
      list.element.dispatchEvent(new Event("scroll"));
      expect(keys(list)).toContain("s/s2000");
      expect(keys(list)).not.toContain("s/s0");
      expect(keys(list).length).toBeLessThan(80);
    });

    test("a row with the focus stays in the page, and the keys go on from the chosen one", () => {
      const list = new ListView(thousands(), () => undefined);
      document.body.replaceChildren(list.element);
      list.render();
      list.element.querySelector<HTMLElement>('[data-key="s/s3"]')?.focus();
      list.element.scrollTop = 100_000;
      list.element.dispatchEvent(new Event("scroll"));
      expect(keys(list)[0]).toBe("s/s3");
      expect(document.activeElement?.getAttribute("data-key")).toBe("s/s3");
      list.select("s/s4999");
      expect([list.step(1)?.id, list.step(-1)?.id]).toEqual(["s5000", "s4998"]);
      list.select("s/s9999");
      expect(list.step(1)?.id).toBe("s9999");
      list.select("");
      expect([list.step(1)?.id, list.step(-1)?.id]).toEqual(["s0", "s9999"]);
    });

    test("those that are not here have their room as well, and come when it is seen", async () => {
      localStorage.setItem("portico.folded", "");
      const board = started({ rows: [row("a", NOW)], before: 1_000, days: [0, 0, 300] });
      pages["1000"] = { rows: Array.from({ length: 100 }, (_, n) => row(`o${n}`, 999 - n)), before: 900, days: [0, 0, 200] };
      const list = new ListView(board, () => undefined);
      list.render();
      expect(counts(list)).toEqual({ today: "1", older: "300" });
      expect(list.element.querySelectorAll(".ghost").length).toBeGreaterThan(0);
      await vi.waitFor(() => expect(board.rows.size).toBe(101));
      list.render();
      expect(counts(list)).toEqual({ today: "1", older: "300" });
      expect(list.element.querySelector<HTMLElement>('[data-group="older"] .group-body')?.style.height).toBe(`${300 * 50}px`);
      expect(keys(list)).toContain("s/o0");
    });

    test("under the pointer no row moves, and half a second after it left they are in order", () => {
      const board = started({ rows: [row("a", NOW - 1), row("b", NOW - 2), row("c", NOW - 3)] });
      const list = new ListView(board, () => undefined);
      document.body.replaceChildren(list.element);
      list.render();
      list.element.dispatchEvent(new Event("pointerenter"));
      board.rows.set("c", { ...row("c", NOW, { status: "running" }), activity: "Running make" });
      board.rows.set("d", row("d", NOW));
      list.render();
      expect(keys(list)).toEqual(["s/a", "s/b", "s/c"]);
      expect(list.element.textContent).toContain("Running make");
      expect(counts(list)).toEqual({ today: "3" });
      list.element.dispatchEvent(new Event("pointerleave"));
      vi.advanceTimersByTime(499);
      expect(keys(list)).toEqual(["s/a", "s/b", "s/c"]);
      vi.advanceTimersByTime(1);
      expect(keys(list)).toEqual(["s/c", "s/d", "s/a", "s/b"]);
    });

    test("a session is pinned at the host, a job in this browser", async () => {
      const host = new V1Host({ "PUT /sessions/a/pin": {}, "PUT /sessions/b/pin": {} });
      const board = started({ rows: [row("a", NOW - 1), row("b", NOW - 2, { features: { chats: { pinned: 5 } } })] });
      const list = new ListView(board, () => undefined);
      list.render();
      expect(counts(list)).toEqual({ pinned: "1", today: "1" });
      list.element.querySelector<HTMLElement>('[aria-label="Pin Session a"]')?.click();
      list.element.querySelector<HTMLElement>('[aria-label="Unpin Session b"]')?.click();
      expect(["a", "b"].map((id) => host.bodies.get(`PUT /sessions/${id}/pin`))).toEqual([{ pinned: true }, { pinned: false }]);
      expect(localStorage.getItem("portico.pinned")).toBeNull();
    });

    test("pins of an older page move to the host; those that it refuses stay here", async () => {
      localStorage.setItem("portico.pinned", "s/a,s/gone,s/theirs,j/job-1");
      const host = new V1Host({ "PUT /sessions/a/pin": {}, "PUT /sessions/theirs/pin": 403 });
      new ListView(started({ rows: [row("a", NOW)] }), () => undefined);
      await vi.waitFor(() => expect(localStorage.getItem("portico.pinned")).toBe("s/theirs,j/job-1"));
      expect(host.calls.filter((call) => call.startsWith("PUT"))).toEqual(["PUT /sessions/a/pin", "PUT /sessions/gone/pin", "PUT /sessions/theirs/pin"]);
    });

    test("who only filters for words asks the host, too, after a moment and once", async () => {
      const board = started({ rows: [row("a", NOW)], before: 1_000, days: [0, 0, 10] });
      pages["far kiwi"] = { rows: [row("k", 10, { title: "A far kiwi" })] };
      const list = new ListView(board, () => undefined);
      for (const text of ["is:done far", "is:done far kiwi"]) list.filter.set(text);
      expect(counts(list)).toEqual({});
      await vi.advanceTimersByTimeAsync(250);
      await vi.waitFor(() => expect(board.rows.has("k")).toBe(true));
      expect(asked.map((url) => url.searchParams.get("q"))).toEqual(["far kiwi"]);
      list.render();
      expect([keys(list), counts(list)]).toEqual([["s/k"], { older: "1" }]);
      expect(list.filter.chips.textContent).toBe("is:done");
      list.filter.chips.querySelector("button")?.click();
      expect(list.filter.text).toBe("far kiwi");
    });
  });
});
