/** Two people who find their way alone: one has no mouse, the other has never seen the product. Approve, review, comment, resume. */

import { execSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost(["--agent", "scripted"]);
const folder = join(host.folder, "shop");
mkdirSync(folder);
writeFileSync(join(folder, "prices.py"), "def total(prices):\n    return sum(prices)\n");
execSync("git init -q && git -c user.name=T -c user.email=t@example.org add . && git -c user.name=T -c user.email=t@example.org commit -qm first", { cwd: folder });
const SCRIPT = {
  providers: [{ id: "helper", name: "Helper" }],
  rules: [
    { match: "comment", steps: [{ do: "say", text: "I will name the constant." }] },
    { match: "round", steps: [{ do: "write", path: "prices.py", text: "def total(prices):\n    return round(sum(prices), 2)\n" }, { do: "say", text: "Totals are rounded." }] },
    { match: "long", steps: [{ do: "say", text: "It goes on. ".repeat(500), deltas: 3000, gap: 50 }] },
  ],
};
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"));

const settled = ({ page }: Person) => page.waitForFunction(() => performance.now() - Number(document.querySelector<HTMLElement>(".card")?.dataset["since"] ?? Number.POSITIVE_INFINITY) > 400);
const idle = ({ page }: Person) => page.waitForSelector("#status.idle", { state: "attached" });
const undo = () => execSync("git checkout -q -- .", { cwd: folder });

test("with the keyboard alone: start, approve, review, comment, send, be interrupted, resume, find the keys", async () => {
  undo();
  const person = await somebody();
  const { page } = person;
  const { keyboard } = page;
  const focused = (what: string) => page.waitForFunction((selector) => document.activeElement?.matches(selector), what);
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector(".inbox h1");
  await keyboard.press("c");
  await focused("#first");
  await keyboard.type("Please round the totals");
  for (let tab = 0; tab < 12 && !(await page.evaluate(() => document.activeElement?.id === "folder")); tab++) await keyboard.press("Shift+Tab");
  await keyboard.press("Control+A");
  await keyboard.type(folder);
  await keyboard.press("Enter");
  await page.waitForURL(/\/app\/s\//);
  await settled(person);
  await focused("#message"); // what one wants to say is one key away, and its letters answer nothing
  await keyboard.press("Escape");
  await keyboard.press("y");
  await idle(person);
  await page.waitForSelector(".file-diff"); // it opens by itself, once
  await keyboard.press("d");
  await page.waitForSelector("#panel", { state: "hidden" });
  await keyboard.press("d");
  await focused(".pbody");
  await keyboard.press("n");
  await focused(".line-number");
  await keyboard.press("u"); // the same change, drawn anew: the focus stays with it
  await focused(".pbody");
  await keyboard.press("u");
  await keyboard.press("n");
  await focused(".line-number");
  await keyboard.press("m");
  await focused("form.note textarea");
  await keyboard.type("Name the 2");
  await keyboard.press("Control+Enter");
  await page.waitForSelector('.note:has-text("Name the 2")');
  await focused(".line-number");
  await keyboard.press("u");
  await page.waitForSelector(".diff.beside");
  await page.locator(".pbody").focus(); // the lines were drawn anew
  await keyboard.press("Control+Enter");
  await page.waitForSelector('#transcript .message:has-text("A comment on your changes:")');
  await page.waitForSelector('#transcript .text:has-text("I will name the constant.")');
  await keyboard.press("v");
  await page.waitForSelector('.file:has-text("viewed")');
  await keyboard.press("d");
  await page.waitForSelector("#panel", { state: "hidden" });
  await keyboard.press("/");
  await focused("#message");
  await keyboard.type("Take long");
  await keyboard.press("Enter");
  await page.waitForSelector("#status.running");
  await host.kill();
  await page.waitForSelector('.now:has-text("The host cannot be reached"):not(:has(#stop))'); // what it does is not known here
  await host.start();
  await page.waitForSelector('#status:text-is("Interrupted")');
  await keyboard.press("Escape");
  await keyboard.press("r");
  await page.waitForSelector("#status.running");
  await keyboard.press("Escape");
  await keyboard.press("Escape");
  await page.waitForSelector(".outcome.cancelled");
  await keyboard.press("?");
  await page.waitForSelector('dialog[open] dt:has-text("Ctrl")');
  await keyboard.press("Escape");
  for (const [keys, path] of [["g j", "/app/jobs"], ["g u", "/app/usage"], ["g ,", "/app/settings/look"], ["i", "/app/inbox"]] as const) {
    for (const key of keys.split(" ")) await keyboard.press(key);
    await page.waitForURL((url) => url.pathname.startsWith(path.replace("/look", "")));
  }
});

test("somebody who has never seen it approves, reviews, comments and resumes by what the page says", async () => {
  undo();
  const person = await somebody();
  const { page } = person;
  const log = page.getByRole("log");
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  await page.goto(`${host.url}/app`);
  await page.getByRole("link", { name: "New session" }).first().click();
  await page.getByLabel("What should the agent do?").fill("Please round the totals");
  await page.getByLabel("Folder", { exact: true }).fill(folder);
  await press("Start");
  await page.getByRole("heading", { name: "Change prices.py?" }).waitFor();
  expect(await page.getByRole("group", { name: "Change prices.py?" }).getByRole("button").allTextContents()).toEqual(["Allow onceY", "Allow in this session", "DenyN"]);
  await press("Allow once"); // its name has no letter in it
  await log.getByText("Totals are rounded.").waitFor();
  await press("Changes of this turn");
  await page.getByRole("region", { name: "Changed lines" }).getByText("return round(sum(prices), 2)").click();
  await page.getByRole("textbox", { name: "Comment on prices.py, line 2" }).fill("Why two? A comment would help");
  await press("Add comment");
  await press("Send 1 comment");
  await log.getByText("I will name the constant.").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("Take long");
  await press("Send");
  await page.waitForSelector("#status.running");
  await host.kill();
  await host.start();
  await page.getByText(/Interrupted: the host stopped at/).waitFor();
  await page.locator(".group[data-group=stopped] .entry").first().waitFor(); // and the list says so, too
  await log.getByRole("button", { name: "Resume" }).click();
  await page.waitForSelector("#status.running");
  await press("Stop");
  await page.waitForSelector(".outcome.cancelled");
});
