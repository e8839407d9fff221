import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SessionView } from "../src/session";
import { sibling, sorted } from "../src/setup";
import { FakeHost } from "./host";

let host: FakeHost;
const gone = vi.fn();

beforeEach(() => {
  const html = readFileSync("index.html", "utf8");
  document.body.innerHTML = /<body>([\s\S]*)<\/body>/.exec(html)![1]!;
  host = new FakeHost();
  host.answers.set("copilot/task", { tasks: [{ name: "greet", requireUserInput: false }, { name: "plan", requireUserInput: true }] });
  host.answers.set("copilot/session/s/query", {});
  host.answers.set("copilot/task/start/greet/session/s", { taskId: "t" });
  host.push("session/s", { callback: "somethingUnknown" });
  gone.mockReset();
});
afterEach(() => {
  host.close("session/s", "SessionClosed");
  vi.unstubAllGlobals();
});

const get = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector)!;
const send = () => get<HTMLButtonElement>("#send-button");
const awaiting = () => get(".session-response-awaiting").style.display === "block";
const headers = () => [...document.querySelectorAll(".message-block-header span")].map((each) => each.textContent);
const write = (text: string) => (get<HTMLTextAreaElement>("#request-textarea").value = text);
const ctrlEnter = () => get("#request-textarea").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
const notices = () => [...document.querySelectorAll(".session-response-notice")].map((each) => each.textContent);
const idle = { callback: "onIdle" };

test("a question and its answer", async () => {
  new SessionView("s", gone);
  expect(get("#session-ui").style.display).toBe("flex");
  write("hello");
  ctrlEnter();
  expect(send().disabled).toBe(true);
  expect(awaiting()).toBe(true);
  expect(get<HTMLTextAreaElement>("#request-textarea").value).toBe("");
  expect(headers()).toEqual(["User"]);
  await vi.waitFor(() => expect(host.calls).toContainEqual({ path: "copilot/session/s/query", body: "hello" }));
  host.push("session/s", { callback: "onUserPrompt", prompt: "hello" }, { callback: "onMessage", messageId: "1", delta: "Hi" });
  await vi.waitFor(() => expect(headers()).toEqual(["User", "Message [receiving...]"]));
  expect(send().disabled).toBe(true);
  host.push("session/s", { callback: "onEndMessage", messageId: "1", completeContent: "Hi" }, idle);
  await vi.waitFor(() => expect(send().disabled).toBe(false));
  expect(awaiting()).toBe(false);
});

test("an empty text is not sent, and nothing is while the agent works", async () => {
  new SessionView("s", gone);
  write("  ");
  ctrlEnter();
  expect(headers()).toEqual([]);
  write("one");
  send().click();
  write("two");
  ctrlEnter();
  expect(headers()).toEqual(["User"]);
  expect(host.paths("/query")).toHaveLength(1);
});

test("a failed query says so and gives Send back", async () => {
  new SessionView("s", gone);
  write("hello");
  send().click();
  host.push("session/s", { sessionError: "Error: the agent died" });
  await vi.waitFor(() => expect(notices()).toEqual(["Error: the agent died"]));
  expect(send().disabled).toBe(false);
  expect(awaiting()).toBe(false);
});

test("a query that did not get through gives the words back, too", async () => {
  host.answers.set("copilot/session/s/query", { error: "SessionNotFound" });
  new SessionView("s", gone);
  write("precious words");
  send().click();
  await vi.waitFor(() => expect(send().disabled).toBe(false));
  expect(get<HTMLTextAreaElement>("#request-textarea").value).toBe("precious words");
  expect(notices()[0]).toContain("SessionNotFound");
});

test("a task without input needs no text, and only its end gives Send back", async () => {
  new SessionView("s", gone);
  await vi.waitFor(() => expect(get<HTMLSelectElement>("#task-select").options).toHaveLength(3));
  expect(get<HTMLSelectElement>("#task-select").options[0]!.text).toBe("(none)");
  get<HTMLSelectElement>("#task-select").value = "plan";
  send().click();
  expect(send().disabled).toBe(false);
  get<HTMLSelectElement>("#task-select").value = "greet";
  host.push("task/t");
  send().click();
  host.push("session/s", { callback: "onGeneratedUserPrompt", prompt: "greet them" }, idle);
  await vi.waitFor(() => expect(headers()).toEqual(["User (Task)"]));
  expect(send().disabled).toBe(true);
  host.push("task/t", { callback: "taskSucceeded" });
  await vi.waitFor(() => expect(send().disabled).toBe(false));
});

test("a failed task says why", async () => {
  new SessionView("s", gone);
  await vi.waitFor(() => expect(get<HTMLSelectElement>("#task-select").options).toHaveLength(3));
  get<HTMLSelectElement>("#task-select").value = "greet";
  host.push("task/t", { callback: "taskDecision", reason: "[TASK FAILED] no greeting" }, { callback: "taskFailed" });
  send().click();
  await vi.waitFor(() => expect(notices()[0]).toContain("[TASK FAILED] no greeting"));
  expect(send().disabled).toBe(false);
});

test("after a reload both sides are there, and another browser's words appear", async () => {
  host.push(
    "session/s",
    { callback: "onUserPrompt", prompt: "earlier" },
    { callback: "onEndMessage", messageId: "1", completeContent: "answer" },
    idle,
    { callback: "onUserPrompt", prompt: "from elsewhere" },
    { callback: "onAgentStart", turnId: "2" },
  );
  new SessionView("s", gone);
  await vi.waitFor(() => expect(headers()).toEqual(["User", "Message", "User"]));
  expect(send().disabled).toBe(true);
});

test("a session nobody knows leads back to the start", async () => {
  new SessionView("unknown", gone);
  await vi.waitFor(() => expect(gone).toHaveBeenCalled());
});

test("a long history is there in pages, in order", async () => {
  const list = Array.from({ length: 300 }, (_, at) => ({ callback: "onEndMessage", messageId: String(at), completeContent: `message ${at}` }));
  host.push("session/s", ...list, { sessionError: "at the end" });
  new SessionView("s", gone);
  await vi.waitFor(() => expect(headers()).toHaveLength(300));
  expect([...document.querySelectorAll(".message-block-body")].map((each) => each.textContent)).toEqual(list.map(({ completeContent }) => completeContent));
  expect(document.querySelectorAll(".message-page").length).toBeGreaterThan(0);
});

test("models are sorted by name, and a project lies beside the repository", () => {
  const models = [{ name: "b", id: "1", multiplier: 1 }, { name: "A", id: "2", multiplier: 1 }];
  expect(sorted(models).map(({ name }) => name)).toEqual(["A", "b"]);
  expect(sibling("/home/me/repo", "other")).toBe("/home/me/other");
  expect(sibling("C:\\Code\\repo", "other")).toBe("C:\\Code\\other");
});
