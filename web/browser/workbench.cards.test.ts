/** What a card shows before anybody answers it, what a conversation shows without a click, and how a change is commented on. */

import { execSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const host = new RealHost();
const BEFORE = Array.from({ length: 40 }, (_, line) => `line = ${line}\n`).join("");
const AFTER = BEFORE.replace("line = 10\n", "line = 'ten'\n").replace("line = 30\n", "line = 'thirty'\nmore = True\n");
const LONG = "for n in range(100): print('a line of code that is much longer than the column in which it stands, so that it has to be cut off or to go on below', n)";
const SCRIPT = {
  providers: [{ id: "codex", name: "Codex" }],
  rules: [
    { match: "^change", steps: [{ do: "write", path: "src/lines.py", text: AFTER }, { do: "say", text: "Changed." }] },
    { match: "^delete", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "rm -r ./old" }, permission: { kind: "shell", command: "rm -r ./old" } }] },
    {
      match: "^show",
      steps: [
        { do: "tool", name: "deploy", kind: "other", title: "Deploy to staging", input: {}, fail: "connect ECONNREFUSED 10.0.0.7:443" },
        { do: "tool", name: "web_fetch", kind: "fetch", input: { url: "https://docs.example.org/limits" }, output: "ok" },
        { do: "tool", name: "bash", kind: "execute", input: { command: "make" }, output: Array.from({ length: 50 }, (_, line) => `step ${line}`).join("\n"), exit_code: 2 },
        { do: "notice", text: "The context was compacted." },
        { do: "say", text: `One paragraph.\n\n\`\`\`python\n${LONG}\n\`\`\`\n` },
      ],
    },
    { match: "^ask late", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "make release" }, permission: { kind: "shell", command: "make release", timeout: 0.2 } }] },
    { match: "^send out", steps: [{ do: "spawn", prompt: "Push it", title: "Push the branch", agent: "Releaser", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "make push" }, permission: { kind: "shell", command: "make push" } }] }] },
    { match: "^talk", steps: [{ do: "say", text: `${"Word by word, at length. ".repeat(300)}\n\nThe end.` }] },
    { match: "^then ask", steps: [{ do: "say", text: "A first paragraph.\n\nA second one.", deltas: 8, gap: 30 }, { do: "write", path: "note.md", text: "x\n" }] },
  ],
};
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"), ...entryOptions(host.folder));

/** A session in a repository of its own, with files that git does not know. */
async function begin(text: string): Promise<string> {
  const folder = mkdtempSync(join(host.folder, "repo-"));
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src/lines.py"), BEFORE);
  execSync("git init -q && git -c user.name=T -c user.email=t@example.org add . && git -c user.name=T -c user.email=t@example.org commit -qm first", { cwd: folder });
  mkdirSync(join(folder, "old"));
  for (const name of ["a", "b", "c"]) writeFileSync(join(folder, "old", `${name}.sql`), "select 1;\n");
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "codex", cwd: folder, title: text });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  return id;
}

