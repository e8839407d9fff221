/** The workbench: the list, the conversation and the cards, over a real host in a real browser. */

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Editor } from "./editor";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);

/** Through the form, as a person does it. */
async function begin({ page }: Person, agent: string, text: string): Promise<void> {
  await page.goto(`${host.url}/app/new?agent=${agent}`);
  await page.waitForSelector(`#agents input[value="${agent}"]:checked`);
  await page.fill("#first", text);
  await page.click("#start");
  await page.waitForURL(/\/app\/s\//);
  await page.waitForSelector("#transcript .message");
}

/** By a script of the same person. */
async function started(agent: string, text: string, title = ""): Promise<string> {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent, title });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  return id;
}

const ready = (person: Person) => person.page.waitForSelector("#status.idle", { state: "attached" });
const send = async ({ page }: Person, text: string) => {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
};

describe("one session", () => {
  test("login opens the workbench; start, answer an approval on a phone, see the change", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    await page.goto(host.login);
    await page.waitForURL(`${host.url}/app`);
    await page.waitForSelector(".list-empty:has-text('No sessions yet')");
    expect(await person.barriers()).toEqual([]);
    await begin(person, "demo", "write something");
    await page.waitForSelector(".approval");
    expect(await page.$$eval(".approval .diff-added", (all) => all.length)).toBe(3);
    expect(await page.textContent(".approval h2")).toBe("Change portico-demo.md?");
    expect(await person.barriers()).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.tap(".approval button.primary");
    await ready(person);
    await page.waitForSelector('.verdict:has-text("You allowed it")');
    expect(await page.textContent("#transcript")).toContain("Done: I wrote");
    expect(await page.textContent(".end")).toContain("120 tokens in, 40 out");
    await page.tap("#changes-button");
    await page.waitForSelector(".review .file");
    expect(await page.textContent(".review .file")).toContain("portico-demo.md");
    await page.tap('[aria-label="Back to the conversation"]');
    await page.waitForSelector("#message", { state: "visible" });
    await page.tap('[aria-label="Back to the list"]');
    await page.waitForSelector('.group[data-group="today"] .entry');
    expect(person.trouble).toEqual([]);
  });

  test("y and n answer what is in sight, and a button's name has no letter in it", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "demo", "write a file");
    await page.waitForSelector(".approval");
    await page.getByRole("button", { name: "Allow once", exact: true }).waitFor();
    await page.focus("#transcript");
    // A card that has only just come takes no key, so that none is answered by a key meant for another one.
    while (await page.locator(".approval").count()) {
      await page.keyboard.press("n");
      await page.waitForTimeout(100);
    }
    await ready(person);
    expect(await page.textContent(".call summary")).toContain("denied");
    await page.waitForSelector('.verdict:has-text("You denied it")');
    await page.keyboard.press("?");
    expect(await page.textContent("dialog[open]")).toContain("Deny what waits");
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("what nobody answered in time is nobody's no", async () => {
    const person = await somebody();
    const state = { id: "x", agent: "demo", model: "demo", cwd: "/w", pos: 1, turns: [{ id: "t", message: { text: "go" }, by: "token:owner", started: 1, ended: 2, outcome: "completed", parts: [{ part: "call", id: "c", tool: "write", done: true, ok: false, approvals: [{ id: "x.a", kind: "write", title: "", input: "{}", expires: 1_700_000_000_000, options: [], answered: true, allowed: false, by: "timeout" }] }] }] };
    const id = await started("scripted", "hello");
    await person.page.route(`**/v1/sessions/${id}`, (route) => route.fulfill({ json: { ...state, id } }));
    await person.page.goto(`${host.url}/app/s/${id}`);
    await person.page.waitForSelector('.verdict:has-text("No one answered by")');
    expect(await person.page.textContent(".verdict")).toContain("so it was not done");
  });

  test("a question is answered in its form", async () => {
    const person = await somebody();
    await begin(person, "demo", "ask me");
    await person.page.fill(".question input", "blue");
    await person.page.press(".question input", "Enter");
    await ready(person);
    expect(await person.page.textContent(".question")).toContain("blue");
    expect(person.trouble).toEqual([]);
  });

  test("what is sent while it works waits, can be changed, moved and removed", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[deltas:3000]] [[gap:100]]");
    await page.waitForSelector("#status.running");
    await page.waitForSelector('.now:has-text("Writing"), .now:has-text("Thinking")');
    for (const text of ["one", "two", "three"]) {
      await send(person, text);
      await page.waitForSelector(`.queue-text:text-is("${text}")`);
    }
    const queue = () => page.$$eval(".queue-text", (all) => all.map((each) => each.textContent));
    await page.click('[aria-label="Move up: three"]');
    await page.waitForFunction(() => document.querySelectorAll(".queue-text")[1]!.textContent === "three");
    await page.click('[aria-label="Remove: two"]');
    await page.waitForFunction(() => document.querySelectorAll(".queue-text").length === 2);
    await page.click('[aria-label="Edit: one"]');
    await page.fill("#queue textarea", "first");
    await page.press("#queue textarea", "Control+Enter");
    await page.waitForSelector('.queue-text:text-is("first")');
    expect(await queue()).toEqual(["first", "three"]);
    await page.dragAndDrop("#queue li:nth-child(2)", "#queue li:nth-child(1)");
    await page.waitForFunction(() => document.querySelector(".queue-text")!.textContent === "three");
    await page.click('[aria-label="Send now: first"]');
    await page.waitForSelector('#trouble:has-text("stays in the queue")');
    expect(await queue()).toHaveLength(2);
    expect(await person.barriers()).toEqual([]);
    await page.click("#stop");
    await page.waitForFunction(() => document.querySelectorAll("#transcript .message").length === 3);
    await ready(person);
    expect(person.trouble).toEqual([]);
  });

  test("a reload in mid-stream goes on where it was; Esc Esc stops", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[deltas:3000]] [[gap:50]]");
    const said = ".row.text:not(.reasoning) .markdown";
    await page.waitForSelector(`${said}:has-text("Hello")`);
    await page.fill("#message", "a draft");
    await page.reload();
    await page.waitForSelector("#status.running");
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")!.value === "a draft");
    const before = (await page.textContent(said))!.length;
    await page.waitForFunction(([path, known]) => document.querySelector(path)!.textContent!.length > known, [said, before + 20] as const);
    await page.focus("#transcript");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.waitForSelector('.outcome:has-text("Stopped")');
    // What streamed in pieces, over a reload, is what the log has.
    const { turns } = await host.ask<{ turns: { parts: { kind: string; text: string }[] }[] }>(`/v1/sessions/${new URL(page.url()).pathname.split("/").at(-1)}`);
    expect((await page.innerText(said)).trim()).toBe(turns[0]!.parts.find(({ kind }) => kind === "text")!.text);
    expect(person.trouble).toEqual([]);
  });

  test("a host that dies leaves an interrupted turn: list, head and end say so, and Resume goes on", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[deltas:3000]] [[gap:50]]");
    await page.waitForSelector(".row.text.text");
    await host.kill();
    await page.waitForSelector('.offline:has-text("cannot be reached since")');
    await host.start();
    await page.waitForSelector('.outcome.interrupted:has-text("Interrupted: the host stopped")');
    expect(await page.textContent("#status")).toBe("Interrupted");
    await page.waitForSelector('.group[data-group="stopped"] .entry[aria-current]:has-text("Interrupted")');
    await page.waitForSelector(".offline", { state: "hidden" });
    await page.click(".outcome button:has-text('Resume')");
    await page.waitForSelector("#status.running");
    await page.click("#stop");
    await ready(person);
  });

  test("hostile text stays text; export, fork, rename, archive and back", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[say:# Hi\n\n**b** <img src=x onerror=alert(1)> [x](javascript:alert(2)) [api](/api/stop)]]");
    await ready(person);
    expect(await page.locator("#transcript .markdown :is(img, script, a[href*='/api/'], a[href^='javascript'])").count()).toBe(0);
    await page.click("#menu summary");
    await page.waitForSelector(".menu a"); // its choices are made as it opens
    const exports = await page.$$eval(".menu a", (all) => all.map((each) => (each as HTMLAnchorElement).href));
    const answers = await page.evaluate((links) => Promise.all(links.map(async (link) => (await fetch(link)).headers.get("content-disposition"))), exports);
    expect(answers.map((each) => /\.(\w+)"/.exec(each!)![1])).toEqual(["md", "html", "jsonl"]);
    await page.keyboard.press("Escape");
    const before = page.url();
    await page.hover(".row.message");
    await page.click(".row.message >> text=Continue in a copy");
    await page.waitForURL((url) => url.href !== before);
    await page.waitForSelector("#transcript .message");
    await page.focus("#transcript");
    await page.keyboard.press("r");
    await page.fill("dialog[open] input", "Another name");
    await page.press("dialog[open] input", "Enter");
    await page.waitForFunction(() => document.getElementById("title")!.textContent === "Another name");
    await page.waitForSelector('.entry:has-text("Another name")');
    await page.click("#menu summary");
    await page.click("#archive");
    await page.waitForSelector('.entry:has-text("Another name")', { state: "detached" });
    await page.waitForSelector('#status:text-is("Archived")');
    await page.click("text=Archived (1)");
    expect(await page.inputValue("#filter")).toBe("is:archived");
    await page.reload();
    await page.fill("#filter", "is:archived");
    await page.hover('.entry:has-text("Another name")');
    await page.click('[aria-label="Unarchive Another name"]');
    await page.waitForSelector('.entry:has-text("Another name")', { state: "detached" });
    await page.fill("#filter", "");
    await page.hover('.entry:has-text("Another name")');
    await page.click('[aria-label="Pin Another name"]');
    await page.waitForSelector('.group[data-group="pinned"] .entry:has-text("Another name")');
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("edit and resend goes back to before the message", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "first [[say:One.]]");
    await ready(person);
    await send(person, "second [[say:Two.]]");
    await page.waitForSelector("text=Two.");
    await ready(person);
    await page.locator(".row.message").last().hover();
    await page.locator("text=Edit and resend").last().click();
    await page.click('dialog[open] button:has-text("Edit here")');
    await page.waitForFunction(() => document.querySelectorAll("#transcript .message").length === 1);
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")!.value !== "");
    expect(await page.inputValue("#message")).toBe("second [[say:Two.]]");
    expect(person.trouble).toEqual([]);
  });

  test("an answer can be copied, tried again and linked; the palette finds it by its text and marks it", async () => {
    const person = await somebody();
    const { page } = person;
    await person.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await begin(person, "scripted", "first [[say:The *pangolin* sleeps.]]");
    await ready(person);
    const id = new URL(page.url()).pathname.split("/").at(-1)!;
    await page.locator(".row.text").last().hover();
    await page.click('.answer-tools button:has-text("Copy answer")');
    await page.waitForSelector('.answer-tools button:has-text("Copied")');
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("The *pangolin* sleeps.");
    await page.click('.answer-tools button:has-text("Copy link")');
    await page.waitForFunction(() => document.querySelectorAll(".answer-tools button.copy")[1]!.textContent === "Copied");
    const link = await page.evaluate(() => navigator.clipboard.readText());
    expect(link).toMatch(new RegExp(`^${host.url}/app/s/${id}#turn=`));
    await page.click('.answer-tools button:has-text("Try again")');
    await page.click('dialog[open] button:has-text("Replace this answer")');
    await ready(person);
    await page.waitForFunction(() => document.querySelectorAll("#transcript .message").length === 1 && document.querySelectorAll("#transcript .end").length === 1);
    await page.goto(`${host.url}/app/usage`);
    await page.keyboard.press("Control+k");
    await page.fill(".palette input", "pangolin");
    await page.click('.palette [data-group="In messages"] [role=option]:has-text("pangolin")');
    await page.waitForURL(new RegExp(`/app/s/${id}#turn=.*find=pangolin`));
    await page.waitForFunction(() => [...(CSS.highlights.get("found") ?? [])].map(String).includes("pangolin"));
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("answers are remembered for one session, listed there and forgotten", async () => {
    const person = await somebody();
    const { page } = person;
    rmSync(join(host.folder, "portico-demo.md"), { force: true });
    await begin(person, "demo", "write something");
    const id = new URL(page.url()).pathname.split("/").at(-1)!;
    await page.waitForSelector(".approval");
    await page.getByRole("button", { name: "Allow in this session", exact: true }).click();
    // What it is about is said before it is given: this file, or all of the folder.
    await page.waitForSelector('.scopes .option:has-text("Allow edits to every file in this project")');
    expect(await person.barriers()).toEqual([]);
    await page.click('.scopes .option:has-text("Allow edits to portico-demo.md")');
    await ready(person);
    await page.click("#menu summary");
    await page.click("#grants");
    await page.waitForSelector('dialog[open] li:has-text("portico-demo.md"):has-text("this session, until")');
    await page.keyboard.press("Escape");
    const other = await started("demo", "hello");
    await page.goto(`${host.url}/app/s/${other}`);
    await page.waitForSelector("#transcript .end");
    await page.click("#menu summary");
    await page.click("#grants");
    await page.waitForSelector('dialog[open] li:has-text("None.")');
    await page.goto(`${host.url}/app/s/${id}/details`);
    await page.click('.grants li:has-text("in this session") >> text=Forget');
    await page.waitForSelector(".grants", { state: "detached" });
    expect((await host.ask<{ grants: object[] }>("/v1/grants")).grants).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("what a program offers follows what somebody is writing", async () => {
    const person = await somebody();
    const { page } = person;
    const offer = (text: string) => host.ask<{ id: string }>("/message", { text, mode: "draft", agent: "scripted" });
    const { id } = await offer("First offer");
    await page.goto(`${host.url}/app/s/${id.replace(/\.draft$/, "")}`);
    const says = (text: string) => page.waitForFunction((wanted) => document.querySelector<HTMLTextAreaElement>("#message")!.value === wanted, text);
    await says("First offer");
    await page.fill("#message", "My own words");
    await offer("Please look");
    await says("My own words\nPlease look");
    await page.reload();
    await says("My own words\nPlease look");
    expect(person.trouble).toEqual([]);
  });

  test("a draft is on every device, and @ suggests files", async () => {
    const [ann, bob] = [await somebody(), await somebody({ phone: true })];
    writeFileSync(join(host.folder, "notes-for-ann.md"), "x");
    const id = await started("scripted", "hello");
    for (const { page } of [ann, bob]) {
      await page.goto(`${host.url}/app/s/${id}`);
      await page.waitForSelector("#transcript .end");
    }
    await ann.page.fill("#message", "Half a thought");
    await bob.page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")!.value === "Half a thought");
    await ann.page.fill("#message", "");
    await ann.page.keyboard.type("@notes-f");
    await ann.page.waitForSelector('.suggestion:has-text("notes-for-ann.md")');
    await ann.page.keyboard.press("Enter");
    expect(await ann.page.inputValue("#message")).toBe("@notes-for-ann.md ");
    expect([...ann.trouble, ...bob.trouble]).toEqual([]);
  });

  test("two browsers and an editor on one session: everybody sees what the others say and answer", async () => {
    const [ann, bob, other] = [await somebody(), await somebody({ phone: true }), await somebody()];
    rmSync(join(host.folder, "portico-demo.md"), { force: true });
    const id = await started("demo", "hello");
    for (const { page } of [ann, bob]) {
      await page.goto(`${host.url}/app/s/${id}`);
      await page.waitForSelector("#transcript .end");
    }
    const editor = await Editor.open(other.page, host, id);
    await editor.say("from-editor", "write something");
    for (const { page } of [ann, bob]) await page.waitForSelector(".approval h2:has-text('Change portico-demo.md?')");
    await editor.heard("chat/toolCallReady");
    await ann.page.click('.approval button:has-text("Allow once")');
    // The card folds everywhere, and the editor hears the answer and the end.
    for (const { page } of [ann, bob]) await page.waitForSelector('.verdict:has-text("You allowed it")');
    expect(await bob.page.locator(".approval").count()).toBe(0);
    expect(await editor.heard("chat/toolCallConfirmed")).toMatchObject({ approved: true });
    await editor.heard("chat/turnComplete");
    rmSync(join(host.folder, "portico-demo.md"), { force: true });
    await bob.page.fill("#message", "write something else");
    await bob.page.tap("#send");
    for (const { page } of [ann, bob]) await page.waitForSelector(".approval");
    const { turnId, toolCallId } = await editor.heard("chat/toolCallReady", 2);
    await editor.act("chat/toolCallConfirmed", { turnId, toolCallId, approved: false, reason: "denied" });
    for (const { page } of [ann, bob]) {
      await page.waitForFunction(() => document.querySelectorAll("#transcript .end").length === 3);
      expect(await page.locator(".approval").count()).toBe(0);
      expect(await page.locator("#transcript .message .plain").allTextContents()).toEqual(["hello", "write something", "write something else"]);
    }
    expect([...ann.trouble, ...bob.trouble, ...other.trouble]).toEqual([]);
  });

  test("what is written while a card is open answers it", async () => {
    const person = await somebody();
    const { page } = person;
    rmSync(join(host.folder, "portico-demo.md"), { force: true });
    await begin(person, "demo", "write something");
    await page.waitForSelector(".approval");
    expect(await page.isVisible("#deny-with-note")).toBe(false);
    await page.fill("#message", "Another name, please");
    await page.click("#deny-with-note");
    await page.waitForSelector('.verdict:has-text("You denied it: Another name, please")');
    expect(await page.inputValue("#message")).toBe("");
    await ready(person);
    // The keys of the design that no other test presses.
    await page.focus("#transcript");
    await page.keyboard.press("o");
    await page.waitForSelector("details.call[open]");
    await page.keyboard.press(".");
    await page.waitForSelector("#menu[open] #rename:focus");
    expect(person.trouble).toEqual([]);
  });

  test("of 10,000 blocks only those near the view are built", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await started("scripted", "hello");
    await page.goto(`${host.url}/app/s/${id}`);
    await ready(person);
    const state = await host.ask<{ turns: object[] }>(`/v1/sessions/${id}`);
    const turn = state.turns[0];
    const long = { ...turn, parts: Array.from({ length: 10_000 }, (_, n) => (n % 2 ? { part: "text", id: `x${n}`, kind: "text", text: `**Block** ${n}\n\n- one\n- two`, done: true } : { part: "call", id: `x${n}`, tool: "use", input: '{"path":"a"}', ready: true, done: true, ok: true, output: "text" })) };
    await page.route(`**/v1/sessions/${id}`, (route) => route.fulfill({ json: { ...state, turns: [long] } }));
    await page.reload({ waitUntil: "commit" });
    await page.waitForSelector("text=Block 9999");
    expect(await page.$$eval(".row", (all) => all.length)).toBeLessThan(500);
    await page.$eval("#transcript", (view) => (view.scrollTop = view.scrollHeight / 2));
    await page.waitForFunction(() => document.querySelectorAll(".row").length > 100);
    expect(await page.$$eval(".row", (all) => all.length)).toBeLessThan(1000);
  });
});

describe("the list", () => {
  test("groups, counts, live lines, unread marks; titles and texts can be searched", async () => {
    const [ann, bob] = [await somebody(), await somebody({ dark: true })];
    const { page } = bob;
    const quiet = await started("scripted", "the axolotl [[say:An amphibian, an amphibian.]]", "Axolotl");
    await ann.page.goto(`${host.url}/app/s/${quiet}`);
    await ready(ann);
    await page.goto(`${host.url}/app/inbox`);
    const asking = await started("demo", "write something", "Asking");
    await page.waitForSelector(`.group[data-group="need"] [data-key="s/${asking}"]:has-text("Wants to change portico-demo.md")`);
    await page.waitForFunction(() => /^\(\d+\) Inbox/.test(document.title));
    const needed = await page.textContent('.group[data-group="need"] .group-count');
    expect(await page.getAttribute(".navitem .count", "aria-label")).toBe(`${needed} need you`);
    const working = await started("scripted", "[[deltas:3000]] [[gap:50]]", "Working");
    await page.waitForSelector(`.group[data-group="work"] [data-key="s/${working}"] .act:text-is("Writing")`);
    await host.cancel(working);
    await page.waitForSelector(`.group[data-group="stopped"] [data-key="s/${working}"].unread .act:text-is("Stopped by you")`);
    expect(await bob.barriers()).toEqual([]);
    await page.fill("#filter", "amphibian");
    await page.waitForSelector(".entry.hit mark");
    expect(await page.$$eval(".entry.hit", (all) => all.length)).toBe(1);
    expect(await page.getAttribute(".entry.hit", "href")).toContain("#turn=");
    await page.fill("#filter", "axolotl is:done");
    await page.waitForFunction(() => document.querySelectorAll(".list .entry:not(.hit)").length === 1);
    await page.click('[aria-label="Remove the filter is:done"]');
    expect(await page.inputValue("#filter")).toBe("axolotl");
    await page.fill("#filter", "");
    await page.focus("#main");
    await page.keyboard.press("j");
    await page.waitForURL(/\/app\/inbox|\/app\/s\//);
    await page.goto(`${host.url}/app/s/${quiet}`);
    await page.waitForSelector(`[data-key="s/${quiet}"][aria-current]`);
    await page.focus("#transcript");
    await page.keyboard.press("k");
    await page.waitForURL((url) => !url.pathname.endsWith(quiet));
    // In one go, before its code can be here: what is typed meanwhile is not lost, and runs no key of the page.
    await page.evaluate(() => {
      const press = (key: string, ctrlKey = false) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
      press("k", true);
      for (const key of "axol") press(key);
    });
    await page.waitForSelector(".palette");
    await page.keyboard.type("otl");
    expect(await page.inputValue(".palette input")).toBe("axolotl");
    await page.waitForSelector('.palette [role=option][aria-selected=true]:has-text("Axolotl")');
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(quiet));
    expect([...ann.trouble, ...bob.trouble]).toEqual([]);
  });

  test("an address that leads nowhere says so and leads back", async () => {
    const { page } = await somebody();
    await page.goto(`${host.url}/app/nowhere`);
    await page.waitForSelector('h1:has-text("There is no such page")');
    await page.click("text=Open the list");
    await page.waitForURL(/\/app(\/s\/.*)?$/);
  });
});

describe("the inbox", () => {
  test("has what waits everywhere, oldest first; an answer opens the next", async () => {
    const person = await somebody();
    const { page } = person;
    for (const { id } of (await host.ask<{ sessions: { id: string; status: string }[] }>("/v1/sessions")).sessions.filter(({ status }) => status === "waiting")) await host.cancel(id);
    rmSync(join(host.folder, "portico-demo.md"), { force: true });
    await started("demo", "write something", "First");
    await page.goto(`${host.url}/app/inbox`);
    await page.waitForSelector(".card .asked-where:has-text('First')");
    const second = await started("demo", "ask me", "Second");
    await page.waitForSelector(".asked:has-text('Second')");
    expect(await page.textContent(".head p")).toBe("2 items need you, oldest first");
    expect(await page.locator(".card .diff-added").count()).toBeGreaterThan(0);
    expect(await person.barriers()).toEqual([]);
    await page.focus("#main");
    while ((await page.locator(".card.approval").count()) > 0) {
      await page.keyboard.press("y");
      await page.waitForTimeout(100);
    }
    await page.waitForSelector(".card.question:has-text('Second')");
    await host.cancel(second);
    await page.waitForSelector("text=You're all caught up.");
    await page.waitForFunction(() => document.title === "Inbox · Portico");
    expect(person.trouble).toEqual([]);
  });
});

describe("agents and jobs", () => {
  test("who is ready comes first, the others tell what they lack with lines to copy, and can be checked again", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    let lacking = true;
    await page.route("**/v1/agents", async (route) => {
      const { agents } = (await (await route.fetch()).json()) as { agents: object[] };
      await route.fulfill({ json: { agents: lacking ? [{ id: "absent", name: "Absent", missing: "It is not installed: npm install -g absent" }, ...agents] : [{ id: "absent", name: "Absent" }, ...agents] } });
    });
    await page.route("**/v1/agents/absent/check", (route) => route.fulfill({ json: { status: "ready" } }));
    await page.goto(`${host.url}/app/new?agent=absent`);
    await page.waitForSelector(".agent-choice.lacking");
    expect(await page.$$eval(".agent-choice span", (all) => all.map((each) => each.textContent))).toEqual(["Scripted", "Demo", "Absent"]);
    expect(await page.textContent(".missing .command code")).toBe("npm install -g absent");
    expect(await page.isDisabled("#start")).toBe(true);
    expect(await person.barriers()).toEqual([]);
    lacking = false;
    await page.tap("text=Check again");
    await page.waitForSelector("#start:enabled");
    expect(person.trouble).toEqual([]);
  });

  test("agents and job history have no barrier and no error", async () => {
    const person = await somebody();
    for (const [path, sign] of [["/agents.html", ".agent"], ["/jobHistory.html", "#empty:not([hidden])"]] as const) {
      await person.page.goto(host.url + path);
      await person.page.waitForSelector(sign);
      expect(await person.barriers()).toEqual([]);
    }
    expect(person.trouble).toEqual([]);
  });
});
