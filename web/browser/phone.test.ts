/** A phone is paired with a code, answers an approval, and is still logged in after the page was closed and the host was killed. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const SCRIPT = {
  providers: [{ id: "codex", name: "Codex" }],
  rules: [{ match: "clean", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "make clean" }, permission: { kind: "shell", command: "make clean" } }, { do: "say", text: "All clean." }] }],
};
writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
const somebody = visitors(host, "--script", join(host.folder, "script.json"), "--public-url", "https://box.example");

test("pair, approve, close, kill the host, start it, open the page", async () => {
  const owner = await somebody();
  await owner.page.goto(`${host.url}/app/settings/devices`);
  await owner.page.getByRole("button", { name: "Add a phone" }).click();
  await owner.page.waitForSelector("dialog .qr path");
  const code = (await owner.page.textContent(".pair-code")) ?? "";
  expect(code).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
  await picture(owner, "add-a-phone");

  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "codex", cwd: host.folder, title: "Clean up" });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "clean it" });

  const phone = await Person.arrive({ phone: true });
  const sent: string[] = [];
  phone.context.on("request", (request) => sent.push(request.url()));
  try {
    await phone.page.goto(`${host.url}/pair#${code}`);
    await phone.page.fill("#pair-device", "Ada’s phone");
    expect(await phone.page.inputValue("#pair-code")).toBe(code);
    expect(await phone.barriers(phone.page, "moderate")).toEqual([]);
    await picture(phone, "pair");
    await phone.page.getByRole("button", { name: "Add this device" }).click();
    await phone.page.waitForSelector(".card.approval");
    expect(new URL(phone.page.url()).pathname).toBe("/app/inbox");
    expect(sent.filter((address) => address.includes(code))).toEqual([]);
    await picture(phone, "needs-you");
    await phone.page.tap(`.card.approval[data-approval^="${id}."] button:has-text("Allow once")`);
    await expect.poll(async () => (await host.ask<{ waiting: { session: string }[] }>("/v1/inbox")).waiting.some(({ session }) => session === id), { timeout: 20_000 }).toBe(false);
    await phone.page.goto(`${host.url}/app/s/${id}`);
    await phone.page.waitForSelector("main:has-text('All clean.')");
    await phone.page.close();

    await host.kill();
    await host.start();
    const page = await phone.context.newPage();
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForSelector("main:has-text('All clean.')");
    expect(new URL(page.url()).pathname).toBe(`/app/s/${id}`);

    await owner.page.goto(`${host.url}/app/settings/devices`);
    await owner.page.waitForSelector("td:has-text('Ada’s phone')");
    await picture(owner, "devices");
    await owner.page.getByRole("button", { name: "Revoke Ada’s phone" }).click();
    await owner.page.getByRole("button", { name: "Revoke", exact: true }).click();
    await owner.page.waitForSelector("p:has-text('No devices yet.')");
    await page.goto(`${host.url}/app/s/${id}`);
    await page.waitForURL(/\/login/);
  } finally {
    await phone.leave();
  }
});

test("a session started elsewhere is a folded group, and asks no agent by itself", async () => {
  const { page } = await somebody();
  await page.goto(`${host.url}/app`);
  const head = page.getByRole("button", { name: "Started elsewhere" });
  await head.waitFor();
  expect(await head.getAttribute("aria-expanded")).toBe("false");
  await head.click();
  await page.waitForSelector(".elsewhere:has-text('No sessions of other programs.')");
});

async function picture(person: Person, name: string): Promise<void> {
  const folder = process.env["PICTURES"];
  if (folder) await person.page.screenshot({ path: join(folder, `${name}.png`) });
}
