/**
 * The table of cases for the lifetime of views: every view × (left while loading, left and reopened, a late answer, one failed
 * request, 502 from a proxy, a refused stream) × (open connections and requests, listeners and timers, focus, text).
 */

import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { automationsView } from "../src/app/automations";
import "../src/app/connect"; // loaded on demand; a first load takes real time
import { Inbox } from "../src/app/inbox";
import { JobView } from "../src/app/job";
import { NewSession } from "../src/app/start";
import { StartJob } from "../src/app/startJob";
import { SettingsView } from "../src/app/settings";
import { UsageView } from "../src/app/usage";
import { SessionView } from "../src/app/sessionView";
import type { Shell } from "../src/app/shell";
import type { View } from "../src/app/view";
import { StepView } from "../src/app/stepView";
import { Net } from "./net";
import { loadCards } from "../src/conversation/loadCards";

const NOW = new Date(2026, 5, 10, 12).getTime();
const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

beforeAll(loadCards);
beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
  vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} disconnect() {} });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  document.body.replaceChildren();
  window.history.replaceState(null, "", "/");
});

/** The parts of the workbench that views use, and what they did with them. */
function frame() {
  const listeners = new Set<() => void>();
  const rows = new Map<string, object>();
  const board = {
    rows,
    jobs: new Map(),
    live: true,
    lost: false,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    changed: () => listeners.forEach((listener) => listener()),
    agentName: (id: string) => id,
    titleOf: () => undefined,
    entries: () => [],
    ofTask: () => [],
    retryNow: () => undefined,
  };
  const titles: string[] = [];
  const shell = { board, go: vi.fn(), titled: (text: string) => titles.push(text), panelAt: vi.fn(), changed: vi.fn() };
  return { shell: shell as unknown as Shell, board, rows, titles, watching: () => listeners.size };
}

const SESSION = (title: string) => ({ id: "s1", agent: "demo", model: "m", cwd: "/w", title, created: NOW, modified: NOW, pos: 3, turns: [], queue: [], read: true, config: {} });
const ENTRY = { jobs: { release: { work: { kind: "Seq", works: [{ kind: "Ref", workIdInJob: 0, taskId: "write" }, { kind: "Ref", workIdInJob: 1, taskId: "check" }] } } } };
const JOB = (status: string) => ({ id: "j1", name: "release", status, started: NOW - 5000, cwd: "/w", entry: ENTRY, chart: { nodes: [], edges: [] }, by: "token:owner", works: [] });
const AUTOMATION = (name: string) => ({ id: "a1", name, enabled: true, by: "token:owner", source: "door", trigger: "schedule", plan: { schedule: { cron: "0 7 * * *" }, prompt: { text: "hi", agent: "demo" } }, next: [] });
const asked = (id: string) => ({ id, session: "s1", title: "Fix it", agent: "demo", cwd: "/w", since: NOW, text: "", question: { part: "question", id, text: `Which ${id}?` } });
const INBOX = (...ids: string[]) => ({ waiting: ids.map(asked) });
const STARTED = { pos: 1, time: NOW - 5000, event: { type: "job.started", by: "token:owner" } };
const RUNS = { pos: 2, time: NOW - 4000, event: { type: "work.started", path: "r.0", work: 0, task: "t1", attempt: 1 } };

interface Opened {
  element: HTMLElement;
  leave?(): void;
}

interface Case {
  open(shell: Shell): Opened | View;
  /** What the host answers; the first answer, and the one after something has changed. */
  answers: (version: "first" | "second") => Record<string, object>;
  /** The text when it is loaded, by the same versions. */
  text: Record<"first" | "second", string>;
  /** Event streams of a view that is open. */
  streams: string[];
  /** Something has changed at the host; the view learns of it as it would there. */
  change(net: Net, frames: ReturnType<typeof frame>, number: number): void;
}

const stepOf = () => new StepView({ kind: "step", work: 0, name: "write", model: "", condition: false }, { path: "r.0", work: 0, task: "t1", attempt: 1, started: NOW }, "", (agent) => agent);

