/** The workbench beyond talking: review, jobs, usage, settings, and being installed. */

import { execSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));
const git = (folder: string, line: string) => execSync(`git -c user.name=T -c user.email=t@example.org ${line}`, { cwd: folder, encoding: "utf8" });

/** A session of the demo agent that has written a file into a repository of its own. */
async function reviewed(name: string): Promise<{ folder: string; id: string }> {
  const folder = mkdtempSync(join(host.folder, `${name}-`)); // another one where a test is tried again
  writeFileSync(join(folder, "calc.py"), "def add(a, b):\n    return a - b\n");
  git(folder, "init -q && git config user.name T && git config user.email t@example.org && git add . && git commit -qm first");
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", cwd: folder, title: "Review me", config: { approvals: "allow" } });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "write something" });
  await vi.waitFor(async () => expect(await host.ask(`/v1/sessions/${id}/changes`)).toMatchObject({ files: [{ path: "portico-demo.md" }] }), 60_000);
  return { folder, id };
}

const openChanges = async ({ page }: Person, id: string) => {
  await page.goto(`${host.url}/app/s/${id}/changes`);
  await page.waitForSelector(".file-diff .diff-added");
};

describe("review", () => {
  test.each(["Unified", "Side by side"])("unchanged lines are folded and opened by a click or the keys: %s", async (mode) => {
    const { folder, id } = await reviewed("folds");
    const lines = Array.from({ length: 90 }, (_, n) => `value_${n + 1} = ${n + 1}`);
    writeFileSync(join(folder, "long.py"), lines.join("\n") + "\n");
    git(folder, "add . && git commit -qm long");
    writeFileSync(join(folder, "long.py"), lines.with(44, "value_45 = 0").join("\n") + "\n");
    const person = await somebody({ size: { width: 1440, height: 900 } });
    const { page } = person;
    await openChanges(person, id);
    await page.selectOption('[aria-label="Which changes"]', "uncommitted");
    await page.click(`.modes >> text=${mode}`);
    const file = page.locator('.file-diff[data-path="long.py"]');
    await file.locator(".diff-gap").nth(1).waitFor();
    expect(await file.locator(".diff-gap button").allTextContents()).toEqual(["41 lines", "20 ↑", "The rest of the file"]);
    expect(await file.locator(".spoken").allTextContents()).toEqual(["removed, line 45, ", "added, line 45, "]);
    await file.locator('button:has-text("20 ↑")').focus();
    await page.keyboard.press("Enter");
    await file.locator('[data-new="22"]').waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Comment on line 22");
    expect(await file.locator(".diff-gap button").first().textContent()).toBe("21 lines");
    await file.locator('button:has-text("42 lines")').click(); // where the file ends is known now
    await file.locator('[data-new="90"]').waitFor();
    await file.locator('button:has-text("21 lines")').click();
    await file.locator('[data-new="1"]').waitFor();
    expect(await file.locator(".diff-gap").count()).toBe(0);
    expect((await file.locator('[data-new="60"]').first().textContent())?.replace(/^\d+/, "")).toContain("value_60 = 60");
    expect(await person.barriers(page, "moderate")).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a comment on a line becomes the next message, and asks first when the line has moved", async () => {
    const { folder, id } = await reviewed("comments");
    const person = await somebody();
    const { page } = person;
    await openChanges(person, id);
    expect(await page.textContent(".review .file")).toContain("portico-demo.md");
    expect(await person.barriers()).toEqual([]);
    await page.click('[aria-label="Comment on added line 1"]');
    await page.keyboard.type("Shorter, please");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector('.note:has-text("Shorter, please")');
    await page.reload();
    await page.waitForSelector('.note:has-text("Shorter, please")');
    await page.click("text=Side by side");
    await page.waitForSelector(".diff.beside .pair");
    const first = readFileSync(join(folder, "portico-demo.md"), "utf8").split("\n")[0] ?? "";
    await page.selectOption('[aria-label="Which changes"]', "uncommitted");
    await page.waitForSelector(".file-diff .diff-added");
    writeFileSync(join(folder, "portico-demo.md"), "Changed by somebody\n");
    await page.click("#send-comments");
    await page.waitForSelector('dialog[open]:has-text("Some lines have changed since")');
    await page.waitForSelector('.note:has-text("This line has changed since")');
    await page.click('dialog[open] button:has-text("Send anyway")');
    await page.waitForSelector('#transcript .message:has-text("Shorter, please")');
    expect(await page.locator("#transcript .message .plain").last().textContent()).toBe(`A comment on your changes:\n\n\`portico-demo.md\`, line 1:\n> ${first}\n\nShorter, please`);
    expect(await page.locator("#send-comments").isHidden()).toBe(true);
    expect(person.trouble).toEqual([]);
  });

  test("viewed files fold; commit takes what was seen and nothing that moved; a discard can be undone", async () => {
    const { folder, id } = await reviewed("commits");
    const person = await somebody();
    const { page } = person;
    await openChanges(person, id);
    await page.check(".fh input");
    await page.waitForSelector(".tick svg");
    expect(await page.locator(".file-diff .diff-added").count()).toBe(0);
    const changed = () => page.waitForResponse((response) => response.url().endsWith("/uncommitted") && response.ok());
    await Promise.all([changed(), page.click("text=Commit…")]);
    await page.waitForSelector("dialog[open] .tick-list input");
    writeFileSync(join(folder, "calc.py"), "def add(a, b):\n    return a + b\n");
    await page.click('dialog[open] button:has-text("Commit")');
    await page.waitForSelector('dialog[open] [role=alert]:has-text("changed since you looked")');
    await page.keyboard.press("Escape");
    await Promise.all([changed(), page.click("text=Commit…")]);
    await page.waitForFunction(() => document.querySelectorAll("dialog[open] .tick-list input").length === 2);
    // Only what is shown goes along unasked: somebody else may be at work in the folder.
    expect(await page.$$eval("dialog[open] .tick-list input", (all) => all.map((box) => [(box as HTMLInputElement).value, (box as HTMLInputElement).checked]))).toEqual([["portico-demo.md", true], ["calc.py", false]]);
    await page.fill("dialog[open] textarea", "Add a note");
    await page.click('dialog[open] button:has-text("Commit")');
    await page.waitForSelector("dialog[open]", { state: "detached" });
    expect(git(folder, "log -1 --format=%s").trim()).toBe("Add a note");
    await page.click("text=Discard…");
    await page.waitForSelector('dialog[open] input[value="calc.py"]:not(:checked)');
    expect(await page.isDisabled('dialog[open] button:has-text("Discard these files")')).toBe(true);
    await page.check('dialog[open] input[value="calc.py"]');
    await page.waitForSelector('dialog[open] p:text-is("Lost: 2 changed lines in 1 file.")');
    await page.click("text=Discard these files");
    await page.waitForSelector(".undo");
    expect(readFileSync(join(folder, "calc.py"), "utf8")).toContain("a - b");
    await page.click(".undo button");
    await vi.waitFor(() => expect(readFileSync(join(folder, "calc.py"), "utf8")).toContain("a + b"), 30_000);
    expect(existsSync(join(folder, "portico-demo.md"))).toBe(true);
    expect(person.trouble.filter((each) => !each.includes("409"))).toEqual([]);
  });

  test("what has changed since somebody last looked has a mark, and a list of its own", async () => {
    const { id } = await reviewed("looked");
    const person = await somebody();
    const { page } = person;
    await openChanges(person, id);
    await page.waitForFunction((key) => localStorage.getItem(key) !== null, `portico.looked.${id}`);
    // As if the file had been another one then.
    await page.evaluate((key) => localStorage.setItem(key, '{"portico-demo.md":"before"}'), `portico.looked.${id}`);
    await page.reload();
    await page.waitForSelector('.file:has-text("portico-demo.md") [aria-label="changed since you last looked"]');
    await page.selectOption('[aria-label="Which changes"]', "looked");
    await page.waitForFunction(() => document.querySelectorAll(".file-diff").length === 1);
    await page.goto(`${host.url}/app/s/${id}/changes`);
    await page.waitForSelector(".file-diff");
    expect(await page.locator(".file .dot").count()).toBe(0);
    expect(person.trouble).toEqual([]);
  });
});

