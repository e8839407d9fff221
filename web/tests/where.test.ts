// @vitest-environment jsdom
import { afterEach, describe, expect, it, vi } from "vitest";
import { offerWhere } from "../src/app/where";

function hosts(...all: object[]): void {
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ hosts: all }), { headers: { "Content-Type": "application/json" } }));
}

async function offered(): Promise<[string[], () => object]> {
  document.body.innerHTML = "<form><p></p></form>";
  const where = await offerWhere(document.querySelector("p") as Element);
  return [[...document.querySelectorAll("select")].map(({ name, options }) => `${name}: ${[...options].map(({ value }) => value).join(",")}`), where];
}

afterEach(() => vi.unstubAllGlobals());

describe("where something new runs", () => {
  it.each([
    ["a host that is alone", [], []],
    ["hosts of one place", [{ place: "a", state: "up" }, { place: "a", state: "up", labels: [] }], []],
    ["a place that is away", [{ place: "a", state: "up" }, { place: "b", state: "away" }], []],
    ["two places", [{ place: "b", state: "up" }, { place: "a", state: "up" }], ["place: ,a,b"]],
    ["a label", [{ place: "a", state: "up", labels: ["gpu"] }, { place: "a", state: "away", labels: ["big", "gpu"] }], ["label: ,big,gpu"]],
  ])("%s", async (_, all, fields) => {
    hosts(...all);
    expect((await offered())[0]).toEqual(fields);
  });

  it("says what was chosen, and nothing else", async () => {
    hosts({ place: "a", state: "up", labels: ["gpu"] }, { place: "b", state: "up" });
    const [, where] = await offered();
    expect(where()).toEqual({});
    (document.querySelector("#place") as HTMLSelectElement).value = "b";
    expect(where()).toEqual({ place: "b" });
  });

  it("offers nothing where the host does not answer", async () => {
    vi.stubGlobal("fetch", async () => Promise.reject(new Error("away")));
    expect((await offered())[0]).toEqual([]);
  });
});
