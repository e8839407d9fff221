import { beforeEach, describe, expect, it, test } from "vitest";
import { SessionResponseRenderer } from "../src/sessionResponse";

let div: HTMLDivElement;
let renderer: SessionResponseRenderer;

beforeEach(() => {
  div = document.createElement("div");
  renderer = new SessionResponseRenderer(div);
});

const blocks = () => [...div.querySelectorAll<HTMLElement>(".message-block")];
const headers = () => blocks().map((block) => block.querySelector("span")!.textContent);
const bodies = () => blocks().map((block) => block.querySelector(".message-block-body")!.textContent);
const play = (...elements: Parameters<SessionResponseRenderer["processCallback"]>[0][]) => elements.map((each) => renderer.processCallback(each));

test("the container is marked and waits quietly", () => {
  expect(div.classList.contains("session-response-container")).toBe(true);
  const awaiting = div.querySelector<HTMLElement>(".session-response-awaiting")!;
  expect(awaiting.textContent).toBe("Awaits responses ...");
  expect(awaiting.style.display).toBe("none");
  renderer.setAwaiting(true);
  expect(awaiting.style.display).toBe("block");
  renderer.addUserMessage("hello");
  expect(div.lastElementChild).toBe(awaiting);
  renderer.setAwaiting(false);
  expect(awaiting.style.display).toBe("none");
});

test("every callback is named, also those that show nothing", () => {
  const names = play({ callback: "onAgentStart", turnId: "1" }, { callback: "onIdle" }, { callback: "somethingNew" }, { sessionError: "x" });
  expect(names).toEqual(["onAgentStart", "onIdle", "somethingNew", undefined]);
});

test("one turn: reasoning, a tool and a message, told in pieces", () => {
  play(
    { callback: "onStartReasoning", reasoningId: "1" },
    { callback: "onReasoning", reasoningId: "1", delta: "thi" },
    { callback: "onStartMessage", messageId: "1" },
    { callback: "onReasoning", reasoningId: "1", delta: "nk" },
    { callback: "onMessage", messageId: "1", delta: "Hel" },
  );
  expect(headers()).toEqual(["Reasoning [receiving...]", "Message [receiving...]"]);
  expect(bodies()).toEqual(["think", "Hel"]);
  play(
    { callback: "onEndReasoning", reasoningId: "1", completeContent: "thinking" },
    { callback: "onEndMessage", messageId: "1", completeContent: "Hello" },
  );
  expect(headers()).toEqual(["Reasoning", "Message"]);
  expect(bodies()).toEqual(["thinking", "Hello"]);
});

describe("tools", () => {
  const start = { callback: "onStartToolExecution", toolCallId: "t", toolName: "bash", toolArguments: '{\n  "command": "ls"\n}' };
  it("has the name as title and arguments, output and result as body", () => {
    play(start, { callback: "onToolExecution", toolCallId: "t", delta: "a.txt" });
    expect(headers()).toEqual(["Tool (bash) [receiving...]"]);
    play({ callback: "onEndToolExecution", toolCallId: "t", result: { content: "1 file", detailedContent: "a.txt 3 B" } });
    expect(headers()).toEqual(["Tool (bash)"]);
    expect(bodies()).toEqual(['{\n  "command": "ls"\n}\na.txt\nResult: 1 file\nDetails: a.txt 3 B\n']);
  });
  it("says what went wrong", () => {
    play(start, { callback: "onEndToolExecution", toolCallId: "t", error: { message: "no such tool", code: "E" } });
    expect(bodies()[0]).toContain("Error: no such tool");
    expect(blocks()[0]!.classList.contains("completed")).toBe(true);
  });
});

test("unknown ids create their block", () => {
  play(
    { callback: "onMessage", messageId: "m", delta: "x" },
    { callback: "onEndReasoning", reasoningId: "r", completeContent: "y" },
    { callback: "onToolExecution", toolCallId: "t", delta: "z" },
  );
  expect(headers()).toEqual(["Message [receiving...]", "Reasoning", "Tool [receiving...]"]);
});

test("a message without a word leaves no empty block", () => {
  play(
    { callback: "onEndMessage", messageId: "1", completeContent: "" },
    { callback: "onStartMessage", messageId: "2" },
    { callback: "onEndMessage", messageId: "2", completeContent: "" },
  );
  expect(blocks()).toHaveLength(0);
});

test("an id used again makes a new block", () => {
  for (const completeContent of ["one", "two"]) {
    play({ callback: "onStartMessage", messageId: "1" }, { callback: "onEndMessage", messageId: "1", completeContent });
  }
  expect(bodies()).toEqual(["one", "two"]);
});

test("a task's prompt is a User block titled Task", () => {
  play({ callback: "onGeneratedUserPrompt", prompt: "do it" });
  renderer.addUserMessage("why", "TaskDecision");
  expect(headers()).toEqual(["User (Task)", "User (TaskDecision)"]);
  expect(bodies()).toEqual(["do it", "why"]);
});

test("a failed query is said on the page", () => {
  play({ sessionError: "the agent died" });
  expect(div.querySelector('[role="alert"]')!.textContent).toBe("the agent died");
});

test("cleared, it begins anew", () => {
  play({ callback: "onMessage", messageId: "m", delta: "x" }, { sessionError: "e" });
  renderer.clear();
  expect(blocks()).toHaveLength(0);
  play({ callback: "onMessage", messageId: "m", delta: "y" });
  expect(bodies()).toEqual(["y"]);
  expect(div.lastElementChild!.className).toBe("session-response-awaiting");
});

test("what two streams say stands in the order of the log, whichever arrives first", () => {
  renderer.addUserMessage("started", "TaskDecision", 2);
  renderer.addUserMessage("failed", "TaskDecision", 9);
  play(
    { callback: "onGeneratedUserPrompt", prompt: "go", seq: 4 },
    { callback: "onStartMessage", messageId: "1", seq: 5 },
    { callback: "onEndMessage", messageId: "1", completeContent: "done", seq: 6 },
    { callback: "onGeneratedUserPrompt", prompt: "again", seq: 11 },
  );
  renderer.addUserMessage("passed", "TaskDecision", 10);
  renderer.addUserMessage("a word of a person");
  expect(bodies()).toEqual(["started", "go", "done", "failed", "passed", "again", "a word of a person"]);
});
