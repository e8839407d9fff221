/** The first load of every page, as the host sends it: compressed, with all that the page needs before it can be used. */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

const built = resolve(import.meta.dirname, "../../src/portico/doors/pages");
const pages = readdirSync(built).filter((name) => name.endsWith(".html"));
const MOST = 200 * 1024;

const ADDRESSES = /(?:src|href)="\.\/([^"]+)"/g;
const IMPORTS = /(?:\bfrom|\bimport)\s*"(\.{1,2}\/[^"]+)"/g;

/** A file and what it loads at once, by name. What is imported by a call comes later. */
function needed(name: string, found = new Set<string>()): Set<string> {
  const path = join(built, name);
  if (found.has(name) || !existsSync(path) || !/\.(html|js|css|svg)$/.test(name)) return found;
  found.add(name);
  const text = readFileSync(path, "utf8");
  if (name.endsWith(".html")) for (const [, address = ""] of text.matchAll(ADDRESSES)) if (/\.(js|css|svg)$/.test(address)) needed(address, found);
  if (name.endsWith(".js")) for (const [, module = ""] of text.matchAll(IMPORTS)) needed(join(dirname(name), module), found);
  return found;
}

const compressed = (name: string) => statSync(join(built, `${name}.gz`)).size;

test("there are pages", () => expect(pages).toContain("index.html"));

test.each(pages)("%s is light", (page) => {
  const files = [...needed(page)];
  expect(files.some((name) => name.endsWith(".js"))).toBe(true);
  const size = files.reduce((sum, name) => sum + compressed(name), 0);
  expect(size, files.map((name) => `${name} ${compressed(name)}`).join("\n")).toBeLessThan(MOST);
});

/**
 * The first load shows the list. Code that shows conversations is loaded next to it; code colors and everything else on demand.
 * 68 KB since 0.3: `scope.ts` (1.6 KB) ends what a view started, lit-html (3.1 KB) keeps focus and presses through a render, cards
 * ignore early clicks, and receipts have an Undo.
 */
const FIRST_LOAD = 68 * 1024;

test("the first load of the workbench is at most 68 KB, and under 80 KB with its first conversation, as browsers request it", () => {
  const files = [...needed("app.html")];
  expect(files.reduce((sum, name) => sum + compressed(name), 0)).toBeLessThanOrEqual(FIRST_LOAD);
  const markdown = readdirSync(join(built, "assets")).filter((name) => /^markdown-.*\.js$/.test(name) && !readFileSync(join(built, "assets", name), "utf8").includes("Markdown"));
  const cards = readdirSync(join(built, "assets")).filter((name) => /^cards-.*\.js$/.test(name));
  expect(cards).toHaveLength(1);
  const brotli = (name: string) => statSync(join(built, `${name}.br`)).size;
  const conversation = new Set([...files, ...[...markdown, ...cards].flatMap((name) => [...needed(`assets/${name}`)])]);
  expect([...conversation].reduce((sum, name) => sum + brotli(name), 0)).toBeLessThan(80 * 1024);
});
