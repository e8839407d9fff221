/** The recipes of docs/guide/server.md, word for word, with a real nginx and a real Caddy before a real host: TLS, a base path, streams, a shell. */

import { createHash, X509Certificate } from "node:crypto";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { launch } from "./chromium";

const program = (name: string) => ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map((place) => join(place, name)).find((path) => existsSync(path));
const NGINX = program("nginx");
const CADDY = program("caddy");
const PORTICO = resolve(import.meta.dirname, "../../.venv/bin/portico");
const GUIDE = resolve(import.meta.dirname, "../../docs/guide/server.md");
const SOCKET = "/run/portico/portico.sock";

const folder = mkdtempSync(join(tmpdir(), "portico-proxy-"));
const certificate = join(folder, "cert.pem");
const authority = join(folder, "caddy", "pki", "authorities", "local", "intermediate.crt");
let port = 0;
let url = "";
let host: ChildProcess | undefined;
let proxy: ChildProcess | undefined;
let chromium: Browser | undefined;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

function block(language: string): string {
  const found = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(readFileSync(GUIDE, "utf8"));
  if (!found) throw new Error(`The guide has no ${language}.`);
  return found[1]!;
}

function certify(): void {
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem"), ...names], { stdio: "ignore" });
}

/** Only what differs on every machine is changed: the port, the name, the places of files, and whether the path is taken away. */
function startNginx(stripped: boolean): ChildProcess {
  const recipe = block("nginx")
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("server_name box.example", "server_name localhost")
    .replace("/etc/ssl/box.example.pem", certificate)
    .replace("/etc/ssl/box.example.key", join(folder, "key.pem"))
    .replace(`unix:${SOCKET};`, `unix:${join(folder, "portico.sock")}${stripped ? ":/" : ""};`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${join(folder, "temporary")};`).join(" ");
  const user = process.getuid?.() === 0 ? "user root;" : ""; // else its workers could not open the socket
  writeFileSync(join(folder, "nginx.conf"), `${user} daemon off; pid ${join(folder, "pid")}; error_log stderr; events {} http { access_log off; ${temporary} ${recipe} }`);
  return spawn(NGINX!, ["-c", join(folder, "nginx.conf"), "-p", folder], { stdio: ["ignore", "ignore", "pipe"] });
}

/** The same for Caddy, with the certificate of an authority that it makes itself. */
function startCaddy(stripped: boolean): ChildProcess {
  const recipe = block("caddy")
    .replace("box.example {", `https://localhost:${port} {\n    tls internal`)
    .replace("handle /portico/*", `${stripped ? "handle_path" : "handle"} /portico/*`)
    .replace(SOCKET.slice(1), join(folder, "portico.sock").slice(1));
  const machine = `{\n admin off\n auto_https disable_redirects\n skip_install_trust\n storage file_system ${join(folder, "caddy")}\n log {\n level ERROR\n }\n}\n`;
  writeFileSync(join(folder, "Caddyfile"), machine + recipe);
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  return spawn(CADDY!, ["run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"], { env, stdio: ["ignore", "ignore", "pipe"] });
}

async function answering(started: ChildProcess): Promise<void> {
  let complaints = "";
  started.stderr!.on("data", (text) => (complaints += String(text)));
  for (let tries = 0; tries < 200; tries++) {
    try {
      execFileSync("curl", ["-skf", "-o", "/dev/null", `${url}/healthz`]);
      return;
    } catch {
      await new Promise((go) => setTimeout(go, 50));
    }
  }
  throw new Error(`The proxy does not answer. ${complaints}`);
}

async function stop(process: ChildProcess | undefined): Promise<void> {
  if (!process || process.exitCode !== null || process.signalCode !== null) return; // the hook would wait for an exit that was
  const gone = once(process, "exit");
  process.kill("SIGTERM");
  await gone;
}

async function startHost(): Promise<void> {
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  const settings = block("toml").replace(SOCKET, join(folder, "portico.sock")).replace("https://box.example/portico", `https://localhost:${port}/portico`);
  writeFileSync(join(home, "settings.toml"), settings);
  const env = { ...process.env, HOME: folder, SHELL: "/bin/sh" };
  host = spawn(PORTICO, ["serve", "--print-ready", "--home", home, "--workspace", folder, "--agent", "scripted"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  let ready = false;
  for await (const line of createInterface({ input: host.stdout! })) if ((ready = line.startsWith("READY:"))) break;
  if (!ready) throw new Error("The host ended before it was ready.");
  host.stdout!.resume();
}

/** The browser trusts the keys of these certificates as if a known authority had signed them: also a service worker is fetched from there. */
function trustedKeys(): string {
  const trusted = [certificate, authority].filter((path) => existsSync(path)).map((path) => {
    const key = new X509Certificate(readFileSync(path)).publicKey.export({ type: "spki", format: "der" });
    return createHash("sha256").update(key).digest("base64");
  });
  return `--ignore-certificate-errors-spki-list=${trusted.join(",")}`;
}

async function visitor(): Promise<{ context: BrowserContext; page: Page; trouble: string[] }> {
  chromium = await launch([trustedKeys()]);
  const context = await chromium.newContext();
  const page = await context.newPage();
  const trouble: string[] = [];
  context.on("console", (message) => ["error", "warning"].includes(message.type()) && trouble.push(message.text()));
  context.on("weberror", (error) => trouble.push(String(error.error())));
  context.on("response", (response) => response.status() >= 400 && trouble.push(`${response.status()} ${response.url()}`));
  return { context, page, trouble };
}

beforeAll(async () => {
  mkdirSync(join(folder, "temporary"));
  certify();
  port = await freePort();
  url = `https://localhost:${port}/portico`;
});
beforeEach(startHost); // a shell of the one before would take the keys
afterEach(async () => {
  await chromium?.close();
  await stop(proxy);
  await stop(host);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const proxies = [
  ["nginx", NGINX, "left in place", () => startNginx(false)],
  ["nginx", NGINX, "taken away", () => startNginx(true)],
  ["Caddy", CADDY, "left in place", () => startCaddy(false)],
  ["Caddy", CADDY, "taken away", () => startCaddy(true)],
] as const;

for (const [name, found, path, start] of proxies) {
  test.skipIf(!found)(`behind ${name}, with the base path ${path}: the login link, every page, a streamed answer and a shell`, async () => {
    const words = `through ${name} with the path ${path}`;
    proxy = start();
    await answering(proxy);
    const { context, page, trouble } = await visitor();
    const token = readFileSync(join(folder, "home", "token"), "utf8").trim();
    await page.goto(`${url}/app/inbox`);
    expect(new URL(page.url()).pathname).toBe("/portico/login");
    const forged = { "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil", Forwarded: "host=evil.example" };
    const headers = Object.entries(forged).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    const seen = execFileSync("curl", ["-sk", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", ...headers, `${url}/app/inbox`]);
    expect(String(seen)).toBe(`303 ${url}/login?next=%2Fapp%2Finbox`);
    await page.goto(`${url}/login?tkn=${token}`);
    expect(page.url()).toMatch(new RegExp(`^${url}/app(/new)?$`));
    const [cookie] = await context.cookies();
    expect({ name: cookie!.name, secure: cookie!.secure, path: cookie!.path, httpOnly: cookie!.httpOnly }).toEqual({ name: "__Secure-portico-0", secure: true, path: "/portico/", httpOnly: true });
    await page.goto(url); // without the slash at its end
    expect(page.url()).toBe(`${url}/`);
    for (const name of ["app/inbox", "app/settings/look", "sessions.html", "agents.html", "jobHistory.html", "terminal.html", "index.html"]) {
      await page.goto(`${url}/${name}`);
      const links = await page.$$eval("a[href]", (all) => all.map((each) => (each as HTMLAnchorElement).href));
      expect(links.filter((link) => !link.startsWith(`${url}/`) && !link.startsWith("about:"))).toEqual([]);
    }
    await page.goto(`${url}/app/new?agent=scripted`);
    await page.waitForSelector("#agents input:checked");
    await page.fill("#first", `[[say:${words}]] [[hang]]`);
    await page.click("#start:enabled");
    await page.getByText(words).last().waitFor(); // of a turn that never ends: nothing is held back until then
    await page.goto(`${url}/terminal.html`);
    await page.click("#new");
    await page.waitForSelector(".xterm-cursor");
    await page.keyboard.type("echo shell-$((40 + 2))");
    await page.keyboard.press("Enter");
    await page.locator(".xterm-rows div", { hasText: "shell-42" }).first().waitFor();
    await page.goto(`${url}/app/inbox`);
    expect(await page.evaluate(async () => (await navigator.serviceWorker.ready).scope)).toBe(`${url}/`);
    expect(trouble).toEqual([]);
  });
}
