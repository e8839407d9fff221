/** Two colleagues sign in with a certified OpenID provider, in a real browser: each has their own sessions. */

import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Provider from "oidc-provider";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { RealHost } from "./host";
import { Person } from "./person";

const host = new RealHost();
let provider: Server;

/** The provider asks for any name and password, and takes the name for the address. */
function certified(issuer: string, redirect: string): Provider {
  return new Provider(issuer, {
    clients: [{ client_id: "portico", client_secret: "only for this test", redirect_uris: [redirect] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    cookies: { keys: ["only for this test"] },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, email: sub, email_verified: true }) }),
  });
}

beforeAll(async () => {
  mkdirSync(join(host.folder, "home"), { mode: 0o700 });
  await host.start();
  provider = createServer().listen(0, "127.0.0.1");
  await once(provider, "listening");
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  provider.on("request", certified(issuer, `${host.url}/login/oidc/callback`).callback());
  const oidc = { issuer, client_id: "portico", client_secret: "only for this test", name: "Example" };
  const lines = Object.entries(oidc).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  writeFileSync(join(host.folder, "home", "settings.toml"), ["[login.oidc]", ...lines, 'domains = ["example.org"]', ""].join("\n"));
  await vi.waitFor(async () => expect(await (await fetch(`${host.url}/login/ways`)).json()).toEqual({ oidc: "Example" }), { timeout: 60_000 });
});

afterAll(async () => {
  provider.close();
  provider.closeAllConnections();
  await host.close();
});

async function signIn(name: string): Promise<Person> {
  const person = await Person.arrive();
  const { page } = person;
  await page.goto(`${host.url}/login`);
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await page.fill('input[name="login"]', name);
  await page.fill('input[name="password"]', "any");
  await page.click('button[type="submit"]');
  await page.click('button[type="submit"]'); // it also asks whether Portico may know
  return person;
}

test("two colleagues sign in, and each sees their own sessions", async () => {
  const ann = await signIn("ann@example.org");
  await ann.page.waitForURL(`${host.url}/app`);
  await ann.page.goto(`${host.url}/app/new`);
  const { id } = await ann.page.evaluate(async () => {
    const headers = { "Content-Type": "application/json", "X-Portico-Key": localStorage.getItem("portico.key") ?? "" };
    const answer = await fetch("/v1/sessions", { method: "POST", headers, body: JSON.stringify({ agent: "scripted", title: "only Ann's" }) });
    return (await answer.json()) as { id: string };
  });
  await ann.page.goto(`${host.url}/app/s/${id}`);
  await ann.page.getByText("only Ann's").first().waitFor();

  const ben = await signIn("ben@example.org");
  await ben.page.waitForURL(`${host.url}/app`);
  const seen = await ben.page.evaluate(async (path) => {
    const headers = { "X-Portico-Key": localStorage.getItem("portico.key") ?? "" };
    const [one, list, me] = await Promise.all([path, "/v1/sessions", "/v1/people/me"].map((each) => fetch(each, { headers })));
    return { status: one!.status, list: (await list!.json()) as { total: number }, me: (await me!.json()) as { person: string } };
  }, `/v1/sessions/${id}`);
  expect(seen).toMatchObject({ status: 404, list: { total: 0 }, me: { person: "ben@example.org" } });

  await ben.page.goto(`${host.url}/app/settings/people`);
  await ben.page.getByRole("heading", { name: "ben@example.org" }).waitFor();
  expect(await ben.barriers(ben.page)).toEqual([]);
  await Promise.all([ann.leave(), ben.leave()]);
});

test("somebody from elsewhere is told why they may not come in", async () => {
  const eve = await signIn("eve@elsewhere.example");
  await eve.page.getByText("may not come in here").waitFor();
  await eve.page.getByRole("link", { name: "Back to the login" }).click();
  await eve.page.waitForURL(`${host.url}/login`);
  expect((await eve.context.cookies(host.url)).filter(({ name }) => name.startsWith("portico"))).toEqual([]);
  eve.trouble.length = 0; // the browser writes every 403 to its console
  await eve.leave();
});
