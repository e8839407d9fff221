/** The live list: jobs next to the rows of the board, when answers fail or arrive out of order. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BoardStore } from "../src/app/boardStore";
import { Net } from "./net";

const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

class FakeSocket {
  static last: FakeSocket;
  static count = 0;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.last = this;
    FakeSocket.count += 1;
  }

  send(page: object): void {
    this.onmessage?.({ data: JSON.stringify({ version: 1, rows: [], ...page }) });
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  FakeSocket.count = 0;
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
});

const job = (status: string, id = "j1") => ({ id, name: "release", status, started: 1, cwd: "/w" });

async function begin(status = "running") {
  const net = new Net({ "GET /jobs": { jobs: [job(status)] }, "GET /jobs/j1": job(status), "GET /agents": { agents: [], default: null } });
  const board = new BoardStore();
  board.start();
  FakeSocket.last.send({});
  await tick(50);
  const serve = (now: string) => Object.assign(net.answers, { "GET /jobs": { jobs: [job(now)] }, "GET /jobs/j1": job(now) });
  return { net, board, serve, status: () => board.jobs.get("j1")?.status };
}

test("an answer that arrives out of order does not leave a finished job as running", async () => {
  const { net, serve, status } = await begin();
  net.hold();
  FakeSocket.last.send({ jobs: ["j1"] });
  await tick();
  serve("succeeded");
  FakeSocket.last.send({ jobs: ["j1"] });
  await tick();
  await net.release("reversed");
  await tick(50);
  expect(status()).toBe("succeeded");
});

test("the whole list that was requested before does not replace a newer job, nor remove it", async () => {
  const { net, board, serve, status } = await begin();
  FakeSocket.last.onclose?.();
  await tick(500);
  net.hold();
  Object.assign(net.answers, { "GET /jobs": { jobs: [] } });
  FakeSocket.last.send({}); // connected again: it requests the list
  await tick();
  serve("succeeded");
  FakeSocket.last.send({ jobs: ["j1"] });
  await tick();
  await net.release("reversed");
  await tick(50);
  expect([status(), board.jobs.size]).toEqual(["succeeded", 1]);
});

test.each<["offline" | number]>([["offline"], [502]])("a request for a job that fails (%s) is retried", async (how) => {
  const { net, serve, status } = await begin();
  serve("succeeded");
  net.failing = [how, how];
  FakeSocket.last.send({ jobs: ["j1"] });
  await tick(3000);
  expect(status()).toBe("succeeded");
});

test("a job that was erased leaves the list", async () => {
  const { net, board } = await begin();
  delete net.answers["GET /jobs/j1"];
  FakeSocket.last.send({ jobs: ["j1"] });
  await tick(50);
  expect(board.jobs.size).toBe(0);
});

test("a closed socket is opened again, later each time, and immediately when another part has reached the host", async () => {
  const { board } = await begin();
  for (const wait of [500, 1000, 2000]) {
    FakeSocket.last.onclose?.();
    const before = FakeSocket.count;
    await tick(wait - 1);
    expect(FakeSocket.count).toBe(before);
    await tick(1);
    expect(FakeSocket.count).toBe(before + 1);
  }
  FakeSocket.last.onclose?.();
  const before = FakeSocket.count;
  expect(board.retryAt - Date.now()).toBe(4000);
  board.retryNow();
  expect(FakeSocket.count).toBe(before + 1);
  FakeSocket.last.send({});
  expect(board.downSince).toBeUndefined();
});

test("the clock stops when the connection ends, and never goes back", async () => {
  const { board } = await begin();
  await tick(2_000);
  FakeSocket.last.onclose?.();
  const stopped = board.now;
  for (const later of [500, 1_400, 200, 5_000]) {
    await tick(later);
    expect(board.now).toBe(stopped);
  }
  FakeSocket.last.send({});
  expect(board.now).toBe(Date.now());
});

test("the names of agents are stored for the next start, even if they arrive right after the list", async () => {
  const { net, board } = await begin();
  expect(localStorage.getItem("portico.board.more")).toContain('"names":[]');
  net.answers["GET /agents"] = { agents: [{ id: "codex", name: "Codex" }], default: null };
  FakeSocket.last.onclose?.();
  await tick(1_000);
  FakeSocket.last.send({});
  await tick(50);
  expect(board.agentName("codex")).toBe("Codex");
  await tick(5_000);
  expect(localStorage.getItem("portico.board.more")).toContain("Codex");
});
