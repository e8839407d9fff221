/** A row of the list, what can be done with it, and a turn that waits for its place. */

import { render } from "../src/render";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { awayNotices } from "../src/app/awayNotices";
import { type Entry, entryOfJob, entryOfSession, fits, grouped, groupOf, type JobRow, moves, type Row, type State } from "../src/app/entries";
import { mark, RowView } from "../src/app/row";
import { openRowMenu } from "../src/app/rowMenu";
import { openShare, shareWords } from "../src/app/share";
import { V1Host } from "./v1Host";
import { ReadJobs } from "../src/app/readJobs";

const NOW = Date.now();
const row = (more: Partial<Row["session"]> = {}, rest: Partial<Row> = {}): Row => ({ session: { id: "s1", agent: "codex", model: "m", cwd: "/w/api", title: "Fix it", status: "idle", created: 0, modified: NOW, turns: 1, ...more }, ...rest });
const entry = (more: Partial<Row["session"]> = {}, rest: Partial<Row> = {}): Entry => entryOfSession(row(more, rest));
const running: JobRow = { id: "j1", name: "Release", status: "running", started: 1, cwd: "/w", works: [{ work: 0, name: "a", task: "t1", status: "running", started: 1 }, { work: 1, name: "b", task: "t2", status: "running", started: 1 }] };
const step = (task: string, rest: Partial<Row> = {}) => row({ id: task, by: `task:${task}`, status: "running" }, rest);
const titleOf = (id: string) => ({ s9: "Flaky test" })[id];

describe("a turn that waits for a place", () => {
  test.each<[string, Row, string]>([
    ["names whom it starts after", row({ status: "running" }, { queued: true, after: "s9" }), "Starts after Flaky test"],
    ["does not name what is not in the list", row({ status: "running" }, { queued: true, after: "s8" }), "Waiting for a free place"],
    ["does not name what nobody knows", row({ status: "running" }, { queued: true }), "Waiting for a free place"],
  ])("%s", (_, given, line) => {
    const found = entryOfSession(given, undefined, titleOf);
    expect([found.state, found.line, groupOf(found, NOW), moves(found), fits(found, "is:queued"), fits(found, "is:working")]).toEqual(["queued", line, "work", true, true, false]);
  });

  test("of a session that has ended or asks says nothing", () => {
    expect(entry({}, { queued: true }).state).toBe("done");
    expect(entry({ status: "waiting" }, { queued: true, activity: "Wants to run make", waiting: [{ id: "a", kind: "approval", text: "" }] })).toMatchObject({ state: "need", line: "Wants to run make" });
  });

  test("a job waits where every step of it does", () => {
    expect(entryOfJob(running, [step("t1", { queued: true, after: "s9" }), step("t2", { queued: true })], titleOf)).toMatchObject({ state: "queued", line: "Starts after Flaky test" });
    expect(entryOfJob(running, [step("t1", { queued: true }), step("t2")])).toMatchObject({ state: "work", line: "Working on b" });
    expect(entryOfJob(running, []).state).toBe("work");
    expect(entryOfJob({ ...running, status: "failed" }, [step("t1", { queued: true })]).state).toBe("failed");
  });

  test("stands below what works, in the order of the queue", () => {
    const at = (key: string, state: State, time: number, since: number): Entry => ({ ...entry(), key, state, time, since });
    const all = [at("third", "queued", 9, 3), at("older", "work", 1, 1), at("second", "queued", 8, 2), at("newer", "work", 5, 1)];
    expect(grouped(all, NOW).get("work")!.map(({ key }) => key)).toEqual(["newer", "older", "second", "third"]);
  });

  test("has a mark of its own with a word", () => {
    const shown = (state: State) => {
      const place = document.createElement("div");
      render(mark(state), place);
      return [place.textContent, place.querySelector(".spin") !== null];
    };
    expect([shown("queued"), shown("work")]).toEqual([["Queued", false], ["Working", true]]);
  });

  test.each<[State, State, number]>([
    ["work", "queued", 0],
    ["queued", "work", 0],
    ["queued", "done", 1],
    ["work", "failed", 1],
    ["done", "queued", 0],
  ])("somebody away hears of %s to %s: %i", (before, after, count) => {
    expect(awayNotices(new Map([["s/s1", before]]), [{ ...entry(), state: after }])).toHaveLength(count);
  });
});

