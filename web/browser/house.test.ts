/** The pages beyond the seeds': sessions, one session, agents, job history. */

import { describe, expect, test } from "vitest";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host);

/** Through the form, as a person does it. */
async function begin({ page }: Person, agent: string, text: string): Promise<void> {
  await page.goto(`${host.url}/sessions.html`);
  await page.click("#new");
  await page.waitForSelector(`#agent option[value="${agent}"]`, { state: "attached" });
  await page.selectOption("#agent", agent);
  await page.fill("#first", text);
  await page.click("#start");
  await page.waitForURL(/session\.html\?id=/);
  await page.waitForSelector("#transcript .message");
}

const ready = (person: Person) => person.page.waitForSelector("#status.idle");
const send = async ({ page }: Person, text: string) => {
  await page.fill("#message", text);
  await page.press("#message", "Control+Enter");
};

describe("one session", () => {
  test("start, answer an approval on a phone, see the change", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    await begin(person, "demo", "write something");
    await page.waitForSelector(".approval");
    expect(await page.$$eval(".approval .diff-added", (all) => all.length)).toBe(3);
    expect(await page.textContent("#status")).toBe("Needs you");
    expect(await person.barriers()).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.click(".approval button.primary");
    await ready(person);
    expect(await page.textContent("#transcript")).toContain("Done: I wrote");
    expect(await page.textContent(".end")).toContain("120 tokens in, 40 out");
    await page.click("#menu summary");
    await page.click("#changes");
    expect(await page.textContent("dialog[open] .file")).toContain("portico-demo.md");
    expect(person.trouble).toEqual([]);
  });

  test("y and n answer what is in sight", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "demo", "write a file");
    await page.waitForSelector(".approval");
    // A card that has only just come takes no key, so that none is answered by a key meant for another one.
    while (await page.locator(".approval").count()) {
      await page.keyboard.press("n");
      await page.waitForTimeout(100);
    }
    await ready(person);
    expect(await page.textContent(".call summary")).toContain("refused");
    await page.click(".call summary");
    await page.waitForSelector('.call-body:has-text("Refused by You (Deny)")');
    await page.keyboard.press("?");
    expect(await page.textContent("dialog[open]")).toContain("Refuse what waits");
    expect(await person.barriers()).toEqual([]);
    expect(person.trouble).toEqual([]);
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
    await page.click('[aria-label="Steer now: first"]');
    await page.waitForSelector('#trouble:has-text("stays in the queue")');
    expect(await queue()).toHaveLength(2);
    expect(await person.barriers()).toEqual([]);
    await page.click("#stop");
    await page.waitForFunction(() => document.querySelectorAll("#transcript .message").length === 3);
    await ready(person);
    expect(person.trouble).toEqual([]);
  });

  test("a reload in mid-stream goes on where it was", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[deltas:3000]] [[gap:50]]");
    const said = () => page.locator(".row.text:not(.reasoning) .markdown").innerText();
    await page.waitForSelector(".row.text:not(.reasoning) .markdown:has-text('Hello')");
    const before = await said();
    await page.fill("#message", "a draft");
    await page.reload();
    await page.waitForSelector("#status.running");
    expect(await page.inputValue("#message")).toBe("a draft");
    await page.waitForFunction((length) => (document.querySelector(".row.text:not(.reasoning) .markdown")?.textContent?.length ?? 0) > length, before.length + 20);
    await page.click("#stop");
    await ready(person);
    const id = new URL(page.url()).searchParams.get("id")!;
    const { turns } = await host.ask<{ turns: { parts: { part: string; kind: string; text: string }[] }[] }>(`/v1/sessions/${id}`);
    expect(await said()).toBe(turns[0]!.parts.find(({ kind }) => kind === "text")!.text);
    expect(person.trouble).toEqual([]);
  });

  test("a host killed in mid-stream: the page comes back, and the turn can be resumed", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[deltas:3000]] [[gap:60]]");
    await page.waitForSelector(".row.text:not(.reasoning) .markdown:has-text('Hello')");
    await host.kill();
    await page.waitForSelector(".connection-lost", { state: "visible" });
    await host.start();
    await page.waitForSelector(".connection-lost", { state: "hidden" });
    await page.waitForSelector(".outcome.interrupted");
    await page.click(".outcome button");
    await page.waitForSelector("#status.running");
    await page.waitForSelector(".outcome", { state: "detached" });
  });

  test("hostile text stays text; fork, rename, archive", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "[[say:# Hi\n\n**b** <img src=x onerror=alert(1)> [x](javascript:alert(2)) [api](/api/stop)]]");
    await ready(person);
    expect(await page.locator("#transcript .markdown :is(img, script, a[href*='/api/'], a[href^='javascript'])").count()).toBe(0);
    const exports = await page.$$eval(".menu a", (all) => all.map((each) => (each as HTMLAnchorElement).href));
    const answers = await page.evaluate((links) => Promise.all(links.map(async (link) => (await fetch(link)).headers.get("content-disposition"))), exports);
    expect(answers.map((each) => /\.(\w+)"/.exec(each!)![1])).toEqual(["md", "html", "jsonl"]);
    const before = page.url();
    await page.click("text=Fork after this turn");
    await page.waitForURL((url) => url.href !== before);
    await page.waitForSelector("#transcript .message");
    await page.keyboard.press("r");
    await page.fill("dialog[open] input", "Another name");
    await page.press("dialog[open] input", "Enter");
    await page.waitForFunction(() => document.getElementById("title")!.textContent === "Another name");
    await page.click("#menu summary");
    await page.click("#archive");
    await page.goto(`${host.url}/sessions.html`);
    await page.waitForSelector(".session");
    expect(await page.locator("text=Another name").count()).toBe(0);
    await page.check("#archived");
    expect(await page.locator("text=Another name").count()).toBe(1);
    expect(person.trouble).toEqual([]);
  });

  test("of 10,000 blocks only those near the view are built", async () => {
    const person = await somebody();
    const { page } = person;
    await begin(person, "scripted", "hello");
    await ready(person);
    const state = await page.evaluate(async () => (await fetch(`/v1/sessions/${new URLSearchParams(window.location.search).get("id")}`, { headers: { "X-Portico-Key": window.localStorage.getItem("portico.key")! } })).json());
    const turn = state.turns[0];
    const long = { ...turn, parts: Array.from({ length: 10_000 }, (_, n) => (n % 2 ? { part: "text", id: `x${n}`, kind: "text", text: `**Block** ${n}\n\n- one\n- two`, done: true } : { part: "call", id: `x${n}`, tool: "read", input: '{"path":"a"}', ready: true, done: true, ok: true, output: "text" })) };
    await page.route(/\/v1\/sessions\/[^/]+$/, (route) => route.fulfill({ json: { ...state, turns: [long] } }));
    await page.reload({ waitUntil: "commit" });
    await page.waitForSelector("text=Block 9999");
    expect(await page.$$eval(".row", (all) => all.length)).toBeLessThan(500);
    await page.$eval("#transcript", (view) => (view.scrollTop = view.scrollHeight / 2));
    await page.waitForFunction(() => document.querySelectorAll(".row").length > 100);
    expect(await page.$$eval(".row", (all) => all.length)).toBeLessThan(1000);
  });
});

