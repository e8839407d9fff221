/** A changed workflow is shown before it runs again. */

import { afterEach, expect, test, vi } from "vitest";
import { retryDialog } from "../src/app/retryDialog";
import { button, stubDialogs, textOf } from "./dom";

const plan = { text: "new", differences: "--- as it ran\n+++ now\n@@ -1 +1 @@\n-run: old\n+run: new", kept: ["first", "second"] };

afterEach(() => document.body.replaceChildren());

test.each([["Start with these changes", "new"], ["Start as it ran", ""]])("%s", (name, workflow) => {
  stubDialogs();
  const start = vi.fn();
  retryDialog(plan, start);
  expect(textOf("dialog p")).toBe("These are the differences from the file that ran. The results of 2 steps are kept.");
  expect(document.querySelector("dialog")!.textContent).toContain("run: new");
  button(name).click();
  expect(start.mock.calls).toEqual([[workflow]]);
});
