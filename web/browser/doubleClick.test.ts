/** A double click decides nothing that its second click did not aim at: on every card, menu and dialog, at three sizes. */

import { mkdtempSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { RealHost } from "./host";
import type { Look, Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const TALK = `${"A line of an answer that fills the window. ".repeat(12)}\n\n`.repeat(8);
const SCRIPT = {
  providers: [{ id: "codex", name: "Codex" }],
  rules: [
    { match: "^change", steps: [{ do: "say", text: TALK }, { do: "write", path: "src/limits.py", text: "LIMIT = 2\n" }, { do: "say", text: "Changed." }] },
    { match: "^delete", steps: [{ do: "say", text: TALK }, { do: "tool", name: "bash", kind: "execute", input: { command: "rm -r ./old" }, permission: { kind: "shell", command: "rm -r ./old" } }] },
    { match: "^ask", steps: [{ do: "say", text: TALK }, { do: "ask", text: "Which ones?", fields: [{ id: "a", title: "First", kind: "single-select", options: [{ id: "1", label: "One" }] }, { id: "b", title: "Second", kind: "single-select", options: [{ id: "2", label: "Two" }] }] }] },
    { match: "^talk", steps: [{ do: "say", text: TALK }] },
  ],
};
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"));

const SIZES: [string, Look][] = [
  ["1440", { size: { width: 1440, height: 900 } }],
  ["1024", { size: { width: 1024, height: 768 } }],
  ["390", { phone: true, size: { width: 390, height: 844 } }],
];

interface Begun {
  id: string;
  folder: string;
}

async function begin(text: string): Promise<Begun> {
  const folder = mkdtempSync(join(host.folder, "repo-"));
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "codex", cwd: folder, title: text });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  return { id, folder };
}

/** Two presses at the same point, as a finger or a hand makes them; the pause is that of the review. */
async function twice({ page }: Person, button: Locator, pause = 90): Promise<{ x: number; y: number }> {
  await button.waitFor();
  await page.waitForFunction(() => !document.querySelector("[data-settling]"));
  const box = (await button.boundingBox())!;
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await page.mouse.move(at.x, at.y);
  for (const wait of [pause, 0]) {
    await page.mouse.down();
    await page.mouse.up();
    if (wait) await page.waitForTimeout(wait); // the pause of a hand is what is tried here
  }
  return at;
}

const under = (page: Page, { x, y }: { x: number; y: number }) => page.evaluate(([left, top]) => document.elementFromPoint(left!, top!)?.closest("button")?.textContent ?? "", [x, y]);
const grants = async (session: string) => (await host.ask<{ grants: { id: string; session?: string; covers: string[] }[] }>("/v1/grants")).grants.filter((grant) => grant.session === session);
const status = async (id: string) => (await host.ask<{ sessions: { id: string; status: string }[] }>("/v1/sessions")).sessions.find((each) => each.id === id)?.status;

describe.each(SIZES)("at %s", (_size, look) => {
  test.each(["s", "inbox"])("“Allow in this session” (%s) grants nothing, and then this file, with a receipt that can be undone", async (place) => {
    const person = await somebody(look);
    const { page } = person;
    const { id, folder } = await begin("change it");
    await expect.poll(() => status(id)).toBe("waiting");
    const { waiting } = await host.ask<{ waiting: { id: string; session: string }[] }>("/v1/inbox");
    await page.goto(`${host.url}/app/${place === "s" ? `s/${id}` : `inbox/${waiting.find(({ session }) => session === id)!.id}`}`);
    const mine = place === "s" ? page.locator(".card.approval") : page.locator(`.card.approval[data-approval^="${id}."]`);
    const button = mine.getByRole("button", { name: "Allow in this session" });
    await button.scrollIntoViewIfNeeded();
    const before = await mine.locator("h2").boundingBox();
    const at = await twice(person, button);
    await page.waitForSelector(".scopes .option");
    expect(await mine.locator("h2").boundingBox()).toEqual(before); // nothing has moved
    await page.waitForFunction(() => !document.querySelector("[data-settling]"));
    expect(await grants(id)).toEqual([]);
    expect(existsSync(join(folder, "src/limits.py"))).toBe(false);
    expect(await page.locator(".scopes").count()).toBe(1);
    expect(await page.locator(".scopes .option").allTextContents()).toEqual(["Allow edits to src/limits.py", "Allow edits to every file in src/", "Allow edits to every file in this project"]);
    expect(await under(page, at)).toBe("Allow edits to src/limits.py");
    expect(await person.barriers(page, "moderate")).toEqual([]);
    await page.mouse.down();
    await page.mouse.up();
    const receipt = place === "s" ? page.locator("p.verdict") : page.locator(".answered-row", { hasText: "limits.py" }).first();
    await receipt.locator("text=src/limits.py").waitFor();
    await expect.poll(() => existsSync(join(folder, "src/limits.py"))).toBe(true);
    expect((await grants(id)).map(({ covers }) => covers)).toEqual([[expect.stringMatching(/^path:.*src\/limits\.py$/)]]);
    await receipt.getByRole("button", { name: "Undo" }).click();
    await page.waitForSelector("text=Undone: it will ask again.");
    expect(await grants(id)).toEqual([]);
    expect(person.trouble).toEqual([]);
  });

  test("a card in two steps, a question in two, the menus and a dialog take one click", async () => {
    const person = await somebody(look);
    const { page } = person;
    const danger = await begin("delete them");
    await page.goto(`${host.url}/app/s/${danger.id}`);
    await twice(person, page.getByRole("button", { name: "Allow…" }));
    await page.waitForSelector(".card .careful");
    await page.waitForFunction(() => !document.querySelector("[data-settling]"));
    expect([await page.locator(".card.dangerous").count(), await grants(danger.id), await status(danger.id)]).toEqual([1, [], "waiting"]);
    await host.cancel(danger.id);

    const question = await begin("ask me");
    await page.goto(`${host.url}/app/s/${question.id}`);
    await page.waitForSelector(".card.question");
    await twice(person, page.locator(".card .option").first());
    await page.waitForSelector('.card.question:has-text("2 of 2")');
    await page.waitForFunction(() => !document.querySelector("[data-settling]"));
    expect(await status(question.id)).toBe("waiting");
    await host.cancel(question.id);

    const done = await begin("talk");
    await page.goto(`${host.url}/app/s/${done.id}`);
    await page.waitForSelector("#status.idle", { state: "attached" });
    await page.click("#menu summary");
    const remove = page.locator("#menu .menu > *", { hasText: "Delete" });
    await twice(person, remove);
    await page.waitForSelector("dialog[open]");
    await page.waitForFunction(() => !document.querySelector("[data-settling]"));
    expect(await status(done.id)).toBe("idle");
    expect(await page.locator("dialog[open]").count()).toBe(1);
    expect(person.trouble).toEqual([]);
  });
});

test("Enter twice opens the scopes and chooses none of them", async () => {
  const person = await somebody();
  const { page } = person;
  const { id } = await begin("change it");
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForFunction(() => !document.querySelector("[data-settling]") && document.querySelector(".card"));
  await page.getByRole("button", { name: "Allow in this session" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".scopes .option:focus");
  await page.keyboard.press("Enter");
  expect(await page.locator(".scopes").count()).toBe(1);
  expect(await grants(id)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.waitForSelector(".scopes", { state: "detached" });
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Allow in this session");
  expect(person.trouble).toEqual([]);
});
