/** The build writes plain texts to where they are used. What it must not change stays as it is. */

import { describe, expect, test } from "vitest";
import { onlyByKey, plainTexts, withoutInlined, withTexts } from "../inlineTexts";

const TEXTS = `/** Texts. */

import { plural } from "./plural";

export const A = {
  send: "Send",
  quoted: "Say \\"yes\\"",
  left: (count: number) => plural(count, "item"),
  groups: { one: "One" },
  several: "Two", more: "Three",
} as const;

export const B = {
  send: "Other",
} as const;

const HIDDEN = [["a", "b"]];
`;
const read = () => TEXTS;
const use = (line: string) => `import { A, B } from "../texts/a";\n\n${line}\n`;

test("plain texts are found, with their values", () => {
  expect(plainTexts(TEXTS).map(({ name, key, text }) => [name, key, text])).toEqual([
    ["A", "send", "Send"],
    ["A", "quoted", 'Say "yes"'],
    ["A", "several", "Two"],
    ["A", "more", "Three"],
    ["B", "send", "Other"],
  ]);
});

describe("a module that uses them", () => {
  test.each([
    ["const a = A.send;", 'const a = "Send";'],
    ["const a = `${A.send}: ${B.send}`;", 'const a = `${"Send"}: ${"Other"}`;'],
    ["const a = A.quoted;", 'const a = "Say \\"yes\\"";'],
    ["const a = A.left(3);", "const a = A.left(3);"],
    ["const a = A.groups.one;", "const a = A.groups.one;"],
    ["const a = A.sendAll;", "const a = A.sendAll;"],
    ["const a = other.A.send;", "const a = other.A.send;"],
    ["const a = DATA.send;", "const a = DATA.send;"],
  ])("%s", (line, wanted) => expect(withTexts(use(line), read)).toBe(use(wanted)));

  test("a name that is imported from elsewhere is not touched", () => {
    const code = 'import { A } from "./other";\n\nconst a = A.send;\n';
    expect(withTexts(code, read)).toBe(code);
  });

  test("an import under another name is not touched", () => {
    const code = 'import { A as T } from "../texts/a";\n\nconst a = T.send;\n';
    expect(withTexts(code, read)).toBe(code);
  });
});

describe("whether the texts of a name can be left out of their module", () => {
  test.each([
    ["const a = A.send;", true],
    ["const a = A.left(1) + A.groups.one;", true],
    ["const { send } = A;", false],
    ["const a = A[key];", false],
    ["list(A);", false],
    ["const a = DATA[key];", true],
  ])("%s", (line, wanted) => expect(onlyByKey(use(line), "A")).toBe(wanted));

  test("another name, or another module", () => {
    expect(onlyByKey('import { A as T } from "../texts/a";\nT.send;', "A")).toBe(false);
    expect(onlyByKey('import { A } from "./other";\nlist(A);', "A")).toBe(true);
  });
});

test("only plain texts of inlined names are left out", () => {
  const left = withoutInlined(TEXTS, (name) => name === "A");
  expect(plainTexts(left).map(({ name, key }) => [name, key])).toEqual([["B", "send"]]);
  expect(left).toContain("left: (count: number) => plural(count");
  expect(left).toContain('groups: { one: "One" }');
  expect(withoutInlined(TEXTS, () => false)).toBe(TEXTS);
});
