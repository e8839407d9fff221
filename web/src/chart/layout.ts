/** Places the blocks of a chart: pure numbers, so it can be tested without a browser. */

import type { ChartGraph, ChartNode, Shape } from "./graph";
import { shapeOf, workOf } from "./graph";
import { findStructure, forward, type Lane, type Series, type Step } from "./structure";

export interface Point {
  x: number;
  y: number;
}

export interface PlacedNode {
  node: ChartNode;
  shape: Shape;
  workId: number | undefined;
  lines: string[];
  /** The middle. */
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface PlacedArrow {
  from: number;
  to: number;
  loopBack: boolean;
  points: Point[];
  label?: { text: string; x: number; y: number };
}

export interface Layout {
  nodes: PlacedNode[];
  arrows: PlacedArrow[];
  left: number;
  top: number;
  width: number;
  height: number;
}

export const LINE = 18;
const CHARACTER = 7.6;
const WIDE_CHARACTER = 14;
const LONGEST_LINE = 26;
const GAP_Y = 40;
const GAP_X = 28;
/** Where lanes part and meet, an arrow needs a bend above and below. */
const BEND = 26;
/** Below the bend: the head of the arrow, and its label where it has one. */
const HEAD = 20;
const LABEL = 20;
const CHANNEL = 22;
/** Room left of a node for its status mark. */
export const MARK_ROOM = 30;
/** An arrow without a node still has a label. */
const BARE_LANE = 56;

const SMALL: Partial<Record<Shape, [number, number]>> = {
  ParBegin: [64, 8],
  ParEnd: [64, 8],
  AltEnd: [64, 8],
  CondBegin: [64, 8],
  CondEnd: [24, 24],
  LoopEnd: [18, 18],
};

/** A block placed around its own axis: extents to the left and right of it and its height; `place` fixes it at a point. */
interface Box {
  left: number;
  right: number;
  height: number;
  place(axis: number, top: number): void;
}

export function layOut(graph: ChartGraph): Layout {
  return new Placement(graph).result();
}

class Placement {
  private readonly nodes = new Map<number, PlacedNode>();
  private readonly channels: { from: number; to: number; label: string | undefined; x: number }[] = [];
  /** The lane an arrow goes through when there is no node in it, and the height where lanes meet. */
  private readonly bare = new Map<string, { axis: number; top: number }>();
  private readonly foot = new Map<number, number>();

  constructor(private readonly graph: ChartGraph) {}

  result(): Layout {
    const box = this.series(findStructure(this.graph));
    box.place(0, 0);
    const nodes = this.graph.nodes.flatMap((node) => this.nodes.get(node.id) ?? []);
    const arrows = this.graph.nodes.flatMap((node) => this.forwardArrows(node)).concat(this.channels.map((each) => this.upward(each)));
    return { nodes, arrows, left: -box.left, top: 0, width: box.left + box.right, height: box.height };
  }

  private series(steps: Series): Box {
    const boxes = steps.map((step) => this.step(step));
    const rights = boxes.map((box) => box.right);
    const channels = this.backChannels(steps, rights);
    const height = boxes.reduce((sum, box) => sum + box.height, 0) + GAP_Y * Math.max(0, boxes.length - 1);
    return {
      left: Math.max(0, ...boxes.map((box) => box.left)),
      right: Math.max(0, ...rights),
      height,
      place: (axis, top) => {
        for (const channel of channels) this.channels.push({ ...channel, x: axis + channel.x });
        let y = top;
        for (const box of boxes) {
          box.place(axis, y);
          y += box.height + GAP_Y;
        }
      },
    };
  }

  /** Ways back up run right of everything they pass; shorter ones inside. They widen the steps they pass. */
  private backChannels(steps: Series, rights: number[]): { from: number; to: number; label: string | undefined; x: number }[] {
    const index = new Map<number, number>();
    steps.forEach((step, place) => nodesOf(step).forEach((node) => index.set(node.id, place)));
    const heads = new Map(steps.map((step, place) => [step.node.id, place]));
    const found = steps
      .flatMap(nodesOf)
      .flatMap((node) => (node.arrows ?? []).map((arrow) => ({ from: node.id, arrow })))
      .flatMap(({ from, arrow }) => {
        const first = heads.get(arrow.to);
        const last = index.get(from);
        return arrow.loopBack && first !== undefined && last !== undefined ? [{ from, arrow, first, last }] : [];
      })
      .sort((a, b) => a.last - a.first - (b.last - b.first) || a.from - b.from);
    return found.map(({ from, arrow, first, last }) => {
      const label = arrow.label ? arrow.label.length * CHARACTER : 0;
      const x = Math.max(...rights.slice(first, last + 1)) + CHANNEL;
      const right = Math.max(x + 8, x + label / 2 + 4);
      for (let place = first; place <= last; place++) rights[place] = Math.max(rights[place] ?? 0, right);
      return { from, to: arrow.to, label: arrow.label, x };
    });
  }

  private step(step: Step): Box {
    const head = this.leaf(step.node);
    if (step.lanes.length === 0) return head;
    const lanes = step.lanes.map((lane) => this.lane(step.node.id, lane));
    const width = lanes.reduce((sum, lane) => sum + lane.left + lane.right, 0) + GAP_X * (lanes.length - 1);
    const tallest = Math.max(...lanes.map((lane) => lane.height));
    const above = BEND + HEAD + (step.lanes.some(({ arrow }) => arrow.label) ? LABEL : 0);
    const height = head.height + above + tallest + BEND / 2;
    return {
      left: Math.max(head.left, width / 2),
      right: Math.max(head.right, width / 2),
      height,
      place: (axis, top) => {
        head.place(axis, top);
        this.foot.set(step.node.id, top + height);
        const laneTop = top + head.height + above;
        let x = axis - width / 2;
        for (const lane of lanes) {
          lane.place(x + lane.left, laneTop);
          x += lane.left + lane.right + GAP_X;
        }
      },
    };
  }