let host: V1Host;
const closed = vi.fn();
const opener = () => document.getElementById("opener")!;
const items = () => [...document.querySelectorAll<HTMLElement>("[role=menuitem]")];
const texts = () => items().map((each) => each.textContent);
const choose = (text: string) => items().find((each) => each.textContent === text)!.click();
const press = (key: string) => (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const settled = () => vi.waitFor(() => expect(host.calls.length).toBeGreaterThan(0));

beforeEach(() => {
  document.body.innerHTML = '<button id="opener"></button><button id="other"></button>';
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
  host = new V1Host({ "PATCH /sessions/s1": {}, "POST /sessions/s1/resume": {}, "POST /sessions/s1/fork": { id: "s2" }, "DELETE /sessions/s1": {}, "POST /jobs/j1/resume": { job: "j1" }, "POST /jobs/j1/retry": { job: "j2" }, "POST /jobs/j1/stop": {} });
  window.history.replaceState(null, "", "/app");
  closed.mockReset();
});
afterEach(() => {
  vi.unstubAllGlobals();
  window.history.replaceState(null, "", "/"); // other files of this worker share the window
});

describe("more of a row", () => {
  const job = (status: JobRow["status"]) => entryOfJob({ ...running, status }, []);
  test.each<[string, Entry, string[]]>([
    ["done", entry(), ["Rename", "Mark as unread", "Archive", "Continue in a copy", "Copy the link", "Delete…"]],
    ["unread", entry({ read: false }), ["Rename", "Mark as read", "Archive", "Continue in a copy", "Copy the link", "Delete…"]],
    ["archived", entry({ archived: true }), ["Rename", "Mark as unread", "Take out of the archive", "Continue in a copy", "Copy the link", "Delete…"]],
    ["interrupted", entry({ interrupted: true }), ["Resume", "Rename", "Mark as unread", "Archive", "Continue in a copy", "Copy the link", "Delete…"]],
    ["failed", entry({ status: "failed" }), ["Resume", "Rename", "Mark as unread", "Archive", "Continue in a copy", "Copy the link", "Delete…"]],
    ["working", entry({ status: "running" }), ["Rename", "Continue in a copy", "Copy the link", "Delete…"]],
    ["waiting for a place", entry({ status: "running" }, { queued: true }), ["Rename", "Continue in a copy", "Copy the link", "Delete…"]],
    ["somebody's own", entry({ owner: "ann" }), ["Rename", "Mark as unread", "Archive", "Continue in a copy", "Copy the link", "Share…", "Delete…"]],
    ["a running job", job("running"), ["Copy the link", "Stop…"]],
    ["a failed job", job("failed"), ["Resume", "Run again", "Copy the link"]],
    ["a stopped job", job("canceled"), ["Resume", "Run again", "Copy the link"]],
    ["a job that is done", job("succeeded"), ["Run again", "Copy the link"]],
  ])("that is %s", (_, given, wanted) => {
    openRowMenu(given, opener(), closed);
    expect(texts()).toEqual(wanted);
  });

  test.each<[string, Entry, string, object | undefined]>([
    ["Mark as unread", entry(), "PATCH /sessions/s1", { read: false }],
    ["Mark as read", entry({ read: false }), "PATCH /sessions/s1", { read: true }],
    ["Archive", entry(), "PATCH /sessions/s1", { archived: true }],
    ["Take out of the archive", entry({ archived: true }), "PATCH /sessions/s1", { archived: false }],
    ["Resume", entry({ interrupted: true }), "POST /sessions/s1/resume", {}],
    ["Run again", job("failed"), "POST /jobs/j1/retry", {}],
  ])("%s asks the host for it", async (text, given, call, body) => {
    openRowMenu(given, opener(), closed);
    choose(text);
    await settled();
    expect([host.calls, host.bodies.get(call)]).toEqual([[call], body]);
    expect(items()).toEqual([]);
  });

  test("a copy opens; so does a job that begins again", async () => {
    openRowMenu(entry(), opener(), closed);
    choose("Continue in a copy");
    await vi.waitFor(() => expect(window.location.pathname).toMatch(/\/app\/s\/s2$/));
    openRowMenu(job("failed"), opener(), closed);
    choose("Run again");
    await vi.waitFor(() => expect(window.location.pathname).toMatch(/\/app\/j\/j2$/));
  });

  test.each([
    ["Delete…", entry(), "DELETE /sessions/s1", "Delete"],
    ["Stop…", job("running"), "POST /jobs/j1/stop", "Stop the job"],
  ])("%s asks first", async (text, given, call, word) => {
    openRowMenu(given, opener(), closed);
    choose(text);
    expect([document.querySelector("dialog")!.open, host.calls]).toEqual([true, []]);
    [...document.querySelectorAll<HTMLElement>("dialog .danger")].find((each) => each.textContent === word)!.click();
    await settled();
    expect(host.calls).toEqual([call]);
  });

  test("a refusal is said", async () => {
    host.answers["PATCH /sessions/s1"] = 403;
    openRowMenu(entry(), opener(), closed);
    choose("Archive");
    await vi.waitFor(() => expect(document.querySelector("dialog[open]")?.textContent).toContain("refused with 403"));
  });

  test("keys: arrows go round, Home and End to the ends, Escape and Tab back to the row", () => {
    openRowMenu(entry(), opener(), closed);
    const at = () => texts()[items().indexOf(document.activeElement as HTMLElement)];
    expect(at()).toBe("Rename");
    const seen = ["ArrowUp", "ArrowDown", "ArrowDown", "End", "Home"].map((key) => (press(key), at()));
    expect(seen).toEqual(["Delete…", "Rename", "Mark as unread", "Delete…", "Rename"]);
    expect([document.querySelector("[role=menu]")!.getAttribute("aria-label"), opener().getAttribute("aria-expanded")]).toEqual(["More of Fix it", "true"]);
    press("Escape");
    expect([items().length, closed.mock.calls.length, opener().getAttribute("aria-expanded")]).toEqual([0, 1, "false"]);
    openRowMenu(entry(), opener(), closed);
    press("Tab");
    expect([items().length, closed.mock.calls.length]).toEqual([0, 2]);
  });

  test("letters are no keys of the page while it is open", () => {
    const heard = vi.fn();
    document.addEventListener("keydown", heard);
    openRowMenu(entry(), opener(), closed);
    press("y");
    document.removeEventListener("keydown", heard);
    expect(heard).not.toHaveBeenCalled();
  });

  test.each(["pointerdown", "focusin", "scroll", "resize"])("%s elsewhere closes it, and the focus stays there", (type) => {
    openRowMenu(entry(), opener(), closed);
    items()[0]!.dispatchEvent(new Event(type, { bubbles: true }));
    expect(items().length).toBeGreaterThan(0);
    document.getElementById("other")!.dispatchEvent(new Event(type, { bubbles: true }));
    expect([items().length, closed.mock.calls.length]).toEqual([0, 0]);
  });
});

describe("the row itself", () => {
  const view = (given: Entry, pinned = false) => {
    const found = new RowView(() => undefined, () => undefined, () => undefined, (agent) => agent);
    found.update(given, pinned);
    return [...found.element.querySelectorAll(".row-acts button")].map((each) => each.getAttribute("aria-label"));
  };
  test.each<[string, Entry, boolean, string[]]>([
    ["done", entry(), false, ["Pin Fix it", "Archive Fix it", "More of Fix it"]],
    ["pinned", entry(), true, ["Unpin Fix it", "Archive Fix it", "More of Fix it"]],
    ["archived", entry({ archived: true }), false, ["Pin Fix it", "Unarchive Fix it", "More of Fix it"]],
    ["interrupted", entry({ interrupted: true }), false, ["Resume Fix it", "Pin Fix it", "Archive Fix it", "More of Fix it"]],
    ["working", entry({ status: "running" }), false, ["Pin Fix it", "More of Fix it"]],
    ["a job", entryOfJob(running, []), false, ["Pin Release", "More of Release"]],
  ])("%s has these buttons, with names", (_, given, pinned, wanted) => expect(view(given, pinned)).toEqual(wanted));
});

describe("sharing", () => {
  test.each([
    ["ben", ["read"], "ben may read"],
    ["ben", ["drive"], "ben may read and write to the agent"],
    ["*", ["approve"], "Everybody may read and answer what it asks"],
    ["ben", ["approve", "drive"], "ben may do everything but share and delete"],
    ["ben", ["read", "drive", "approve"], "ben may do everything but share and delete"],
  ])("%s with %j", (person, rights, wanted) => expect(shareWords(person, rights)).toBe(wanted));

  test("says who sees it, gives and takes back", async () => {
    host.answers["POST /sessions/s1/share"] = { shares: { ben: ["drive"] } };
    host.answers["POST /sessions/s1/unshare"] = {};
    openShare("s1", "Fix it", {});
    const box = document.querySelector("dialog")!;
    expect(box.querySelector(".shares")!.textContent).toBe("Only you and the admins see it.");
    box.querySelector("input")!.value = " ben ";
    box.querySelector("select")!.value = "drive";
    box.querySelector("form")!.dispatchEvent(new Event("submit", { cancelable: true }));
    await vi.waitFor(() => expect(box.querySelector(".share span")?.textContent).toBe("ben may read and write to the agent"));
    expect(host.bodies.get("POST /sessions/s1/share")).toEqual({ person: "ben", rights: ["drive"] });
    box.querySelector<HTMLElement>('[aria-label="Take back from ben"]')!.click();
    await vi.waitFor(() => expect(box.querySelector(".share")).toBeNull());
    expect(host.bodies.get("POST /sessions/s1/unshare")).toEqual({ person: "ben" });
    host.answers["POST /sessions/s1/share"] = 404;
    box.querySelector("form")!.dispatchEvent(new Event("submit", { cancelable: true }));
    await vi.waitFor(() => expect(box.querySelector("[role=alert]")!.textContent).toBe("refused with 404"));
  });
});

describe("finished jobs are unread until they are opened in this browser", () => {
  const job = (id: string, ended?: number) => ({ id, ...(ended === undefined ? {} : { ended }) });

  test("what ended before the first visit, or still runs, is not new", () => {
    localStorage.clear();
    const jobs = new ReadJobs();
    expect([job("old", Date.now() - 1_000), job("runs"), job("new", Date.now() + 1_000)].map((each) => jobs.isUnread(each))).toEqual([false, false, true]);
  });

  test("a job that was opened stays read after a reload, and only the last 200 are remembered", () => {
    localStorage.clear();
    const jobs = new ReadJobs();
    const ended = Date.now() + 1_000;
    for (let number = 0; number < 250; number++) jobs.markRead(`j${number}`);
    const later = new ReadJobs();
    expect(["j249", "j0", "other"].map((id) => later.isUnread(job(id, ended)))).toEqual([false, true, true]);
  });

  test("the row of a job has a dot, and no name of an agent", () => {
    const view = new RowView(() => undefined, () => undefined, () => undefined, (agent) => agent);
    view.update({ ...entry(), key: "j/j1", kind: "job", agent: "job", folder: "pop", unread: true }, false);
    expect([view.element.querySelector(".dot") !== null, view.element.querySelector(".where")?.textContent]).toEqual([true, "pop"]);
  });
});

test("an update of a row keeps its elements: focus and a press between down and up stay", () => {
  const view = new RowView(() => undefined, () => undefined, () => undefined, (agent) => agent);
  document.body.replaceChildren(view.element);
  view.update({ ...entry(), state: "work", line: "Writing" }, false);
  const [link, pin] = [view.element.querySelector<HTMLElement>(".entry")!, view.element.querySelector<HTMLElement>(".row-acts button")!];
  pin.focus();
  view.update({ ...entry(), state: "work", line: "Running tests" }, true);
  view.select(true);
  expect([view.element.querySelector(".entry"), document.activeElement, link.querySelector(".act")?.textContent, link.getAttribute("aria-current"), pin.title]).toEqual([link, pin, "Running tests", "true", "Unpin"]);
});
