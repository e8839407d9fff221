/** Routes of the host are called by their names in the generated types, so that a page cannot use a path or a field that the host does not have. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Refused } from "../src/failure";
import { ask, boardSocketAddress, channelAddress, exportAddress, request, socketAddress, v1 } from "../src/v1";

const source = resolve(import.meta.dirname, "../src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts") && name !== "rest.ts");
const text = (name: string) => readFileSync(join(source, name), "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");

describe("no path of the REST API is written by hand", () => {
  /** Addresses of streams, sockets and downloads are not requests, and are built here. */
  const ADDRESSES = "v1.ts";
  /** Passes the client on to modules of features, which have routes of their own. */
  const FEATURES = "app/featurePages.ts";

  test("there are files to check", () => expect(files.length).toBeGreaterThan(100));
  test.each(files.filter((name) => name !== ADDRESSES))("%s", (name) => {
    expect(text(name), "use `ask` of v1.ts, or build the address there").not.toMatch(/["'`/}]\/?v1\//);
    if (name !== FEATURES) expect(text(name), "use `ask`, not a path").not.toMatch(/\brequest\b[^;]*from "\.{1,2}\/v1"/);
  });
});

const answers: [status: number, body: object | undefined][] = [];
const asked: [method: string, address: string, body?: unknown][] = [];

function host(...given: [status: number, body?: object][]): void {
  answers.splice(0, answers.length, ...given.map(([status, body]): [number, object | undefined] => [status, body]));
  asked.length = 0;
  vi.stubGlobal("fetch", async (address: string, { method = "GET", body }: RequestInit) => {
    const path = address.replace(/^.*?\/v1/, "");
    asked.push(body ? [method, path, JSON.parse(String(body))] : [method, path]);
    const [status, answer] = answers.shift() ?? [500, {}];
    return new Response(answer === undefined ? null : JSON.stringify(answer), { status });
  });
}

afterEach(() => vi.unstubAllGlobals());

describe("a request by the name of its route", () => {
  test("fills the names in its path, encoded", async () => {
    host([200, {}]);
    await ask("PATCH /sessions/{id}/queue/{pending}", { id: "s/1", pending: "p 2" }, { body: { text: "hi" } });
    expect(asked).toEqual([["PATCH", "/sessions/s%2F1/queue/p%202", { text: "hi" }]]);
  });

  test("has its query behind it, also with a name twice", async () => {
    host([200, { events: [], head: 0, epoch: "" }]);
    await ask("GET /events", {}, { query: [["channel", "task/1"], ["channel", "job/2"]] });
    expect(asked).toEqual([["GET", "/events?channel=task%2F1&channel=job%2F2"]]);
  });

  test("sends an empty object where the route has a body and none is given", async () => {
    host([200, {}]);
    await v1.stopJob("j1");
    expect(asked).toEqual([["POST", "/jobs/j1/stop", {}]]);
  });

  test("an answer without content is undefined", async () => {
    host([204]);
    expect(await v1.revoke("g1")).toBeUndefined();
  });

  test("an error has the host's reason and the field that it is about", async () => {
    host([422, { error: "'' is no name.", field: "name" }]);
    const error = await ask("POST /automations", {}, { body: { name: "", plan: {} } }).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(Refused);
    expect([(error as Refused).status, (error as Refused).field]).toEqual([422, "name"]);
  });

  test("pages of features use paths of their own", async () => {
    host([200, { bookmarks: [] }]);
    expect(await request("GET", "/bookmarks")).toEqual({ bookmarks: [] });
    expect(asked).toEqual([["GET", "/bookmarks"]]);
  });
});

test.each([
  ["a channel", channelAddress("task/1", 7), "/v1/events?channel=task%2F1&after=7"],
  ["a terminal from the start", socketAddress("t/1", undefined), "ws://127.0.0.1:8888/v1/terminals/t%2F1/socket"],
  ["a terminal from a position", socketAddress("t1", 0), "ws://127.0.0.1:8888/v1/terminals/t1/socket?after=0"],
  ["the board", boardSocketAddress("2,1"), "ws://127.0.0.1:8888/v1/board/socket?days=2%2C1"],
  ["an export", exportAddress("s 1", "html"), "/v1/sessions/s%201/export?format=html"],
])("the address of %s", (_name, address, wanted) => expect(address.slice(-wanted.length)).toBe(wanted));
