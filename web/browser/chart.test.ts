/** The flow chart: its shapes, a large one, by keyboard, zoomed and on paper. */

import { inflateSync } from "node:zlib";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { entryOptions, LARGE } from "./entry";
import { RealHost } from "./host";
import type { Person } from "./person";
import { visitors } from "./visitors";

const host = new RealHost();
const somebody = visitors(host, ...entryOptions(host.folder));

async function looking(jobName: string, look = {}): Promise<Person> {
  const person = await somebody(look);
  await person.page.goto(`${host.url}/jobTracking.html?jobName=${jobName}`);
  await person.page.waitForSelector("g.node");
  return person;
}

const scale = async (page: Page) => Number(/scale\((.*)\)/.exec((await page.getAttribute(".flow-chart", "style"))!)![1]);

describe("what it looks like", () => {
  test("every kind of node has its shape and colour; arrows, labels and ways back are there", async () => {
    const person = await looking("shapes");
    const { page } = person;
    const looks = await page.$$eval("g.node", (all) =>
      Object.fromEntries(
        all.map((each) => {
          const shape = each.firstElementChild as SVGGraphicsElement;
          const { fill, stroke } = getComputedStyle(shape);
          const rgb = (colour: string) => colour.match(/\d+/g)!.map(Number) as [number, number, number];
          const kind = ([r, g, b]: [number, number, number]) => (Math.max(r, g, b) - Math.min(r, g, b) < 40 ? (r < 60 ? "black" : "grey") : b > r + 20 && b > g ? "blue" : r > b && g > b + 40 ? "yellow" : "pink");
          const light = (colour: string) => rgb(colour).reduce((sum, part) => sum + part);
          return [each.classList[1], [shape.tagName, kind(rgb(stroke)), light(fill) > light(stroke) ? "lighter" : "darker"]];
        }),
      ),
    );
    expect(looks).toEqual({
      TaskNode: ["rect", "blue", "lighter"],
      CondNode: ["polygon", "yellow", "lighter"],
      ParBegin: ["rect", "black", "lighter"],
      ParEnd: ["rect", "black", "lighter"],
      AltEnd: ["rect", "pink", "lighter"],
      CondBegin: ["rect", "yellow", "lighter"],
      CondEnd: ["polygon", "yellow", "lighter"],
      LoopEnd: ["circle", "grey", "lighter"],
    });
    expect(await page.locator(".arrow.loop-back").count()).toBe(1);
    expect(new Set(await page.$$eval("text.arrow-label", (all) => all.map((each) => each.textContent)))).toEqual(new Set(["true", "false"]));
    const box = await page.$eval(".flow-chart", (svg) => {
      const view = (svg as SVGSVGElement).viewBox.baseVal;
      const nodes = (svg.querySelector(".nodes") as SVGGElement).getBBox();
      return { top: nodes.y - view.y, bottom: view.y + view.height - nodes.y - nodes.height };
    });
    expect(box.top).toBeCloseTo(24, 0);
    expect(box.bottom).toBeCloseTo(24, 0);
    expect(person.trouble).toEqual([]);
  });

  test("200 works: no two nodes touch, every name is inside its border, and letters are as large as elsewhere", async () => {
    const person = await looking("large");
    const { page } = person;
    expect(await page.locator("g.node.TaskNode").count()).toBe(LARGE);
    const trouble = await page.$$eval("g.node", (all) => {
      const boxes = all.map((each) => (each.firstElementChild as SVGGraphicsElement).getBBox());
      const touching = boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height));
      const outside = all.filter((each, at) => [...each.querySelectorAll<SVGTextElement>(".node-label")].some((label) => label.getBBox().width > boxes[at]!.width));
      const small = [...document.querySelectorAll(".node-label")].filter((label) => parseFloat(getComputedStyle(label).fontSize) < 14);
      return [touching.length, outside.length, small.length];
    });
    expect(trouble).toEqual([0, 0, 0]);
    // The whole of it can be seen at once, or be scrolled to.
    await page.click('[aria-label="Fit the chart to the window"]');
    expect(await scale(page)).toBeLessThan(1);
    await page.locator("g.node").last().scrollIntoViewIfNeeded();
    expect(await page.locator("g.node").last().isVisible()).toBe(true);
  });
});

