/** The inbox: what asks is named as people know it. */

import { afterEach, expect, test, vi } from "vitest";
import { Inbox } from "../src/app/inbox";
import type { Shell } from "../src/app/shell";
import { V1Host } from "./v1Host";

afterEach(() => vi.unstubAllGlobals());

test("a step of a job is named with its job, and leads there", async () => {
  const asked = (id: string, session: string, title: string) => ({ id, session, title, agent: "demo", cwd: "/w/docs", since: Date.now(), text: "", question: { part: "question", id, text: "Which date?" } });
  new V1Host({
    "GET /inbox": { waiting: [asked("q1", "s1", "review"), asked("q2", "s2", "Move billing"), asked("q3", "s3", "review")] },
    [`GET /inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`]: { answers: [], rules: 0 },
  });
  const row = (by: string) => ({ session: { by }, waiting: [] });
  const feed = {
    rows: new Map([["s1", row("task:t1")], ["s2", row("token:owner")], ["s3", row("task:t9")]]),
    jobs: new Map([["j1", { id: "j1", name: "Release notes", works: [{ task: "t0" }, { task: "t1" }] }]]),
    watch: () => () => undefined,
    agentName: () => "Demo",
    entries: () => [],
  };
  const inbox = new Inbox({ feed } as unknown as Shell);
  document.body.replaceChildren(inbox.element);
  await vi.waitFor(() => expect(document.querySelectorAll(".asked")).toHaveLength(2));
  const link = document.querySelector<HTMLAnchorElement>(".card .asked-where a")!;
  expect([link.textContent, new URL(link.href).pathname]).toEqual(["Release notes, step “review”", "/app/j/j1"]);
  expect([...document.querySelectorAll(".asked small")].map((each) => each.textContent!.split(" · ")[0])).toEqual(["Move billing", "review"]);
  inbox.leave();
});
