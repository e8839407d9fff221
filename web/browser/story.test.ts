/**
 * The sixty-second story of the first page of the documentation, played on a real host: a job is started with curl and watched
 * over AHP, the host is killed and started again, an approval is given on a phone, and the check goes green. Agent, files,
 * commands and checks are real; the model behind the agent is the scripted one.
 *
 * With PICTURES=FOLDER every scene is written there as a picture: `make pictures` makes those of docs/index.md anew.
 */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Editor } from "./editor";
import { RealHost } from "./host";
import { Person } from "./person";

const PICTURES = process.env["PICTURES"];
const PORTICO = join(import.meta.dirname, "../../.venv/bin/portico");
const DESK = { width: 1180, height: 660 };
const STRIP = { width: 820, height: 190 };

const PRICES = "def total(prices):\n    return round(sum(prices))\n";
const MENDED = "    return round(sum(prices), 2)\n";
const TEST = 'import unittest\n\nfrom prices import total\n\n\nclass Total(unittest.TestCase):\n    def test_cents_are_kept(self):\n        self.assertEqual(total([1.20, 2.35]), 3.55)\n\n\nif __name__ == "__main__":\n    unittest.main()\n';

const COMMIT = 'git commit -am "Keep the cents of a total"';
const REASON = "Without digits, `round` gives a whole number, so the cents of every total are lost. I will round to two digits, and leave the signature as it is: nobody who calls it has to change.";
const EDIT = [{ kind: "edit", args: { path: "prices.py", old: PRICES.split("\n")[1] + "\n", new: MENDED } }];
/** What the model says: slowly at first, so that there is a middle to be killed in. */
const MODEL = {
  models: ["scripted-model"],
  rules: [
    { tools: false, steps: [{ say: "Keep the cents" }] },
    { match: "Find out", steps: [{ say: "`total` in `prices.py` rounds to whole numbers: `round(sum(prices))`. The test `test_cents_are_kept` shows it." }] },
    {
      match: "Mend it",
      steps: [
        { say: "I look at the file first.", calls: [{ kind: "read", args: { path: "prices.py" } }] },
        { say: REASON, calls: EDIT, first: { key: "slow", times: 1, step: { say: REASON, gap: 150, hang: 30 } } },
        { say: "Mended. Now the commit, which asks.", calls: [{ kind: "execute", args: { command: COMMIT } }] },
        { say: "The cents are kept, and the change is committed." },
      ],
    },
  ],
};
const task = (prompt: string, criteria?: object) => ({ model: { category: "driving" }, prompt: [prompt], requireUserInput: false, ...(criteria ? { criteria } : {}) });
const ENTRY = {
  models: { driving: "scripted-model" },
  drivingSessionRetries: [{ modelId: "scripted-model", retries: 1 }],
  promptVariables: {},
  tasks: { diagnose: task("Find out why totals are wrong."), mend: task("Mend it, and commit.", [{ command: "python3 -m unittest -q" }, { command: "git diff --quiet" }]) },
  jobs: { "mend-totals": { work: { kind: "Seq", works: [{ kind: "Ref", taskId: "diagnose" }, { kind: "Ref", taskId: "mend" }] } } },
  grid: [{ keyword: "mend", jobs: [{ name: "Totals", jobName: "mend-totals" }] }],
};

const host = new RealHost(["--agent", "loop"]);
const project = join(host.folder, "shop");
const git = (...given: string[]) => execFileSync("git", given, { cwd: project, encoding: "utf8" });
let model: ChildProcess | undefined;

async function startModel(): Promise<string> {
  writeFileSync(join(host.folder, "model.json"), JSON.stringify(MODEL));
  model = spawn(PORTICO, ["model-server", "--port", "0", "--script", join(host.folder, "model.json")], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: model.stdout! })) {
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
    if (!address) continue;
    model.stdout!.resume();
    return address[0];
  }
  throw new Error("The scripted model server ended before it was ready.");
}

beforeAll(async () => {
  mkdirSync(project);
  writeFileSync(join(project, "prices.py"), PRICES);
  writeFileSync(join(project, "test_prices.py"), TEST);
  writeFileSync(join(project, ".gitignore"), "__pycache__\n");
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Ann");
  git("config", "user.email", "ann@example.org");
  git("add", ".");
  git("commit", "-qm", "A shop");
  mkdirSync(join(host.folder, "home"), { mode: 0o700 });
  const settings = ['models = ["scripted-model"]', "[agents.loop]", `base_url = "${await startModel()}/v1"`, "discover = false", "[approvals]", 'ask_commands = ["git commit"]'];
  writeFileSync(join(host.folder, "home/settings.toml"), `${settings.join("\n")}\n`);
  writeFileSync(join(host.folder, "entry.json"), JSON.stringify(ENTRY));
  await host.start("--entry", join(host.folder, "entry.json"));
});
afterAll(async () => {
  if (model && model.exitCode === null) {
    const gone = once(model, "exit");
    model.kill();
    await gone;
  }
  await host.close();
});

