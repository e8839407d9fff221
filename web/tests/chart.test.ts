import { describe, expect, it, test, vi } from "vitest";
import { FlowChart } from "../src/chart/flowChart";
import type { ChartGraph } from "../src/chart/graph";
import { layOut, type Layout, type PlacedNode, wrap } from "../src/chart/layout";
import { cut, printable, sheetsOf } from "../src/chart/sheets";
import { Zoom } from "../src/chart/zoom";
import { chartOf, randomWork, type Work } from "./works";

const find = (layout: Layout, label: string) => layout.nodes.find(({ node }) => node.label === label)!;
const bottom = (node: PlacedNode) => node.y + node.height / 2;
const top = (node: PlacedNode) => node.y - node.height / 2;

function overlap(a: PlacedNode, b: PlacedNode): boolean {
  return Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;
}

function checkSound(graph: ChartGraph): Layout {
  const layout = layOut(graph);
  expect(layout.nodes.map(({ node }) => node.id)).toEqual(graph.nodes.map(({ id }) => id));
  const arrows = graph.nodes.flatMap((node) => node.arrows ?? []);
  expect(layout.arrows).toHaveLength(arrows.length);
  layout.nodes.forEach((a, at) => layout.nodes.slice(at + 1).forEach((b) => overlap(a, b) && expect.fail(`${a.node.id} lies on ${b.node.id}`)));
  const byId = new Map(layout.nodes.map((placed) => [placed.node.id, placed]));
  const right = layout.left + layout.width;
  for (const { from, to, loopBack, points } of layout.arrows) {
    const [a, b] = [byId.get(from)!, byId.get(to)!];
    if (loopBack) expect(b.y).toBeLessThanOrEqual(a.y);
    else expect(top(b)).toBeGreaterThan(bottom(a));
    points.slice(1).forEach((point, at) => expect(point.x === points[at]!.x || point.y === points[at]!.y).toBe(true));
    for (const { x, y } of points) {
      expect(x).toBeGreaterThanOrEqual(layout.left);
      expect(x).toBeLessThanOrEqual(right);
      expect(y).toBeLessThanOrEqual(layout.height);
    }
    // No arrow runs through a node that is not its own.
    for (const node of layout.nodes) {
      if (node === a || node === b) continue;
      points.slice(1).forEach((point, at) => crosses(points[at]!, point, node) && expect.fail(`${from}->${to} crosses ${node.node.id}`));
    }
  }
  return layout;
}

function crosses(a: { x: number; y: number }, b: { x: number; y: number }, node: PlacedNode): boolean {
  const inside = (low: number, high: number, middle: number, size: number) => high > middle - size / 2 + 0.5 && low < middle + size / 2 - 0.5;
  return inside(Math.min(a.x, b.x), Math.max(a.x, b.x), node.x, node.width) && inside(Math.min(a.y, b.y), Math.max(a.y, b.y), node.y, node.height);
}

describe("the layout", () => {
  it("puts works one after the other below each other", () => {
    const layout = checkSound(chartOf({ seq: ["a", "b", "c"] }));
    expect(find(layout, "a").x).toBe(find(layout, "c").x);
    expect(top(find(layout, "b"))).toBeGreaterThan(bottom(find(layout, "a")));
  });

  it("puts parallel works side by side, in order", () => {
    const layout = checkSound(chartOf({ par: ["a", "b", "c"] }));
    expect(find(layout, "a").y).toBe(find(layout, "b").y);
    expect(find(layout, "a").x).toBeLessThan(find(layout, "b").x);
    expect(find(layout, "b").x).toBeLessThan(find(layout, "c").x);
  });

  it("leads a loop back upwards, outside of what it repeats", () => {
    const layout = checkSound(chartOf({ body: { par: ["a", "b", "c"] }, post: [false, "check"] }));
    const back = layout.arrows.find(({ loopBack }) => loopBack)!;
    expect(back.label!.text).toBe("false");
    const channel = Math.max(...back.points.map(({ x }) => x));
    for (const { x, width } of layout.nodes) expect(channel).toBeGreaterThan(x + width / 2);
    expect(back.points.at(-1)!.y).toBeLessThan(back.points[0]!.y);
  });

  it("labels both ways of a condition", () => {
    const layout = checkSound(chartOf({ cond: "small?", yes: "do it" }));
    expect(layout.arrows.flatMap(({ label }) => label?.text ?? []).sort()).toEqual(["false", "true"]);
  });

  it.each<[string, Work]>([
    ["a loop with both conditions", { pre: [true, "p"], body: { seq: ["a", "b"] }, post: [true, { seq: ["q", "r"] }] }],
    ["a loop without conditions", { body: "a" }],
    ["loops that share their begin", { body: { body: "a", post: [true, "b"] }, post: [false, "c"] }],
    ["a choice without works", { cond: "c" }],
    ["a parallel condition", { cond: { par: ["a", "b"] }, yes: "c", no: { par: ["d", { seq: ["e", "f"] }] } }],
    ["a loop as condition of a loop", { body: "a", post: [true, { pre: [true, "b"], body: "c", post: [true, "d"] }] }],
    ["one work", "a"],
  ])("is sound for %s", (_, work) => void checkSound(chartOf(work)));

  it.each(Array.from({ length: 60 }, (_, seed) => seed))("is sound for random tree %i", (seed) => void checkSound(chartOf(randomWork(seed, 4 + (seed % 40)))));

  it("takes 200 works in a moment, without making them smaller", () => {
    const graph = chartOf({ seq: Array.from({ length: 40 }, (_, row) => ({ par: [0, 1, 2, 3, 4].map((lane) => `work ${row}-${lane}`) })) });
    const started = performance.now();
    const layout = layOut(graph);
    expect(performance.now() - started).toBeLessThan(1000);
    expect(layout.nodes.filter(({ workId }) => workId !== undefined)).toHaveLength(200);
    for (const { workId, height } of layout.nodes) if (workId !== undefined) expect(height).toBeGreaterThan(40);
  });
});

