/** A real host in a folder of its own, with a project folder beside it. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** The command to try another host with. */
const COMMAND = process.env["PORTICO_COMMAND"] ?? resolve(import.meta.dirname, "../../.venv/bin/portico");

export class RealHost {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-browser-"));
  url = "";
  login = "";
  private process: ChildProcess | undefined;

  /** After a stop or a kill it comes back at the same address with the same memory. */
  async start(...options: string[]): Promise<void> {
    const port = this.url ? new URL(this.url).port : "0";
    const [program = "", ...before] = COMMAND.split(" ");
    const home = join(this.folder, "home");
    const given = [...before, "serve", "--print-ready", "--port", port, "--home", home, "--workspace", this.folder];
    // A plain shell: what the user's own start-up files do, and how long they take, is not ours to test.
    const env = { ...process.env, SHELL: "/bin/sh" };
    const child = spawn(program, [...given, "--agent", "scripted", "--agent", "demo", ...options], { cwd: this.folder, env, stdio: "pipe" });
    this.process = child;
    let complaints = "";
    child.stderr.on("data", (text) => (complaints += String(text)));
    for await (const line of createInterface({ input: child.stdout })) {
      const ready = /^READY:(\d+)$/.exec(line);
      if (!ready) continue;
      this.url = `http://127.0.0.1:${ready[1]}`;
      this.login = `${this.url}/login?tkn=${readFileSync(join(home, "token"), "utf8").trim()}`;
      return;
    }
    throw new Error(`The host ended before it was ready. ${complaints}`);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = once(this.process, "exit");
    this.process.kill(signal);
    await gone;
  }

  async close(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
