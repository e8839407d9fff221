import { expect, test, vi } from "vitest";
import { Lanes } from "../src/live";
import { WorkView } from "../src/work";
import { FakeHost } from "./host";

test("a decision stands between the words of its session where it was made, also when it arrives before them", async () => {
  const host = new FakeHost();
  const work = new WorkView(new Lanes(), () => true, () => {});
  const bodies = () => [...work.tabs.element.querySelectorAll(".message-block-body")].map((each) => each.textContent);
  host.push("session/s"); // it is there, and has said nothing yet
  host.push(
    "task/task-1",
    { callback: "taskSessionStarted", sessionId: "s", isDriving: true, seq: 1 },
    { callback: "taskDecision", reason: "[CRITERIA] failed", seq: 5 },
    { callback: "taskDecision", reason: "[TASK SUCCEEDED]", seq: 9 },
  );
  work.follow("task-1");
  await vi.waitFor(() => expect(bodies()).toHaveLength(2));
  host.push("session/s", { callback: "onGeneratedUserPrompt", prompt: "first", seq: 3 }, { callback: "onGeneratedUserPrompt", prompt: "retry", seq: 7 });
  await vi.waitFor(() => expect(bodies()).toEqual(["first", "[CRITERIA] failed", "retry", "[TASK SUCCEEDED]"]));
  work.stop();
});