describe("jobs", () => {
  test("a job of an entry that the host does not have: steps, time, chart, conversation, on both pages", async () => {
    const person = await somebody();
    const { page } = person;
    const entry = { models: { driving: "gpt-5.2" }, drivingSessionRetries: [{ modelId: "gpt-5.2", retries: 1 }], tasks: { write: { model: { category: "driving" }, prompt: ["[[say:A haiku.]]"], requireUserInput: false } }, jobs: { haiku: { work: { kind: "Ref", taskId: "write" } } }, grid: [] };
    const { job } = await host.ask<{ job: string }>("/v1/jobs", { job: "haiku", cwd: host.folder, entry });
    await page.goto(`${host.url}/app/j/${job}`);
    await page.waitForSelector('.head .pill:text-is("Succeeded")');
    await page.waitForSelector('.tn:has-text("write")');
    await page.waitForSelector('#transcript:has-text("A haiku.")');
    await page.waitForSelector(".bar-run.done");
    await page.click(".job-tabs >> text=Chart");
    await page.waitForSelector(".flow-chart .node.succeeded");
    expect(await person.barriers()).toEqual([]);
    await page.goto(`${host.url}/jobTracking.html?jobName=haiku&jobId=${job}`);
    await page.waitForSelector("g.node");
    await page.waitForFunction(() => document.getElementById("job-status-label")!.textContent === "JOB: SUCCEEDED");
    expect(person.trouble).toEqual([]);
  });

  test("rounds, checks with their evidence and decisions; from 360 to 2560 pixels nothing is wider than the window", async () => {
    const person = await somebody();
    const { page } = person;
    const job = await host.startJob("judged");
    await page.goto(`${host.url}/app/j/${job}`);
    await page.waitForSelector('.head .pill:text-is("Succeeded")');
    await page.waitForSelector('.step-checks li:has-text("Now.")');
    expect(await page.locator(".step-head option").count()).toBeGreaterThan(1);
    const order = () => page.$$eval(".job :is(.strip, .job-decisions, .job-steps, .job-step)", (all) => all.filter((each) => each.checkVisibility()).map((each) => [each.className.split(" ").at(-1), each.getBoundingClientRect()] as const).map(([name, { left, top }]) => [name, left > 600 ? "right" : "left", top > 52]));
    await page.setViewportSize({ width: 1024, height: 900 }); // what came of it and what was decided first, then the steps, and beside them what the agent says
    expect(await order()).toEqual([["ok", "left", true], ["jcard", "left", true], ["job-steps", "left", true], ["job-step", "right", true]]);
    for (const width of [360, 768, 1024, 1440, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth);
    }
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("stopping asks first; a stopped job can be resumed and run again", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    const job = await host.startJob("endless");
    await page.goto(`${host.url}/app/j/${job}`);
    await page.waitForSelector('.tn[aria-current]:has-text("endless")');
    await page.getByRole("button", { name: "Stop…" }).tap();
    await page.tap('dialog[open] button:has-text("Close")');
    expect(await host.ask(`/v1/jobs/${job}`)).toMatchObject({ status: "running" });
    await page.getByRole("button", { name: "Stop…" }).tap();
    await page.tap("text=Stop the job");
    await page.waitForSelector('.strip:has-text("Stopped.")');
    await page.tap(".strip >> text=Run again");
    await page.waitForURL((url) => !url.pathname.endsWith(job));
    const again = new URL(page.url()).pathname.split("/").at(3)!;
    await host.ask(`/v1/jobs/${again}/stop`, {});
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a job starts from the form; an entry is edited with its mistakes named, completed, and drawn", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/new/job`);
    await page.waitForSelector('#job option:text-is("told")', { state: "attached" });
    expect(await page.isVisible("#job-input")).toBe(false);
    await page.selectOption("#job", "told");
    await page.fill("#job-input", "Something");
    await page.check("#own-entry");
    await page.waitForSelector(".mistake.fine");
    await page.waitForSelector(".editor-grid .flow-chart .node");
    expect(await person.barriers()).toEqual([]);
    const area = page.locator(".entry-editor");
    const text = await area.inputValue();
    await area.fill('{"models": {}}');
    await page.waitForSelector('.mistake:has-text("entry.models.driving: Should exist.")');
    expect(await page.isDisabled("#start-job")).toBe(true);
    await area.fill("{");
    await page.keyboard.type('"dri');
    await page.waitForSelector('.suggestion:has-text("drivingSessionRetries")');
    await page.keyboard.press("Enter");
    expect(await area.inputValue()).toBe('{"drivingSessionRetries": ');
    // A browser types a thousand lines for as long as a person reads them: they are put there instead.
    await area.evaluate((field, whole) => {
      (field as HTMLTextAreaElement).value = whole;
      field.dispatchEvent(new Event("input"));
    }, text);
    await page.waitForSelector("#start-job:enabled");
    await page.waitForSelector(".mistake.fine");
    await page.selectOption("#job", "told");
    await page.click("#start-job");
    await page.waitForURL(/\/app\/j\//);
    await page.waitForSelector('#transcript:has-text("Understood.")');
    expect(person.trouble).toEqual([]);
  });
});

describe("usage and settings", () => {
  test("usage has a plot and a table, and says unknown where nobody told", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/usage`);
    await page.waitForSelector(".plot rect");
    expect(await page.textContent(".number")).toContain("unknown");
    await page.click("text=By session");
    await page.waitForSelector('.table a:has-text("Review me")');
    await page.click("text=By job");
    await page.waitForSelector('.table a:has-text("haiku")');
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a token is made, shown once and revoked; settings say their origin; stopping the host asks for its name", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/settings/tokens`);
    await page.fill("form input:not([type=checkbox])", "phone");
    await page.check('input[value="approve"]');
    await page.selectOption('label:has-text("Expires in") select', "30");
    await page.click("text=Create token");
    const token = (await page.textContent(".token-once code"))!;
    expect((await fetch(`${host.url}/v1`, { headers: { Authorization: `Bearer ${token}` } })).status).toBe(200);
    expect(await person.barriers()).toEqual([]);
    const { tokens } = await host.ask<{ tokens: { created: number; expires: number }[] }>("/v1/tokens");
    expect(tokens[0]!.expires - tokens[0]!.created).toBe(30 * 86_400_000);
    await page.waitForSelector(`.table td:has-text("${await page.evaluate((time) => new Date(time).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" }), tokens[0]!.expires)}")`);
    await page.click('[aria-label="Revoke phone"]');
    await page.click('dialog[open] .danger:has-text("Revoke")');
    await page.waitForSelector("text=No other tokens.");
    expect((await fetch(`${host.url}/v1`, { headers: { Authorization: `Bearer ${token}` } })).status).toBe(401);
    await page.click(".settings-nav >> text=People");
    await page.waitForSelector('.table tr:has-text("owner")');
    expect(await person.barriers()).toEqual([]);
    await page.click(".settings-nav >> text=Hosts");
    await page.waitForSelector(`.table tr:has-text("${new URL(host.url).host}")`);
    expect(await person.barriers()).toEqual([]);
    await page.click(".settings-nav >> text=This host");
    await page.waitForSelector('.setting[data-key="server.port"]:has-text("Command line: --port")');
    expect(await person.barriers()).toEqual([]);
    await page.click("text=Stop the host…");
    expect(await page.isDisabled('dialog[open] button:has-text("Stop the host")')).toBe(true);
    await page.keyboard.press("Escape");
    await page.click(".settings-nav >> text=Audit");
    await page.waitForSelector('.table tr:has-text("token.revoked")');
    await page.click(".settings-nav >> text=This device");
    await page.selectOption("#setting-theme", "dark");
    expect(await page.getAttribute("html", "data-theme")).toBe("dark");
    await page.selectOption("#setting-contrast", "more");
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });
});