describe("a card", () => {
  test("says who wants how much, shows it, says what is known of it, and leads to the whole of it", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/s/${await begin("change it")}`);
    const card = page.locator(".card.approval");
    await card.locator('.about:has-text("Codex wants to write 3 lines and remove 2. Nothing is written until you allow it.")').waitFor();
    expect(await card.locator("h2").textContent()).toBe("Change src/lines.py?");
    await card.locator('.card-facts:has-text("Can be undone")').waitFor();
    expect(await card.locator(".card-facts li").allTextContents()).toEqual(["Inside the project folder", "Can be undone", "No time limit", "Show all 19 lines"]);
    // Who loads the page where a card waits answers it with a key: the field would take the letter.
    await page.reload();
    await card.waitFor();
    await page.waitForFunction(() => document.activeElement?.id === "transcript");
    await card.getByRole("button", { name: "Show all 19 lines" }).click();
    await page.waitForSelector('.file:has-text("src/lines.py"):has-text("not written yet")');
    await page.waitForSelector('.file-diff .pill:text-is("not written yet")');
    expect(await page.locator(".pf button:visible").allTextContents()).toEqual([]); // nothing to commit yet
    expect(await person.barriers(page, "moderate")).toEqual([]);
    await card.getByRole("button", { name: "Allow once" }).click();
    await page.waitForSelector("#status.idle", { state: "attached" });
    await page.waitForSelector('.file:has-text("src/lines.py"):not(:has-text("not written yet"))');
    // One change, one count: in the conversation, in the head, in the list and in the panel.
    for (const where of [".call.change summary", "#changes-button", `.list [aria-current="true"]`, ".ph", '.file:has-text("src/lines.py")']) await page.waitForSelector(`${where} .pm:has-text("+3 −2")`);
    await page.click(".call.change .file-link");
    await page.waitForURL(/\/changes\/src\/lines\.py$/);
    expect(await page.evaluate(() => document.documentElement.scrollHeight - window.innerHeight)).toBe(0); // the panel scrolls, not the page
    expect(person.trouble).toEqual([]);
  });

  test("of what deletes takes two steps and no key, and the second one counts what is lost", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/s/${await begin("delete them")}`);
    await page.waitForSelector(".card.dangerous");
    // A card takes no key before it has been there for a moment; this one takes none at all.
    await page.waitForFunction(() => performance.now() - Number(document.querySelector<HTMLElement>(".card.dangerous")!.dataset["since"]) > 400);
    await page.focus("#transcript");
    await page.keyboard.press("y");
    expect(await page.locator(".card.dangerous .answers button").allTextContents()).toEqual(["DenyN", "Allow…"]);
    const edge = (selector: string) => page.$eval(selector, (found) => getComputedStyle(found).borderTopColor);
    expect(await edge(".card.dangerous .answers .danger")).toBe(await edge(".card.dangerous"));
    await page.getByRole("button", { name: "Allow…" }).click();
    await page.waitForSelector('.careful:has-text("Lost for good: 3 files not in git.")');
    await page.getByRole("button", { name: "Back" }).click();
    await page.waitForSelector(".card.dangerous:not([data-settling])"); // what has just changed takes no key, either
    await page.keyboard.press("n");
    await page.waitForSelector(".call.refused");
    expect(person.trouble).toEqual([]);
  });

  test("that opens is told at once to those who hear the page, and texts by the paragraph", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await begin("talk");
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForSelector("#status.idle", { state: "attached" });
    expect(await page.getAttribute("#transcript", "aria-live")).toBe("off");
    await page.fill("#message", "then ask");
    await page.press("#message", "Enter");
    await page.waitForSelector('[aria-live=assertive]:text-is("Needs you: Change note.md?")', { state: "attached" });
    expect(await page.textContent("[aria-live=polite]")).toMatch(/second one\.$/);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("message"); // the focus was not taken away
    expect(person.trouble).toEqual([]);
  });
});

describe("without a click", () => {
  test("what failed says why, a command how it ended, a fetch what it fetched, and what nobody answered that it was not done", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(`${host.url}/app/s/${await begin("show it")}`);
    await page.waitForSelector("#status.idle", { state: "attached" });
    await page.waitForSelector('.tail.bad:text-is("connect ECONNREFUSED 10.0.0.7:443")');
    await page.waitForSelector('.call-title:has-text("Fetched https://docs.example.org/limits")');
    const command = page.locator(".row:has(.call.command)");
    expect(await command.locator(".tail").textContent()).toBe("step 47\nstep 48\nstep 49");
    expect(await command.locator(".call-word").first().textContent()).toBe("exit 2");
    await command.locator("summary").click();
    await command.getByRole("button", { name: "Copy the output" }).waitFor();
    await command.getByRole("button", { name: "Open a terminal here" }).click();
    await page.waitForSelector("#tab-terminal[aria-selected=true]");
    const code = page.locator("pre:has(code)").last();
    const cut = () => code.evaluate((pre) => pre.scrollWidth > pre.clientWidth);
    expect(await cut()).toBe(true);
    await code.hover();
    await code.getByRole("button", { name: "Wrap long lines" }).click();
    expect(await cut()).toBe(false);
    await page.fill("#message", "ask late");
    await page.press("#message", "Enter");
    await page.waitForSelector('.verdict:has-text("No one answered by")');
    expect(await page.locator(".call.refused .call-word").textContent()).toBe("not done");
    expect(person.trouble).toEqual([]);
  });

  test("a long conversation has a map of one's own messages, and says whether what is below is new", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await begin("talk 1");
    for (const text of ["talk 2", "talk 3", "talk 4"]) await host.ask(`/v1/sessions/${id}/messages`, { text });
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForFunction(() => document.querySelectorAll(".message-map i").length === 4);
    await page.waitForSelector("#status.idle", { state: "attached" });
    await page.locator(".message-map i").first().click();
    await page.waitForFunction(() => document.querySelector(".row.message")!.getBoundingClientRect().top > 0);
    await page.waitForSelector('#to-end:text-is("Jump to latest ↓")');
    await host.ask(`/v1/sessions/${id}/messages`, { text: "talk 5" });
    await page.waitForSelector('#to-end:text-is("New below ↓")');
    await page.click("#to-end");
    await page.waitForSelector("#to-end", { state: "hidden" });
    await page.waitForSelector('.sticky:text-is("talk 5")'); // one's own words, as long as their answer is read
    const { turns } = await host.ask<{ turns: { id: string }[] }>(`/v1/sessions/${id}`);
    await page.goto(`${host.url}/app/inbox`);
    await page.goto(`${host.url}/app/s/${id}#turn=${turns[1]!.id}`); // as a hit of the search leads there
    await page.waitForFunction(() => [...document.querySelectorAll(".row.message")].some((row) => row.textContent?.includes("talk 2") && row.getBoundingClientRect().top > 0 && row.getBoundingClientRect().top < 300));
    expect(person.trouble).toEqual([]);
  });
});

