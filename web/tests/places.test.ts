/** The table of places: one row is all that a page needs, and modules depend on each other in one direction. */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, resolve } from "node:path";
import { expect, test, vi } from "vitest";
import { addPage, addressOf, isAt, linked, listed, rowOf } from "../src/app/places";
import { pathOf, placeOf } from "../src/app/router";
import type { Link, ViewContext } from "../src/app/view";

const context = {} as ViewContext;

test.each(listed().map((each) => [each.name, each] as const))("%s: its link leads to it, and nowhere else", (name, each) => {
  const place = placeOf(addressOf(each).replace(/^\./, ""));
  expect(place).toEqual(each.place);
  expect(rowOf(place)).toBe(each.row);
  expect(listed().filter((other) => isAt(place, other)).map((other) => other.name)).toEqual([name]);
});

test("keys, titles and addresses are unique", () => {
  for (const of of [({ row }) => row.key, ({ row }) => row.title, addressOf] as ((each: ReturnType<typeof listed>[number]) => string | undefined)[]) {
    const all = listed().map(of).filter((each) => each !== undefined);
    expect(new Set(all).size).toBe(all.length);
  }
});

test("links: the column, the bar of a phone, and what is behind More there", () => {
  // Other test files add pages to the same table.
  const builtIn = (link: Link) => linked(link).filter(({ place }) => place.at !== "page").map(({ name }) => name);
  expect(builtIn("side")).toEqual(["inbox", "jobs", "automations", "usage"]);
  expect(builtIn("bar")).toEqual(["inbox", "jobs", "more"]);
  expect(builtIn("more")).toEqual(["automations", "usage"]);
});

test("a new page is one row: its address, its link, its key and its view", async () => {
  expect(placeOf("/app/plans/p1/x%20y")).toEqual({ at: "unknown", path: "/app/plans/p1/x%20y" });
  const view = { element: document.createElement("section"), title: "Plans" };
  const load = vi.fn(async () => view);
  addPage("plans", { title: "Plans", icon: "note", key: "g p", links: ["side", "more"], view: load });
  const place = placeOf("/app/plans/p1/x%20y");
  expect(place).toEqual({ at: "page", name: "plans", rest: ["p1", "x y"] });
  expect(pathOf(place).replace(/^\./, "")).toBe("/app/plans/p1/x%20y");
  expect(linked("side").map(({ name }) => name)).toContain("plans");
  expect(listed().find(({ name }) => name === "plans")?.row.key).toBe("g p");
  expect(await rowOf(place)!.view(context, place as never)).toBe(view);
  expect(load).toHaveBeenCalledWith(context, place);
  for (const name of ["plans", "inbox"]) expect(() => addPage(name, { title: "", icon: "note", view: load })).toThrow(/Choose another name/);
});

/** Modules that import each other, types included: they are understood and changed only together. */
function cycles(folder: string): string[][] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const imports = new Map(
    files.map((name) => {
      const found = [...readFileSync(join(folder, name), "utf8").matchAll(/(?:from|import)\s*\(?"(\.[^"]+)"/g)];
      return [name, found.map(([, path = ""]) => `${posix.join(dirname(name), path)}.ts`).filter((path) => files.includes(path))];
    }),
  );
  const reach = new Map(files.map((name) => [name, new Set<string>()]));
  for (const [name, seen] of reach) {
    const open = [...(imports.get(name) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...(imports.get(next) ?? []));
    }
  }
  const groups = files.filter((name) => reach.get(name)?.has(name)).map((name) => files.filter((other) => reach.get(name)?.has(other) && reach.get(other)?.has(name)));
  return [...new Map(groups.map((group) => [group.join(), group])).values()];
}

test("no cycle of imports has more than four modules", () => {
  const found = cycles(resolve(import.meta.dirname, "../src"));
  expect(found.filter((group) => group.length > 4)).toEqual([]);
  expect(found.length).toBeLessThanOrEqual(4);
});
