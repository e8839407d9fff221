/** Draws a chart as SVG, keeps its status marks and reports which node was chosen. */

import type { ChartGraph, Shape } from "./graph";
import { layOut, LINE, MARK_ROOM, type PlacedArrow, type PlacedNode, type Point } from "./layout";
import { FLOW_CHART } from "../texts/chart";

export type WorkMark = "Running" | "Succeeded" | "Failed";

const SVG = "http://www.w3.org/2000/svg";
const PADDING = 24;
const CORNER = 8;
const EMOJI: Record<WorkMark, string> = { Running: "▶️", Succeeded: "✅", Failed: "❌" };
const NAMES: Partial<Record<Shape, string>> = {
  ParBegin: FLOW_CHART.parallelWorksBegin,
  ParEnd: FLOW_CHART.parallelWorksEnd,
  CondBegin: FLOW_CHART.conditionBegins,
  CondEnd: FLOW_CHART.conditionEnds,
  LoopEnd: FLOW_CHART.loopEnds,
  AltEnd: FLOW_CHART.alternativesEnd,
};

type Attributes = Record<string, string | number>;

function draw<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Element[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Drawn {
  placed: PlacedNode;
  group: SVGGElement;
  outline: SVGElement;
}

export class FlowChart {
  readonly svg: SVGSVGElement;
  /** What the drawing covers, its padding included. */
  readonly area: Box;
  /** What the nodes cover, with the room for their marks. */
  readonly boxes: Box[];
  /** Where the first node is, from the left edge. */
  readonly start: number;
  private readonly works = new Map<number, Drawn>();

  /** Without `choose` the chart is only to be looked at. */
  constructor(
    graph: ChartGraph,
    name: string,
    private readonly choose?: (workId: number) => void,
  ) {
    const layout = layOut(graph);
    this.area = { x: layout.left - PADDING, y: layout.top - PADDING, width: layout.width + 2 * PADDING, height: layout.height + 2 * PADDING };
    this.boxes = layout.nodes.map(({ x, y, width, height }) => ({ x: x - width / 2 - MARK_ROOM, y: y - height / 2, width: width + MARK_ROOM, height }));
    this.start = (layout.nodes[0]?.x ?? 0) - layout.left + PADDING;
    this.svg = draw("svg", {
      class: "flow-chart",
      viewBox: `${this.area.x} ${this.area.y} ${this.area.width} ${this.area.height}`,
      width: this.area.width,
      height: this.area.height,
      role: "group",
      "aria-label": FLOW_CHART.flowChart(name),
    });
    this.svg.append(draw("defs", {}, arrowHead()));
    const arrows = draw("g", { class: "arrows" });
    const labels = draw("g", { class: "arrow-labels" });
    for (const arrow of layout.arrows) {
      arrows.append(line(arrow));
      if (arrow.label) labels.append(...labelOf(arrow.label));
    }
    const nodes = draw("g", { class: "nodes" });
    for (const placed of layout.nodes) nodes.append(this.node(placed));
    this.svg.append(arrows, nodes, labels);
    const first = this.works.values().next().value;
    if (choose && first) first.group.setAttribute("tabindex", "0");
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  setMark(workId: number, mark: WorkMark | undefined): void {
    const drawn = this.works.get(workId);
    if (!drawn) return;
    const { group, placed } = drawn;
    group.querySelector(".task-status-indicator")?.remove();
    for (const each of Object.keys(EMOJI)) group.classList.toggle(each.toLowerCase(), each === mark);
    group.setAttribute("aria-label", describe(placed, mark));
    if (!mark) return;
    const x = placed.x - placed.width / 2 - MARK_ROOM / 2;
    const indicator = draw("text", { class: "task-status-indicator", "data-work-id": workId, x, y: placed.y, "aria-hidden": "true" });
    indicator.textContent = EMOJI[mark];
    group.append(indicator);
  }

  clearMarks(): void {
    for (const workId of this.works.keys()) this.setMark(workId, undefined);
  }

  setInspected(workId: number | undefined): void {
    for (const [id, { group, outline }] of this.works) {
      const inspected = id === workId;
      outline.style.strokeWidth = inspected ? "5px" : "";
      group.classList.toggle("inspected", inspected);
      if (this.choose) group.setAttribute("aria-pressed", String(inspected));
    }
  }

  private node(placed: PlacedNode): SVGGElement {
    const { shape, workId } = placed;
    const outline = outlineOf(placed);
    const group = draw("g", { class: `node ${shape}`, "data-node-id": placed.node.id }, outline);
    if (workId === undefined) {
      group.append(titled(NAMES[shape] ?? shape));
      return group;
    }
    group.append(...textLines(placed));
    group.setAttribute("role", this.choose ? "button" : "img");
    group.setAttribute("aria-label", describe(placed, undefined));
    this.works.set(workId, { placed, group, outline });
    if (this.choose) {
      group.setAttribute("aria-pressed", "false");
      group.setAttribute("tabindex", "-1");
      group.addEventListener("click", () => this.pick(workId));
    }
    return group;
  }

  private pick(workId: number): void {
    this.focus(workId);
    this.choose?.(workId);
  }

  /** One stop for the Tab key; from there the arrow keys walk through the chart. */
  private focus(workId: number): void {
    for (const [id, { group }] of this.works) group.setAttribute("tabindex", id === workId ? "0" : "-1");
    this.works.get(workId)?.group.focus({ preventScroll: false });
  }

  private key(event: KeyboardEvent): void {
    const entry = [...this.works].find(([, { group }]) => group === event.target);
    if (!entry || !this.choose || event.ctrlKey || event.metaKey || event.altKey) return;
    const [workId, { placed }] = entry;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pick(workId);
      return;
    }
    const next = this.neighbour(placed, event.key);
    if (next === undefined) return;
    event.preventDefault();
    this.focus(next);
  }

  /** The nearest work in the direction of an arrow key; what lies aside counts double. */
  private neighbour(from: PlacedNode, key: string): number | undefined {
    const all = [...this.works.values()].map(({ placed }) => placed);
    if (key === "Home") return all[0]?.workId;
    if (key === "End") return all[all.length - 1]?.workId;
    const ahead: ((to: PlacedNode) => [number, number]) | undefined = {
      ArrowDown: (to: PlacedNode): [number, number] => [to.y - from.y, Math.abs(to.x - from.x)],
      ArrowUp: (to: PlacedNode): [number, number] => [from.y - to.y, Math.abs(to.x - from.x)],
      ArrowRight: (to: PlacedNode): [number, number] => [to.x - from.x, Math.abs(to.y - from.y)],
      ArrowLeft: (to: PlacedNode): [number, number] => [from.x - to.x, Math.abs(to.y - from.y)],
    }[key];
    if (!ahead) return undefined;
    const rated = all.map((to) => ({ to, way: ahead(to) })).filter(({ way }) => way[0] > 1);
    rated.sort((a, b) => a.way[0] + 2 * a.way[1] - (b.way[0] + 2 * b.way[1]));
    return rated[0]?.to.workId;
  }
}

function describe(placed: PlacedNode, mark: WorkMark | undefined): string {
  const kind = placed.shape === "CondNode" ? FLOW_CHART.condition : FLOW_CHART.task;
  return `${kind} ${placed.node.label ?? ""}, ${mark ? mark.toLowerCase() : "not started"}`;
}

function titled(text: string): SVGTitleElement {
  const title = draw("title");
  title.textContent = text;
  return title;
}

function arrowHead(): SVGMarkerElement {
  const marker = { id: "arrow-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" };
  return draw("marker", marker, draw("path", { d: "M0 0 8 4 0 8z", class: "arrow-head" }));
}

function outlineOf({ shape, x, y, width, height }: PlacedNode): SVGElement {
  const left = x - width / 2;
  const top = y - height / 2;
  const polygon = (...points: [number, number][]) => draw("polygon", { points: points.map((point) => point.join(",")).join(" ") });
  switch (shape) {
    case "CondNode":
      return polygon([left, y], [left + 18, top], [left + width - 18, top], [left + width, y], [left + width - 18, top + height], [left + 18, top + height]);
    case "CondEnd":
      return polygon([x, top], [left + width, y], [x, top + height], [left, y]);
    case "LoopEnd":
      return draw("circle", { cx: x, cy: y, r: width / 2 });
    default:
      return draw("rect", { x: left, y: top, width, height, rx: shape === "TaskNode" ? 6 : 2 });
  }
}

function textLines({ lines, x, y, node }: PlacedNode): SVGElement[] {
  const first = y - ((lines.length - 1) * LINE) / 2;
  const texts = lines.map((text, at) => {
    const element = draw("text", { x, y: first + at * LINE, class: "node-label" });
    element.textContent = text;
    return element;
  });
  return [...texts, titled(node.label ?? "")];
}

function line(arrow: PlacedArrow): SVGPathElement {
  return draw("path", { d: rounded(arrow.points), class: arrow.loopBack ? "arrow loop-back" : "arrow", "marker-end": "url(#arrow-head)" });
}

function labelOf({ text, x, y }: { text: string; x: number; y: number }): SVGElement[] {
  const width = text.length * 7 + 8;
  const label = draw("text", { x, y, class: "arrow-label" });
  label.textContent = text;
  return [draw("rect", { x: x - width / 2, y: y - 9, width, height: 18, class: "arrow-label-ground", rx: 3 }), label];
}

/** A path through the points with round corners. */
function rounded(points: Point[]): string {
  return points
    .map((point, at) => {
      const before = points[at - 1];
      const after = points[at + 1];
      if (!before) return `M${point.x} ${point.y}`;
      if (!after) return `L${point.x} ${point.y}`;
      const [a, b] = [towards(point, before), towards(point, after)];
      return `L${a.x} ${a.y}Q${point.x} ${point.y} ${b.x} ${b.y}`;
    })
    .join("");
}

function towards(from: Point, to: Point): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const share = length === 0 ? 0 : Math.min(CORNER, length / 2) / length;
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}
