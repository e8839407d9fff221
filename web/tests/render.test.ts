/** A second render changes only what changed (src/render.ts): views use templates, and `replaceChildren` only where content is swapped as a whole. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { html, iconOf, render } from "../src/render";

const source = resolve(import.meta.dirname, "../src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

/** How often a file may call it, and why. The numbers may only get smaller. */
const ALLOWED: Record<string, [calls: number, reason: string]> = {
  // Swaps one view for another, once for each visit.
  "app/shell.ts": [2, "another view is shown"],
  "app/panel.ts": [3, "another tab is shown"],
  "app/sessionView.ts": [1, "the session does not exist"],
  "app/helper.ts": [1, "the session does not exist"],
  "app/stepView.ts": [3, "another attempt is shown"],
  "app/menu.ts": [1, "the menu opens"],
  "page.ts": [1, "the page ends"],
  "terminal/screen.ts": [1, "the terminal ends"],
  "terminal/page.ts": [1, "tabs of the terminal page"],
  "chart/sheets.ts": [2, "sheets for printing"],
  "chart/zoom.ts": [1, "built once"],
  // Content that is not a template: lines of a diff, Markdown, chunks of the transcript. Drawn when the user acts, or piece by piece.
  "app/fileDiff.ts": [3, "the lines of one file, after a comment or another mode"],
  "app/binary.ts": [2, "the two sides of a picture"],
  "conversation/rows.ts": [3, "pieces of Markdown, and an answered question"],
  "conversation/transcript.ts": [3, "the window of the transcript"],
  // The portal's own pages keep the ids, classes and texts of their specification.
  "agents.ts": [1, "portal"],
  "jobHistory.ts": [2, "portal"],
  "jobTracking.ts": [3, "portal"],
  "jobs.ts": [1, "portal"],
  "messageBlock.ts": [1, "portal"],
  "sessionResponse.ts": [1, "portal"],
  "setup.ts": [2, "portal"],
  "tabs.ts": [3, "portal"],
  // Forms and lists that are filled when their data arrive.
  "app/automationForm.ts": [1, "options of a select"],
  "app/elsewhere.ts": [1, "sessions that were started elsewhere"],
  "app/entryEditor.ts": [2, "options and offers"],
  "app/filterField.ts": [2, "chips and offers"],
  "app/messageBox.ts": [2, "options and attachments"],
  "app/people.ts": [2, "the list of people"],
  "app/sandboxPick.ts": [1, "options of a select"],
  "app/settings.ts": [1, "the error of a form"],
  "app/share.ts": [1, "the list of people"],
  "app/start.ts": [4, "choices of the form"],
  "app/suggestions.ts": [1, "offers of the field"],
  "app/terminalTab.ts": [3, "the bar above a terminal"],
};

const countIn = (name: string) => (name === "render.ts" ? 0 : (readFileSync(join(source, name), "utf8").match(/\breplaceChildren\(/g) ?? []).length);

test.each(files)("%s replaces no content that it renders repeatedly", (name) => {
  expect(countIn(name), "render a template, or add the reason to the table").toBeLessThanOrEqual(ALLOWED[name]?.[0] ?? 0);
});

test("the table lists only files that need it", () => {
  expect(Object.keys(ALLOWED).filter((name) => !files.includes(name) || countIn(name) === 0)).toEqual([]);
});

test("a second render keeps elements, focus and typed text, and changes the rest", () => {
  const place = document.createElement("div");
  document.body.replaceChildren(place);
  const show = (count: number) => render(html`<button>${iconOf("done")}</button><input /><b>${count}</b>`, place);
  show(1);
  const [button, input] = [place.querySelector("button")!, place.querySelector("input")!];
  input.value = "typed";
  button.focus();
  show(2);
  expect([place.querySelector("button"), document.activeElement, input.value, place.querySelector("b")?.textContent]).toEqual([button, button, "typed", "2"]);
});

test("agent text is text, never markup", () => {
  const place = document.createElement("div");
  const attack = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  render(html`<p title=${attack}>${attack}</p>`, place);
  expect([place.querySelector("img, script"), place.textContent, place.querySelector("p")?.title]).toEqual([null, attack, attack]);
});
