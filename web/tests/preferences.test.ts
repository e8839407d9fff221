/** Preferences of a device: what is stored, what is applied, and what happens where nothing may be stored. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

type Module = typeof import("../src/app/preferences");

let system: Record<string, boolean>;

beforeEach(() => {
  vi.resetModules();
  localStorage.clear();
  system = {};
  vi.stubGlobal("matchMedia", (query: string) => ({ matches: system[query] ?? false, addEventListener: () => undefined }));
  document.head.innerHTML = '<meta name="theme-color" content="">';
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
  delete document.documentElement.dataset["theme"];
  delete document.documentElement.dataset["contrast"];
});

/** As after a reload. */
const load = async (): Promise<Module> => {
  vi.resetModules();
  return import("../src/app/preferences");
};
const look = () => [document.documentElement.dataset["theme"], document.documentElement.dataset["contrast"], document.querySelector("meta")!.content];

test("the defaults of a new device", async () => {
  expect((await load()).preferences()).toEqual({ theme: "system", contrast: "system", enterSends: true, letters: true, sideBySide: "auto" });
});

test("a choice survives a reload; the others keep their defaults", async () => {
  (await load()).setPreference("enterSends", false);
  const { prefer } = await load();
  expect([prefer("enterSends"), prefer("letters")]).toEqual([false, true]);
});

test.each(["", "no JSON", "[1", "{"])("stored %j counts as nothing", async (text) => {
  localStorage.setItem("portico.preferences", text);
  expect((await load()).prefer("theme")).toBe("system");
});

test("where nothing may be stored, a choice holds until the page is closed", async () => {
  const { prefer, setPreference, remember } = await load();
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("QuotaExceededError");
  });
  setPreference("theme", "dark");
  remember("list", "300");
  expect([prefer("theme"), look()[0]]).toEqual(["dark", "dark"]);
});

describe("the look", () => {
  const [DARK, MORE] = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"];
  test.each<[theme: "system" | "light" | "dark", contrast: "system" | "more", system: Record<string, boolean>, wanted: unknown[]]>([
    ["system", "system", {}, ["light", undefined, "#f5f6f8"]],
    ["system", "system", { [DARK]: true }, ["dark", undefined, "#0f1115"]],
    ["light", "system", { [DARK]: true }, ["light", undefined, "#f5f6f8"]],
    ["dark", "system", {}, ["dark", undefined, "#0f1115"]],
    ["dark", "more", {}, ["dark", "more", "#0f1115"]],
    ["system", "system", { [MORE]: true }, ["light", "more", "#f5f6f8"]],
  ])("%s, contrast %s, system %j", async (theme, contrast, of, wanted) => {
    system = of;
    const { setPreference } = await load();
    setPreference("theme", theme);
    setPreference("contrast", contrast);
    expect(look()).toEqual(wanted);
  });

  test("it follows the system while the page is open", async () => {
    const listeners: (() => void)[] = [];
    vi.stubGlobal("matchMedia", (query: string) => ({ matches: system[query] ?? false, addEventListener: (_: string, run: () => void) => listeners.push(run) }));
    (await load()).watchLook();
    expect(look()[0]).toBe("light");
    system = { [DARK]: true };
    listeners.forEach((run) => run());
    expect(look()[0]).toBe("dark");
  });
});

test.each([
  [390, "small"],
  [1279, "small"],
  [1280, "middle"],
  [1799, "middle"],
  [1800, "large"],
])("%i px is a %s screen", async (width, wanted) => {
  vi.stubGlobal("innerWidth", width);
  expect((await load()).sizeClass()).toBe(wanted);
});

test("small things are remembered by name, and forgotten", async () => {
  const { remember, remembered } = await load();
  remember("list", "300");
  expect([remembered("list"), remembered("panel")]).toEqual(["300", undefined]);
  remember("list", undefined);
  expect(remembered("list")).toBeUndefined();
});
