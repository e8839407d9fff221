/** Charts of work trees, built as section 2.5 of the portal's description says. */

import type { Arrow, ChartGraph, ChartNode, Hint } from "../src/chart/graph";

export type Work =
  | string
  | { seq: Work[] }
  | { par: Work[] }
  | { pre?: [boolean, Work]; body: Work; post?: [boolean, Work] }
  | { cond: Work; yes?: Work; no?: Work };

export function chartOf(work: Work): ChartGraph {
  const nodes: ChartNode[] = [];
  let works = 0;
  const add = (hint: Hint, label?: string) => nodes.push({ id: nodes.length, hint, ...(label === undefined ? {} : { label }) }) - 1;
  const arrow = (from: number, to: number, label?: string, loopBack = false) => {
    const made: Arrow = { to, loopBack, ...(label === undefined ? {} : { label }) };
    (nodes[from]!.arrows ??= []).push(made);
  };
  const condition = (work: Work): [number, number] => {
    if (typeof work === "object" && "seq" in work && work.seq.length > 1) {
      const begin = add("CondBegin");
      const [first, last] = build(work);
      const end = add("CondEnd");
      arrow(begin, first);
      arrow(last, end);
      return [begin, end];
    }
    const [first, last] = build(work);
    const { hint } = nodes[first]!;
    if (first === last && typeof hint !== "string") nodes[first]!.hint = ["CondNode", hint[1]];
    return [first, last];
  };
  const build = (work: Work): [number, number] => {
    if (typeof work === "string") {
      const id = add(["TaskNode", works++], work);
      return [id, id];
    }
    if ("seq" in work) {
      const parts = work.seq.map(build);
      parts.slice(1).forEach(([first], at) => arrow(parts[at]![1], first));
      return [parts[0]![0], parts[parts.length - 1]![1]];
    }
    if ("par" in work) {
      const begin = add("ParBegin");
      const parts = work.par.map(build);
      const end = add("ParEnd");
      parts.forEach(([first]) => arrow(begin, first));
      parts.forEach(([, last]) => arrow(last, end));
      return [begin, end];
    }
    if ("cond" in work) {
      const [first, last] = condition(work.cond);
      const branches = [work.yes, work.no].map((branch) => (branch === undefined ? undefined : build(branch)));
      const end = add("AltEnd");
      branches.forEach((branch, at) => arrow(last, branch ? branch[0] : end, String(at === 0)));
      branches.forEach((branch) => branch && arrow(branch[1], end));
      return [first, end];
    }
    const pre = work.pre && condition(work.pre[1]);
    const body = build(work.body);
    const post = work.post && condition(work.post[1]);
    const end = add("LoopEnd");
    const start = pre?.[0] ?? body[0];
    if (pre) {
      arrow(pre[1], body[0], String(work.pre![0]));
      arrow(pre[1], end, String(!work.pre![0]));
    }
    if (post) {
      arrow(body[1], post[0]);
      arrow(post[1], start, String(work.post![0]), true);
      arrow(post[1], end, String(!work.post![0]));
    } else arrow(body[1], end);
    return [start, end];
  };
  build(work);
  return { nodes };
}

/** The same tree every time for the same seed. */
export function randomWork(seed: number, size: number): Work {
  let state = seed * 2654435761 + 1;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const make = (left: number): Work => {
    if (left <= 1) return `task-${Math.floor(random() * 1000)}${" long".repeat(Math.floor(random() * 8))}`;
    const kind = Math.floor(random() * 4);
    if (kind < 2) {
      const count = Math.min(left, 2 + Math.floor(random() * 4));
      const parts = Array.from({ length: count }, () => make(Math.floor(left / count)));
      return kind === 0 ? { seq: parts } : { par: parts };
    }
    const third = Math.max(1, Math.floor(left / 3));
    const maybe = <T>(value: T): T | undefined => (random() < 0.6 ? value : undefined);
    if (kind === 2) {
      const [yes, no] = [maybe(make(third)), maybe(make(third))];
      return { cond: make(third), ...(yes ? { yes } : {}), ...(no ? { no } : {}) };
    }
    const [pre, post] = [maybe(make(third)), maybe(make(third))];
    return { body: make(third), ...(pre ? { pre: [random() < 0.5, pre] } : {}), ...(post ? { post: [random() < 0.5, post] } : {}) };
  };
  return make(size);
}
