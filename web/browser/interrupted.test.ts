/** After a kill the inbox lists and counts what stopped with the host, and resumes it; a stopped turn is shown as stopped. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const host = new RealHost();
const SCRIPT = {
  providers: [{ id: "codex", name: "Codex" }],
  rules: [
    { match: "change", steps: [{ do: "write", path: "limits.py", text: "LIMIT = 2\n" }] },
    { match: "^stream", steps: [{ do: "say", text: "word ".repeat(3000), deltas: 3000, gap: 50 }] },
    { match: "rm", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "rm -r ./old" }, permission: { kind: "shell", command: "rm -r ./old" } }] },
  ],
};
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"));

async function waiting(text: string): Promise<string> {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "codex", cwd: host.folder, title: `Please ${text}` });
  await host.ask(`/v1/sessions/${id}/messages`, { text });
  await expect.poll(async () => (await host.ask<{ waiting: { session: string }[] }>("/v1/inbox")).waiting.some(({ session }) => session === id)).toBe(true);
  return id;
}

test("after kill -9", async () => {
  const person = await somebody();
  const { page } = person;
  const [one, other] = [await waiting("change it"), await waiting("change that")];
  await host.kill();
  await host.start();
  await page.goto(`${host.url}/app/inbox`);
  await page.waitForSelector('.interrupted-row:has-text("Please change that")');
  expect(await page.textContent(".head p")).toBe("2 items need you, oldest first");
  await page.waitForSelector('.navitem .count[aria-label="2 need you"]');
  await page.waitForFunction(() => document.title.startsWith("(2) "));
  expect(await person.barriers(page, "moderate")).toEqual([]);
  await page.getByRole("button", { name: "Resume all" }).click();
  await page.waitForSelector(".card.approval");
  await page.waitForSelector(".interrupted", { state: "detached" });
  const { waiting: again } = await host.ask<{ waiting: { session: string }[] }>("/v1/inbox");
  expect(again.map(({ session }) => session).sort()).toEqual([one, other].sort());
  expect(person.trouble.filter((each) => !/WebSocket|ERR_CONNECTION/.test(each))).toEqual([]);
  await Promise.all([one, other].map((id) => host.cancel(id)));
});

test("a turn that was stopped while its rm waited was not done, and no one denied it", async () => {
  const person = await somebody();
  const { page } = person;
  const id = await waiting("rm it");
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector(".card.dangerous");
  await page.click("#stop");
  await page.waitForSelector(`.group[data-group="stopped"] [data-key="s/${id}"] .act:text-is("Stopped by you")`);
  await page.waitForSelector(`[data-key="s/${id}"] .mark:has-text("Stopped")`);
  await page.waitForSelector('#status.stopped:text-is("Stopped")');
  expect(await page.textContent("p.verdict")).toBe("Not run: you stopped the turn.");
  expect(await page.textContent(".end .outcome strong")).toBe("Stopped by you.");
  await page.fill("#filter", "is:stopped rm");
  await page.waitForFunction(() => document.querySelectorAll(".list .entry:not(.hit)").length === 1);
  expect(person.trouble).toEqual([]);
});

test("without the host nothing claims to run, and what failed for that is not shown after the reconnect", async () => {
  const person = await somebody({ size: { width: 1440, height: 900 } });
  const { page } = person;
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "codex", cwd: host.folder, title: "Streams" });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "stream" });
  await page.goto(`${host.url}/app/s/${id}`);
  await page.waitForSelector('#status:text-is("Working")');
  await page.waitForSelector(`[data-key="s/${id}"] .spin`);
  await page.waitForFunction(() => localStorage.getItem("portico.board.more")?.includes("Codex"));
  await host.kill();
  await page.waitForSelector('#status:text-is("Not connected")');
  await page.waitForSelector('.now:has-text("The host cannot be reached")');
  expect(await page.textContent(".now .el")).toBe("");
  expect(await page.getAttribute("#message", "placeholder")).toBe("Not connected. What you write is kept here");
  expect(await page.$eval(`[data-key="s/${id}"] .spin`, (sign) => getComputedStyle(sign).animationName)).toBe("none");
  const age = () => page.textContent(`[data-key="s/${id}"] .age-text`);
  const stood = await age();
  await page.fill("#message", "Are you there?");
  await page.press("#message", "Enter");
  await page.waitForSelector('#trouble:text-is("The host cannot be reached.")');
  expect(await age()).toBe(stood); // nothing is known of what happens since
  await host.start();
  await page.waitForSelector('#status:text-is("Interrupted")');
  await page.waitForSelector("#trouble", { state: "hidden" });
  await page.waitForSelector(".offline", { state: "hidden" });
  expect(await page.inputValue("#message")).toBe("Are you there?");
});