async function picture(page: Page, name: string): Promise<void> {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.waitForTimeout(300); // rows are laid out, colours come
  await page.screenshot({ path: join(PICTURES, `story-${name}.png`) });
}

/** What was typed and what came back, as a terminal would show it; secrets and folders of this machine are not shown. */
async function terminal(page: Page, typed: string, answer: string): Promise<void> {
  await page.setViewportSize(STRIP);
  await page.setContent('<body style="margin:0;background:#16181d;color:#d8dee9;font:15px/1.55 monospace"><pre style="margin:22px;white-space:pre-wrap"></pre></body>');
  const hide = (text: string) => text.replaceAll(host.folder, "~").replaceAll(host.token, "TOKEN").replaceAll(host.url, "http://127.0.0.1:8888");
  await page.evaluate(
    ([command, output]) => {
      const line = document.createElement("b");
      line.textContent = `$ ${command}\n`;
      line.style.color = "#8fd6a0";
      document.querySelector("pre")!.append(line, output);
    },
    [hide(typed), hide(answer)] as const,
  );
}

/** What an editor's AHP connection has brought, as its chat would show it. */
async function panel(page: Page, { opened, chat }: Editor): Promise<void> {
  await page.setViewportSize(STRIP);
  await page.evaluate(
    ([parts, address]) => {
      const box = document.createElement("div");
      box.style.cssText = "position:fixed;inset:0;padding:14px 22px;background:#fff;color:#222;font:15px/1.45 sans-serif";
      for (const text of [`An AHP client, subscribed to ${address}`, ...parts]) {
        const line = document.createElement("p");
        line.textContent = text;
        box.append(line);
      }
      (box.firstChild as HTMLElement).style.cssText = "color:#666;font-size:12px;margin:0";
      document.body.append(box);
    },
    [opened.activeTurn?.responseParts.map(({ content }) => content ?? "✓ Read prices.py") ?? [], chat] as const,
  );
}

test("start a job with curl, watch it in an editor, kill -9, restart, approve on the phone, see the check go green", { timeout: 300_000 }, async () => {
  const desk = await Person.arrive({ size: DESK });
  const phone = await Person.arrive({ phone: true });
  for (const each of [desk, phone]) await each.logIn(host);
  const scratch = await desk.context.newPage();
  await vi.waitFor(async () => expect((await host.ask<{ agents: object[] }>("/v1/agents")).agents).toMatchObject([{ models: [{ id: "scripted-model" }] }]), { timeout: 60_000, interval: 500 });

  // A script starts the job.
  const curl = `curl -s -H "Authorization: Bearer ${host.token}" \\\n    -d '{"job": "mend-totals", "cwd": "${project}"}' ${host.url}/v1/jobs`;
  const answer = execFileSync("sh", ["-c", curl], { encoding: "utf8" });
  expect(JSON.parse(answer)).toEqual({ job: "job-1" });
  await terminal(scratch, curl, answer);
  await picture(scratch, "1-curl");

  // A page and an editor watch it: the first step is done, the second in the middle of a sentence.
  const { page } = desk;
  await page.goto(`${host.url}/app/j/job-1`);
  await page.waitForSelector('#transcript:has-text("gives a whole number")');
  const editor = await Editor.open(scratch, host, "session-2");
  expect(editor.opened.activeTurn?.responseParts.at(-1)?.content).toContain("gives a whole number");
  await panel(scratch, editor);
  await picture(scratch, "2-editor");

  // The host is killed. The page says so, and keeps what it has shown.
  await host.kill();
  await page.waitForSelector('.offline:has-text("cannot be reached since")');
  await page.waitForSelector('#transcript:has-text("gives a whole number")');
  await picture(page, "3-killed");

  // It is started again: what was done is not done again, what was cut off is, up to the commit, which asks.
  await host.start();
  await page.waitForSelector('.head .pill:has-text("Needs you")');
  await page.waitForSelector('.tn:has-text("mend") >> text=needs you');
  await page.waitForSelector(".offline", { state: "hidden" });
  desk.trouble.length = 0; // browsers complain about a host that is away
  const { sessions } = await host.ask<{ sessions: { title: string }[] }>("/v1/sessions");
  expect(sessions.map(({ title }) => title).sort()).toEqual(["diagnose", "mend", "mend"]);
  expect(git("log", "--format=%s").trim()).toBe("A shop");
  await picture(page, "4-restarted");

  // The phone shows what exactly would run, and says yes.
  await phone.page.goto(`${host.url}/app/inbox`);
  await phone.page.waitForSelector(`.card.approval:has-text('${COMMIT}')`);
  await picture(phone.page, "5-phone");
  await phone.page.tap('.card.approval button:has-text("Allow once")');

  // The commit is made, the checks run, and the desk sees them go green.
  await page.waitForSelector('.head .pill:text-is("Succeeded")');
  await page.waitForSelector(".step-checks li");
  expect(git("log", "--format=%s").trim().split("\n")).toEqual(["Keep the cents of a total", "A shop"]);
  expect(git("show", "HEAD:prices.py")).toContain(MENDED);
  await picture(page, "6-green");
  expect([...desk.trouble, ...phone.trouble]).toEqual([]);
});
