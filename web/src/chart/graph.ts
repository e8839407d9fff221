/** The chart of a job as the API gives it. */

export type Mark = "ParBegin" | "ParEnd" | "CondBegin" | "CondEnd" | "LoopEnd" | "AltEnd";
export type Hint = ["TaskNode" | "CondNode", number] | Mark;

export interface Arrow {
  to: number;
  label?: string;
  loopBack: boolean;
}

export interface ChartNode {
  id: number;
  hint: Hint;
  label?: string;
  arrows?: Arrow[];
}

export interface ChartGraph {
  nodes: ChartNode[];
}

export type Shape = "TaskNode" | "CondNode" | Mark;

export function shapeOf(node: ChartNode): Shape {
  return typeof node.hint === "string" ? node.hint : node.hint[0];
}

export function workOf(node: ChartNode): number | undefined {
  return typeof node.hint === "string" ? undefined : node.hint[1];
}
