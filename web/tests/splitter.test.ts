/** The bar between two parts of a page: mouse, keys, bounds, and a window that gets smaller. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { split } from "../src/splitter";

let bar: HTMLElement;
let part: HTMLElement;
let other: HTMLElement;
let size: number;

/** An element of a size: jsdom has no layout. */
function sized(element: HTMLElement, of: () => number): HTMLElement {
  element.getBoundingClientRect = () => ({ width: of(), height: of() }) as DOMRect;
  return element;
}

beforeEach(() => {
  size = 300;
  bar = document.createElement("div");
  bar.setPointerCapture = () => undefined;
  part = sized(document.createElement("div"), () => Number.parseInt(part.style.width || part.style.height || String(size), 10));
  other = sized(document.createElement("div"), () => 500);
  document.body.replaceChildren(other, bar, part);
  vi.stubGlobal("innerWidth", 1000);
  vi.stubGlobal("innerHeight", 800);
});
afterEach(() => vi.unstubAllGlobals());

const press = (key: string) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  bar.dispatchEvent(event);
  return event.defaultPrevented;
};
/** jsdom has no pointer events. */
const pointer = (type: string, at: number) => bar.dispatchEvent(Object.assign(new Event(type, { cancelable: true }), { pointerId: 1, clientX: at, clientY: at }));

test("readers of screens learn what it is and where it is", () => {
  split({ bar, part, axis: "width", least: 200 });
  expect(["role", "aria-label", "aria-orientation", "aria-valuemin", "aria-valuenow"].map((name) => bar.getAttribute(name))).toEqual(["separator", "Resize", "vertical", "200", "300"]);
  expect(bar.tabIndex).toBe(0);
});

describe("keys", () => {
  test.each<["width" | "height", string, string]>([
    ["width", "ArrowLeft", "ArrowRight"],
    ["height", "ArrowUp", "ArrowDown"],
  ])("%s: %s grows, %s shrinks", (axis, grow, shrink) => {
    split({ bar, part, axis, least: 200 });
    expect(press(grow)).toBe(true);
    expect([part.style[axis], bar.getAttribute("aria-valuenow")]).toEqual(["324px", "324"]);
    press(shrink);
    press(shrink);
    expect(part.style[axis]).toBe("276px");
  });

  test("other keys are left to the page", () => {
    split({ bar, part, axis: "width", least: 200 });
    expect([press("ArrowUp"), press("Tab"), part.style.width]).toEqual([false, false, ""]);
  });

  test("neither side gets smaller than the least", () => {
    split({ bar, part, axis: "width", least: 200 });
    for (let times = 0; times < 40; times++) press("ArrowRight");
    expect(part.style.width).toBe("200px");
    for (let times = 0; times < 80; times++) press("ArrowLeft");
    expect(part.style.width).toBe("800px");
  });

  test("with another part, both share its room and not the window", () => {
    split({ bar, part, axis: "width", least: 200, other });
    for (let times = 0; times < 80; times++) press("ArrowLeft");
    // The other part stays at 500 here, so the room is the size of both.
    expect(Number.parseInt(part.style.width, 10)).toBeGreaterThan(600);
  });
});

describe("mouse and finger", () => {
  test("the part follows until the button is released", () => {
    split({ bar, part, axis: "width", least: 200 });
    pointer("pointerdown", 700);
    pointer("pointermove", 650);
    expect(part.style.width).toBe("350px");
    pointer("pointermove", 720);
    expect(part.style.width).toBe("280px");
    pointer("pointerup", 720);
    pointer("pointermove", 400);
    expect(part.style.width).toBe("280px");
  });

  test("a gesture that the system takes over ends it", () => {
    split({ bar, part, axis: "height", least: 100 });
    pointer("pointerdown", 500);
    pointer("pointercancel", 500);
    pointer("pointermove", 300);
    expect(part.style.height).toBe("");
  });
});

test("a smaller window does not push the other side out of it; a part that was never moved is left alone", () => {
  split({ bar, part, axis: "width", least: 200 });
  vi.stubGlobal("innerWidth", 400);
  window.dispatchEvent(new Event("resize"));
  expect(part.style.width).toBe("");
  vi.stubGlobal("innerWidth", 1000);
  press("ArrowLeft");
  vi.stubGlobal("innerWidth", 450);
  window.dispatchEvent(new Event("resize"));
  expect(part.style.width).toBe("250px");
});
