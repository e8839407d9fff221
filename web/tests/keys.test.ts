/** Keys of the workbench: which one runs what, and where a letter is only a letter. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KEYS, keys } from "../src/app/keys";
import type { Workbench } from "../src/app/workbench";

const calls: string[] = [];
const note = (name: string, answer?: unknown) => (...given: unknown[]) => {
  calls.push([name, ...given.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each)))].join(" "));
  return answer;
};

let letters = true;
let commenting = false;
let answers = false;
const running = { turns: [{ id: "t", started: 0 }] };

const session = {
  id: "s1",
  state: running,
  composer: { focus: note("composer.focus") },
  conversation: { toggle: note("toggle", true), goToWaiting: note("goToWaiting", true), toEnd: note("toEnd"), stepMessage: note("stepMessage", true) },
  stop: note("stop"),
  attempt: note("attempt"),
};
const shell = {
  list: { step: (by: number) => ({ title: `entry ${by}` }), search: { focus: note("search.focus") } },
  panel: { toggle: note("panel.toggle", true), escape: note("panel.escape"), hasFocus: () => false, step: note("panel.step", true), viewed: note("viewed", true), comment: note("comment", true), switchMode: note("switchMode", true), sendComments: () => commenting },
  session,
  view: undefined as object | undefined,
  answering: { press: note("press", true), chooseAnswer: (number: string) => answers && note("chooseAnswer", true)(number) },
  go: note("go"),
  open: note("open"),
  nextNeeded: note("nextNeeded", true),
  toggleSide: note("toggleSide"),
  archive: note("archive"),
  lettersOn: () => letters,
};

keys(shell as unknown as Workbench);

beforeEach(() => {
  document.body.innerHTML = '<main><div class="list" tabindex="0"></div><input id="field"><div class="xterm" tabindex="0"></div></main>';
  calls.length = 0;
  Object.assign(shell, { view: undefined, session });
  [letters, commenting, answers] = [true, false, false];
});
afterEach(() => document.body.replaceChildren());

/** Each press is long after the one before, unless it has its own time. */
let clock = 0;

/** True: the workbench took the key. */
function press(key: string, more: KeyboardEventInit = {}, at: Element = document.body, time = (clock += 10_000)): boolean {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  Object.defineProperty(event, "timeStamp", { value: (clock = time) });
  return !at.dispatchEvent(event);
}

test.each([
  ["j", 'open {"title":"entry 1"} true'],
  ["k", 'open {"title":"entry -1"} true'],
  ["z", "nextNeeded"],
  ["i", 'go {"at":"inbox"}'],
  ["c", 'go {"at":"new","what":"session"}'],
  ["y", "press y"],
  ["Y", "press y"],
  ["n", "press n"],
  ["d", "panel.toggle changes"],
  ["t", "panel.toggle terminal"],
  ["]", "panel.toggle"],
  ["[", "toggleSide"],
  ["u", "switchMode"],
  ["v", "viewed"],
  ["m", "comment"],
  ["o", "toggle"],
  ["w", "goToWaiting"],
  ["e", "archive"],
  ["f", "search.focus"],
  ["/", "composer.focus"],
  ["End", "toEnd"],
])("%s runs %s", (key, wanted) => {
  expect(press(key)).toBe(true);
  expect(calls).toEqual([wanted]);
});

test.each([
  ["s", 'go {"at":"home"}'],
  ["j", 'go {"at":"jobs"}'],
  ["a", 'go {"at":"automations"}'],
  ["u", 'go {"at":"usage"}'],
  [",", 'go {"at":"settings","section":"look"}'],
])("g, then %s, runs %s and not what the letter does alone", (key, wanted) => {
  press("g");
  expect(press(key)).toBe(true);
  expect(calls).toEqual([wanted]);
});

test("a sequence that leads nowhere is forgotten", () => {
  press("g");
  press("x");
  press("u");
  expect(calls).toEqual(["switchMode"]);
});

describe("a letter is only a letter", () => {
  test.each<[string, () => boolean]>([
    ["in a field", () => press("y", {}, document.getElementById("field")!)],
    ["in a terminal", () => press("y", {}, document.querySelector(".xterm")!)],
    ["with Ctrl", () => press("y", { ctrlKey: true })],
    ["with Alt", () => press("y", { altKey: true })],
    ["while a word is composed", () => press("y", { isComposing: true })],
    ["in a dialog", () => (document.body.insertAdjacentHTML("beforeend", "<dialog open></dialog>"), press("y"))],
    ["where letters are switched off", () => ((letters = false), press("y"))],
    ["that has no meaning", () => press("q")],
  ])("%s", (_, act) => {
    expect(act()).toBe(false);
    expect(calls).toEqual([]);
  });
});

describe("Escape", () => {
  test("leaves a field, and does not close the panel with it", () => {
    const field = document.getElementById("field")!;
    field.focus();
    press("Escape", {}, field);
    expect([document.activeElement === field, calls]).toEqual([false, []]);
  });

  test("closes the panel; twice stops the turn once, and a third press does not stop it again", () => {
    press("Escape");
    for (const _ of [1, 2]) press("Escape", {}, document.body, clock + 300);
    expect(calls).toEqual(["panel.escape", "stop", "panel.escape"]);
  });

  test("twice, but slowly, stops nothing", () => {
    press("Escape");
    press("Escape", {}, document.body, clock + 1000);
    expect(calls).toEqual(["panel.escape", "panel.escape"]);
  });
});

test("arrows walk through the list when it has the focus, and stay the browser's elsewhere", () => {
  expect(press("ArrowDown", {}, document.querySelector(".list")!)).toBe(true);
  expect(press("ArrowDown")).toBe(false);
  expect(calls).toEqual(['open {"title":"entry 1"} true']);
});

test("J and K step through a place that has steps of its own, such as the inbox", () => {
  Object.assign(shell, { view: { stepBy: note("stepBy") } });
  press("j");
  press("k");
  expect(calls).toEqual(["stepBy 1", "stepBy -1"]);
});

test("a number answers the question that waits, and is free where none does", () => {
  expect(press("2")).toBe(false);
  answers = true;
  expect(press("2")).toBe(true);
  expect(calls).toEqual(["chooseAnswer 2"]);
});

test("Alt and an arrow go from message to message; Ctrl+Enter sends comments where there are some", () => {
  expect(press("ArrowUp", { altKey: true })).toBe(true);
  expect(press("Enter", { ctrlKey: true })).toBe(false);
  commenting = true;
  expect(press("Enter", { ctrlKey: true })).toBe(true);
  expect(calls).toEqual(["stepMessage -1"]);
});

test("without a session its keys do nothing and stay the browser's", () => {
  Object.assign(shell, { session: undefined });
  expect(["o", "w", "e", "r", "End"].map((key) => press(key))).toEqual([false, false, false, false, false]);
});

test("every key of the list has a text, and no key has two meanings", () => {
  expect(KEYS.filter(({ text }) => !text)).toEqual([]);
  const all = KEYS.filter(({ run }) => run).map(({ keys: each }) => each);
  expect(new Set(all).size).toBe(all.length);
});
