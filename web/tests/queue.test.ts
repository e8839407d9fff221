/** Messages that wait (src/conversation/queue.ts): changed, moved, sent now or removed, while others do the same. */

import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Actions } from "../src/conversation/pieces";
import { QueueView } from "../src/conversation/queue";
import type { SessionState } from "../src/conversation/state";
import { V1Host } from "./v1Host";

const message = (id: string, text: string) => ({ id, kind: "queue" as const, message: { text }, by: "token:owner" });
const state = (...texts: string[]): SessionState => ({ id: "s1", agent: "demo", model: "m", cwd: "/w", pos: 1, queue: texts.map((text, index) => message(`p${index + 1}`, text)) });
const working = (now: SessionState): SessionState => ({ ...now, turns: [{ id: "t", message: { text: "" }, by: "", started: 1 }] });

let view: HTMLElement;
let failed: string[];
let queue: QueueView;
let host: V1Host;

beforeEach(() => {
  view = document.createElement("section");
  document.body.replaceChildren(view);
  failed = [];
  const attempt = async (work: () => Promise<unknown>) => work().then(() => true, (error: Error) => (failed.push(error.message), false));
  queue = new QueueView(view, { attempt } as unknown as Actions);
  host = new V1Host();
});

const texts = () => [...view.querySelectorAll(".queue-text")].map(({ textContent }) => textContent);
const button = (name: string, at = 0) => [...view.querySelectorAll<HTMLElement>("li")][at]!.querySelector<HTMLElement>(`[title="${name}"]`);
const names = (at: number) => [...[...view.querySelectorAll("li")][at]!.querySelectorAll("button")].map(({ title }) => title);

test("it is hidden while nothing waits, and shows the messages in their order", () => {
  queue.update(state());
  expect(view.hidden).toBe(true);
  queue.update(state("first", "second"));
  expect([view.hidden, view.querySelector("h2")?.textContent, texts()]).toEqual([false, "Sent when the agent is done", ["first", "second"]]);
});

test.each<[string, SessionState, number, string[]]>([
  ["the first of several", state("a", "b", "c"), 0, ["Move down", "Edit", "Remove"]],
  ["one in the middle", state("a", "b", "c"), 1, ["Move up", "Move down", "Edit", "Remove"]],
  ["the last", state("a", "b", "c"), 2, ["Move up", "Edit", "Remove"]],
  ["while the agent works", working(state("a")), 0, ["Send now", "Edit", "Remove"]],
])("%s can be changed with its buttons", (_, given, at, wanted) => {
  queue.update(given);
  expect(names(at)).toEqual(wanted);
});

describe("actions are sent to the host", () => {
  test.each<[string, string, number, unknown]>([
    ["Move up", "POST /sessions/s1/queue/order", 1, { order: ["p2", "p1"] }],
    ["Move down", "POST /sessions/s1/queue/order", 0, { order: ["p2", "p1"] }],
    ["Remove", "DELETE /sessions/s1/queue/p2", 1, {}],
  ])("%s", async (name, path, at, body) => {
    queue.update(state("a", "b"));
    button(name, at)!.click();
    await vi.waitFor(() => expect(host.calls).toEqual([path]));
    expect(host.bodies.get(path)).toEqual(body);
  });

  test("a message that the agent does not accept now stays, with the reason", async () => {
    host.answers["POST /sessions/s1/queue/p1/steer"] = { steered: false };
    queue.update(working(state("a")));
    button("Send now")!.click();
    await vi.waitFor(() => expect(failed).toEqual(["This agent accepts no message while it works; it stays in the queue."]));
  });

  test("held messages are released with Continue", async () => {
    host.answers["POST /sessions/s1/queue/release"] = {};
    queue.update({ ...state("a"), held: true });
    expect(view.querySelector("h2")?.textContent).toBe("Held after an interruption");
    view.querySelector<HTMLElement>("header button")!.click();
    await vi.waitFor(() => expect(host.calls).toEqual(["POST /sessions/s1/queue/release"]));
  });

  test("a message that is dropped onto another one takes its place", async () => {
    queue.update(state("a", "b", "c"));
    const [first, , third] = view.querySelectorAll("li");
    third!.dispatchEvent(new Event("dragstart"));
    first!.dispatchEvent(new Event("dragover", { cancelable: true }));
    expect(first!.classList.contains("over")).toBe(true);
    first!.dispatchEvent(new Event("drop", { cancelable: true }));
    expect(first!.classList.contains("over")).toBe(false);
    await vi.waitFor(() => expect(host.bodies.get("POST /sessions/s1/queue/order")).toEqual({ order: ["p3", "p1", "p2"] }));
  });
});

describe("editing", () => {
  const area = () => view.querySelector("textarea");

  test("the text that is typed and the focus stay while other messages come and go", () => {
    queue.update(state("a", "b"));
    button("Edit", 1)!.click();
    const field = area()!;
    expect([field.value, document.activeElement]).toEqual(["b", field]);
    field.value = "b, but better";
    queue.update({ ...state("a", "b"), queue: [message("p0", "new"), message("p2", "b")] });
    expect([area(), field.value, document.activeElement, texts()]).toEqual([field, "b, but better", field, ["new"]]);
  });

  test.each<[string, (field: HTMLTextAreaElement) => void]>([
    ["Save", () => [...view.querySelectorAll("button")].find(({ textContent }) => textContent === "Save")!.click()],
    ["Ctrl+Enter", (field) => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true }))],
  ])("%s sends the new text and closes the editor", async (_, save) => {
    host.answers["PATCH /sessions/s1/queue/p1"] = {};
    queue.update(state("a"));
    button("Edit")!.click();
    area()!.value = "better";
    save(area()!);
    await vi.waitFor(() => expect(area()).toBeNull());
    expect(host.bodies.get("PATCH /sessions/s1/queue/p1")).toEqual({ text: "better" });
  });

  test("a refused text stays in the editor; Escape closes it without a request", async () => {
    queue.update(state("a"));
    button("Edit")!.click();
    area()!.value = "better";
    area()!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", metaKey: true }));
    await vi.waitFor(() => expect(failed).toEqual(["refused with 404"]));
    expect(area()!.value).toBe("better");
    area()!.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    expect([area(), texts(), host.calls.length]).toEqual([null, ["a"], 1]);
  });
});