test("by keyboard: one stop for Tab, the arrows walk, Enter inspects, and the node in focus is in sight", async () => {
  const person = await somebody();
  const { page } = person;
  const jobId = await host.startJob("large");
  await page.goto(`${host.url}/jobTracking.html?jobName=large&jobId=${jobId}`);
  await page.waitForSelector("g.node[tabindex='0']");
  const focused = () => page.evaluate(() => [...document.querySelectorAll("g.node[role=button]")].indexOf(document.activeElement!));
  expect(await page.locator("g.node[tabindex='0']").count()).toBe(1);
  await page.focus("[aria-label='Fit the chart to the window']");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe(0);
  await page.keyboard.press("ArrowRight");
  expect(await focused()).toBe(1);
  await page.keyboard.press("ArrowDown");
  expect(await focused()).toBe(11);
  await page.keyboard.press("End");
  expect(await focused()).toBe(LARGE - 1);
  const [view, last] = [(await page.locator("#chart-container").boundingBox())!, (await page.locator("g.node[role=button]").last().boundingBox())!];
  expect(last.y + last.height).toBeLessThanOrEqual(view.y + view.height + 1);
  expect(last.x + last.width).toBeLessThanOrEqual(view.x + view.width + 1);
  await page.keyboard.press("Enter");
  expect(await page.getAttribute("g.node:focus", "aria-pressed")).toBe("true");
  expect(await page.locator(".tab-container").count()).toBe(1);
  await page.keyboard.press(" ");
  expect(await page.locator(".tab-container").count()).toBe(0);
  await host.ask(`/api/copilot/job/${jobId}/stop`);
  expect(person.trouble).toEqual([]);
});

describe("zoom", () => {
  test("Ctrl+wheel: steps of 0.1 from 0.2 to 3, around the top left, and the page itself does not zoom", async () => {
    const { page } = await looking("shapes");
    expect(await scale(page)).toBe(1);
    await page.evaluate(() => addEventListener("wheel", (event) => (document.body.dataset["prevented"] = String(event.defaultPrevented))));
    const wheel = async (deltaY: number, times = 1) => {
      for (let n = 0; n < times; n++) await page.$eval("#chart-container", (target, delta) => target.dispatchEvent(new WheelEvent("wheel", { deltaY: delta, ctrlKey: true, bubbles: true, cancelable: true })), deltaY);
    };
    await page.hover("#chart-container");
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await page.waitForFunction(() => document.querySelector<SVGElement>(".flow-chart")!.style.transform === "scale(1.1)");
    expect(await page.getAttribute("body", "data-prevented")).toBe("true");
    expect(await page.evaluate(() => window.visualViewport!.scale)).toBe(1);
    await wheel(100, 2);
    expect(await scale(page)).toBe(0.9);
    await wheel(100, 20);
    expect(await scale(page)).toBe(0.2);
    await wheel(-100, 40);
    expect(await scale(page)).toBe(3);
    expect(await page.$eval(".flow-chart", (svg) => getComputedStyle(svg).transformOrigin)).toBe("0px 0px");
    // Without Ctrl the wheel scrolls.
    await page.mouse.wheel(0, 200);
    await page.waitForFunction(() => document.getElementById("chart-container")!.scrollTop > 0);
    expect(await scale(page)).toBe(3);
  });

  test("two fingers on a phone zoom the chart, not the page", async () => {
    const { page, context } = await looking("shapes", { phone: true });
    const before = await scale(page);
    const touch = await context.newCDPSession(page);
    const fingers = (type: "touchStart" | "touchMove" | "touchEnd", ...ys: number[]) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: ys.map((y, id) => ({ x: 180, y, id })) });
    await fingers("touchStart", 350, 450);
    for (const step of [20, 40, 50]) await fingers("touchMove", 350 - step, 450 + step);
    await fingers("touchEnd");
    await page.waitForFunction((wanted) => document.querySelector<SVGElement>(".flow-chart")!.style.transform === `scale(${wanted})`, Math.round(before * 200) / 100);
    expect(await page.evaluate(() => window.visualViewport!.scale)).toBe(1);
  });
});

