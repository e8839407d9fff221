/** The sections of the settings: what each shows, and what its buttons do. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SettingsView } from "../src/app/settings";
import type { Listed, ViewContext } from "../src/app/view";
import { button, choose, stubDialogs, submit, textOf, textsOf, type } from "./dom";
import { V1Host } from "./v1Host";

const NOW = Date.now();
const DAY = 86_400_000;

let host: V1Host;
let view: SettingsView | undefined;
const titled = vi.fn();

beforeEach(() => {
  stubDialogs();
  host = new V1Host();
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
});
afterEach(() => {
  view?.leave();
  vi.unstubAllGlobals();
  titled.mockClear();
  localStorage.clear();
  document.body.replaceChildren();
});

function open(section: string, answers: V1Host["answers"] = {}, rows: [string, object][] = []): void {
  Object.assign(host.answers, answers);
  const context = { board: { rows: new Map(rows) }, go: vi.fn(), titled };
  view = new SettingsView(section, context as unknown as ViewContext);
  document.body.replaceChildren(view.element);
}

const rows = () => [...document.querySelectorAll("tr")].slice(1).map((row) => [...row.cells].map(({ textContent }) => textContent));
const loaded = (text: string) => vi.waitFor(() => expect(document.body.textContent).toContain(text));

test("every section is linked, and the one that is open is marked", () => {
  open("tokens", { "GET /tokens": { tokens: [] } });
  expect(textsOf("nav a")).toEqual(["This device", "Agents", "Devices", "Tokens", "People", "Audit", "Hosts", "This host"]);
  expect(textsOf("nav a[aria-current]")).toEqual(["Tokens"]);
  expect(view?.title).toBe("Settings: Tokens");
});

test("More lists what has no room in the bar of a phone, and loads nothing", () => {
  const context = { board: { rows: new Map() }, go: vi.fn(), titled } as unknown as ViewContext;
  const usage = { name: "usage", row: { title: "Usage", icon: "usage" }, place: { at: "usage" } } as unknown as Listed;
  view = new SettingsView("more", context, [usage]);
  document.body.replaceChildren(view.element);
  expect(textsOf(".navitem").slice(0, 4)).toEqual(["New session", "Start a job", "Usage", "This device"]);
  expect(new Set([...document.querySelectorAll(".navitem svg")].map(({ innerHTML }) => innerHTML)).size).toBeGreaterThan(8);
  expect([view.title, host.calls]).toEqual(["More", []]);
});

test("a section whose request fails shows the reason of the host", async () => {
  open("tokens", { "GET /tokens": 403 });
  await loaded("refused with 403");
  expect(textOf(".trouble")).toBe("refused with 403");
});

describe("this device", () => {
  test("a choice is stored and applied without a reload", async () => {
    open("look");
    await loaded("Colors");
    choose(document.getElementById("setting-theme")!, "dark");
    expect(document.documentElement.dataset["theme"]).toBe("dark");
    choose(document.getElementById("setting-theme")!, "light");
    choose(document.getElementById("setting-enterSends")!, "false");
    expect(document.documentElement.dataset["theme"]).toBe("light");
    expect(JSON.parse(localStorage.getItem("portico.preferences") ?? "{}")).toMatchObject({ theme: "light", enterSends: false });
    choose(document.getElementById("setting-enterSends")!, "true");
  });

  test("every field has a label", async () => {
    open("look");
    await loaded("Colors");
    const fields = [...document.querySelectorAll("select")];
    expect(fields.map(({ labels }) => labels?.[0]?.textContent)).toEqual(["Colors", "Contrast", "Changes", "Enter", "Single-letter shortcuts"]);
  });

  test("a browser without push says what it needs", async () => {
    open("look");
    await loaded("push needs https");
  });
});

describe("agents", () => {
  const AGENTS = {
    agents: [
      { id: "codex", name: "Codex", models: [{ id: "a", name: "A" }, { id: "b", name: "B" }] },
      { id: "claude", name: "Claude Code", missing: "It is not signed in." },
    ],
    known: [],
  };

  test("each has its state and the number of its models", async () => {
    open("agents", { "GET /agents": AGENTS });
    await loaded("Codex");
    expect(rows()).toEqual([
      ["Codex", "Ready", "2", "Check"],
      ["Claude Code", "It is not signed in.", "0", "Check"],
    ]);
    expect([...document.querySelectorAll("td .bad")].map(({ textContent }) => textContent)).toEqual(["It is not signed in."]);
  });

  test.each<[string, object | number, string, string]>([
    ["answers", { status: "ready" }, "Ready: it answered", "good"],
    ["is not ready", { status: "failed", detail: "No key." }, "No key.", "bad"],
    ["gives no reason", { status: "slow" }, "slow", "bad"],
    ["cannot be checked", 500, "refused with 500", "bad"],
  ])("Check of an agent that %s", async (_, answer, said, look) => {
    open("agents", { "GET /agents": AGENTS, "POST /agents/codex/check": answer });
    await loaded("Codex");
    const check = button("Check Codex");
    check.click();
    expect([check.disabled, rows()[0]?.[1]]).toEqual([true, "Starting it…"]);
    await vi.waitFor(() => expect(rows()[0]?.[1]).toBe(said));
    expect(document.querySelector("td span")!.className).toBe(look);
    await vi.waitFor(() => expect(check.disabled).toBe(false));
  });
});

describe("tokens", () => {
  const TOKENS = {
    tokens: [
      { name: "phone", scopes: ["read", "approve"], created: NOW },
      { name: "old", scopes: ["read"], created: NOW - 90 * DAY, expires: NOW - DAY },
    ],
  };

  test("each has its permissions and its end", async () => {
    open("tokens", { "GET /tokens": TOKENS });
    await loaded("phone");
    const [phone, old] = rows();
    expect([phone?.[0], phone?.[1], phone?.[3]]).toEqual(["phone", "read, approve", "never"]);
    expect(old?.[3]).toMatch(/^ended /);
  });

  test("no other tokens", async () => {
    open("tokens", { "GET /tokens": { tokens: [] } });
    await loaded("No other tokens.");
    expect(document.querySelector("table")).toBeNull();
  });

  test("one is revoked after a question, and the list is read again", async () => {
    open("tokens", { "GET /tokens": TOKENS, "DELETE /tokens/phone": {} });
    await loaded("phone");
    button("Revoke phone").click();
    expect([textOf("dialog h2"), host.calls]).toEqual(["Revoke phone?", ["GET /tokens"]]);
    button("Revoke", document.querySelector("dialog")!).click();
    await vi.waitFor(() => expect(host.calls).toEqual(["GET /tokens", "DELETE /tokens/phone", "GET /tokens"]));
  });

  test("a failed revocation is shown, and the token stays in the list", async () => {
    open("tokens", { "GET /tokens": TOKENS, "DELETE /tokens/phone": 500 });
    await loaded("phone");
    button("Revoke phone").click();
    button("Revoke", document.querySelector("dialog")!).click();
    await vi.waitFor(() => expect(textOf(".trouble")).toBe("refused with 500"));
    expect(rows()[0]?.[0]).toBe("phone");
  });

  test("a new one is sent with what is ticked, and shown once", async () => {
    open("tokens", { "GET /tokens": TOKENS, "POST /tokens": { token: "secret-1" } });
    await loaded("New token");
    type(document.querySelector("form input")!, "script");
    document.querySelector<HTMLInputElement>("[value=jobs]")!.click();
    choose(document.querySelector("form select")!, "7");
    submit(document.querySelector("form")!);
    await loaded("secret-1");
    expect(host.bodies.get("POST /tokens")).toEqual({ name: "script", scopes: ["read", "jobs"], days: 7 });
    expect(document.querySelector(".token-once")!.getAttribute("aria-label")).toBe("The token script");
  });

  test("one without an end has no days", async () => {
    open("tokens", { "GET /tokens": TOKENS, "POST /tokens": { token: "secret-2" } });
    await loaded("New token");
    choose(document.querySelector("form select")!, "");
    submit(document.querySelector("form")!);
    await loaded("secret-2");
    expect(host.bodies.get("POST /tokens")).toEqual({ name: "", scopes: ["read"] });
  });

  test("a refused name keeps what was entered", async () => {
    open("tokens", { "GET /tokens": TOKENS, "POST /tokens": 400 });
    await loaded("New token");
    type(document.querySelector("form input")!, "a b");
    submit(document.querySelector("form")!);
    await vi.waitFor(() => expect(textOf("form .bad")).toBe("refused with 400"));
    expect(document.querySelector<HTMLInputElement>("form input")!.value).toBe("a b");
  });
});

describe("people", () => {
  test("sessions are counted by person; those of jobs are left out", async () => {
    const sessions = [
      { id: "a", by: "token:ann", status: "running", modified: NOW },
      { id: "b", by: "token:ann", status: "waiting", modified: NOW },
      { id: "c", by: "task:t1", status: "running", modified: NOW },
      { id: "d", by: "person:ben@example.org", status: "idle", modified: NOW },
      { id: "e", by: "task:t2", owner: "cleo", status: "idle", modified: NOW },
    ];
    open("people", { "GET /sessions": { sessions }, "GET /people/me": { person: "", scopes: [], admin: false, quotas: [], tokens: [] } });
    await loaded("Sessions of people");
    expect(rows().map((row) => row.slice(0, 4))).toEqual([["ann", "2", "1", "1"], ["ben@example.org", "1", "", ""], ["cleo", "1", "", ""]]);
    expect(document.querySelector("td a")!.getAttribute("href")).toContain("filter=by%3Aann");
  });
});

describe("audit", () => {
  test("records are shown newest first, equal ones together, with their details in words", async () => {
    const audit = [
      { time: NOW - 2000, action: "token.made", by: "token:owner", detail: { token_name: "phone", scopes: ["read", "files"] } },
      { time: NOW - 1000, action: "login", by: "token:phone" },
    ];
    open("audit", { "GET /audit?after=0&limit=1000": { audit, next: null } });
    await loaded("2 records, newest first.");
    expect(rows().map(([, ...cells]) => cells)).toEqual([
      ["login", "phone", ""],
      ["token.made", "You", "token name: phone · scopes: read, files"],
    ]);
  });

  test("further pages are read until the last", async () => {
    const record = (action: string) => ({ time: NOW, action, by: "token:owner" });
    open("audit", { "GET /audit?after=0&limit=1000": { audit: [record("first")], next: 9 }, "GET /audit?after=9&limit=1000": { audit: [record("second")], next: null } });
    await loaded("2 records");
    expect(rows().map(([, action]) => action)).toEqual(["second", "first"]);
  });
});

describe("hosts", () => {
  const ABOUT = { version: "0.3.0", log: { seq: 1 }, workspaces: [] };

  test("a host that is alone is the only row", async () => {
    open("hosts", { "GET ": ABOUT, "GET /hosts": { hosts: [] } }, [["s1", { session: { status: "running" } }], ["s2", { session: { status: "idle" } }]]);
    await loaded("One host");
    expect(rows().map((row) => row.slice(3, 7))).toEqual([["up", "2", "1", "0.3.0"]]);
  });

  test("several are listed with place, labels and load; the one that answers is marked", async () => {
    const hosts = [
      { name: "one", place: "rack", labels: ["gpu", "big"], state: "up", sessions: 4, running: 2, capacity: 8, version: "0.3.0", seen: NOW, here: true },
      { name: "two", place: "desk", state: "lost", version: "0.3.0", seen: NOW },
    ];
    open("hosts", { "GET ": ABOUT, "GET /hosts": { hosts } });
    await loaded("2 hosts");
    expect(rows().map((row) => row.slice(0, 6))).toEqual([
      ["one (answers here)", "rack", "gpu, big", "up", "4", "2 of 8"],
      ["two", "desk", "", "lost", "0", "0"],
    ]);
  });
});

describe("stopping the host", () => {
  const open_ = async () => {
    open("host", { "GET ": { version: "0.3.0", log: { seq: 1 } }, "GET /settings": { path: "settings.toml", settings: [] }, "POST ./api/stop": {} });
    await loaded("version 0.3.0");
    button("Stop the host…").click();
    return document.querySelector("dialog")!;
  };

  test("needs the name of the host; a wrong one does nothing", async () => {
    const box = await open_();
    const go = button("Stop the host", box);
    expect([go.disabled, textOf("label", box)]).toEqual([true, `Type ${window.location.hostname} to confirm`]);
    type(box.querySelector("input")!, "other");
    submit(box.querySelector("form")!);
    expect([go.disabled, host.calls.filter((each) => each.includes("stop"))]).toEqual([true, []]);
    type(box.querySelector("input")!, window.location.hostname);
    expect(go.disabled).toBe(false);
    submit(box.querySelector("form")!);
    await vi.waitFor(() => expect(titled).toHaveBeenCalledWith("Stopped", view));
    expect(host.calls.at(-1)).toBe("POST ./api/stop");
  });

  test("an error is shown", async () => {
    const box = await open_();
    host.answers["POST ./api/stop"] = 500;
    type(box.querySelector("input")!, window.location.hostname);
    submit(box.querySelector("form")!);
    await vi.waitFor(() => expect(textOf(".trouble")).toBe("refused with 500"));
    expect(titled).not.toHaveBeenCalled();
  });
});
