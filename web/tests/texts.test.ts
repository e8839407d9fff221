/** Texts are in `src/texts`: a translation is that folder. Views name them; a literal that a user would read is an error. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";

const source = resolve(import.meta.dirname, "../src");
/** Types are generated; `time.ts` is the one module for times, tokens and cost. */
const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.startsWith("texts/") && !["rest.ts", "time.ts"].includes(name))
  .sort();

/** Literals that are still in views. A number may only get smaller; a view that has none is not listed. */
const LEFT: Record<string, number> = {
  "agents.ts": 1,
  "app/automations.ts": 1,
  "app/boardStore.ts": 1,
  "app/entries.ts": 18,
  "app/entryEditor.ts": 5,
  "app/job.ts": 4,
  "app/jobModel.ts": 15,
  "app/main.ts": 1,
  "app/planView.ts": 1,
  "app/router.ts": 1,
  "app/row.ts": 1,
  "app/settings.ts": 2,
  "app/stepView.ts": 9,
  "conversation/approval.ts": 1,
  "conversation/pieces.ts": 1,
  "jobActions.ts": 2,
  "jobTracking.ts": 3,
  "key.ts": 1,
  "markdown.ts": 3,
  "messageBlock.ts": 2,
  "pair.ts": 5,
  "sessionResponse.ts": 14,
  "splitter.ts": 1,
  "test.ts": 1,
};

const KEY_NAMES = /^(Esc|Escape|Enter|Backspace|Delete|Tab|Home|End|Shift|Control|Alt|Meta|Arrow\w+|Page\w+)$/;
const SHOWN_ATTRIBUTES = /^(aria-label|aria-description|aria-roledescription|title|placeholder|alt)$/;
/** Calls whose strings are names of things: elements, classes, events, routes. */
const NAMING = /^(querySelector|querySelectorAll|closest|matches|add|remove|toggle|contains|includes|startsWith|endsWith|has|get|set|on|addEventListener|ask|call|byId|getItem|setItem|createElement|createElementNS|getElementById|split|indexOf|RegExp|draw|matchMedia|Event|CustomEvent)$/;

/** A sentence, words with spaces, or a capitalized word. Paths, selectors, classes and names of routes are none. */
function isText(text: string): boolean {
  const trimmed = text.trim();
  if (/^[<.#[]|^input:|^\(prefers-|^[a-z-]+: (x |min)|^\w+\[|^(GET|POST|PUT|PATCH|DELETE) |^[a-z-]+( [a-z-]+)?$/.test(trimmed) || KEY_NAMES.test(trimmed)) return false;
  return /[A-Za-z]{2}/.test(trimmed) && /^[A-Z][a-z]+[.:?!…]?$|[A-Za-z]+[,.:;]? [a-z]/.test(trimmed);
}

function names(node: ts.Node): boolean {
  const parent = node.parent;
  if (ts.isImportDeclaration(parent) || ts.isLiteralTypeNode(parent) || ts.isCaseClause(parent) || ts.isElementAccessExpression(parent) || ts.isComputedPropertyName(parent)) return true;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return true;
  if (ts.isBinaryExpression(parent)) return /^([!=]==|in)$/.test(parent.operatorToken.getText()) || /className$/.test(parent.left.getText());
  if (!ts.isCallExpression(parent) && !ts.isNewExpression(parent)) return false;
  const called = parent.expression.getText().split(".").at(-1) ?? "";
  const at = (parent.arguments ?? []).findIndex((each) => each === node);
  if (called === "make") return at < 2;
  if (called === "makeButton") return at < 1;
  if (called === "setAttribute") return at === 0 || !SHOWN_ATTRIBUTES.test((parent.arguments?.[0] as ts.StringLiteral).text);
  return (NAMING.test(called) && !(called === "add" && ts.isIdentifier(parent.expression))) || /Error$/.test(called);
}

/** What stands between tags, and in attributes that are read out. */
const inMarkup = (markup: string): string[] =>
  [...markup.matchAll(/>([^<>]*)</g), ...markup.matchAll(/\b(?:aria-label|placeholder|title)="([^"]*)"/g)].map(([, text = ""]) => text.replaceAll("§", "").trim()).filter((text) => /[A-Za-z]{2}/.test(text));

/** The texts in a module, in their order. */
export function textsIn(code: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isTaggedTemplateExpression(node)) {
      const { template } = node;
      if (node.tag.getText() === "html") found.push(...inMarkup(ts.isTemplateExpression(template) ? [template.head, ...template.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join("§") : template.text));
      if (ts.isTemplateExpression(template)) template.templateSpans.forEach(({ expression }) => visit(expression));
      return;
    }
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      if (!names(node) && isText(node.text)) found.push(node.text);
    } else if (ts.isTemplateExpression(node) && !names(node)) {
      const parts = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
      if (/[A-Za-z]{2}/.test(parts.join("")) && isText(parts.join("x ")) && !/^[\w./-]*[/#?=]/.test(node.head.text)) found.push(parts.join("§"));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("view.ts", code, ts.ScriptTarget.Latest, true));
  return found;
}

describe("what counts as a text", () => {
  test.each<[string, string[]]>([
    ['const a = "Try again";', ["Try again"]],
    ['button.textContent = "Send";', ["Send"]],
    ["const a = `Revoke ${name}?`;", ["Revoke §?"]],
    ["const a = `${count} of them failed`;", ["§ of them failed"]],
    ['make("p", "soft small", "Nothing was found.");', ["Nothing was found."]],
    ['makeButton("btn small", "Copy the link", run);', ["Copy the link"]],
    ['field.setAttribute("aria-label", "Message");', ["Message"]],
    ["html`<b>Needs you</b>`;", ["Needs you"]],
    ['html`<button aria-label="Close it" class="btn small">${icon}</button>`;', ["Close it"]],
    ["html`<p class=${look}>${count} left</p>`;", ["left"]],
    ['import { a } from "Some module";', []],
    ['make("p", "soft small", TEXTS.none);', []],
    ['field.setAttribute("data-kind", "Some kind");', []],
    ['if (event.key === "Escape" || kind === "Some kind") stop();', []],
    ['root.querySelector("main .card button");', []],
    ['switch (tag) { case "Seq": break; }', []],
    ['ask("GET /people/me");', []],
    ['throw new Error("No such part");', []],
    ["const address = `/app/s/${id} of`;", []],
    ['const classes = "asked wide";', []],
    ['add("plus", "New session", place);', ["New session"]],
    ['const known = "Notification" in window;', []],
    ["const style = `height: ${high}px`;", []],
    ["html`<b class=\"mark need\">${TEXTS.need}</b>`;", []],
    ['type Kind = "Some kind" | "Other";', []],
    ['const names = { "Some name": 1 };', []],
  ])("%s", (code, wanted) => expect(textsIn(code)).toEqual(wanted));
});

test("there are files to check", () => expect(files.length).toBeGreaterThan(100));

test.each(files)("%s has no texts of its own", (name) => {
  const found = textsIn(readFileSync(join(source, name), "utf8"));
  expect(found.length, `Texts belong into src/texts, or LEFT of this test gets smaller: ${found.join(" | ")}`).toBe(LEFT[name] ?? 0);
});

test("views that are listed exist", () => expect(Object.keys(LEFT).filter((name) => !files.includes(name))).toEqual([]));
