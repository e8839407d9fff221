/** One Chromium for all tests of a process; everybody in it has a profile of their own. */

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
/** By their program. They end with the process. */
const running = new Map<string, Promise<Browser>>();

/** For files whose tests need what the shell has not: it shows no notifications. */
export function useWholeBrowser(): void {
  executablePath = WHOLE;
  afterAll(() => void (executablePath = USUAL));
}

export function browser(): Promise<Browser> {
  const path = executablePath;
  const forget = (): void => void running.delete(path);
  let known = running.get(path);
  if (!known) {
    known = launch([]);
    running.set(path, known);
    known.then((begun) => begun.on("disconnected", forget), forget);
  }
  return known;
}

/** Whoever is still there when a file of tests is over would go on beside the next one. */
export async function closeContexts(): Promise<void> {
  for (const each of await Promise.all(running.values())) await Promise.all(each.contexts().map((context) => context.close()));
}

/** Another one, with flags of its own; whoever asks for it closes it. */
export function launch(flags: string[]): Promise<Browser> {
  if (!existsSync(executablePath)) {
    throw new Error(`There is no Chromium at ${executablePath}. Install it (apt-get install chromium), or say where it is: CHROMIUM=/path/to/chromium.`);
  }
  return chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: 120_000 });
}
