import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { filesView } from "../src/conversation/files";
import { grantsOf } from "../src/conversation/grants";
import type { CallPart, SessionState } from "../src/conversation/state";
import type { ChangedFile, Changes, Grant } from "../src/v1";

const state: SessionState = { id: "s", agent: "loop", model: "m", cwd: "/w", pos: 1, turns: [] };
const file = (path: string, more: Partial<ChangedFile> = {}): ChangedFile => ({ path, status: "modified", added: 2, removed: 1, binary: false, ...more });
const shown = (changes: Changes, turn = "") => {
  const view = document.createElement("div");
  view.append(...filesView(state, changes, turn));
  return view;
};
const asked: string[] = [];

beforeEach(() => {
  asked.length = 0;
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return new Response("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n");
  });
});
afterEach(() => vi.unstubAllGlobals());

test("a folder without git says so, and tells what the calls told", () => {
  const view = shown({ git: false, files: [] });
  expect(view.textContent).toMatch(/not in a git work tree.*None\./s);
});

test("nothing changed, in words for a turn and for the session", () => {
  expect(shown({ git: true, files: [] }).textContent).toMatch(/since the session began/);
expect(shown({ git: true, files: [] }, "t1").textContent).toBe("This turn has changed no file.");
});

test("what was not captured is not called unchanged: the calls tell it", () => {
  const call: CallPart = { part: "call", id: "c", tool: "write", title: "Write", kind: "edit", done: true, ok: true, content: [{ type: "diff", path: "/w/a.py", old: "", new: "x" }] };
  const turns = [{ id: "t1", message: { text: "go" }, by: "token:owner", started: 0, parts: [call] }];
  const view = document.createElement("div");
  view.append(...filesView({ ...state, turns }, { git: true, files: [], note: "The beginning of this turn was not captured." }, "t1"));
  expect(view.textContent).toMatch(/^The beginning of this turn was not captured\. Only what the agent itself showed/);
  expect(view.querySelector(".file summary")?.textContent).toBe("a.py");
});

test("files with what happened to them; the diff is asked for when it is opened", async () => {
  const files = [file("a.py"), file("b.png", { binary: true, status: "added" }), file("d.py", { status: "renamed", from: "c.py" }), file("e.py", { status: "deleted" })];
  const view = shown({ git: true, files, cut: true }, "t1");
  expect(view.querySelector("p")?.textContent).toBe("4 files and more, +8 −4");
  expect([...view.querySelectorAll("summary")].map((each) => each.textContent)).toEqual(["a.py+2 −1", "b.pngnewbinary", "c.py → d.pyrenamed+2 −1", "e.pydeleted+2 −1"]);
  expect(asked).toEqual([]);
  const [first, second] = view.querySelectorAll("details");
  first!.open = true;
  first!.dispatchEvent(new Event("toggle"));
  await vi.waitFor(() => expect(first!.querySelector(".diff-added")?.textContent).toBe("+new\n"));
  expect(asked).toEqual(["./v1/sessions/s/changes/diff?path=a.py&turn=t1"]);
  second!.open = true;
  second!.dispatchEvent(new Event("toggle"));
  expect(second!.textContent).toMatch(/no diff to read/);
});

test("only the answers that can meet a call of this session", () => {
  const grant = (id: string, more: Partial<Grant>): Grant => ({ id, agent: "loop", tool: "shell", allow: true, expires: 1, ...more });
  const all = [grant("own", { session: "s" }), grant("other", { session: "t" }), grant("project", { project: "/w" }), grant("sibling", { project: "/w-evil" }), grant("agent", { agent: "x", session: "s" })];
  expect(grantsOf(state, all).map(({ id }) => id)).toEqual(["own", "project"]);
});
