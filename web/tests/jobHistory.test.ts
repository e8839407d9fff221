/** The list of all jobs. */

import { afterAll, afterEach, expect, test, vi } from "vitest";
import { V1Host } from "./v1Host";

afterEach(() => vi.unstubAllGlobals());

// Test files share a document: without this, the keys of this page act in the next file.
// Nor does it ask the host again there.
vi.useFakeTimers();
const added = vi.spyOn(document, "addEventListener");
afterAll(() => {
  for (const [type, listener, options] of added.mock.calls) document.removeEventListener(type, listener, options);
  added.mockRestore();
  vi.useRealTimers();
});

test("a job that took next to no time says so", async () => {
  const job = (id: string, took: number) => ({ id, name: id, status: "succeeded", started: 1000, ended: 1000 + took, cwd: "/w" });
  new V1Host({ "GET ": { workspaces: ["/w"], log: { seq: 1 } }, "GET /jobs": { jobs: [job("quick", 20), job("slow", 2000)] } });
  document.body.innerHTML = '<ul id="list"></ul><div id="empty"></div><p id="trouble"></p><a id="new-job"></a>';
  await import("../src/jobHistory");
  const facts = () => [...document.querySelectorAll(".facts")].map((each) => [...each.children].map((fact) => fact.textContent));
  await vi.waitFor(() => expect(facts()).toEqual([["/w", "took under 1 s"], ["/w", "took 2.0 s"]]));
});
