/** Flow charts in Mermaid's notation, as far as agents use it: nodes, arrows, labels. Everything else stays text. */

import { FLOW_CHART } from "../texts/chart";

export interface MermaidNode {
  id: string;
  text: string;
  shape: "box" | "round" | "choice";
}

export interface MermaidEdge {
  from: string;
  to: string;
  label: string;
  dashed: boolean;
  arrow: boolean;
}

export interface MermaidGraph {
  sideways: boolean;
  nodes: MermaidNode[];
  edges: MermaidEdge[];
}

/** More than this is not readable in an answer. */
const MOST_NODES = 80;
const HEAD = /^(?:graph|flowchart)(?:\s+(TB|TD|BT|LR|RL))?\s*;?$/i;
const IGNORED = /^(?:%%|style\b|classDef\b|class\b|linkStyle\b|click\b|direction\b|subgraph\b|end$|accTitle|accDescr)/;
const NODE = /^([\w.-]+?)(?:::+\w+)?\s*(\(\[.*?\]\)|\[\[.*?\]\]|\[\(.*?\)\]|\(\(.*?\)\)|\{\{.*?\}\}|\[.*?\]|\(.*?\)|\{.*?\}|>.*?\])?(?:::+\w+)?(?=\s|$|&|-|=|<|\.)/;
const ARROW = /^\s*(<?(?:--+|-\.+-?|==+)(?:>|x|o)?)(?:\s*\|([^|]*)\|)?\s*/;
/** `-- text -->`, `-. text .->` and `== text ==>`. */
const SPOKEN = /^\s*(--|-\.|==)\s+([^-=.|>][^|>]*?)\s+(--+>?|\.+->?|==+>?)\s*/;

/** Undefined: it is something else, or has a line that is not understood. */
export function parseMermaid(text: string): MermaidGraph | undefined {
  const lines = text.split(/\n|;/).map((line) => line.trim()).filter((line) => line && !line.startsWith("%%"));
  const [, direction = "TD"] = HEAD.exec(lines[0] ?? "") ?? [];
  if (!HEAD.test(lines[0] ?? "")) return undefined;
  const nodes = new Map<string, MermaidNode>();
  const edges: MermaidEdge[] = [];
  for (const line of lines.slice(1)) {
    if (IGNORED.test(line)) continue;
    if (!takeLine(line, nodes, edges)) return undefined;
  }
  if (nodes.size === 0 || nodes.size > MOST_NODES) return undefined;
  return { sideways: /LR|RL/i.test(direction), nodes: [...nodes.values()], edges };
}

function takeLine(line: string, nodes: Map<string, MermaidNode>, edges: MermaidEdge[]): boolean {
  let rest = line;
  let before: string[] = [];
  let arrow: Omit<MermaidEdge, "from" | "to"> | undefined;
  for (;;) {
    const group: string[] = [];
    for (;;) {
      const found = NODE.exec(rest);
      if (!found) return false;
      const [all, id = "", shape = ""] = found;
      take(nodes, id, shape);
      group.push(id);
      rest = rest.slice(all.length).trimStart();
      if (!rest.startsWith("&")) break;
      rest = rest.slice(1).trimStart();
    }
    if (arrow) for (const from of before) for (const to of group) edges.push({ from, to, ...arrow });
    if (!rest) return true;
    const spoken = SPOKEN.exec(rest);
    const found = spoken ?? ARROW.exec(rest);
    if (!found) return false;
    const sign = spoken ? `${spoken[1]}${spoken[3]}` : (found[1] ?? "");
    arrow = { label: plainText(found[2] ?? ""), dashed: sign.includes("."), arrow: />|x$|o$/.test(sign) };
    rest = rest.slice(found[0].length).trimStart();
    before = group;
  }
}

function take(nodes: Map<string, MermaidNode>, id: string, given: string): void {
  const known = nodes.get(id);
  const text = plainText(given.replace(/^[[({>]+|[\])}]+$/g, ""));
  const shape = given.startsWith("{") ? "choice" : given.startsWith("(") ? "round" : "box";
  if (!known) nodes.set(id, { id, text: text || id, shape });
  else if (given) Object.assign(known, { text: text || id, shape });
}