describe("installed", () => {
  test("it has a manifest with icons, and starts without the host with the list as it was", async () => {
    const person = await somebody();
    const { page } = person;
    await host.ask("/v1/sessions", { agent: "demo", title: "Kept" });
    await page.goto(`${host.url}/app/inbox`);
    await page.evaluate(async () => (await navigator.serviceWorker.ready).active);
    const manifest = (await (await person.context.request.get(`${host.url}/app.webmanifest`)).json()) as { icons: { src: string }[]; start_url: string };
    expect(manifest.start_url).toBe("./app/inbox"); // what needs the user
    for (const { src } of manifest.icons) expect((await person.context.request.get(new URL(src, host.url).href)).status()).toBe(200);
    await page.reload();
    await page.waitForSelector(".entry");
    // The list is kept a moment after it came.
    await page.waitForFunction(() => localStorage.getItem("portico.board") !== null);
    await page.reload();
    await page.waitForSelector(".entry");
    await person.context.setOffline(true);
    await page.goto(`${host.url}/app`, { waitUntil: "commit" });
    await page.waitForSelector('.offline:has-text("cannot be reached since")');
    await page.waitForSelector(".entry");
    await person.context.setOffline(false);
    await page.waitForSelector(".offline", { state: "hidden" });
  });
});
