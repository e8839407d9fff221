/** Rows of tool calls (src/conversation/callRows.ts): what a reader sees of a call, and what stays while it runs. */

import { beforeAll, describe, expect, test, vi } from "vitest";
import { CallRow, LookRow } from "../src/conversation/callRows";
import { loadCards } from "../src/conversation/loadCards";
import type { Actions } from "../src/conversation/pieces";
import type { CallPart } from "../src/conversation/state";

beforeAll(loadCards);

const shown: string[] = [];
const actions = { cwd: () => "/w", attempt: async () => true, wholeChange: (path: string) => shown.push(path), terminal: () => shown.push("terminal") } as unknown as Actions;

function row(call: Partial<CallPart>) {
  const part: CallPart = { part: "call", id: "c", tool: "bash", ...call };
  const found = new CallRow(part, actions);
  const element = found.build();
  document.body.replaceChildren(element);
  const change = (more: Partial<CallPart>) => {
    Object.assign(part, more);
    found.update();
  };
  return { element, change, summary: () => element.querySelector("summary")?.textContent, details: () => element.querySelector<HTMLDetailsElement>("details.call")!, tail: () => element.querySelector<HTMLElement>(".tail")! };
}

const command = (more: Partial<CallPart> = {}): Partial<CallPart> => ({ kind: "execute", input: '{"command":"npm test"}', ...more });
const diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-old\n+new\n+more\n";

describe("the line of a call", () => {
  test.each<[string, Partial<CallPart>, string]>([
    ["a running command", command(), "npm testrunning"],
    ["a finished one, with its time", command({ done: true, ok: true, took: 3_000 }), "npm test3.0 s"],
    ["one with an exit code", command({ done: true, ok: false, exit_code: 2, took: 3_000 }), "npm testexit 23.0 s"],
    ["lines of a command are joined", { kind: "execute", input: '{"command":"a\\nb"}', done: true, ok: true }, "a ⏎ bdone"],
    ["a fetch", { tool: "web_fetch", kind: "fetch", input: '{"url":"https://example.org"}', done: true, ok: true }, "Fetched https://example.orgdone"],
    ["a fetch that failed", { tool: "web_fetch", kind: "fetch", input: '{"url":"https://example.org"}', done: true, ok: false }, "Could not fetch https://example.orgfailed"],
    ["an answer of a judge", { tool: "job_boolean_true", input: '{"reason":"All good."}', done: true, ok: true }, "Answered yes: All good.done"],
    ["a tool with a title of its past", { tool: "x", title: "Indexing", past: "Indexed 3 files", done: true, ok: true }, "Indexed 3 filesdone"],
    ["what no one answered was not done", { tool: "x", done: true, ok: false, denied: true, approvals: [{ id: "a", kind: "", title: "", input: "", expires: 1, options: [], answered: true, by: "timeout" }] }, "xnot done"],
  ])("%s", (_, call, text) => expect(row(call).summary()).toBe(text));

  test("a change names its file; a click on the name shows it in the panel and does not fold the row", () => {
    shown.length = 0;
    const { element, summary, details } = row({ tool: "edit", kind: "edit", done: true, ok: true, content: [{ type: "diff", path: "/w/a.py", new: "new\nmore\n", diff }] });
    expect(summary()?.startsWith("Wrote a.py +2 −1")).toBe(true);
    element.querySelector<HTMLElement>(".file-link")!.click();
    expect([shown, details().open]).toEqual([["/w/a.py"], false]);
  });
});

