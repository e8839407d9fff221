/** A sandboxed session from its start to the record of its connections, with pictures in `screenshots/`. */

import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const out = resolve(import.meta.dirname, "../../screenshots");
const host = new RealHost(["--agent", "acp"]);
const docs = createServer((_, response) => response.end("The documentation."));
let port = 0;
let person: Person;

/** An agent whose own process, in the sandbox, opens the address of its message. It names the proxy itself: programs do not use it for loopback. */
const AGENT = `
import json, sys, urllib.request
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message: continue
    method, result = message["method"], {}
    if method == "initialize": result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new": result = {"sessionId": "s"}
    elif method == "session/prompt":
        request = urllib.request.Request(message["params"]["prompt"][-1]["text"].split()[-1])
        request.set_proxy("127.0.0.1:3128", "http")
        try: text = urllib.request.urlopen(request).read().decode()
        except OSError as error: text = str(error)
        content = {"type": "text", "text": text}
        send(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": content}})
        result = {"stopReason": "end_turn"}
    send(id=message["id"], result=result)
`;

beforeAll(async () => {
  docs.listen(0, "127.0.0.1");
  await once(docs, "listening");
  port = (docs.address() as AddressInfo).port;
  mkdirSync(join(host.folder, "home"), { mode: 0o700 });
  mkdirSync(join(host.folder, "api"));
  const agent = join(host.folder, "api", "agent.py");
  writeFileSync(agent, AGENT);
  writeFileSync(join(host.folder, "home", "settings.toml"), `[sandbox]\nallow_private = ["localhost"]\n[agents.acp.reader]\ncommand = ["/usr/bin/python3", "${agent}"]\n`);
  mkdirSync(out, { recursive: true });
  await host.start();
  person = await Person.arrive();
  await person.logIn(host);
});
afterAll(async () => {
  await person.leave();
  await host.close();
  docs.close();
});

test("a command waits for the card, and its connection is in the details", async () => {
  const { page } = person;
  const picture = (name: string) => page.screenshot({ path: join(out, `sandbox-${name}.png`) });
  await page.goto(`${host.url}/app/new?folder=${encodeURIComponent(join(host.folder, "api"))}`);
  await page.check('#agents input[value="acp:reader"]');
  await page.waitForSelector("#sandbox:enabled");
  expect(await page.inputValue("#sandbox")).toBe("off");
  await page.selectOption("#sandbox", "project");
  await page.fill("#first", `Read http://localhost:${port}/`);
  await picture("0-start");
  await page.click("#start");
  await page.waitForURL(/\/app\/s\//);
  const card = page.locator(".card.approval");
  await card.locator("h2").waitFor();
  expect(await card.locator("h2").textContent()).toBe(`Connect to localhost:${port}?`);
  await picture("1-card");
  await card.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The documentation.").first().waitFor();
  await picture("2-allowed");
  await page.getByRole("button", { name: "Show panel" }).click();
  await page.getByRole("tab", { name: "Details" }).click();
  const row = page.locator(`.details-tab tr:has(td:text-is("localhost:${port}"))`);
  await row.waitFor();
  expect(await row.locator("td").allTextContents()).toEqual([`localhost:${port}`, "1", expect.stringMatching(/^\d+ B, \d+ B$/), "now", "You"]);
  await picture("3-details");
});

test("the choice is remembered for the folder, and changed in the menu of the composer", async () => {
  const { page } = person;
  await page.goto(`${host.url}/app/new?folder=${encodeURIComponent(join(host.folder, "api"))}`);
  await page.waitForSelector("#sandbox:enabled");
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>("#sandbox")?.value === "project");
  await page.goto(`${host.url}/app`);
  await page.waitForURL(/\/app\/s\//);
  const session = page.url().split("/").at(-1) ?? "";
  await page.click("#composer #sandbox");
  await page.waitForSelector("#sandbox-strict");
  await page.screenshot({ path: join(out, "sandbox-4-menu.png") });
  await page.waitForTimeout(500); // early clicks have no effect
  await page.click("#sandbox-strict");
  await page.waitForSelector('#composer #sandbox:has-text("Sandbox: strict")');
  expect((await host.ask<{ config: object }>(`/v1/sessions/${session}`)).config).toMatchObject({ sandbox: "strict" });
  expect(person.trouble).toEqual([]);
});
