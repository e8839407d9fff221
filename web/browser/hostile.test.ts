/**
 * Another site's page in the user's own browser, and hostile text from an agent.
 *
 * The page has a cookie to ride on: one port on 127.0.0.1 is "the same site" as another, so SameSite does not help. It
 * tries everything a page can send. What it must not get is an answer, or any change at all.
 */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FOREIGN_NAME, REBOUND_NAME } from "./chromium";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));
const open = new RealHost();

let server: Server;
let port = 0;

beforeAll(async () => {
  server = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><title>Hostile</title>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
  await open.start("--without-token");
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await open.close();
});

/** Everything a page can try, each ending as "refused" or with what it got. Runs in the hostile page. */
async function attacks({ target, socket, session }: { target: string; socket: string; session: string }): Promise<Record<string, string>> {
  const refused = "refused";
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(target + path, { credentials: "include", ...init }).then(
      async (answer) => (answer.type === "opaque" ? refused : `${answer.status} ${await answer.text()}`),
      () => refused,
    );
  /** An element that loads something: what it did when it was done. */
  const load = (element: HTMLElement, set: () => void) =>
    new Promise<string>((done) => {
      element.addEventListener("load", () => done("loaded"));
      element.addEventListener("error", () => done(refused));
      set();
      document.body.append(element);
    });
  const source = (tag: "script" | "img", path: string) => {
    const element = document.createElement(tag);
    return load(element, () => (element.src = target + path));
  };
  /** A frame loads in any case, with the page or with the browser's own refusal; its address tells, outside. */
  const frame = (path: string) => {
    const element = document.createElement("iframe");
    return load(element, () => (element.src = target + path)).then(() => refused);
  };
  const style = document.createElement("link");
  const form = (path: string, enctype: string) =>
    new Promise<string>((done) => {
      const into = document.createElement("iframe");
      into.name = `into-${path}-${enctype}`;
      document.body.append(into);
      const sender = Object.assign(document.createElement("form"), { method: "post", action: target + path, target: into.name, enctype });
      sender.append(Object.assign(document.createElement("input"), { name: "text", value: "hello" }));
      document.body.append(sender);
      into.addEventListener("load", () => done(refused));
      sender.submit();
    });
  const stream = (path: string) =>
    new Promise<string>((done) => {
      const events = new EventSource(target + path, { withCredentials: true });
      events.onopen = () => done("open");
      events.onmessage = () => done("message");
      events.onerror = () => (events.close(), done(refused));
    });
  const speak = (path: string) =>
    new Promise<string>((done) => {
      const line = new WebSocket(socket + path);
      line.onopen = () => done("open");
      line.onerror = () => done(refused);
    });
  /** A document without an origin: it sends `Origin: null`. */
  const nobody = () =>
    new Promise<string>((done) => {
      addEventListener("message", ({ data }) => done(String(data)), { once: true });
      const element = document.createElement("iframe");
      element.setAttribute("sandbox", "allow-scripts");
      element.srcdoc = `<script>fetch(${JSON.stringify(`${target}/api/copilot/session/start/gpt-5.2`)}, { method: "POST", body: "", credentials: "include" }).then((a) => a.text(), () => "refused").then((text) => parent.postMessage(text, "*"))</script>`;
      document.body.append(element);
    });
  const start = "/api/copilot/session/start/gpt-5.2";
  const plain = { method: "POST", body: "" };
  return {
    "GET a page": await ask("/index.html"),
    "GET data": await ask("/v1/sessions"),
    "GET that changes": await ask(start),
    "GET without cors": await ask(start, { mode: "no-cors" }),
    "POST text": await ask(start, plain),
    "POST without cors": await ask(`/api/copilot/session/${session}/query`, { ...plain, body: "hello", mode: "no-cors" }),
    "POST JSON": await ask(`/v1/sessions/${session}/messages`, { method: "POST", body: '{"text":"hello"}', headers: { "Content-Type": "application/json" } }),
    "POST JSON as text": await ask(`/v1/sessions/${session}/messages`, { method: "POST", body: '{"text":"hello"}', mode: "no-cors" }),
    DELETE: await ask(`/v1/sessions/${session}`, { method: "DELETE" }),
    "stop the host": await ask("/api/stop", { ...plain, mode: "no-cors" }),
    beacon: (navigator.sendBeacon(target + start, ""), refused),
    EventSource: await stream(`/v1/sessions/${session}/events`),
    WebSocket: await speak("/ahp"),
    "WebSocket of the root": await speak("/"),
    "form, urlencoded": await form(start, "application/x-www-form-urlencoded"),
    "form, plain": await form(`/api/copilot/session/${session}/query`, "text/plain"),
    "form, login": await form("/logout", "application/x-www-form-urlencoded"),
    script: await source("script", "/v1/sessions"),
    "script of ours": await source("script", "/messageBlock.js"),
    image: await source("img", "/api/stop"),
    "image of ours": await source("img", "/favicon.svg"),
    style: await load(style, () => Object.assign(style, { rel: "stylesheet", href: `${target}/theme.css` })),
    "frame of a page": await frame("/index.html"),
    "frame of the API": await frame("/api/stop"),
    "no origin": await nobody(),
  };
}

