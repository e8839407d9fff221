/** What the design fixes of the look: sizes, weights and motion of the workbench's styles, and colours that can be read. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";

const SHEETS = ["app.css", "app-conversation.css", "app-places.css"];
const read = (name: string) => readFileSync(resolve(import.meta.dirname, "../public", name), "utf8");

/** Small, meta and tools, list and controls, text, text on a phone, fields, titles; code has a size of its own. */
const SIZES = ["12px", "13px", "14px", "15px", "15.5px", "16px", "18px"];
const CODE = /^(code, pre|\.diff|\.suggestion|\.entry-editor) \{.*(--mono)/;

describe.each(SHEETS)("%s", (name) => {
  const lines = read(name).split("\n");

  test("has letters of six sizes and three weights", () => {
    const strange = lines.flatMap((line) => {
      const sizes = [...line.matchAll(/font(?:-size)?: ?(?:\d+ )?([\d.]+px)/g)].map(([, size = ""]) => size).filter((size) => !SIZES.includes(size) && !(size === "12.5px" && CODE.test(line.trim())));
      const weights = [...line.matchAll(/font-weight: ?(\d+)|font: (\d+) /g)].map(([, one, other]) => one ?? other ?? "").filter((weight) => !["400", "500", "600"].includes(weight));
      return sizes.length + weights.length > 0 ? [`${[...sizes, ...weights].join(", ")} in ${line.trim().slice(0, 60)}`] : [];
    });
    expect(strange).toEqual([]);
  });

  /** A ring, a caret, the panel, what opens; rows that stand in for a list come late and do not move. */
  test("moves nothing else", () => {
    const moving = lines.flatMap((line) => [...line.matchAll(/(?:animation|transition): ([^;]+);/g)].map(([, what = ""]) => what.trim()));
    const known = ["spin 1.1s linear infinite", "blink 1.1s step-end infinite", "come 120ms ease-out", "unfold 100ms ease-out", "late 0s 150ms backwards", "none", "none !important"];
    expect(moving.filter((what) => !known.includes(what))).toEqual([]);
  });
});

type Colours = Record<string, string>;
const block = (selector: string): Colours => {
  const sheet = read("app.css");
  const from = sheet.indexOf(`${selector} {`);
  return Object.fromEntries([...sheet.slice(from, sheet.indexOf("}", from)).matchAll(/--([a-z0-9-]+): (#[0-9a-f]{3,6});/g)].map(([, name = "", value = ""]) => [name, value.length === 4 ? value.replace(/[0-9a-f]/g, "$&$&") : value]));
};
const light = block(":root");
const dark = { ...light, ...block(':root[data-theme="dark"]') };
const LOOKS: [name: string, colours: Colours][] = [
  ["light", light],
  ["dark", dark],
  ["light with contrast", { ...light, ...block(':root[data-contrast="more"]') }],
  ["dark with contrast", { ...dark, ...block(':root[data-theme="dark"][data-contrast="more"]') }],
];

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const each = (fronts: string[], grounds: string[], least: number) => fronts.flatMap((front) => grounds.map((ground): [string, string, number] => [front, ground, least]));
const PAIRS = [
  ...each(["text", "text2", "text3"], ["bg", "surface", "sunken", "hover", "selected"], 4.5),
  ...["accent", "need", "ok", "bad"].flatMap((name) => each([name], ["bg", "surface", "hover", "selected", `${name}-soft`], 4.5)),
  ...each(["on-accent"], ["accent"], 4.5),
  ...each(["kw", "str", "num", "fn", "com"], ["add", "del", "sunken", "surface"], 4.5),
  ...each(["text"], ["add-word", "del-word"], 4.5),
  ...each(["line2", "need-line"], ["bg", "surface"], 3),
];

test.each(LOOKS)("%s can be read", (_, colours) => {
  const faint = PAIRS.flatMap(([front, ground, least]) => {
    const [low = 0, high = 0] = [luminance(colours[front] ?? ""), luminance(colours[ground] ?? "")].sort((one, other) => one - other);
    const ratio = (high + 0.05) / (low + 0.05);
    return ratio >= least ? [] : [`${front} on ${ground}: ${ratio.toFixed(2)}`];
  });
  expect(faint).toEqual([]);
});

test("the logo of the workbench, the icon of the tab and the icon with a number are one drawing", () => {
  const path = (file: string, pattern: RegExp) => pattern.exec(readFileSync(resolve(import.meta.dirname, file), "utf8"))?.[1]?.replaceAll(/["/<>]|path d=/g, "");
  const drawn = path("../src/icons.ts", /arch: '<path d="([^"]+)"/);
  expect([path("../public/favicon.svg", /<path d="([^"]+)"/), path("../src/app/badge.ts", /<path d="([^"]+)"/)]).toEqual([drawn, drawn]);
});