test("a click on a line comments on it, a drag over numbers on several, and the message quotes them", async () => {
  const person = await somebody();
  const { page } = person;
  const id = await begin("change it");
  await page.goto(`${host.url}/app/s/${id}`);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.waitForSelector("#status.idle", { state: "attached" });
  await page.goto(`${host.url}/app/s/${id}/changes`);
  const line = (number: number) => page.locator(`.file-diff .dl[data-new="${number}"]`);
  await line(11).locator("> span").click();
  await page.keyboard.type("Why ten?");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector('.note:has-text("You, line 11")');
  await line(31).locator("button").hover();
  await page.mouse.down();
  await line(32).locator("button").hover();
  await page.mouse.up();
  await page.keyboard.type("One line is enough");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector('.note:has-text("You, lines 31 to 32")');
  await page.click("#send-comments");
  await page.waitForSelector('#transcript .message:has-text("2 comments on your changes:")');
  const said = await page.locator("#transcript .message .plain").last().textContent();
  expect(said).toBe("2 comments on your changes:\n\n`src/lines.py`, line 11:\n> line = 'ten'\n\nWhy ten?\n\n`src/lines.py`, lines 31 to 32:\n> line = 'thirty'\n> more = True\n\nOne line is enough");
  expect(person.trouble).toEqual([]);
});

describe("from session to session", () => {
  test("keys go on, and write nothing; what opened by itself stays with its session, and an address leads to a line", async () => {
    const person = await somebody();
    const { page } = person;
    const changed = await begin("change it");
    const others = [await begin("talk"), await begin("talk"), await begin("talk")];
    await page.goto(`${host.url}/app/s/${changed}`);
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.waitForSelector(".file-diff"); // it opens by itself
    for (const id of others) await page.waitForSelector(`.group[data-group=today] [data-key="s/${id}"]`);
    await page.focus("#transcript");
    const seen = [new URL(page.url()).pathname];
    for (const key of ["j", "j", "k"]) {
      await page.keyboard.press(key);
      await page.waitForURL((url) => url.pathname !== seen.at(-1));
      seen.push(new URL(page.url()).pathname);
      expect(await page.inputValue("#message")).toBe("");
    }
    expect([new Set(seen).size, seen[3]]).toEqual([3, seen[1]]);
    await page.waitForSelector("#panel", { state: "hidden" });
    await page.focus(`[data-key="${seen[3]!.slice(5)}"]`); // in the list the focus goes along
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((before) => document.activeElement?.matches(".list .entry[aria-current]") && window.location.pathname !== before, seen[3]);
    // What somebody opens is in the address, with the file and the line they comment on.
    await page.click(`[data-key="s/${changed}"]`);
    await page.click("#changes-button");
    await page.waitForURL(/\/changes$/);
    await page.click('.file:has-text("src/lines.py")');
    await page.waitForURL(/\/changes\/src\/lines\.py$/);
    await page.locator('.file-diff .dl[data-new="31"] .line-number').click();
    await page.waitForURL(/#L31$/);
    await page.reload();
    await page.waitForFunction(() => document.activeElement?.closest<HTMLElement>(".dl")?.dataset["new"] === "31");
    await page.click('[aria-label="Close the panel"]');
    await page.waitForURL((url) => url.pathname.endsWith(changed) && url.hash === "");
    expect(person.trouble).toEqual([]);
  });

  test("what a helper asks is asked in the list, in the head and in its own conversation, and keys answer it", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await begin("send out");
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForSelector(`.group[data-group=need] [data-key="s/${id}"]:has-text("Wants to run make push")`);
    await page.waitForSelector('#status:text-is("Needs you")');
    await page.waitForSelector('.now.need:has-text("Waiting for you")');
    const card = page.locator(".helper[open] .card.approval");
    await card.locator('.about:has-text("Releaser wants to run it")').waitFor();
    expect(await person.barriers(page, "moderate")).toEqual([]);
    await page.waitForFunction(() => performance.now() - Number(document.querySelector<HTMLElement>(".helper .card")!.dataset["since"]) > 400);
    await page.focus("#transcript");
    await page.keyboard.press("a"); // what it would cover, and nothing is given yet
    await card.locator(".scopes .option").first().waitFor();
    await page.focus("#transcript");
    await page.keyboard.press("n");
    await page.waitForSelector("#status.idle", { state: "attached" });
    await page.waitForSelector('.helper summary:has-text("Releaser helped: Push the branch")');
    expect(person.trouble).toEqual([]);
  });

  test("a yes of the inbox can be taken back for a moment, and is sent when somebody leaves", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await begin("change it");
    const waiting = async () => (await host.ask<{ waiting: { id: string; session: string }[] }>("/v1/inbox")).waiting.find(({ session }) => session === id);
    const waits = async () => (await waiting()) !== undefined;
    await expect.poll(waits).toBe(true);
    const approval = (await waiting())!.id;
    await page.goto(`${host.url}/app/inbox/${approval}`);
    const allow = page.locator(`.card[data-approval="${approval}"]`).getByRole("button", { name: "Allow once" });
    await allow.click();
    await page.waitForSelector('.held-strip:has-text("Allowed: Change src/lines.py?")');
    expect(await person.barriers(page, "moderate")).toEqual([]);
    await page.getByRole("button", { name: "Undo" }).click();
    await allow.waitFor();
    expect([await waits(), await page.locator(".held-strip").count()]).toEqual([true, 0]);
    await allow.click();
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await expect.poll(waits).toBe(false);
    expect(person.trouble).toEqual([]);
  });

  test("pictures that changed stand side by side, with their sizes", async () => {
    const person = await somebody();
    const { page } = person;
    const id = await begin("talk");
    const { cwd } = await host.ask<{ cwd: string }>(`/v1/sessions/${id}`);
    writeFileSync(join(cwd, "dot.png"), Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"));
    await page.goto(`${host.url}/app/s/${id}/changes`);
    await page.selectOption('[aria-label="Which changes"]', "uncommitted");
    await page.waitForSelector('.sides figcaption:text-is("Before: not there")');
    await page.waitForSelector('.sides figcaption:text-is("After: 70 bytes")');
    await page.waitForSelector('.sides img[alt="dot.png, after"]');
    expect(person.trouble.filter((each) => !each.includes("404"))).toEqual([]);
  });
});

