/** The pages beyond the seeds' as pictures, light and dark, desktop and phone, in `screenshots/`. */

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const folder = resolve(import.meta.dirname, "../../screenshots");
const own = new RealHost();

beforeAll(() => mkdirSync(folder, { recursive: true }));
afterAll(() => own.close());

const FOUR_K = { width: 3840, height: 2160 };
const ANSWER = "# A plan\n\nThis is **bold** and `code`.\n\n- one\n- two\n\n| step | who |\n|---|---|\n| build | agent |\n\n```js\nlet answer = 42;\n```";

describe.each([
  { name: "desktop-light", phone: false, dark: false },
  { name: "desktop-dark", phone: false, dark: true },
  { name: "phone-light", phone: true, dark: false },
  { name: "phone-dark", phone: true, dark: true },
  { name: "4k-dark", phone: false, dark: true, size: FOUR_K },
])("$name", ({ name, ...look }) => {
  // A host for each, so that first pages are first pages and no session of another look is at work.
  const host = new RealHost();

  beforeAll(async () => {
    execFileSync("git", ["init", "-q", host.folder]);
    writeFileSync(join(host.folder, ".gitignore"), "/home/\n");
    await host.start();
  });
  afterAll(() => host.close());

  test("all pages of the house", { timeout: 300_000 }, async () => {
    const person = await Person.arrive(look);
    const { page } = person;
    const take = async (state: string) => {
      await page.waitForTimeout(200); // colours fade in
      await page.screenshot({ path: `${folder}/house-${state}-${name}.png` });
    };
    const start = async (agent: string, text: string) => {
      await page.goto(`${host.url}/sessions.html?agent=${agent}`);
      await page.waitForSelector("#model option", { state: "attached" });
      await page.fill("#first", text);
      if (agent === "demo") await take("new");
      await page.click("#start");
      await page.waitForURL(/session\.html/);
    };
    const shell = async (line: string) => {
      await page.locator(".shell-status", { hasText: "×" }).waitFor();
      await page.keyboard.type(`${line}; echo done-$((1 + 1))\n`);
      await page.locator(".xterm-rows div", { hasText: "done-2" }).first().waitFor();
    };
    await page.goto(host.login);
    await page.goto(`${host.url}/terminal.html`);
    await page.waitForSelector("#empty:not([hidden])");
    await take("terminals-first");
    await page.goto(`${host.url}/sessions.html`);
    await page.waitForSelector("#empty:not([hidden])");
    await take("sessions-first");
    await start("scripted", `Make a plan [[tool:job_prepare_document|PLAN.md]] [[say:${ANSWER}]]`);
    await page.waitForSelector("#status.idle");
    await page.click(".call summary");
    await take("answered");
    await page.click("#menu summary");
    await take("menu");
    await page.keyboard.press("Escape");
    await page.focus("#transcript");
    await page.keyboard.press("?");
    await take("keys");
    await page.keyboard.press("Escape");
    await page.fill("#message", "[[deltas:100]] [[gap:100]]");
    await page.press("#message", "Control+Enter");
    await page.waitForSelector("#status.running");
    for (const text of ["Then write the tests", "And the documents, please, with an example for each of the commands"]) {
      await page.fill("#message", text);
      await page.press("#message", "Control+Enter");
      await page.waitForSelector(`.queue-text:text-is("${text}")`);
    }
    await take("queue");
    await start("demo", "fail please");
    await page.waitForSelector(".outcome.failed");
    await take("failed");
    await start("demo", "ask me");
    await page.waitForSelector(".question");
    await take("question");
    await start("demo", "write something");
    await page.waitForSelector(".approval");
    await take("approval");
    await page.click('.approval button:has-text("Allow in this session")');
    await page.waitForSelector("#status.idle");
    await page.click("#menu summary");
    await page.click("#grants");
    await page.waitForSelector(".grants li");
    await take("grants");
    await page.keyboard.press("Escape");
    await page.click('.end button:has-text("Files changed")');
    await page.waitForSelector(".files .file");
    await take("files");
    await page.keyboard.press("Escape");
    await page.click("#menu summary");
    await page.click("#terminal");
    await shell("ls --color=always");
    await take("terminal-panel");
    await page.goto(`${host.url}/sessions.html`);
    await page.waitForSelector(".session");
    await page.fill("#search", "plan");
    await page.waitForSelector("#hits .session");
    await take("search");
    await page.fill("#search", "");
    await page.waitForSelector("#found", { state: "hidden" });
    await take("sessions");
    await page.goto(`${host.url}/agents.html`);
    await page.waitForSelector(".agent");
    await take("agents");
    await page.goto(`${host.url}/jobHistory.html`);
    await page.waitForSelector("#empty:not([hidden])");
    await take("jobs-first");
    await host.startJob("plan-and-write", "A small tool");
    await host.startJob("hello");
    await page.reload();
    await page.waitForSelector("li:nth-child(2) .session");
    await take("jobs");
    await page.goto(`${host.url}/terminal.html`);
    await shell("git status; printf '\\033[32mgreen \\033[33myellow \\033[34mblue \\033[35mmagenta \\033[90mgrey\\033[0m\\n'");
    await take("terminal");
    await person.leave();
  });
});

const BEFORE = 'def greet(name):\n    print("Hey " + name)\n\n\ngreet("world")\n';
const AFTER = 'def greet(name: str) -> None:\n    """Says hello, politely."""\n    print(f"Good day, {name}!")\n\n\ngreet("world")\n';
const SCRIPT = {
  providers: [{ id: "helper", name: "Helper", steer: true, models: [{ id: "fast", name: "Fast", multiplier: 0 }] }],
  rules: [
    {
      match: "",
      steps: [
        { do: "reason", text: "The greeting is in greet.py." },
        { do: "read", path: "greet.py" },
        { do: "say", text: "`greet` builds its text by hand and says **Hey**. I will:\n\n1. give it a type and a docstring\n2. use an f-string with a polite greeting" },
        { do: "usage", input: 1840, output: 212 },
        { do: "write", path: "greet.py", text: AFTER },
      ],
    },
  ],
};

/** The picture in the README: `docs/images/session.png`. */
test("a session with an approval", async () => {
  mkdirSync(join(own.folder, "projects/hello"), { recursive: true });
  writeFileSync(join(own.folder, "projects/hello/greet.py"), BEFORE);
  writeFileSync(join(own.folder, "script.json"), JSON.stringify(SCRIPT));
  await own.start("--script", join(own.folder, "script.json"));
  const person = await Person.arrive();
  const { page } = person;
  await page.setViewportSize({ width: 1120, height: 1030 });
  await page.goto(own.login);
  await page.goto(`${own.url}/sessions.html?agent=helper`);
  await page.waitForSelector("#model option", { state: "attached" });
  await page.fill("#folder", join(own.folder, "projects/hello"));
  await page.fill("#first", "Make the greeting polite");
  await page.click("#start");
  await page.waitForSelector(".approval");
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${folder}/readme-session.png` });
  await person.leave();
});