test("long names break into lines", () => {
  expect(wrap("short")).toEqual(["short"]);
  expect(wrap("review-the-whole-document (claude-sonnet-4.6)")).toEqual(["review-the-whole-document", "(claude-sonnet-4.6)"]);
  expect(wrap("x".repeat(60)).every((line) => line.length <= 26)).toBe(true);
  expect(wrap("")).toEqual([""]);
});

describe("the drawing", () => {
  const graph = chartOf({ seq: ["a", { cond: { seq: ["c1", "c2"] }, yes: { par: ["b", "<b>&"] } }, { body: "d", post: [true, "e"] }] });

  it("has a group for every node, shaped by its kind", () => {
    const chart = new FlowChart(graph, "job");
    const groups = [...chart.svg.querySelectorAll("g.node")];
    expect(groups).toHaveLength(graph.nodes.length);
    const shape = (kind: string) => chart.svg.querySelector(`g.node.${kind}`)!.firstElementChild!.tagName;
    expect(shape("TaskNode")).toBe("rect");
    expect(shape("CondNode")).toBe("polygon");
    expect(shape("CondBegin")).toBe("rect");
    expect(shape("CondEnd")).toBe("polygon");
    expect(shape("ParBegin")).toBe("rect");
    expect(shape("AltEnd")).toBe("rect");
    expect(shape("LoopEnd")).toBe("circle");
  });

  it("shows names as text, whatever they contain", () => {
    const chart = new FlowChart(graph, "job");
    expect(chart.svg.querySelector("b")).toBeNull();
    expect([...chart.svg.querySelectorAll(".node-label")].map((each) => each.textContent)).toContain("<b>&");
  });

  it("pads its view by 24", () => {
    const layout = layOut(graph);
    const [x, y, width, height] = new FlowChart(graph, "job").svg.getAttribute("viewBox")!.split(" ").map(Number);
    expect([x, y, width, height]).toEqual([layout.left - 24, layout.top - 24, layout.width + 48, layout.height + 48]);
  });

  it("marks works left of their border and takes marks back", () => {
    const chart = new FlowChart(graph, "job", () => undefined);
    const mark = () => chart.svg.querySelector<SVGTextElement>('.task-status-indicator[data-work-id="0"]');
    for (const [status, emoji] of [["Running", "▶️"], ["Succeeded", "✅"], ["Failed", "❌"]] as const) {
      chart.setMark(0, status);
      expect(mark()!.textContent).toBe(emoji);
      expect(chart.svg.querySelectorAll(".task-status-indicator")).toHaveLength(1);
    }
    const rect = chart.svg.querySelector("g.node.TaskNode rect")!;
    expect(Number(mark()!.getAttribute("x"))).toBeLessThan(Number(rect.getAttribute("x")));
    chart.clearMarks();
    expect(mark()).toBeNull();
  });

  it("widens the border of the inspected work only", () => {
    const chart = new FlowChart(graph, "job", () => undefined);
    const widths = () => [...chart.svg.querySelectorAll<SVGElement>("g.node > :first-child")].filter((each) => each.style.strokeWidth === "5px").length;
    chart.setInspected(0);
    chart.setInspected(1);
    expect(widths()).toBe(1);
    chart.setInspected(undefined);
    expect(widths()).toBe(0);
  });

  it("is chosen from by mouse and keyboard", () => {
    const choose = vi.fn();
    const chart = new FlowChart(graph, "job", choose);
    document.body.replaceChildren(chart.svg);
    const works = [...chart.svg.querySelectorAll<SVGGElement>('g.node[role="button"]')];
    works[1]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    expect(choose).toHaveBeenLastCalledWith(1);
    expect(works.filter((each) => each.getAttribute("tabindex") === "0")).toEqual([works[1]]);
    works[1]!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
    expect(document.activeElement).toBe(works[0]);
    works[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    expect(choose).toHaveBeenLastCalledWith(0);
  });

  it("only shows in a preview", () => {
    const chart = new FlowChart(graph, "job");
    expect(chart.svg.querySelector('[role="button"],[tabindex]')).toBeNull();
  });
});

describe("zoom", () => {
  function zoomed(): { container: HTMLElement; zoom: Zoom; chart: FlowChart } {
    const container = document.createElement("div");
    const chart = new FlowChart(chartOf("a"), "job");
    return { container, chart, zoom: new Zoom(container, chart) };
  }
  const wheel = (container: HTMLElement, deltaY: number, ctrlKey = true) => {
    const event = new WheelEvent("wheel", { deltaY, ctrlKey, cancelable: true, bubbles: true });
    container.dispatchEvent(event);
    return event.defaultPrevented;
  };

  it("goes in steps of a tenth with Ctrl and the wheel, and leaves the page alone", () => {
    const { container, zoom, chart } = zoomed();
    expect(wheel(container, -100)).toBe(true);
    expect(zoom.value).toBe(1.1);
    expect(chart.svg.style.transform).toBe("scale(1.1)");
    wheel(container, 100);
    wheel(container, 100);
    expect(zoom.value).toBe(0.9);
    expect(wheel(container, 100, false)).toBe(false);
    expect(zoom.value).toBe(0.9);
  });

  it("opens as a whole, but not smaller than can be read, and never larger than drawn", () => {
    const opened = (width: number) => {
      const container = document.createElement("div");
      Object.defineProperty(container, "clientWidth", { value: width });
      const chart = new FlowChart(chartOf("a"), "job");
      return new Zoom(container, chart).value / Math.min(1, width / chart.area.width);
    };
    const { width } = new FlowChart(chartOf("a"), "job").area;
    expect(opened(width * 0.8)).toBeCloseTo(1, 1);
    expect(opened(width * 2)).toBe(1);
    expect(opened(width * 0.35)).toBeCloseTo(2, 1);
  });

  it("stays between 0.2 and 3", () => {
    const { container, zoom } = zoomed();
    for (let turn = 0; turn < 40; turn++) wheel(container, 100);
    expect(zoom.value).toBe(0.2);
    for (let turn = 0; turn < 60; turn++) wheel(container, -100);
    expect(zoom.value).toBe(3);
  });
});

describe("on paper", () => {
  const wide = (rows: number, columns: number) => {
    const boxes = Array.from({ length: rows * columns }, (_, at) => ({ x: (at % columns) * 170, y: Math.floor(at / columns) * 150, width: 140, height: 42 }));
    return { area: { x: -24, y: -24, width: columns * 170 + 20, height: rows * 150 }, boxes };
  };

  it("is one sheet for as long as its letters can be read", () => {
    const small = wide(4, 3);
    expect(sheetsOf(small)).toEqual({ landscape: false, scale: 1, all: [small.area] });
    expect(sheetsOf(wide(7, 5))).toMatchObject({ landscape: false, scale: 0.8, all: [{}] });
    expect(sheetsOf(wide(4, 7))).toMatchObject({ landscape: true, all: [{}] });
  });

  it("is cut where no work stands, and nothing is lost", () => {
    const chart = wide(20, 10);
    const { all, scale } = sheetsOf(chart);
    expect(all.length).toBeGreaterThan(1);
    expect(scale).toBeGreaterThanOrEqual(0.7);
    const inside = (box: (typeof all)[0], sheet: (typeof all)[0]) =>
      box.x >= sheet.x && box.y >= sheet.y && box.x + box.width <= sheet.x + sheet.width && box.y + box.height <= sheet.y + sheet.height;
    expect(chart.boxes.filter((box) => all.filter((sheet) => inside(box, sheet)).length !== 1)).toEqual([]);
  });

  it("is cut all the same where works stand everywhere", () => {
    expect(cut([0, 250], 100, [[0, 250]])).toEqual([[0, 100], [100, 200], [200, 250]]);
  });

  it("stands on sheets while it is printed, and only then", () => {
    const container = document.createElement("div");
    const chart = new FlowChart(chartOf("a"), "job");
    chart.svg.style.transform = "scale(2)";
    container.append(chart.svg);
    printable(container, chart);
    window.dispatchEvent(new Event("beforeprint"));
    const sheet = container.querySelector<SVGSVGElement>(".print-sheet svg")!;
    expect([sheet.getAttribute("viewBox"), sheet.style.transform, container.firstElementChild!.className]).toEqual([chart.svg.getAttribute("viewBox"), "", "print-sheets"]);
    window.dispatchEvent(new Event("afterprint"));
    expect(container.children).toHaveLength(1);
  });
});