const VIEWS: Record<string, Case> = {
  session: {
    open: (shell) => new SessionView("s1", shell),
    answers: (version) => ({ "GET /sessions/s1": SESSION(version === "first" ? "Fix it" : "Fixed") }),
    text: { first: "Fix it", second: "Fixed" },
    streams: ["/v1/sessions/s1/events"],
    change: (net) => net.open[0]?.refuse(),
  },
  job: {
    open: (shell) => new JobView("j1", undefined, shell),
    answers: (version) => ({ "GET /jobs/j1": JOB(version === "first" ? "running" : "canceled"), "GET /events": { events: [] } }),
    text: { first: "Working, 0 of 2", second: "Stopped" },
    streams: ["job/j1"],
    change: (net, _, number) => net.open[0]?.send({ ...STARTED, pos: number }),
  },
  "job whose stream is refused": {
    open: (shell) => new JobView("j1", undefined, shell),
    answers: (version) => ({ "GET /jobs/j1": JOB(version === "first" ? "running" : "canceled"), "GET /events": { events: [] } }),
    text: { first: "Working, 0 of 2", second: "Stopped" },
    streams: ["job/j1"],
    change: (net) => net.open[0]?.refuse(),
  },
  inbox: {
    open: (shell) => new Inbox(shell),
    answers: (version) => ({ "GET /inbox": version === "first" ? INBOX("q1") : INBOX("q2"), "GET /inbox/answered": { answers: [], rules: 0 } }),
    text: { first: "Which q1?", second: "Which q2?" },
    streams: [],
    change: (_, { rows, board }) => {
      rows.set(`s${rows.size}`, { session: {}, waiting: [{ id: `new-${rows.size}` }] });
      board.changed();
    },
  },
  automations: {
    open: (shell) => automationsView({ at: "automations" }, shell),
    answers: (version) => ({ "GET /automations": { automations: [AUTOMATION(version === "first" ? "morning" : "evening")] } }),
    text: { first: "morning", second: "evening" },
    streams: [],
    change: (_, { board }) => board.changed(),
  },
  automation: {
    open: (shell) => automationsView({ at: "automations", id: "a1" }, shell),
    answers: (version) => ({ "GET /automations/a1": AUTOMATION(version === "first" ? "morning" : "evening"), "GET /automations/a1/runs": { runs: [] }, "GET /events": { events: [], head: 7 } }),
    text: { first: "morning", second: "evening" },
    streams: ["automation/a1"],
    change: (net, _, number) => net.open[0]?.send({ pos: 7 + number }),
  },
};

/** Views that load once: they follow no change of the host. */
const LOADED: Record<string, Pick<Case, "open" | "answers" | "text">> = {
  usage: {
    open: (shell) => new UsageView(shell),
    answers: () => ({ "GET /usage": { rows: [{ day: "2026-06-10", session: "s1", title: "Fix it", agent: "demo", model: "m", turns: 1, input: 2000, output: 10, cost: 0.5 }] } }),
    text: { first: "$0.50", second: "" },
  },
  "new session": {
    open: (shell) => new NewSession(shell),
    answers: () => ({ "GET /agents": { agents: [{ id: "codex", name: "Codex agent" }], default: "codex" }, "GET ": { workspaces: ["/w"], log: { seq: 1 } }, "GET /hosts": { hosts: [] } }),
    text: { first: "Codex agent", second: "" },
  },
  "start a job": {
    open: (shell) => new StartJob(shell),
    answers: () => ({ "GET /entry": { name: "the demo entry", entry: ENTRY, chart: {} }, "GET /workflows": { workflows: [{ name: "nightly update", steps: 2 }] }, "POST /workflows/plan": { name: "nightly update", text: "" }, "GET /agents": { agents: [], default: "" }, "GET ": { workspaces: ["/w"], log: { seq: 1 } }, "GET /hosts": { hosts: [] } }),
    text: { first: "nightly update", second: "" },
  },
  "automation form": {
    open: (shell) => automationsView({ at: "automations", id: "a1", form: true }, shell),
    answers: () => ({ "GET /automations/a1": AUTOMATION("morning"), "GET /agents": { agents: [{ id: "codex", name: "Codex agent" }], default: "codex" }, "GET /entry": { entry: ENTRY }, "GET /automations": { automations: [] }, "GET ": { workspaces: ["/w"], log: { seq: 1 } }, "GET /hosts": { hosts: [] } }),
    text: { first: "Codex agent", second: "" },
  },
  ...Object.fromEntries(
    Object.entries({
      agents: [{ "GET /agents": { agents: [{ id: "codex", name: "Codex agent" }], default: "codex" } }, "Codex agent"],
      tokens: [{ "GET /tokens": { tokens: [{ name: "phone", scopes: ["read"], created: NOW }] } }, "phone"],
      audit: [{ "GET /audit": { audit: [{ time: NOW, action: "token.made", by: "token:owner" }], next: null } }, "token.made"],
      host: [{ "GET ": { version: "0.3", log: { seq: 1 } }, "GET /settings": { path: "settings.toml", settings: [] } }, "settings.toml"],
    } as Record<string, [Record<string, object>, string]>).map(([section, [answers, first]]) => [`settings: ${section}`, { open: (shell: Shell) => new SettingsView(section, shell), answers: () => answers, text: { first, second: "" } }]),
  ),
};