const seq = async (of: RealHost) => (await of.ask<{ log: { seq: number } }>("/v1")).log.seq;

/** Lets the page try everything, and checks that the host did not notice. */
async function survives(page: Page, of: RealHost, name = "127.0.0.1"): Promise<void> {
  const { id } = await of.ask<{ id: string }>("/v1/sessions", { agent: "scripted" });
  const before = await seq(of);
  const target = `http://${name}:${new URL(of.url).port}`;
  const got = await page.evaluate(attacks, { target, socket: target.replace("http", "ws"), session: id });
  expect(Object.entries(got).filter(([, each]) => each !== "refused")).toEqual([]);
  expect(page.frames().map((frame) => frame.url()).filter((url) => url.startsWith(target))).toEqual([]);
  expect(await seq(of)).toBe(before);
}

describe.each([
  ["another port of the same machine", "127.0.0.1"],
  ["another name", FOREIGN_NAME],
])("a page on %s", (_, name) => {
  const at = () => `http://${name}:${port}/`;

  test("cannot read, change, embed or listen to anything, although its user is logged in", async () => {
    const { page } = await somebody();
    await page.goto(at());
    await survives(page, host);
  });

  test("cannot either where no token is needed", async () => {
    const { page } = await somebody();
    await page.goto(at());
    await survives(page, open);
  });

  test("cannot send the browser to an address that changes something", async () => {
    const { page } = await somebody();
    for (const of of [host, open]) {
      const before = await seq(of);
      for (const path of ["/api/copilot/session/start/gpt-5.2", "/api/stop"]) {
        await page.goto(at());
        const answered = page.waitForResponse(of.url + path);
        await Promise.all([page.waitForURL(of.url + path), page.evaluate((address) => void (location.href = address), of.url + path)]);
        const answer = await answered;
        expect([401, 403]).toContain(answer.status());
      }
      expect(await seq(of)).toBe(before);
    }
  });

  test("cannot reach into a window of ours that it opened", async () => {
    const person = await somebody();
    const { page } = person;
    await page.goto(at());
    const ours = await person.tab(() => page.evaluate((address) => void Object.assign(window, { opened: window.open(address, "opened") }), `${open.url}/index.html`));
    await ours.waitForSelector("#start-button:enabled");
    const reached = await page.evaluate(() => {
      const { opened } = window as unknown as { opened: Window };
      const tries: [string, () => unknown][] = [
        ["document", () => opened.document.body],
        ["address", () => opened.location.href],
        ["storage", () => opened.localStorage],
      ];
      opened.postMessage({ callback: "onIdle" }, "*");
      const got = tries.filter(([, work]) => {
        try {
          return work() !== undefined;
        } catch {
          return false;
        }
      });
      return [opened.closed, got.map(([what]) => what)];
    });
    expect(reached).toEqual([true, []]); // the browser has cut the tie: not even the handle works
    expect(await ours.evaluate(() => window.opener)).toBe(null);
  });
});

