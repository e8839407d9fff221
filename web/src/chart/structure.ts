/**
 * Finds the blocks in a chart: what follows what, and what lies side by side.
 *
 * Without its backward arrows a chart is a flow from one begin to one end. Where it forks, the lanes meet again in the
 * first node that every way from there has to pass, so a short recursion finds them all.
 */

import type { Arrow, ChartGraph, ChartNode } from "./graph";
import { shapeOf } from "./graph";

/** Nodes one below the other; each may open lanes that meet again in the next one. */
export type Series = Step[];

export interface Step {
  node: ChartNode;
  lanes: Lane[];
}

export interface Lane {
  arrow: Arrow;
  /** Empty: only an arrow. */
  series: Series;
}

export function findStructure(graph: ChartGraph): Series {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const joins = findJoins(graph);
  const taken = new Set<number>();

  const follow = (start: number | undefined, stop: number | undefined): Series => {
    const series: Series = [];
    for (let id = start; id !== undefined && id !== stop && !taken.has(id); ) {
      const node = byId.get(id);
      if (!node) break;
      taken.add(id);
      const arrows = forward(node);
      const join = joins.get(id);
      const lanes = arrows.length > 1 ? arrows.map((arrow) => ({ arrow, series: follow(arrow.to, join) })) : [];
      series.push({ node, lanes: bypassFirst(lanes, byId, join) });
      id = join;
    }
    return series;
  };
  return follow(graph.nodes[0]?.id, undefined);
}

export function forward(node: ChartNode): Arrow[] {
  return (node.arrows ?? []).filter((arrow) => !arrow.loopBack);
}

/** The way past a loop goes left, because the way back up goes right. */
function bypassFirst(lanes: Lane[], byId: Map<number, ChartNode>, join: number | undefined): Lane[] {
  const end = join === undefined ? undefined : byId.get(join);
  if (!end || shapeOf(end) !== "LoopEnd") return lanes;
  return [...lanes.filter((lane) => lane.series.length === 0), ...lanes.filter((lane) => lane.series.length > 0)];
}

/** For every node the first one that all ways from it pass (its immediate post-dominator). */
function findJoins(graph: ChartGraph): Map<number, number | undefined> {
  const order = downwards(graph);
  const depth = new Map<number | undefined, number>([[undefined, 0]]);
  const joins = new Map<number, number | undefined>();
  // From the end upwards: a node's join is where the chains of its targets' joins meet.
  for (const node of order.reverse()) {
    const meet = forward(node)
      .map((arrow): number | undefined => arrow.to)
      .reduce((a, b) => {
        while (a !== b) {
          if ((depth.get(a) ?? 0) >= (depth.get(b) ?? 0)) a = a === undefined ? undefined : joins.get(a);
          else b = b === undefined ? undefined : joins.get(b);
        }
        return a;
      }, forward(node)[0]?.to);
    joins.set(node.id, meet);
    depth.set(node.id, (depth.get(meet) ?? 0) + 1);
  }
  return joins;
}

/** Every node before those its arrows lead to. */
function downwards(graph: ChartGraph): ChartNode[] {
  const incoming = new Map(graph.nodes.map((node) => [node.id, 0]));
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  for (const node of graph.nodes) for (const { to } of forward(node)) incoming.set(to, (incoming.get(to) ?? 0) + 1);
  const ready = graph.nodes.filter((node) => incoming.get(node.id) === 0);
  const order: ChartNode[] = [];
  for (let node = ready.pop(); node; node = ready.pop()) {
    order.push(node);
    for (const { to } of forward(node)) {
      const left = (incoming.get(to) ?? 0) - 1;
      incoming.set(to, left);
      const target = byId.get(to);
      if (left === 0 && target) ready.push(target);
    }
  }
  return order;
}