test("the filter offers its words, and no row moves under the pointer for that", async () => {
  const person = await somebody();
  const { page } = person;
  const waiting = await begin("change it");
  await page.goto(`${host.url}/app/s/${waiting}`);
  await page.waitForSelector(`[data-key="s/${waiting}"]`);
  const top = () => page.$eval(`[data-key="s/${waiting}"]`, (row) => row.getBoundingClientRect().top);
  const before = await top();
  await page.focus("#filter");
  await page.waitForSelector(".offers .chip");
  expect(await top()).toBe(before);
  await page.keyboard.press("Tab"); // by keyboard as well
  await page.keyboard.press("Enter");
  expect(await page.inputValue("#filter")).toBe("is:needs");
  await page.waitForFunction(() => [...document.querySelectorAll(".list .entry")].every((row) => row.matches(".need, .ask")));
  await page.click('[aria-label="Remove the filter is:needs"]');
  expect(await page.inputValue("#filter")).toBe("");
  expect(person.trouble).toEqual([]);
});

describe("a job", () => {
  test("that failed says at which step and why; on a phone its steps come first, and a conversation is a page of its own", async () => {
    const person = await somebody({ phone: true });
    const { page } = person;
    const id = await host.startJob("broken");
    await page.goto(`${host.url}/app/j/${id}`);
    await page.locator(".strip", { hasText: /Failed at refused: The reason\. (After|In under 1 s).*2 steps ran/ }).waitFor();
    expect(await page.locator(".strip").textContent()).not.toContain("changed"); // there is no git in its folder: nobody knows
    await page.waitForSelector('.decisions .why:has-text("The reason.")');
    expect(await page.locator(".job-step").isVisible()).toBe(false);
    await page.locator('.tn:has-text("refused")').click();
    await page.waitForSelector('.job-step .call-title:has-text("Answered no: The reason.")');
    expect(await page.locator(".job-steps").isVisible()).toBe(false);
    expect(await person.barriers(page, "moderate")).toEqual([]);
    await page.getByRole("button", { name: "Back to the list" }).click();
    await page.waitForSelector(".job-steps", { state: "visible" });
    await page.goto(`${host.url}/app/jobs`);
    await page.waitForSelector(`[data-key="j/${id}"] .act:text-is("Failed at refused")`);
    expect(person.trouble).toEqual([]);
  });
});
