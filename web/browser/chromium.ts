/** One Chromium for all tests of a file; everybody in it has a profile of their own. */

import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { afterAll } from "vitest";

/** Names of strangers' sites that lead to this machine: what a rebinding attack makes of them. */
export const FOREIGN_NAME = "foreign.example";
export const REBOUND_NAME = "rebound.example";

const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--host-resolver-rules=MAP ${FOREIGN_NAME} 127.0.0.1, MAP ${REBOUND_NAME} 127.0.0.1`,
];

const WHOLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** The same engine without windows, where it is installed: a page costs a fifth of the CPU time. */
const SHELL = "/usr/bin/chromium-headless-shell";

const USUAL = !process.env["CHROMIUM"] && existsSync(SHELL) ? SHELL : WHOLE;
let executablePath = USUAL;
let running: Promise<Browser> | undefined;

/** For files whose tests need what the shell has not: it shows no notifications. */
export function useWholeBrowser(): void {
  executablePath = WHOLE;
}

export function browser(): Promise<Browser> {
  running ??= launch([]);
  return running;
}

/** Another one, with flags of its own; whoever asks for it closes it. */
export function launch(flags: string[]): Promise<Browser> {
  if (!existsSync(executablePath)) {
    throw new Error(`There is no Chromium at ${executablePath}. Install it (apt-get install chromium), or say where it is: CHROMIUM=/path/to/chromium.`);
  }
  return chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: 120_000 });
}

/** Set up for every file of tests. */
afterAll(async () => {
  await (await running)?.close();
  running = undefined;
  executablePath = USUAL;
});
