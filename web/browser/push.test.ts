/**
 * Web push from the button in the settings to the notification: the host's real push is decrypted here, as a browser's
 * vendor and the browser would, and handed to the real service worker by devtools. Only the vendor's subscription is
 * made up: without a network `subscribe()` never answers.
 */

import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useWholeBrowser } from "./chromium";
import { RealHost } from "./host";
import { visitors } from "./visitors";

useWholeBrowser();
const host = new RealHost();

const own = createECDH("prime256v1");
const publicKey = own.generateKeys();
const auth = randomBytes(16);
const pushed: string[] = [];

function decrypt(body: Buffer): string {
  const salt = body.subarray(0, 16);
  const sender = body.subarray(21, 86);
  const derive = (key: Buffer, by: Buffer, info: Buffer, size: number) => Buffer.from(hkdfSync("sha256", key, by, info, size));
  const secret = derive(own.computeSecret(sender), auth, Buffer.concat([Buffer.from("WebPush: info\0"), publicKey, sender]), 32);
  const key = derive(secret, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = derive(secret, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
  const cipher = createDecipheriv("aes-128-gcm", key, nonce);
  cipher.setAuthTag(body.subarray(-16));
  const plain = Buffer.concat([cipher.update(body.subarray(86, -16)), cipher.final()]);
  return plain.subarray(0, -1).toString().trim();
}

const service = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  pushed.push(decrypt(Buffer.concat(parts)));
  response.writeHead(201).end();
});
beforeAll(async () => {
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done));
  mkdirSync(join(host.folder, "home"), { mode: 0o700 });
  const { port } = service.address() as AddressInfo;
  writeFileSync(join(host.folder, "home", "settings.toml"), `[notices]\nallow_private = ["127.0.0.1:${port}"]\n`);
});
const somebody = visitors(host);
afterAll(() => void service.close());

test("a browser is told, shows it, and leads to what waits", async () => {
  pushed.length = 0;
  const person = await somebody();
  const { page } = person;
  const endpoint = `http://127.0.0.1:${(service.address() as AddressInfo).port}/push/1`;
  await page.context().grantPermissions(["notifications"], { origin: host.url });
  await page.addInitScript(
    ([endpoint, p256dh, auth]) => {
      PushManager.prototype.subscribe = async () => ({ toJSON: () => ({ endpoint, keys: { p256dh, auth } }) }) as unknown as PushSubscription;
    },
    [endpoint, publicKey.toString("base64url"), auth.toString("base64url")],
  );
  await page.goto(`${host.url}/app/settings/look`);
  await page.click("#push-button");
  await page.waitForFunction(() => document.getElementById("push-button")?.textContent === "Turn off push");
  await expect.poll(() => pushed.length, { timeout: 30_000 }).toBe(1);
  expect(JSON.parse(pushed[0]!).text).toBe("This browser is told from now on.");

  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo", cwd: host.folder });
  await host.ask(`/v1/sessions/${id}/messages`, { text: "ask me" });
  await expect.poll(() => pushed.length, { timeout: 90_000 }).toBe(2);
  const told = JSON.parse(pushed[1]!) as { text: string; path: string };
  const { waiting } = await host.ask<{ waiting: { id: string; session: string }[] }>("/v1/inbox");
  const asked = waiting.find(({ session }) => session === id)!;
  expect(told).toMatchObject({ text: "Something waits for you.", path: `/app/inbox/${asked.id}` });

  const devtools = await page.context().newCDPSession(page);
  const registered = new Promise<string>((done) =>
    devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations[0] && done(registrations[0].registrationId)),
  );
  await devtools.send("ServiceWorker.enable");
  await page.evaluate(async () => void (await navigator.serviceWorker.ready)); // what comes before is dropped
  await devtools.send("ServiceWorker.deliverPushMessage", { origin: host.url, registrationId: await registered, data: pushed[1]! });
  const shown = () => page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({ body, data }) => [body, (data as { path: string }).path]));
  await expect.poll(shown, { timeout: 30_000 }).toEqual([[told.text, told.path]]);

  const [worker] = page.context().serviceWorkers();
  await worker!.evaluate(async () => {
    const scope = self as unknown as { registration: ServiceWorkerRegistration };
    const [notification] = await scope.registration.getNotifications();
    self.dispatchEvent(new (self as unknown as { NotificationEvent: new (name: string, init: object) => Event }).NotificationEvent("notificationclick", { notification }));
  });
  await page.waitForURL(`**${told.path}`);
  await page.click(`[aria-labelledby="title-${asked.id}"] button:text-is("Decline")`); // the tap opens the card itself
  await page.waitForFunction(() => document.querySelector(".empty-inbox h2")?.textContent === "You're all caught up.");
  await page.goto(`${host.url}${told.path}`);
  await page.waitForFunction(() => document.querySelector(".inbox .trouble")?.textContent?.startsWith("This does not wait any more"));
  expect(await shown()).toEqual([]);
});