const plainText = (text: string): string => text.trim().replace(/^"(.*)"$/s, "$1").replace(/<br\s*\/?>/gi, "\n").replace(/#quot;|&quot;/g, '"').replace(/&amp;/g, "&").replace(/&lt;/g, "<").replace(/&gt;/g, ">").trim();

// -- layout -----------------------------------------------------------------------------------------------------------

const LETTER = 7.4;
const LINE = 17;
const MOST_LETTERS = 26;
const GAP = 28;
const BETWEEN = 46;

interface Placed extends MermaidNode {
  lines: string[];
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The layer of each node: below everything that leads to it. Of a cycle, the arrow that was written last and leads back does not count. */
export function layersOf({ nodes, edges }: MermaidGraph): Map<string, number> {
  const rank = new Map(nodes.map(({ id }, index) => [id, index]));
  let kept = edges.filter(({ from, to }) => from !== to);
  for (const edge of [...kept].reverse()) {
    const rest = kept.filter((each) => each !== edge);
    if ((rank.get(edge.to) ?? 0) < (rank.get(edge.from) ?? 0) && leads(rest, edge.to, edge.from)) kept = rest;
  }
  const layers = new Map(nodes.map(({ id }) => [id, 0]));
  // Without cycles, so many rounds are enough.
  for (let round = 0; round < nodes.length; round++) for (const { from, to } of kept) layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(from) ?? 0) + 1));
  return layers;
}

function leads(edges: MermaidEdge[], from: string, to: string): boolean {
  const seen = new Set([from]);
  for (const id of seen) for (const edge of edges) if (edge.from === id) seen.add(edge.to);
  return seen.has(to);
}

function wrapped(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const lines = [""];
    for (const word of line.split(/\s+/)) {
      const last = lines.at(-1) ?? "";
      if (last && last.length + word.length >= MOST_LETTERS) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines;
  });
}

function place(graph: MermaidGraph): Placed[] {
  const layers = layersOf(graph);
  const placed = graph.nodes.map((node): Placed => {
    const lines = wrapped(node.text);
    const wide = Math.max(...lines.map((line) => line.length)) * LETTER;
    return { ...node, lines, x: 0, y: 0, width: wide + (node.shape === "choice" ? 56 : 28), height: lines.length * LINE + (node.shape === "choice" ? 36 : 20) };
  });
  const rows: Placed[][] = [];
  for (const node of placed) (rows[layers.get(node.id) ?? 0] ??= []).push(node);
  const along = (node: Placed) => (graph.sideways ? node.height : node.width);
  const across = (node: Placed) => (graph.sideways ? node.width : node.height);
  const length = (row: Placed[]) => row.reduce((sum, node) => sum + along(node) + GAP, -GAP);
  const most = Math.max(...rows.map(length));
  let depth = 0;
  const middle = new Map<string, number>();
  for (const row of rows) {
    // Below what leads to it, as far as possible without crossings.
    const wish = (node: Placed) => {
      const above = graph.edges.filter(({ to }) => to === node.id).flatMap(({ from }) => middle.get(from) ?? []);
      return above.length ? above.reduce((sum, each) => sum + each, 0) / above.length : most / 2;
    };
    const ordered = row.map((node) => ({ node, at: wish(node) })).sort((one, other) => one.at - other.at);
    let at = (most - length(row)) / 2;
    const thick = Math.max(...row.map(across));
    for (const { node } of ordered) {
      middle.set(node.id, at + along(node) / 2);
      const [main, cross] = [at, depth + (thick - across(node)) / 2];
      [node.x, node.y] = graph.sideways ? [cross, main] : [main, cross];
      at += along(node) + GAP;
    }
    depth += thick + BETWEEN;
  }
  return placed;
}

// -- drawing ----------------------------------------------------------------------------------------------------------

function draw(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}

let drawn = 0;