describe("while it runs", () => {
  test("the line keeps its elements, so focus and a press stay", () => {
    const { element, change, summary } = row(command());
    const [line, title] = [element.querySelector("summary")!, element.querySelector(".call-title code")!];
    line.focus();
    change({ output: "1 passed" });
    change({ done: true, ok: true, took: 12_000 });
    expect([element.querySelector("summary"), element.querySelector(".call-title code"), summary()]).toEqual([line, title, "npm test12 s"]);
  });

  test("the last lines of the output are below it, and inside it when it is open", () => {
    const { change, details, tail } = row(command());
    expect(tail().hidden).toBe(true);
    change({ output: "one\ntwo\nthree\nfour" });
    expect([tail().hidden, tail().textContent?.endsWith("four"), tail().textContent?.includes("one")]).toEqual([false, true, false]);
    details().open = true;
    details().dispatchEvent(new Event("toggle"));
    expect([tail().hidden, details().querySelector(".output .box")?.textContent]).toEqual([true, "one\ntwo\nthree\nfour"]);
  });

  test("an open call keeps its buttons and its input while output arrives", () => {
    const { change, details } = row(command({ output: "one" }));
    details().open = true;
    details().dispatchEvent(new Event("toggle"));
    const [copy, box, input] = [details().querySelector(".output button")!, details().querySelector(".output .box")!, details().querySelector(".box")!];
    change({ output: "one\ntwo" });
    expect([details().querySelector(".output button"), details().querySelector(".output .box"), details().querySelector(".box"), box.textContent]).toEqual([copy, box, input, "one\ntwo"]);
    [...details().querySelectorAll("button")].find(({ textContent }) => textContent === "Open a terminal here")!.click();
    expect(shown.at(-1)).toBe("terminal");
  });

  test("a call that failed shows the reason without a click", () => {
    const { change, tail } = row({ tool: "x" });
    change({ done: true, ok: false, error: { code: "failed", message: "No such file" } });
    expect([tail().textContent, tail().classList.contains("bad")]).toEqual(["No such file", true]);
  });

  test("output of an agent is text: markup and escapes do nothing", () => {
    const { details } = row(command({ output: "\u001b[31m<b>red</b>\u001b[0m" }));
    details().open = true;
    details().dispatchEvent(new Event("toggle"));
    expect([details().querySelector(".output .box b"), details().querySelector(".output .box")?.textContent]).toEqual([null, "<b>red</b>"]);
  });
});

test("a plan counts what is done, and a later version changes only the steps", () => {
  const content = (text: string) => [{ type: "text", text }];
  const { element, change } = row({ tool: "plan", kind: "think", content: content("- [x] Read\n- [>] Write\n- [ ] Test") });
  const list = element.querySelector("ol");
  const steps = () => [...element.querySelectorAll("li")].map(({ className, textContent }) => [className, textContent]);
  expect([element.querySelector("h2")?.textContent, steps()]).toEqual(["Plan, 1 of 3 done", [["done", "✓Read"], ["work", "…Write"], ["todo", "Test"]]]);
  change({ content: content("- [x] Read\n- [x] Write\n- [>] Test") });
  expect([element.querySelector("h2")?.textContent, element.querySelector("ol"), steps()[2]]).toEqual(["Plan, 2 of 3 done", list, ["work", "…Test"]]);
});

describe("looking around", () => {
  const read = (id: string, path: string, more: Partial<CallPart> = {}): CallPart => ({ part: "call", id, tool: "read_file", kind: "read", input: JSON.stringify({ path }), done: true, ok: true, output: `text of ${path}`, ...more });

  test("one is named, several are counted, and each can be opened", () => {
    const looks = new LookRow(read("1", "a.py"), actions);
    const element = looks.build();
    document.body.replaceChildren(element);
    expect(element.querySelector("summary")?.textContent).toContain("Looked at a.py");
    looks.calls.push(read("2", "b.py"), read("3", "c.py", { ok: false, error: { code: "x", message: "gone" } }));
    looks.update();
    expect(element.querySelector("summary")?.textContent).toMatch(/^Looked around: read \d files.*1 failed$/);
    const details = element.querySelector("details")!;
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    expect([...element.querySelectorAll("li .box")].map(({ textContent }) => textContent)).toEqual(["text of a.py", "text of b.py", "text of c.py"]);
  });

  test("an opened result stays open when another file is read", () => {
    const looks = new LookRow(read("1", "a.py"), actions);
    const element = looks.build();
    document.body.replaceChildren(element);
    const details = element.querySelector("details")!;
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    const first = element.querySelector<HTMLDetailsElement>("li details")!;
    first.open = true;
    looks.calls.push(read("2", "b.py"));
    looks.update();
    expect([element.querySelector("li details"), first.open, element.querySelectorAll("li").length]).toEqual([first, true, 2]);
  });

  test("what needs approval is a card below the line, until it is answered", () => {
    const approval = { id: "s.a", kind: "read", title: "", input: "{}", expires: 0, path: "/etc/hosts", options: [{ id: "y", label: "Allow", allow: true }] };
    const call = read("1", "/etc/hosts", { done: false, ok: false, approvals: [approval] });
    const looks = new LookRow(call, actions);
    const element = looks.build();
    expect(element.querySelector(".card.approval h2")?.textContent).toBe("Read /etc/hosts?");
    Object.assign(approval, { answered: true, allowed: true });
    looks.update();
    expect(element.querySelector(".card")).toBeNull();
    vi.restoreAllMocks();
  });
});
