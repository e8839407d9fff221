/** Texts of charts. */

export const FLOW_CHART = {
  parallelWorksBegin: "Parallel works begin",
  parallelWorksEnd: "Parallel works end",
  conditionBegins: "Condition begins",
  conditionEnds: "Condition ends",
  loopEnds: "Loop ends",
  alternativesEnd: "Alternatives end",
  flowChart: (name: string) => `Flow chart of ${name}`,
  condition: "Condition",
  task: "Task",
  described: (edges: string[]) => `Flow chart. ${edges.join("; ")}`,
  edge: (from: string | undefined, to: string | undefined, label: string) => `${from} to ${to}${label ? ` (${label})` : ""}`,
} as const;

export const ZOOM = {
  zoomOut: "Zoom out",
  zoomIn: "Zoom in",
  fit: "Fit",
  fitToWindow: "Fit the chart to the window",
} as const;

export const SHEETS = {
  sheet: (value: number, count: number) => `Sheet ${value} of ${count}`,
} as const;
