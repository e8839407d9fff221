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
  token = "";
  /** For its process alone, beside what this one has. */
  environment: Record<string, string> = {};
  private process: ChildProcess | undefined;

  /** `bare`: as a new user has it, with what the host finds on a machine that has nothing. */
  constructor(
    private readonly options: string[] = ["--agent", "scripted", "--agent", "demo"],
    private readonly bare = false,
  ) {}

  /** After a stop or a kill it comes back at the same address with the same memory. */
  async start(...options: string[]): Promise<void> {
    this.options.push(...options);
    const port = this.url ? new URL(this.url).port : "0";
    const [program = "", ...before] = COMMAND.split(" ");
    const home = join(this.folder, "home");
    const given = [...before, "serve", "--print-ready", "--port", port, "--home", home, "--workspace", this.folder];
    // A plain shell in a home of its own: what the user's start-up files do, and how long they take, is not ours to test.
    const env = { ...(this.bare ? { PATH: "/usr/bin:/bin" } : process.env), HOME: this.folder, SHELL: "/bin/sh", ...this.environment };
    const child = spawn(program, [...given, ...this.options], { cwd: this.folder, stdio: "pipe", env });
    this.process = child;
    let complaints = "";
    child.stderr.on("data", (text) => (complaints += String(text)));
    for await (const line of createInterface({ input: child.stdout })) {
      const ready = /^READY:(\d+)$/.exec(line);
      if (!ready) continue;
      this.url = `http://127.0.0.1:${ready[1]}`;
      this.token = readFileSync(join(home, "token"), "utf8").trim();
      this.login = `${this.url}/login?tkn=${this.token}`;
      child.stdout.resume(); // a full pipe would hold the host up
      return;
    }
    throw new Error(`The host ended before it was ready. ${complaints}`);
  }

  /** What a script of its owner would ask, beside the browser. */
  async ask<T>(path: string, body?: object, method = body ? "POST" : "GET"): Promise<T> {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const response = await fetch(this.url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Ends the turn of a session that would go on for ever. */
  cancel(sessionId: string): Promise<object> {
    return this.ask(`/v1/sessions/${sessionId}/cancel`, {});
  }

  /** Starts a job in the host's folder and gives its id. */
  async startJob(name: string, input = ""): Promise<string> {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}/api/copilot/job/start/${encodeURIComponent(name)}`, { method: "POST", headers, body: `${this.folder}\n${input}` });
    const { jobId, error } = (await response.json()) as { jobId?: string; error?: string };
    if (!jobId) throw new Error(`The job ${name} did not start: ${error}`);
    return jobId;
  }

  /** Resolves when the process has ended by itself. */
  async ended(): Promise<void> {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
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