const names = Object.keys(VIEWS);
const WAIT = 8_000; // longer than the retries after four failures

function begin(name: string) {
  const view: Case = VIEWS[name] ?? { ...LOADED[name]!, streams: [], change: () => undefined };
  const net = new Net(view.answers("first"));
  const frames = frame();
  const serve = (version: "first" | "second") => Object.assign(net.answers, view.answers(version));
  const open = () => {
    const opened = view.open(frames.shell);
    document.body.replaceChildren(opened.element);
    return opened;
  };
  const left = () => ({ streams: net.open.length, requests: net.waiting, listeners: net.listeners, watching: frames.watching(), timers: vi.getTimerCount() });
  return { view, net, frames, serve, open, left };
}

const NOTHING = { streams: 0, requests: 0, listeners: 0, watching: 0, timers: 0 };

describe.each([...names, ...Object.keys(LOADED)])("%s", (name) => {
  test("loaded: it shows its text, with its streams and no other", async () => {
    const { view, net, open } = begin(name);
    const opened = open();
    await tick(500);
    expect(document.body.textContent).toContain(view.text.first);
    expect(net.open.map(({ channel }) => channel)).toEqual(view.streams);
    opened.leave?.();
  });

  test("left while loading: requests are aborted, and late answers open nothing and set no title", async () => {
    const { net, frames, open, left } = begin(name);
    net.hold();
    const opened = open();
    await tick(500);
    expect(net.waiting).toBeGreaterThan(0);
    opened.leave?.();
    expect(net.waiting).toBe(0);
    await net.release();
    await tick(WAIT);
    expect([left(), frames.titles]).toEqual([NOTHING, []]);
  });

  test("left after loading: nothing stays", async () => {
    const { open, left } = begin(name);
    const opened = open();
    await tick(500);
    opened.leave?.();
    await tick(WAIT);
    expect(left()).toEqual(NOTHING);
  });

  test("left and reopened eight times while it loads: one view is open", async () => {
    const { view, net, open, left } = begin(name);
    net.hold();
    for (let times = 0; times < 8; times++) open().leave?.();
    const last = open();
    await net.release();
    await tick(500);
    expect(net.open.map(({ channel }) => channel)).toEqual(view.streams);
    expect(document.body.textContent).toContain(view.text.first);
    last.leave?.();
    await tick(WAIT);
    expect(left()).toEqual(NOTHING);
  });

  test.each<["offline" | number]>([["offline"], [502], [503]])("the first requests fail (%s): it is loaded when the host is back", async (how) => {
    const { view, net, open } = begin(name);
    net.failing = [how, how, how];
    const opened = open();
    await tick(100);
    expect(document.body.textContent).not.toContain("There is no such");
    await tick(WAIT);
    expect(document.body.textContent).toContain(view.text.first);
    expect(document.body.textContent).not.toMatch(/cannot be reached|status 50/);
    expect(net.open.map(({ channel }) => channel)).toEqual(view.streams);
    opened.leave?.();
  });
});

describe.each(names)("%s, when the host changes", (name) => {
  test("a late answer: what changed last is shown", async () => {
    const { view, net, frames, serve, open } = begin(name);
    const opened = open();
    await tick(500);
    net.hold();
    view.change(net, frames, 1);
    await tick(600);
    serve("second");
    view.change(net, frames, 2);
    await tick(600);
    await net.release("reversed");
    await tick(1000);
    view.change(net, frames, 3); // for those whose stream was closed while they loaded
    await tick(1000);
    expect(document.body.textContent).toContain(view.text.second);
    expect(document.body.textContent).not.toContain(view.text.first);
    opened.leave?.();
  });

  test.each<["offline" | number]>([["offline"], [502]])("requests fail later (%s): it shows the change when the host is back", async (how) => {
    const { view, net, frames, serve, open } = begin(name);
    const opened = open();
    await tick(500);
    net.failing = [how, how, how];
    net.refused = view.streams.length;
    serve("second");
    view.change(net, frames, 1);
    await tick(WAIT);
    expect(document.body.textContent).toContain(view.text.second);
    expect(document.body.textContent).not.toMatch(/cannot be reached|status 50/);
    opened.leave?.();
  });
});

