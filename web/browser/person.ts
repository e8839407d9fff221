/** Somebody with a browser profile of their own, who notices everything that goes wrong. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { expect, vi } from "vitest";
import { browser } from "./chromium";

/** Long enough for two busy cores; a wait that gets its event returns at once. */
const PATIENCE_MS = Number(process.env["PATIENCE_MS"] ?? 60_000);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Browsers say this whenever a page tries to close itself, which the pages are asked to try. */
const EXPECTED = /Scripts may close only the windows that were opened by them/;

export interface Look {
  phone?: boolean;
  dark?: boolean;
  size?: { width: number; height: number };
}

const DESKTOP = { width: 1400, height: 900 };
const PHONE = { width: 360, height: 740 };

export class Person {
  /** Console errors and warnings, exceptions, alerts. */
  readonly trouble: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async arrive({ phone = false, dark = false, size = phone ? PHONE : DESKTOP }: Look = {}): Promise<Person> {
    const context = await browser().then((chromium: Browser) =>
      chromium.newContext({ viewport: size, colorScheme: dark ? "dark" : "light", hasTouch: phone, isMobile: phone }),
    );
    context.setDefaultTimeout(PATIENCE_MS);
    const person = new Person(context, await context.newPage());
    context.on("console", (message) => {
      const serious = message.type() === "error" || message.type() === "warning";
      if (serious && !EXPECTED.test(message.text())) person.trouble.push(`${message.type()}: ${message.text()}`);
    });
    context.on("weberror", (error) => person.trouble.push(String(error.error())));
    context.on("dialog", (dialog) => {
      person.trouble.push(`alert: ${dialog.message()}`);
      void dialog.dismiss();
    });
    return person;
  }

  /** The cookie and the key of a login, without the time a page takes. */
  async logIn({ login, url }: { login: string; url: string }): Promise<void> {
    const answer = await this.context.request.get(login, { maxRedirects: 0 });
    const key = (answer.headers()["location"] ?? "").split("#key=")[1] ?? "";
    await this.context.addInitScript(
      ({ origin, key }) => {
        if (window.location.origin === origin && !window.localStorage.getItem("portico.key")) window.localStorage.setItem("portico.key", key);
      },
      { origin: new URL(url).origin, key },
    );
  }

  async startSession(url: string): Promise<void> {
    await this.page.goto(`${url}/index.html`);
    await this.page.click("#start-button:enabled");
    await this.page.waitForSelector("#session-ui", { state: "visible" });
  }

  async say(text: string): Promise<void> {
    await this.page.waitForSelector("#send-button:enabled");
    await this.page.fill("#request-textarea", text);
    await this.page.press("#request-textarea", "Control+Enter");
  }

  async answered(): Promise<void> {
    await this.page.waitForSelector("#send-button:enabled");
  }

  headers(page = this.page): Promise<(string | null)[]> {
    return page.$$eval(".message-block-header span", (all) => all.map((each) => each.textContent));
  }

  bodies(page = this.page): Promise<(string | null)[]> {
    return page.$$eval(".message-block-body", (all) => all.map((each) => each.textContent));
  }

  /** What any page of this browser asks from now on. */
  requests(pattern: RegExp): string[] {
    const seen: string[] = [];
    this.context.on("request", (request) => pattern.test(new URL(request.url()).pathname) && seen.push(`${request.method()} ${request.url()}`));
    return seen;
  }

  /** Takes an alert as it was meant: not as trouble. */
  async alerted(pattern: RegExp): Promise<void> {
    await vi.waitFor(() => expect(this.trouble.filter((each) => each.startsWith("alert: "))).toEqual([expect.stringMatching(pattern)]), PATIENCE_MS);
    this.trouble.length = 0;
  }

  /** Follows whatever opens a new tab. */
  async tab(action: () => Promise<void>): Promise<Page> {
    const [page] = await Promise.all([this.context.waitForEvent("page"), action()]);
    await page.waitForLoadState();
    return page;
  }

  /** What axe finds serious or critical; with `moderate` also that. */
  async barriers(page = this.page, least: "moderate" | "serious" = "serious"): Promise<string[]> {
    await page.evaluate(`if (!window.axe) { ${AXE} } 0`);
    return page.evaluate(async (moderate) => {
      const { axe } = window as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { target: string[] }[] }[] }> } };
      const { violations } = await axe.run();
      return violations.filter(({ impact }) => impact === "serious" || impact === "critical" || (moderate && impact === "moderate")).map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
    }, least === "moderate");
  }

  async leave(): Promise<void> {
    await this.context.close();
  }
}