describe("all sessions", () => {
  test("status, unread marks, titles and texts can be searched", async () => {
    const [ann, bob] = [await somebody(), await somebody({ phone: true, dark: true })];
    await begin(ann, "scripted", "the axolotl [[say:An amphibian.]]");
    await ready(ann);
    await bob.page.goto(`${host.url}/sessions.html`);
    await bob.page.waitForSelector(".session");
    expect(await bob.barriers()).toEqual([]);
    await bob.page.fill("#search", "amphibian");
    await bob.page.waitForSelector("#hits .session");
    expect(await bob.page.textContent("#hits")).toContain("An amphibian.");
    await bob.page.fill("#search", "axolotl");
    await bob.page.waitForFunction(() => document.querySelectorAll("#list .session").length === 1);
    await ann.page.goto(`${host.url}/agents.html`);
    await bob.page.evaluate(async () => {
      const id = new URL(document.querySelector<HTMLAnchorElement>("#list a")!.href).searchParams.get("id");
      await fetch(`/v1/sessions/${id}/messages?key=${window.localStorage.getItem("portico.key")}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"text":"again"}' });
    });
    await bob.page.waitForSelector("#list .unread-mark");
    expect([...ann.trouble, ...bob.trouble]).toEqual([]);
  });

  test("agents: who is ready comes first, the others tell what they lack with lines to copy, and one leads to a session", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    await page.route("**/v1/agents", async (route) => {
      const { agents } = (await (await route.fetch()).json()) as { agents: object[] };
      await route.fulfill({ json: { agents: [{ id: "absent", name: "Absent", missing: "It is not installed: npm install -g absent" }, ...agents] } });
    });
    await page.goto(`${host.url}/agents.html`);
    await page.waitForSelector(".agent");
    expect(await page.$$eval(".agent .status", (all) => all.map((each) => each.textContent))).toEqual(["Ready", "Ready", "Not ready"]);
    expect(await page.textContent(".agent.lacking .command code")).toBe("npm install -g absent");
    expect(await person.barriers()).toEqual([]);
    await page.tap('[aria-label="New session with Demo"]');
    await page.waitForFunction(() => (document.getElementById("agent") as HTMLSelectElement).value === "demo");
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