test.each(["job", "session"])("%s: what the host does not know is shown as missing, and is not requested again", async (name) => {
  const { net, open, left } = begin(name);
  for (const each of Object.keys(net.answers)) delete net.answers[each];
  const opened = open();
  await tick(WAIT);
  expect(document.body.textContent).toContain(`There is no such ${name}`);
  const before = net.calls.length;
  await tick(WAIT);
  expect([net.calls.length - before, net.open.length]).toEqual([0, 0]);
  opened.leave?.();
  expect(left()).toEqual(NOTHING);
});

describe("a session", () => {
  test("paused while its first request runs, and shown again: one stream; paused: none; the title is not set while it is away", async () => {
    const { net, frames, open } = begin("session");
    net.hold();
    const view = open() as SessionView;
    for (let times = 0; times < 8; times++) {
      view.hidden();
      view.shown();
    }
    view.hidden();
    await net.release();
    await tick(WAIT);
    expect([net.open.length, frames.titles]).toEqual([0, []]);
    view.shown();
    await tick(500);
    expect([net.open.length, frames.titles.at(-1)]).toEqual([1, "Fix it"]);
    view.hidden();
    expect(net.open.length).toBe(0);
    view.leave();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a helper that is open is paused and ended with its session", async () => {
    const call = { part: "call", id: "c1", tool: "task", title: "Reviewer", kind: "think", input: JSON.stringify({ subagent_type: "Reviewer", description: "Review" }), origin: "", done: false };
    const turn = { id: "t1", by: "token:owner", started: NOW, message: { text: "go" }, parts: [call] };
    const net = new Net({ "GET /sessions/s1": { ...SESSION("Fix it"), turns: [turn] }, "GET /sessions/h1": { ...SESSION("Review"), id: "h1" } });
    const frames = frame();
    frames.rows.set("h1", { session: { id: "h1", parent: "s1", origin: { kind: "agent", call: "c1" }, status: "running", title: "Review", created: NOW }, activity: "Reading" });
    const view = new SessionView("s1", frames.shell);
    document.body.replaceChildren(view.element);
    await vi.dynamicImportSettled();
    await tick(500);
    // The virtual list builds no rows without a layout, so the row asks for its helper here.
    const helperOf = () => (view as unknown as { acts: { helper(id: string): HTMLDetailsElement | undefined } }).acts.helper("c1");
    helperOf();
    await vi.dynamicImportSettled();
    await tick(500);
    const helper = helperOf()!;
    helper.open = true;
    helper.dispatchEvent(new Event("toggle"));
    await tick(500);
    const open = () => net.open.map(({ channel }) => channel).sort();
    expect(open()).toEqual(["/v1/sessions/h1/events", "/v1/sessions/s1/events"]);
    view.hidden();
    expect([open(), vi.getTimerCount()]).toEqual([[], 0]);
    view.shown();
    await tick(500);
    expect(open()).toEqual(["/v1/sessions/h1/events", "/v1/sessions/s1/events"]);
    view.leave();
    expect([open(), vi.getTimerCount(), frames.watching(), net.listeners]).toEqual([[], 0, 0, 0]);
  });
});