export function drawMermaid(graph: MermaidGraph): SVGElement {
  const nodes = place(graph);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const pad = 12;
  const width = Math.max(...nodes.map((node) => node.x + node.width)) + 2 * pad;
  const height = Math.max(...nodes.map((node) => node.y + node.height)) + 2 * pad;
  const svg = draw("svg", { viewBox: `${-pad} ${-pad} ${width} ${height}`, width: Math.round(width), height: Math.round(height), role: "img", "aria-label": describe(graph) });
  const head = `diagram-arrow-${++drawn}`;
  const defs = draw("defs", {});
  const marker = draw("marker", { id: head, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" });
  marker.append(draw("path", { d: "M0 0 8 4 0 8z", class: "diagram-head" }));
  defs.append(marker);
  svg.append(defs);
  for (const edge of graph.edges) {
    const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
    if (from && to) svg.append(...line(from, to, edge, graph.sideways, head));
  }
  for (const node of nodes) svg.append(...box(node));
  return svg;
}

function line(from: Placed, to: Placed, edge: MermaidEdge, sideways: boolean, head: string): SVGElement[] {
  const center = (node: Placed) => [node.x + node.width / 2, node.y + node.height / 2] as const;
  const [[fx, fy], [tx, ty]] = [center(from), center(to)];
  const back = sideways ? to.x <= from.x : to.y <= from.y;
  const [sx, sy] = sideways ? [back ? fx : from.x + from.width, back ? from.y + from.height : fy] : [back ? from.x + from.width : fx, back ? fy : from.y + from.height];
  const [ex, ey] = sideways ? [back ? tx : to.x, back ? to.y + to.height : ty] : [back ? to.x + to.width : tx, back ? ty : to.y];
  const bend = back ? 34 : 0;
  const d = sideways
    ? back ? `M${sx} ${sy}C${sx} ${sy + bend} ${ex} ${ey + bend} ${ex} ${ey}` : `M${sx} ${sy}C${(sx + ex) / 2} ${sy} ${(sx + ex) / 2} ${ey} ${ex} ${ey}`
    : back ? `M${sx} ${sy}C${sx + bend} ${sy} ${ex + bend} ${ey} ${ex} ${ey}` : `M${sx} ${sy}C${sx} ${(sy + ey) / 2} ${ex} ${(sy + ey) / 2} ${ex} ${ey}`;
  const path = draw("path", { d, class: `diagram-line${edge.dashed ? " dashed" : ""}`, ...(edge.arrow ? { "marker-end": `url(#${head})` } : {}) });
  if (!edge.label) return [path];
  const [x, y] = [(sx + ex) / 2 + (back && !sideways ? bend / 2 : 0), (sy + ey) / 2];
  const wide = edge.label.length * 6.6 + 8;
  return [path, draw("rect", { x: x - wide / 2, y: y - 9, width: wide, height: 18, rx: 4, class: "diagram-label-ground" }), draw("text", { x, y: y + 4, "text-anchor": "middle", class: "diagram-label" }, edge.label)];
}

function box({ x, y, width, height, shape, lines }: Placed): SVGElement[] {
  const [cx, cy] = [x + width / 2, y + height / 2];
  const outline = shape === "choice" ? draw("path", { d: `M${cx} ${y}L${x + width} ${cy}L${cx} ${y + height}L${x} ${cy}z`, class: "diagram-node" }) : draw("rect", { x, y, width, height, rx: shape === "round" ? 16 : 6, class: "diagram-node" });
  const text = draw("text", { "text-anchor": "middle", class: "diagram-text" });
  lines.forEach((each, index) => text.append(draw("tspan", { x: cx, y: cy + 4.5 + (index - (lines.length - 1) / 2) * LINE }, each)));
  return [outline, text];
}

/** For those who do not see it. */
function describe({ nodes, edges }: MermaidGraph): string {
  const name = new Map(nodes.map(({ id, text }) => [id, text.replace(/\n/g, " ")]));
  return FLOW_CHART.described(edges.map(({ from, to, label }) => FLOW_CHART.edge(name.get(from), name.get(to), label ?? "")));
}