describe("a name that was bound to this machine", () => {
  test("is not ours: nothing is answered to it, as a page, a call or a socket", async () => {
    const { page } = await somebody();
    for (const of of [host, open]) {
      const rebound = `http://${REBOUND_NAME}:${new URL(of.url).port}`;
      expect((await page.goto(`${rebound}/index.html`))!.status()).toBe(421);
      const before = await seq(of);
      // From here on every call is one to its own origin, as the browser sees it.
      const answers = await page.evaluate(async () => {
        const socket = new Promise((done) => {
          const line = new WebSocket(`ws://${location.host}/ahp`);
          line.onopen = () => done("open");
          line.onerror = () => done("refused");
        });
        const calls = ["/api/test", "/v1/sessions", "/api/copilot/session/start/gpt-5.2", "/login", "/index.js"].map(async (path) => (await fetch(path, { method: path.includes("start") ? "POST" : "GET" })).status);
        return [await Promise.all(calls), await socket];
      });
      expect(answers).toEqual([[421, 421, 421, 421, 421], "refused"]);
      expect(await seq(of)).toBe(before);
    }
  });
});

describe("a server on another port of the same machine", () => {
  test("gets the cookie with the first click, and can do nothing with it", async () => {
    const person = await Person.arrive();
    const { page } = person;
    await page.goto(host.login); // as a user does it: by the link, and the page takes the key from there
    await page.waitForSelector(".list a"); // sessions, or that there are none yet, which the host gives to this key alone
    expect(page.url()).toMatch(/^[^#?]+\/app(\/new|\/s\/[^#?]+)?$/); // and the key is not in the address any more
    const heard: string[] = [];
    server.on("request", ({ headers, url }) => heard.push(`${headers.cookie ?? ""} ${url}`));
    await page.goto(`http://127.0.0.1:${port}/app`);
    const [cookie = ""] = heard[0]!.split(" ");
    expect(cookie).toMatch(/^portico[^=]*=/); // browsers do not look at the port
    expect(await page.evaluate(() => window.localStorage.length)).toBe(0); // here they do
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "demo" });
    await host.ask(`/v1/sessions/${id}/messages`, { text: "write something" });
    const asked = async () => /"approvals":\[\{"id":"([^"]+)"/.exec(JSON.stringify(await host.ask<object>(`/v1/sessions/${id}`)))?.[1];
    await expect.poll(asked).toBeDefined();
    const approval = await asked();
    const before = await seq(host);
    // A program sends what it likes: no origin, or ours.
    for (const extra of [{}, { Origin: host.url, "Sec-Fetch-Site": "same-origin" }, { "X-Portico-Key": "0".repeat(64) }]) {
      const headers = { Cookie: cookie, "Content-Type": "application/json", ...extra };
      const statuses = await Promise.all([
        fetch(`${host.url}/v1/sessions`, { headers }),
        fetch(`${host.url}/v1/sessions/${id}/events`, { headers }),
        fetch(`${host.url}/v1/approvals/${approval}`, { method: "POST", body: '{"allow":true}', headers }),
        fetch(`${host.url}/v1/commands`, { method: "POST", body: JSON.stringify({ command: "session.start", arguments: {} }), headers }),
        fetch(`${host.url}/v1/terminals`, { method: "POST", body: "{}", headers }),
        fetch(`${host.url}/api/copilot/session/start/gpt-5.2`, { method: "POST", body: "", headers }),
      ]);
      expect(statuses.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
    }
    expect(await seq(host)).toBe(before);
    await page.goto(`${host.url}/index.html`); // and the page itself goes on
    await page.waitForSelector("#start-button:enabled");
    await person.leave();
  });
});

test("a login link on another site does not replace the login, until the person says so", async () => {
  const { page } = await somebody();
  const cookies = async () => JSON.stringify(await page.context().cookies(host.url));
  const before = await cookies();
  await page.goto(`http://${FOREIGN_NAME}:${port}/`);
  await page.evaluate((link) => window.location.assign(link), host.login);
  await page.waitForSelector("#login-link:not([hidden])");
  expect([await cookies(), new URL(page.url()).search]).toEqual([before, ""]);
  await page.click("button[type=submit]");
  await page.waitForSelector(".list a");
  expect(await cookies()).not.toBe(before);
});

test("our own page may do what the hostile one may not", async () => {
  const { page } = await somebody();
  await page.goto(`${host.url}/test.html`);
  const before = await seq(host);
  expect(
    await page.evaluate(async () => {
      const headers = { "X-Portico-Key": window.localStorage.getItem("portico.key")! };
      return Object.keys((await (await fetch("/api/copilot/session/start/gpt-5.2", { method: "POST", body: "", headers })).json()) as object);
    }),
  ).toEqual(["sessionId"]);
  expect(await seq(host)).toBeGreaterThan(before);
});

const HOSTILE = [
  "# Hostile",
  "**bold** <img src=x onerror=alert(1)> <script>alert(2)</script> <iframe src='https://frame.example'></iframe>",
  "<p style='position:fixed'>styled</p> <svg onload=alert(3)><use href='https://svg.example/x.svg#a'/></svg> <form action=/api/stop><button>Go</button></form>",
  "[api](/api/stop) [script](javascript:alert(4)) [data](data:text/html,<script>alert(5)</script>) [own](HOST/api/stop) ![pixel](https://pixel.example/secret.png)",
  "<a href='/api/stop' ping='https://ping.example'>x</a> <link rel=stylesheet href=https://style.example/a.css> <base href=https://base.example> <video src=https://video.example/a.mp4 autoplay>",
  "```svg\n<svg onload=alert(6)></svg>\n```",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(7)>",
].join("\n\n");
const FORBIDDEN = ":is(img, script, svg, style, iframe, form, link, base, video, object, embed, math, [style], [ping], [onload], [onerror])";

describe("hostile text of an agent", () => {
  const watch = (person: Person) => {
    const elsewhere: string[] = [];
    person.context.on("request", (request) => !request.url().startsWith(host.url) && elsewhere.push(request.url()));
    return elsewhere;
  };
  const links = (page: Page, place: string) => page.$$eval(`${place} a`, (all) => all.map((each) => `${(each as HTMLAnchorElement).href} ${(each as HTMLAnchorElement).rel}`));

  test.each([
    ["the portal's page", "/index.html?session=", ".message-block-message.completed h1", ".message-block-body"],
    ["the workbench", "/app/s/", "#transcript .end", "#transcript .markdown"],
  ])("runs nothing and loads nothing on %s", async (_, path, sign, place) => {
    const person = await somebody();
    const { page } = person;
    const elsewhere = watch(person);
    const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent: "scripted" });
    await host.ask(`/v1/sessions/${id}/messages`, { text: `[[say:${HOSTILE.replace("HOST", host.url)}]]` });
    await page.goto(host.url + path + id);
    await page.waitForSelector(sign);
    await page.waitForSelector(`${place} h1`);
    expect(await page.locator(`${place} ${FORBIDDEN}`).count()).toBe(0);
    expect(new Set(await links(page, place))).toEqual(new Set(["https://pixel.example/secret.png noopener noreferrer"]));
    expect([elsewhere, person.trouble]).toEqual([[], []]);
  });

  test("names of jobs and tasks are text in the chart", async () => {
    const person = await somebody();
    const { page } = person;
    const elsewhere = watch(person);
    const label = "<img src=x onerror=alert(1)>]\"); click A alert(2)";
    await page.route("**/api/copilot/job", (route) => route.fulfill({ json: { grid: [{ keyword: label, jobs: [{ name: label, jobName: label }] }], jobs: { [label]: { work: {} } }, chart: { [label]: { nodes: [{ id: 0, hint: ["TaskNode", 0], label }] } } } }));
    await page.goto(`${host.url}/jobs.html?wb=/`);
    expect(await page.textContent(".matrix-job-btn")).toBe(label);
    await page.goto(`${host.url}/jobTracking.html?${new URLSearchParams({ jobName: label })}`);
    await page.waitForSelector("g.node");
    expect(await page.textContent("g.node title")).toBe(label);
    await page.goto(`${host.url}/jobTracking.html?${new URLSearchParams({ jobName: "<img src=x onerror=alert(3)>" })}`);
    await page.waitForFunction(() => document.body.textContent!.includes("not found"));
    expect(await page.locator("img").count()).toBe(0);
    expect([elsewhere, person.trouble]).toEqual([[], []]);
  });
});
