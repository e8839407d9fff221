/** Several hosts on one log, as a browser sees them: where things run is shown, and chosen in the forms. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { entryOptions } from "./entry";
import { RealHost } from "./host";
import { visitors } from "./visitors";

const PYTHON = resolve(import.meta.dirname, "../../.venv/bin/python");
/** A PostgreSQL of one's own until its input ends. */
const SERVER = `
import sys, tempfile
from pathlib import Path
from portico.testing.postgres import PostgresServer
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o755)
    server = PostgresServer(Path(folder) / "postgres", settings={"fsync": "off"})
    try:
        print(server.start().url(), flush=True)
        sys.stdin.read()
    finally:
        server.stop(at_once=True)
`;

const options = ["--agent", "scripted", "--agent", "demo"];
const attic = new RealHost([...options]);
const cellar = new RealHost([...options]);
let database: ChildProcess;

const field = (path: string) => `[id="auto-field-${path}"]`;

/** Started before the host that people visit: `visitors` starts that one. */
beforeAll(async () => {
  database = spawn(PYTHON, ["-c", SERVER], { stdio: ["pipe", "pipe", "inherit"] });
  if (!database.stdout) throw new Error("It has no output.");
  const [url] = (await once(createInterface({ input: database.stdout }), "line")) as [string];
  cellar.environment = { PORTICO_LOG_URL: url, PORTICO_CLUSTER_HOST: "cellar-1", PORTICO_CLUSTER_PLACE: "cellar", PORTICO_CLUSTER_LABELS: "gpu" };
  await cellar.start(...entryOptions(cellar.folder));
  attic.environment = { PORTICO_LOG_URL: url, PORTICO_CLUSTER_HOST: "attic-1", PORTICO_CLUSTER_PLACE: "attic" };
});
const somebody = visitors(attic, ...entryOptions(attic.folder));
afterAll(async () => {
  await cellar.close();
  const gone = once(database, "exit");
  database.stdin?.end();
  await gone;
});

const hostOf = async (session: string) => (await attic.ask<{ hosts: { name: string }[] }>(`/v1/hosts?session=${session}`)).hosts.map(({ name }) => name);

test("the hosts with their places and labels; a session starts at the chosen place, and its details say where it runs", async () => {
  const person = await somebody();
  const { page } = person;
  await page.goto(`${attic.url}/app/settings/hosts`);
  await page.waitForSelector('h2:text-is("2 hosts")');
  const rows = await page.$$eval("table.cards tr", (all) => all.map((row) => [...row.children].slice(0, 6).map((cell) => cell.textContent)));
  expect(rows).toEqual([
    ["Host", "Place", "Labels", "State", "Sessions", "Working"],
    ["cellar-1", "cellar", "gpu", "up", "0", "0 of 100"],
    ["attic-1 (answers here)", "attic", "", "up", "0", "0 of 100"],
  ]);
  expect(await person.barriers()).toEqual([]);

  await page.goto(`${attic.url}/app/new`);
  await page.selectOption("#place", "cellar");
  await page.selectOption("#label", "gpu");
  await page.fill("#folder", cellar.folder);
  await page.check('.agent-choice:has-text("Demo") input');
  await page.fill("#first", "hello there");
  expect(await person.barriers()).toEqual([]);
  await page.click("#start");
  await page.waitForURL(/\/app\/s\//);
  const session = page.url().split("/s/")[1]?.split("/")[0] ?? "";
  expect(await hostOf(session)).toEqual(["cellar-1"]);
  await page.goto(`${attic.url}/app/s/${session}/details`);
  await page.waitForSelector('.details-tab dd:text-is("cellar-1 at cellar")');
});

test("a label that no host of the folder's place has is refused in words, and the form keeps what was written", async () => {
  const { page } = await somebody({ phone: true });
  await page.goto(`${attic.url}/app/new`);
  await page.fill("#folder", attic.folder);
  await page.selectOption("#label", "gpu");
  await page.fill("#first", "train it");
  await page.click("#start");
  await page.waitForSelector(".trouble:has-text(\"No host of 'attic' with the label 'gpu' is there\")");
  expect([await page.inputValue("#first"), await page.inputValue("#label")]).toEqual(["train it", "gpu"]);
});

test("a job runs at the place that the form names, and so does an automation, whose form knows both when it is edited", async () => {
  const person = await somebody();
  const { page } = person;
  await page.goto(`${attic.url}/app/new/job`);
  await page.selectOption("#job", "hello world");
  await page.selectOption("#place", "cellar");
  await page.selectOption("#label", "gpu");
  await page.fill("#folder", cellar.folder);
  expect(await person.barriers()).toEqual([]);
  await page.click("#start-job");
  await page.waitForURL(/\/app\/j\//);
  await vi.waitFor(async () => {
    const { sessions } = await attic.ask<{ sessions: { id: string; by: string }[] }>("/v1/sessions");
    expect(await hostOf(sessions.find(({ by }) => by.startsWith("task:"))?.id ?? "none")).toEqual(["cellar-1"]);
  }, 30_000);

  await page.goto(`${attic.url}/app/automations/new`);
  await page.fill(field("name"), "train");
  await page.selectOption(field("prompt.agent"), "demo");
  await page.fill(field("prompt.text"), "train it");
  await page.fill(field("prompt.cwd"), cellar.folder);
  await page.selectOption(field("prompt.place"), "cellar");
  await page.selectOption(field("prompt.label"), "gpu");
  expect(await person.barriers()).toEqual([]);
  await page.click("text=Create automation");
  await page.waitForSelector('.facts-list dd:text-is("cellar, only at a host with the label gpu")');
  await page.click("text=Run now");
  await page.waitForSelector('.runs .job-state:has-text("Done")');
  const session = (await page.getAttribute(".runs a", "href"))?.split("/s/")[1] ?? "";
  expect(await hostOf(session)).toEqual(["cellar-1"]);

  await page.click(".auto-acts >> text=Edit");
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>('[id="auto-field-prompt.place"]')?.value === "cellar");
  await page.selectOption(field("prompt.label"), "");
  await page.click("button >> text=Save");
  await page.waitForSelector(".auto-acts");
  expect(await attic.ask("/v1/automations/train")).toMatchObject({ plan: { prompt: { place: "cellar" } } });
});