describe("a step of a job", () => {
  test("a refused stream of its task is opened again from where it was, and closed at its end", async () => {
    const net = new Net({ "GET /sessions/s1": SESSION("Write") });
    const step = stepOf();
    await tick();
    net.open[0]!.send({ pos: 5, time: NOW, event: { type: "task.session.started", session: "s1", model: "m", driving: false } });
    await tick(100);
    net.open.find(({ channel }) => channel === "task/t1")!.refuse();
    await tick(500);
    const task = net.open.find(({ channel }) => channel === "task/t1")!;
    expect(new URL(task.url, "http://host").searchParams.get("after")).toBe("5");
    task.send({ pos: 6, time: NOW, event: { type: "task.ended" } });
    expect(net.open.map(({ channel }) => channel)).toEqual(["/v1/sessions/s1/events"]);
    step.leave();
    expect([net.open.length, net.listeners, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });

  test.each(["fork", "resume"] as const)("a failed %s is shown", async (what) => {
    const net = new Net({ "GET /sessions/s1": SESSION("Write") });
    const step = stepOf();
    document.body.replaceChildren(step.element);
    await tick();
    net.open[0]!.send({ pos: 5, time: NOW, event: { type: "task.session.started", session: "s1", model: "m", driving: false } });
    await tick(100);
    net.failing = [502];
    const { acts } = (step as unknown as { conversation: { acts: { fork(turn: string): void; resume(): void } } }).conversation;
    acts[what]("t1");
    await tick(100);
    expect(document.querySelector('[role="alert"]')!.textContent).toBe("The host answered with status 502.");
    step.leave();
  });
});

describe("focus and presses", () => {
  test("a running job is rendered every second: the button with the focus and the pressed one stay the same element", async () => {
    const { net, frames, open } = begin("job");
    const opened = open();
    await tick(100);
    net.open[0]!.send(STARTED);
    net.open[0]!.send(RUNS);
    await tick(100);
    const buttons = () => [...document.querySelectorAll<HTMLElement>(".job button, .job summary, .job svg, .job select")];
    const [before, clock] = [buttons(), () => document.querySelector(".tn-time")!.textContent];
    const step = document.querySelector<HTMLElement>('.tn[data-work="1"]')!;
    step.focus();
    const first = clock();
    for (let second = 0; second < 5; second++) {
      await tick(1000);
      frames.board.changed();
    }
    expect(clock()).not.toBe(first);
    expect(buttons()).toEqual(before);
    buttons().forEach((button, index) => expect(button).toBe(before[index]));
    expect(document.activeElement).toBe(step);
    opened.leave?.();
  });

  test("a step that has not run, and back: its conversation is shown again", async () => {
    const { net, open } = begin("job");
    const opened = open() as JobView;
    await tick(100);
    net.open[0]!.send(STARTED);
    net.open[0]!.send(RUNS);
    await tick(100);
    opened.select("1");
    expect(document.querySelector(".job-step")!.textContent).toContain("This step has not run yet.");
    expect(net.open.map(({ channel }) => channel)).toEqual(["job/j1"]);
    opened.select("0");
    expect(document.querySelector(".job-step .step-view")).not.toBeNull();
    opened.leave();
  });
});

describe("the inbox", () => {
  const answersOf = (net: Net) => net.calls.filter((call) => call === "GET /inbox").length;

  test("one failed request: it asks again, and the text about it disappears", async () => {
    const { net, open } = begin("inbox");
    net.failing = ["offline", "offline"];
    const opened = open();
    await tick(100);
    const trouble = document.querySelector<HTMLElement>(".trouble")!;
    expect([trouble.hidden, trouble.textContent]).toEqual([false, "The host cannot be reached."]);
    await tick(WAIT);
    expect([trouble.hidden, answersOf(net)]).toEqual([true, 2]);
    expect(document.querySelector(".card h2")!.textContent).toContain("Which q1?");
    opened.leave?.();
  });

  test("an answer that was requested before a card was answered does not bring the card back", async () => {
    const { view, net, frames, open } = begin("inbox");
    Object.assign(net.answers, { "GET /inbox": INBOX("q1", "q2"), "POST /questions/q1": {} });
    const opened = open();
    await tick(100);
    const field = document.querySelector<HTMLTextAreaElement>(".card textarea, .card input")!;
    net.hold();
    view.change(net, frames, 1);
    await tick(100);
    const before = net.waiting;
    expect(before).toBeGreaterThan(0);
    field.value = "blue";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    [...document.querySelectorAll<HTMLButtonElement>(".card button")].find(({ textContent }) => /Answer|Send/.test(textContent ?? ""))!.click();
    await net.release("reversed");
    await tick(500);
    expect(document.querySelector(".card h2")!.textContent).toContain("Which q2?");
    expect(document.body.textContent).not.toContain("Which q1?");
    opened.leave?.();
  });

  test("something new arrives while a person writes an answer: field, text and focus stay, and so do the other rows", async () => {
    const { view, net, frames, open } = begin("inbox");
    Object.assign(net.answers, { "GET /inbox": INBOX("q1", "q2") });
    const opened = open();
    await tick(100);
    const field = document.querySelector<HTMLTextAreaElement>(".card textarea, .card input")!;
    const row = document.querySelector(".asked")!;
    field.value = "bl";
    field.focus();
    Object.assign(net.answers, { "GET /inbox": INBOX("q1", "q2", "q3") });
    view.change(net, frames, 1);
    await tick(100);
    expect(document.body.textContent).toContain("Which q3?");
    expect([document.activeElement === field, field.isConnected, field.value]).toEqual([true, true, "bl"]);
    expect(document.querySelector(".asked")).toBe(row);
    opened.leave?.();
  });
});