test("on a phone it opens as a whole when its names can be read, and begins in the middle when they could not", async () => {
  const { page } = await looking("shapes", { phone: true });
  const inside = () =>
    page.$eval("#chart-container", (container) => {
      const boxes = [...container.querySelectorAll("g.node")].map((each) => each.getBoundingClientRect());
      return [Math.min(...boxes.map(({ left }) => left)) >= 0, Math.max(...boxes.map(({ right }) => right)) <= container.clientWidth, container.scrollWidth === container.clientWidth];
    });
  expect(await inside()).toEqual([true, true, true]);
  await page.goto(`${host.url}/jobTracking.html?jobName=large`);
  await page.waitForSelector("g.node");
  expect(await scale(page)).toBe(0.7);
  const first = (await page.locator("g.node").first().boundingBox())!;
  expect(first.x + first.width / 2).toBeCloseTo(180, -1);
});

describe("on paper", () => {
  const printing = async (page: Page) => {
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  };

  test("the chart and nothing else, in ink, whatever the screen showed", async () => {
    const { page } = await looking("shapes", { dark: true });
    await page.click('[aria-label="Zoom in"]');
    await printing(page);
    for (const selector of [".bar", "#session-response-part", ".chart-controls", "#resize-bar", ".chart-canvas"]) expect(await page.isVisible(selector)).toBe(false);
    expect(await page.locator(".print-sheet").count()).toBe(1);
    const inkOf = (selector: string, property: string) => page.$eval(`.print-sheet ${selector}`, (each, name) => getComputedStyle(each).getPropertyValue(name).match(/\d+/g)!.map(Number).reduce((sum, part) => sum + part, 0) / 3, property);
    expect(await inkOf(".node-label", "fill")).toBeLessThan(80);
    expect(await inkOf(".TaskNode rect", "fill")).toBeGreaterThan(200);
  });

  test("200 works stand on as many sheets as it takes to read them, each name whole and once", async () => {
    const { page } = await looking("large");
    const pdf = await page.pdf({ format: "A4" });
    await printing(page);
    const sheets = await page.$$eval(".print-sheet svg", (all) =>
      all.map((svg) => {
        const { x, y, width, height } = (svg as SVGSVGElement).viewBox.baseVal;
        const whole = [...svg.querySelectorAll("g.node")].filter((node) => {
          const box = (node.firstElementChild as SVGGraphicsElement).getBBox();
          return node.querySelector("text") && box.x >= x && box.y >= y && box.x + box.width <= x + width && box.y + box.height <= y + height;
        });
        return { works: whole.length, points: 0.75 * 14 * (svg.getBoundingClientRect().width / width) };
      }),
    );
    expect(sheets.length).toBeGreaterThan(1);
    expect(sheets.reduce((sum, { works }) => sum + works, 0)).toBe(LARGE);
    expect(Math.min(...sheets.map(({ points }) => points))).toBeGreaterThan(7);
    expect(pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)).toHaveLength(sheets.length);
    expect(textOf(pdf)).toBeGreaterThanOrEqual(LARGE);
  });
});

/** How many times a text is shown in a PDF. */
function textOf(pdf: Buffer): number {
  const bytes = pdf.toString("latin1");
  let shown = 0;
  for (const found of bytes.matchAll(/stream\r?\n/g)) {
    const start = found.index + found[0].length;
    const end = bytes.indexOf("endstream", start);
    try {
      shown += inflateSync(pdf.subarray(start, end)).toString("latin1").match(/\b(Tj|TJ)\b/g)?.length ?? 0;
    } catch {
      // Not every stream is compressed text: fonts and pictures are streams, too.
    }
  }
  return shown;
}
