/**
 * The workbench as pictures: phone, small, usual and large, light and dark, in `screenshots/`; each also looked at by axe.
 * With PICTURES=FOLDER the one of the guide goes there: `make pictures`.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { Person } from "./person";

const out = resolve(import.meta.dirname, "../../screenshots");
const host = new RealHost();
const folder = join(host.folder, "api");
const shop = join(host.folder, "shop");
const ids: Record<string, string> = {};

const BEFORE = "import time\n\n\nclass TokenBucket:\n    def __init__(self, rate, size):\n        self.rate, self.size = rate, size\n        self.last = time.monotonic()\n        self.left = size\n";
const AFTER = BEFORE.replace("rate, size):", "rate: float, size: int, clock=time.monotonic):").replace("self.last = time.monotonic()", "self.clock = clock\n        self.last = clock()");
const LOOK = [
  { do: "reason", text: "Let me see how the route is built, and whether something here counts requests already.", deltas: 4 },
  { do: "say", text: "I'll look at how the route is built, and whether something here **already** counts requests.\n\n```python\ndef limit(rate: int) -> bool:\n    # one per address\n    return rate > 5\n```\n", deltas: 5 },
  { do: "tool", name: "read_file", kind: "read", input: { path: "src/limits.py" }, output: "class TokenBucket: ..." },
  { do: "tool", name: "grep", kind: "search", input: { query: "TokenBucket" }, output: "src/limits.py:4" },
  { do: "tool", name: "bash", kind: "execute", input: { command: "pytest -q tests/test_login.py" }, output: "F\nImportError: cannot import name 'per_address' from 'app.limits'\n1 error in 0.91s", exit_code: 1 },
];
const CHANGE = { do: "write", path: "src/limits.py", text: AFTER };
const SCRIPT = {
  providers: [{ id: "codex", name: "Codex", steer: true, models: [{ id: "gpt-5.4", name: "GPT-5.4" }, { id: "gpt-5.2", name: "GPT-5.2" }] }],
  rules: [
    { match: "rate limit", steps: [...LOOK, CHANGE] },
    { match: "done already", steps: [...LOOK, { ...CHANGE, ask: false }, { do: "say", text: "Done: the bucket takes a clock now." }, { do: "usage", input: 41000, output: 900, cost: 0.18 }] },
    { match: "delete", steps: [{ do: "tool", name: "bash", kind: "execute", input: { command: "rm -r migrations/2023" }, permission: { kind: "shell", command: "rm -r migrations/2023" } }] },
  ],
};

function repository(path: string): void {
  mkdirSync(join(path, "src"), { recursive: true });
  writeFileSync(join(path, "src/limits.py"), BEFORE);
  const git = (...given: string[]) => execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.org", ...given], { cwd: path });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "first");
}

async function begin(name: string, agent: string, title: string, text: string, cwd = folder): Promise<void> {
  const { id } = await host.ask<{ id: string }>("/v1/sessions", { agent, title, cwd });
  ids[name] = id;
  await host.ask(`/v1/sessions/${id}/messages`, { text });
}

beforeAll(async () => {
  mkdirSync(out, { recursive: true });
  repository(folder);
  repository(shop);
  writeFileSync(join(host.folder, "script.json"), JSON.stringify(SCRIPT));
  await host.start("--script", join(host.folder, "script.json"), ...entryOptions(host.folder));
  await begin("changed", "codex", "Give the bucket a clock", "done already");
  await begin("delete", "codex", "Clean up old migrations", "delete them");
  await begin("question", "demo", "Which colour?", "ask me");
  await begin("waiting", "codex", "Rate limit for the login route", "Logins can be tried without limit: add a rate limit of 5 per minute per address, with a test. Keep the text of the answer as it is.", shop);
  await begin("running", "codex", "Flaky test in checkout", "[[deltas:6000]] [[gap:200]]");
  await begin("failed", "demo", "Upgrade to Python 3.13", "fail please");
  await begin("plain", "demo", "Explain the retry logic", "hello there");
  ids["job"] = await host.startJob("endless");
  ids["shapes"] = await host.startJob("shapes", "x");
  const prompt = { text: "hello there", agent: "demo" };
  const automate = (name: string, plan: object) => host.ask("/v1/automations", { name, plan });
  await automate("morning-review", { title: "Review what changed since yesterday", schedule: { cron: "0 7 * * 1-5", zone: "Europe/Berlin" }, prompt });
  await automate("on-push", { hook: {}, stop_after_failures: 1, prompt: { ...prompt, text: "fail please" } });
  await automate("new-data", { files: { folder: host.folder, globs: ["*.csv"] }, prompt });
  await host.ask("/v1/automations/new-data/pause", {});
  for (const name of ["morning-review", "on-push"]) await host.ask(`/v1/automations/${name}/run`, {});
}, 120_000);
afterAll(() => host.close());

const SIZES: [width: number, height: number][] = [
  [390, 844],
  [768, 1024],
  [1024, 768],
  [1280, 800],
  [1440, 900],
  [2560, 1440],
];
const PLACES: [name: string, path: () => string, sign: string][] = [
  ["list", () => "", ".entry"],
  ["approval", () => `s/${ids["waiting"]}`, ".approval"],
  ["danger", () => `s/${ids["delete"]}`, ".dangerous"],
  ["running", () => `s/${ids["running"]}`, "#status.running"],
  ["failed", () => `s/${ids["failed"]}`, ".outcome"],
  ["changes", () => `s/${ids["changed"]}/changes`, ".file-diff .diff-added"],
  ["details", () => `s/${ids["changed"]}/details`, ".facts-list"],
  ["inbox", () => "inbox", ".card"],
  ["new", () => "new", "#agents input"],
  ["job", () => `j/${ids["shapes"]}`, ".tn"],
  ["jobs", () => "jobs", ".entry, .table"],
  ["new-job", () => "new/job", "#job option"],
  ["automations", () => "automations", ".auto"],
  ["automation", () => "automations/morning-review", ".runs td"],
  ["automation-form", () => "automations/new", ".auto-preview"],
  ["usage", () => "usage", ".plot"],
  ["settings", () => "settings", "#setting-theme"],
  ["host", () => "settings/host", ".danger-zone"],
  ["tokens", () => "settings/tokens", ".settings form"],
  ["people", () => "settings/people", ".settings .table"],
  ["hosts", () => "settings/hosts", ".settings .table"],
  ["more", () => "more", ".settings .navitem"],
];

const looks = SIZES.flatMap(([width, height]) => [false, true].map((dark) => [`${width}-${dark ? "dark" : "light"}`, width, height, dark] as const)).filter(([name]) => name.includes(process.env["LOOK"] ?? ""));

test.each(looks)("%s", { timeout: 300_000 }, async (name, width, height, dark) => {
  const person = await Person.arrive({ dark, size: { width, height }, phone: width < 500 });
  const { page } = person;
  await page.goto(host.login);
  for (const [place, path, sign] of PLACES) {
    if (!place.includes(process.env["PLACE"] ?? "")) continue;
    await page.goto(`${host.url}/app/${path()}`);
    await page.waitForSelector(sign, { state: place === "new-job" || place === "running" || place === "jobs" ? "attached" : "visible" });
    await page.waitForTimeout(300); // rows are laid out, colours come
    await page.screenshot({ path: join(out, `workbench-${place}-${name}.png`) });
    if (process.env["PICTURES"] && place === "approval") await page.screenshot({ path: join(process.env["PICTURES"], "session.png") });
    expect([place, await person.barriers(page, "moderate")]).toEqual([place, []]);
    expect([place, await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - window.innerWidth))]).toEqual([place, 0]);
  }
  expect(person.trouble).toEqual([]);
  await person.leave();
});
