/** The settings of the host: groups, search, values for people, and editing in place. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HostSettings } from "../src/app/hostSettings";
import { type Form, parsed, shown, written } from "../src/app/settingValue";
import type { SettingShown } from "../src/rest";

const setting = (key: string, form: Form, value: unknown, more: Partial<SettingShown> = {}): SettingShown => ({ key, value, default: value, origin: "default", about: `About ${key}.`, form, choices: [], editable: true, restart: false, ...more });
const LIST = [
  setting("default_agent", "text", ""),
  setting("agent.max_steps", "number", 200),
  setting("agent.require_approval", "choice", "edits", { choices: ["none", "edits", "all"] }),
  setting("approvals.edits", "list", ["docs/**"], { origin: "/home/settings.toml" }),
  setting("budgets.day", "table", {}),
  setting("server.port", "number", 8888, { editable: false, restart: true, about: "The port. Read at start." }),
  setting("quotas.turns", "number", 3, { origin: "env PORTICO_QUOTAS_TURNS" }),
];

const sent: { key: string; value?: unknown }[] = [];
let answer: () => Response;

beforeEach(() => {
  sent.length = 0;
  answer = () => Response.json({ ...sent.at(-1), origin: "/home/settings.toml", restart: false });
  vi.stubGlobal("fetch", async (_: unknown, init: RequestInit) => (sent.push(JSON.parse(String(init.body))), answer()));
  document.body.replaceChildren(new HostSettings({ path: "/home/settings.toml", settings: LIST }).element);
});
afterEach(() => vi.unstubAllGlobals());

const keys = () => [...document.querySelectorAll<HTMLElement>(".setting")].map(({ dataset }) => dataset["key"]);
const rowOf = (key: string) => document.querySelector<HTMLElement>(`[data-key="${key}"]`)!;
const press = (key: string, text: string) => [...rowOf(key).querySelectorAll("button")].find((each) => each.textContent === text)!.click();
const enter = (key: string, text: string) => ((rowOf(key).querySelector<HTMLInputElement>("[name=value]")!.value = text), press(key, "Save"));

test("settings are grouped; a mark names those that need a restart; those of the file or the environment have no Edit", () => {
  expect([...document.querySelectorAll("h3")].map(({ textContent }) => textContent)).toEqual(["General", "Agents", "Approvals", "Budgets", "Quotas", "Server"]);
  expect([...document.querySelectorAll(".setting:has(.chip)")].map((row) => (row as HTMLElement).dataset["key"])).toEqual(["server.port"]);
  expect(rowOf("server.port").textContent).not.toContain("Read at start");
  expect(["server.port", "quotas.turns"].map((key) => rowOf(key).querySelectorAll("button").length)).toEqual([0, 0]);
  expect(rowOf("quotas.turns").textContent).toContain("Environment: PORTICO_QUOTAS_TURNS");
});

test("words search keys and descriptions; a box leaves what is changed", () => {
  const search = document.querySelector<HTMLInputElement>("input[type=search]")!;
  const type = (text: string) => ((search.value = text), search.dispatchEvent(new Event("input")));
  type("about approv");
  expect(keys()).toEqual(["agent.require_approval", "approvals.edits"]);
  type("nonsense");
  expect(document.body.textContent).toContain("No setting matches.");
  type("");
  document.querySelector<HTMLInputElement>("input[type=checkbox]")!.click();
  expect(keys()).toEqual(["approvals.edits", "quotas.turns"]);
});

test("a value is edited, saved and shown; an error of the host stays in the form with what was typed", async () => {
  press("agent.max_steps", "Edit");
  expect(document.activeElement).toBe(rowOf("agent.max_steps").querySelector("[name=value]"));
  answer = () => Response.json({ error: "'agent.max_steps' must be at least 1.", code: "bad_request" }, { status: 400 });
  enter("agent.max_steps", "-3");
  await vi.waitFor(() => expect(rowOf("agent.max_steps").querySelector("[role=alert]")!.textContent).toContain("must be at least 1"));
  expect(rowOf("agent.max_steps").querySelector<HTMLInputElement>("[name=value]")!.value).toBe("-3");
  answer = () => Response.json({ ...sent.at(-1), origin: "/home/settings.toml", restart: false });
  enter("agent.max_steps", "30");
  await vi.waitFor(() => expect(rowOf("agent.max_steps").textContent).toContain("Settings file"));
  expect(rowOf("agent.max_steps").querySelector(".setting-value")!.textContent!.trim()).toBe("30");
  expect(sent).toEqual([{ key: "agent.max_steps", value: -3 }, { key: "agent.max_steps", value: 30 }]);
});

test("Reset removes the line; Escape closes the form and changes nothing", async () => {
  press("approvals.edits", "Edit");
  press("approvals.edits", "Reset to default");
  await vi.waitFor(() => expect(sent).toEqual([{ key: "approvals.edits" }]));
  press("budgets.day", "Edit");
  rowOf("budgets.day").querySelector("form")!.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  expect(rowOf("budgets.day").querySelector("form")).toBeNull();
  expect(sent.length).toBe(1);
});

test("values as people read and write them", () => {
  const cases: [Form, unknown, string, string][] = [
    ["text", "loop", "loop", "loop"],
    ["text", "", "not set", ""],
    ["number", 1.5, "1.5", "1.5"],
    ["number", null, "not set", ""],
    ["boolean", true, "on", "true"],
    ["list", ["a b", "c"], "a b, c", "a b\nc"],
    ["list", [], "not set", ""],
    ["table", { dollars: 5, turns: 2 }, "dollars: 5, turns: 2", "dollars = 5\nturns = 2"],
    ["table", {}, "not set", ""],
  ];
  for (const [form, value, line, field] of cases) {
    expect([form, shown(value), written(value, form)]).toEqual([form, line, field]);
    expect(parsed(field, form)).toEqual(form === "table" && field === "" ? null : value);
  }
  for (const [form, text] of [["number", "many"], ["table", "dollars"], ["table", "dollars = much"]] as const) expect(() => parsed(text, form)).toThrow();
});
