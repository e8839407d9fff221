/** Rows of the list and the message box: more of a row, who waits for a place, sessions behind `@`, lines behind `!`. */

import { execSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost(["--agent", "scripted", "--agent", "demo", "--agent", "acp:fake"]);
const FAKE = resolve(import.meta.dirname, "../../tests/agents/fake_acp.py");
mkdirSync(join(host.folder, "home"), { mode: 0o700 });
// One place for agents' processes: who comes second waits.
writeFileSync(join(host.folder, "home/settings.toml"), `[agent]\nmax_processes = 1\n[agents.acp.fake]\ncommand = ["python3", "-S", "-E", ${JSON.stringify(FAKE)}]\nprocess_per_session = true\n`);
const somebody = visitors(host);

async function begin(title: string, text: string, more: object = {}): Promise<string> {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "scripted", cwd: host.folder, title, ...more });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  return id;
}

const done = (id: string) => vi.waitFor(async () => expect(await host.ask(`/v1/sessions/${id}`)).toMatchObject({ turns: [{ outcome: "completed" }] }), 60_000);
const summary = async (id: string) => (await host.ask<{ sessions: { id: string; title: string; read?: boolean }[] }>("/v1/sessions")).sessions.find((each) => each.id === id);
const row = (title: string) => `.entry-row:has(.t:text-is("${title}"))`;
const openSession = async ({ page }: Person, id: string) => {
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector("#message:enabled");
};

describe("more of a row", () => {
  test("the keys open it, walk it and leave it; a name is given, and deleting asks", async () => {
    const person = await somebody();
    const { page } = person;
    const [one, other] = [await begin("One", "[[say:Hi]]"), await begin("Other", "[[say:Hi]]")];
    await Promise.all([done(one), done(other)]);
    await openSession(person, one);
    await page.focus(`${row("Other")} .entry`);
    await page.keyboard.press(".");
    await page.waitForSelector('[role=menu][aria-label="More of Other"] [role=menuitem]:text-is("Rename"):focus');
    expect(await person.barriers()).toEqual([]);
    await page.keyboard.press("Escape");
    await page.waitForSelector(`${row("Other")} .entry:focus`);
    await page.keyboard.press(".");
    await page.waitForSelector("[role=menu]:not([data-settling]) [role=menuitem]:focus");
    await page.keyboard.press("Enter");
    await page.keyboard.type("Another name");
    await page.keyboard.press("Enter");
    await page.waitForSelector(row("Another name"));
    expect((await summary(other))?.title).toBe("Another name");
    // With the pointer: the button shows itself, and the menu is not cut off by the list.
    await page.hover(row("Another name"));
    await page.click('[aria-label="More of Another name"]');
    const box = (await page.locator("[role=menu]").boundingBox())!;
    expect([box.x >= 0, box.y + box.height <= 900]).toEqual([true, true]);
    await page.click("text=Mark as read"); // nobody has looked at it yet
    await page.waitForSelector(`${row("Another name")} .dot`, { state: "detached" });
    await page.hover(row("Another name"));
    await page.click('[aria-label="More of Another name"]');
    await page.click("text=Mark as unread");
    await page.waitForSelector(`${row("Another name")} .dot`);
    await page.focus(`${row("Another name")} .entry`);
    await page.keyboard.press(".");
    await page.waitForSelector("[role=menu]:not([data-settling]) [role=menuitem]:focus");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.waitForSelector('dialog[open]:has-text("Delete “Another name”?")');
    expect(await summary(other)).toBeDefined();
    await page.click('dialog[open] .danger:text-is("Delete")');
    await page.waitForSelector(row("Another name"), { state: "detached" });
    expect(await summary(other)).toBeUndefined();
    expect(new URL(page.url()).pathname).toBe(`/app/s/${one}`);
    expect(person.trouble).toEqual([]);
  });

  test("on a phone it is behind a swipe, and everything in it can be hit", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    const title = `Swiped ${Date.now()}`; // another one when it is tried again
    await done(await begin(title, "[[say:Hi]]"));
    await page.goto(`${host.url}/app`);
    const more = page.locator(`${row(title)} [aria-label="More of ${title}"]`);
    await vi.waitFor(() => more.scrollIntoViewIfNeeded({ timeout: 5_000 }), 60_000); // the row may be drawn again meanwhile
    await more.tap();
    await page.waitForSelector("[role=menu]");
    const sizes = await page.$$eval("[role=menuitem]", (all) => all.map((each) => each.getBoundingClientRect()).map(({ height, right }) => [height >= 44, right <= window.innerWidth]));
    expect(sizes.flat()).not.toContain(false);
    expect(await person.barriers()).toEqual([]);
    await page.tap("text=Continue in a copy");
    await page.waitForURL(/\/app\/s\//);
    expect(person.trouble).toEqual([]);
  });
});

