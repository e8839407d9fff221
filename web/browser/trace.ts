/** What the main thread of a page did, by its own CPU time: on a busy machine the clock says little. */

import type { Page } from "playwright-core";

interface Traced {
  name: string;
  cat: string;
  ph: string;
  pid: number;
  tid: number;
  /** When it began, in microseconds of the clock. */
  ts: number;
  dur?: number;
  /** CPU time of the thread, in microseconds. */
  tdur?: number;
  args?: { name?: string; data?: { type?: string } };
}

export class Trace {
  private constructor(private readonly events: Traced[]) {}

  /** Follows a page while something is done. */
  static async of(page: Page, work: () => Promise<unknown>): Promise<Trace> {
    const chromium = page.context().browser();
    await chromium?.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "blink.user_timing", "__metadata"] });
    await work();
    const { traceEvents } = JSON.parse(String(await chromium?.stopTracing())) as { traceEvents: Traced[] };
    const mains = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid}/${tid}`));
    return new Trace(traceEvents.filter(({ pid, tid }) => mains.has(`${pid}/${tid}`)).sort((one, other) => one.ts - other.ts));
  }

  /** The longest task, in ms. */
  get longest(): number {
    return Math.round(this.tasks().reduce((most, { tdur = 0 }) => Math.max(most, tdur), 0) / 1000);
  }

  private tasks(): Traced[] {
    return this.events.filter(({ name }) => name === "RunTask");
  }

  /** From each event of this type to the paint that shows what came of it, in ms of work. */
  toPaint(type: string): number[] {
    return this.events.flatMap(({ name, args, ts, pid }) => {
      const paint = name === "EventDispatch" && args?.data?.type === type ? this.events.find((each) => each.name === "Paint" && each.pid === pid && each.ts > ts) : undefined;
      return paint ? [this.worked(ts, paint.ts + (paint.dur ?? 0), pid)] : [];
    });
  }

  /** From one mark of `performance.mark` to the next of another name, in ms of work. */
  between(from: string, to: string): number[] {
    return this.events.flatMap(({ name, ts, pid }) => {
      const end = name === from ? this.events.find((each) => each.name === to && each.pid === pid && each.ts >= ts) : undefined;
      return end ? [this.worked(ts, end.ts, pid)] : [];
    });
  }

  /** Work between two times: of a task that goes over an end, its share. */
  private worked(from: number, to: number, pid: number): number {
    let sum = 0;
    for (const { ts, dur = 0, tdur = 0, pid: own } of this.tasks()) {
      const share = Math.min(to, ts + dur) - Math.max(from, ts);
      if (own === pid && share > 0 && dur > 0) sum += (tdur * share) / dur;
    }
    return sum / 1000;
  }
}

export const median = (numbers: number[]): number => Math.round(10 * ([...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0)) / 10;