  private lane(from: number, lane: Lane): Box {
    const { series, arrow } = lane;
    if (series.length > 0) {
      const box = this.series(series);
      const last = series[series.length - 1]?.node.id;
      const place = (axis: number, top: number) => {
        box.place(axis, top);
        if (last !== undefined) this.feet.set(last, from);
      };
      return { ...box, place };
    }
    return {
      left: BARE_LANE / 2,
      right: BARE_LANE / 2,
      height: 0,
      place: (axis, top) => void this.bare.set(`${from}-${arrow.to}-${arrow.label ?? ""}`, { axis, top }),
    };
  }

  /** Which fork the last node of a lane belongs to. */
  private readonly feet = new Map<number, number>();

  private leaf(node: ChartNode): Box {
    const shape = shapeOf(node);
    const workId = workOf(node);
    const small = SMALL[shape];
    const lines = small ? [] : wrap(node.label ?? "");
    const text = Math.max(0, ...lines.map(measure));
    const [width, height] = small ?? [Math.max(112, text + (shape === "CondNode" ? 56 : 32)), lines.length * LINE + 24];
    return {
      left: width / 2 + (workId === undefined ? 0 : MARK_ROOM),
      right: width / 2,
      height,
      place: (x, top) => void this.nodes.set(node.id, { node, shape, workId, lines, x, y: top + height / 2, width, height }),
    };
  }

  private forwardArrows(node: ChartNode): PlacedArrow[] {
    const from = this.nodes.get(node.id);
    if (!from) return [];
    const arrows = forward(node);
    return arrows.flatMap((arrow) => {
      const to = this.nodes.get(arrow.to);
      if (!to) return [];
      const bare = arrows.length > 1 ? this.bare.get(`${node.id}-${arrow.to}-${arrow.label ?? ""}`) : undefined;
      const start = { x: from.x, y: from.y + from.height / 2 };
      const end = { x: to.x, y: to.y - to.height / 2 };
      const fork = this.feet.get(node.id);
      const foot = bare ? this.foot.get(node.id) : fork === undefined ? undefined : this.foot.get(fork);
      const points = bare
        ? [start, ...bend(start.x, bare.axis, start.y + BEND), ...bend(bare.axis, end.x, foot ?? end.y - BEND), end]
        : arrows.length > 1
          ? [start, ...bend(start.x, end.x, start.y + BEND), end]
          : [start, ...bend(start.x, end.x, foot ?? end.y - BEND), end];
      const near = arrows.length > 1 ? { x: bare?.axis ?? end.x, y: start.y + BEND + 16 } : { x: start.x, y: start.y + 16 };
      return [{ from: node.id, to: arrow.to, loopBack: false, points: tidy(points), ...labelled(arrow.label, near) }];
    });
  }

  private upward({ from, to, label, x }: { from: number; to: number; label: string | undefined; x: number }): PlacedArrow {
    const start = this.nodes.get(from);
    const end = this.nodes.get(to);
    if (!start || !end) throw new Error(`The chart has an arrow from ${from} to ${to}, but not both nodes.`);
    const points = [{ x: start.x + start.width / 2, y: start.y }, { x, y: start.y }, { x, y: end.y }, { x: end.x + end.width / 2, y: end.y }];
    return { from, to, loopBack: true, points, ...labelled(label, { x, y: (start.y + end.y) / 2 }) };
  }
}

function labelled(text: string | undefined, { x, y }: Point): { label?: { text: string; x: number; y: number } } {
  return text === undefined ? {} : { label: { text, x, y } };
}

function bend(from: number, to: number, y: number): Point[] {
  return from === to ? [] : [{ x: from, y }, { x: to, y }];
}

/** Points on a straight line are redundant. */
function tidy(points: Point[]): Point[] {
  return points.filter((point, at) => {
    const before = points[at - 1];
    const after = points[at + 1];
    if (!before || !after) return true;
    return !((before.x === point.x && point.x === after.x) || (before.y === point.y && point.y === after.y));
  });
}

function nodesOf(step: Step): ChartNode[] {
  return [step.node, ...step.lanes.flatMap((lane) => lane.series.flatMap(nodesOf))];
}

function measure(text: string): number {
  let width = 0;
  for (const character of text) width += (character.codePointAt(0) ?? 0) > 0x2e7f ? WIDE_CHARACTER : CHARACTER;
  return width;
}

/** Long names break after spaces and hyphens, and inside a word only when there is no other way. */
export function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const piece of text.match(/[^\s-]+-*|-+|\s+/g) ?? []) {
    if (line && measure(line + piece.trimEnd()) > LONGEST_LINE * CHARACTER) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += line ? piece : piece.trimStart();
    while (measure(line) > LONGEST_LINE * CHARACTER) {
      const cut = Math.max(1, [...line].findIndex((_, at, all) => measure(all.slice(0, at + 1).join("")) > LONGEST_LINE * CHARACTER));
      lines.push([...line].slice(0, cut).join(""));
      line = [...line].slice(cut).join("");
    }
  }
  if (line.trim() || lines.length === 0) lines.push(line.trimEnd());
  return lines;
}