test("sessions that share a folder say whose change is whose", async () => {
  const person = await somebody();
  const { page } = person;
  const folder = join(host.folder, "common");
  mkdirSync(folder);
  execSync("git init -q && git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m first", { cwd: folder });
  const start = async (title: string) => (await host.ask<{ id: string }>("/v1/sessions", { agent: "scripted", cwd: folder, title })).id;
  const run = async (session: string, line: string) => {
    const { turn } = await host.ask<{ turn: string }>("/v1/commands", { command: "command.run", arguments: { session, line } });
    await vi.waitFor(async () => expect((await host.ask<{ turns: { id: string; outcome?: string }[] }>(`/v1/sessions/${session}`)).turns.find(({ id }) => id === turn)?.outcome).toBe("completed"), 60_000);
  };
  const one = await start("Mine");
  await run(one, "echo 1 > mine.txt");
  await page.goto(`${host.url}/app/s/${one}/changes`);
  await page.waitForSelector('.review .file:has-text("mine.txt")');
  expect(await page.textContent(".shared-note")).toBe("");
  await run(await start("Theirs"), "echo 2 > theirs.txt");
  await run(one, "echo 3 >> mine.txt");
  await page.reload();
  await page.waitForSelector('.review .file:has-text("theirs.txt"):has-text("not this session")');
  expect(await page.textContent('.review .file:has-text("mine.txt")')).not.toContain("not this session");
  await page.waitForSelector('.shared-note:has-text("Another session is using this folder")');
  expect(await person.barriers()).toEqual([]);
  expect(person.trouble).toEqual([]);
});

test("who waits for a place says after whom it starts, in the list and above the message box", async () => {
  const person = await somebody();
  const { page } = person;
  const busy = await begin("Flaky test", JSON.stringify([["text", "I work"], ["sleep", 600]]), { agent: "acp:fake" });
  await page.goto(`${host.url}/app/s/${busy}`);
  await page.waitForSelector(`${row("Flaky test")}:has-text("Writing")`);
  const second = await begin("Second", JSON.stringify([["text", "At last."]]), { agent: "acp:fake" });
  await page.waitForSelector(`[data-group=work] ${row("Second")}:has-text("Starts after Flaky test")`);
  await begin("Third", JSON.stringify([["text", "At last."]]), { agent: "acp:fake" });
  await page.waitForSelector(`[data-group=work] ${row("Third")}:has-text("Starts after Second")`);
  expect(await page.textContent(`${row("Second")} .mark`)).toBe("Queued");
  await page.click(`${row("Second")} .entry`);
  await page.waitForSelector('.now:has-text("Starts after Flaky test")');
  await page.waitForSelector('.status:text-is("Queued")');
  expect(await person.barriers()).toEqual([]);
  await host.cancel(busy);
  await page.waitForSelector('#transcript:has-text("At last.")');
  await done(second);
  await page.waitForSelector(`${row("Third")} .mark:has-text("Done")`);
  expect(person.trouble).toEqual([]);
});

describe("the message box", () => {
  test("@ names another session, and the agent is told what was said there", async () => {
    const person = await somebody();
    const { page } = person;
    const other = await begin("Pelican plan", "[[say:Forty pelicans.]]");
    await done(other);
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "scripted", cwd: host.folder });
    await openSession(person, id);
    await page.fill("#message", "");
    await page.keyboard.type("[[say:As there.]] @pelic");
    await page.waitForSelector('[role=option]:has-text("@Pelican plan")');
    expect(await person.barriers()).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForSelector('.attached-item:has-text("Session: Pelican plan")');
    await page.keyboard.press("Enter");
    await page.waitForSelector('#transcript:has-text("As there.")');
    const state = await host.ask<{ turns: { message: { attachments: object[] } }[] }>(`/v1/sessions/${id}`);
    expect(state.turns[0]!.message.attachments).toEqual([{ type: "chat", resource: other, label: `The session 'Pelican plan' (${other}, scripted in ${host.folder})`, modelRepresentation: "User: [[say:Forty pelicans.]]\nYou: Forty pelicans." }]);
    await page.click('.message .attached a:has-text("Pelican plan")');
    await page.waitForURL(`${host.url}/app/s/${other}`);
    expect(person.trouble).toEqual([]);
  });

  test("! runs a line in the folder without the agent, and offers it again", async () => {
    const person = await somebody();
    const { page } = person;
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", cwd: host.folder });
    await openSession(person, id);
    await page.keyboard.type("!echo here is $((40 + 2))");
    await page.waitForSelector('#runs:has-text("without the agent")');
    expect(await page.getAttribute("#send", "aria-label")).toBe("Run");
    expect(await person.barriers()).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForSelector('#transcript:has-text("here is 42")');
    await done(id);
    await page.keyboard.type("!ec");
    await page.waitForSelector('[role=option]:has-text("!echo here is")');
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await page.inputValue("#message")).toBe("!echo here is $((40 + 2))");
    expect(person.trouble).toEqual([]);
  });
});
