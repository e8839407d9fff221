import { expect, test } from "vitest";
import { Tabs } from "../src/tabs";

test("a new tab takes the view from nobody; the driving one comes first all the same", () => {
  const tabs = new Tabs(() => {});
  const names = () => [...tabs.element.querySelectorAll(".tab-header-btn")].map((each) => each.textContent);
  const shown = () => [...tabs.element.querySelectorAll<HTMLElement>(".tab-panel")].filter(({ hidden }) => !hidden).map((each) => each.getAttribute("aria-label"));
  expect(tabs.element.querySelector(".tab-content")!.textContent).toBe("No session data for this task.");
  tabs.add("Attempt #1");
  tabs.add("Driving", true);
  tabs.add("Attempt #2");
  expect([names(), shown()]).toEqual([["Driving", "Attempt #1", "Attempt #2"], ["Attempt #1"]]);
  tabs.element.querySelector<HTMLButtonElement>(".tab-header-btn")!.click();
  expect(shown()).toEqual(["Driving"]);
});
