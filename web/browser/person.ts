/** Somebody in front of a Chromium of their own, who notices everything that goes wrong. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Browsers say this whenever a page tries to close itself, which the pages are asked to try. */
const EXPECTED = /Scripts may close only the windows that were opened by them/;

interface Look {
  phone?: boolean;
  dark?: boolean;
}

export class Person {
  /** Console errors and warnings, exceptions, alerts. */
  readonly trouble: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly profile: string,
  ) {}

  static async arrive({ phone = false, dark = false }: Look = {}): Promise<Person> {
    const profile = mkdtempSync(join(tmpdir(), "portico-chromium-"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: FLAGS,
      viewport: phone ? { width: 360, height: 740 } : { width: 1400, height: 900 },
      colorScheme: dark ? "dark" : "light",
      hasTouch: phone,
      isMobile: phone,
    });
    const person = new Person(context, context.pages()[0] ?? (await context.newPage()), profile);
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

  /** Follows whatever opens a new tab. */
  async tab(action: () => Promise<void>): Promise<Page> {
    const [page] = await Promise.all([this.context.waitForEvent("page"), action()]);
    return page;
  }

  /** What axe finds serious or critical. */
  async barriers(page = this.page): Promise<string[]> {
    await page.evaluate(`${AXE};0`);
    return page.evaluate(async () => {
      const { axe } = window as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { target: string[] }[] }[] }> } };
      const { violations } = await axe.run();
      return violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
    });
  }

  async leave(): Promise<void> {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}
