/** Refreshes a list while its page is visible. */

import { reportConnection } from "./connection";
import { isTemporary } from "./failure";
import { page } from "./scope";
import { v1 } from "./v1";

const EVERY_MS = 2_000;

/**
 * Calls `load` now and whenever the log has grown. One small request every two seconds costs less than following
 * every event of every session to show a list. `report` shows an error; undefined removes it.
 */
export function watch(load: () => Promise<void>, report: (error: unknown) => void): void {
  let seen = -1;
  let reported = false;
  const ask = async (signal: AbortSignal) => {
    const { log } = await v1.about(signal);
    if (log.seq !== seen) await load();
    return log.seq;
  };
  const take = (seq: number) => {
    seen = seq;
    reportConnection(watch, true);
    if (reported) report(undefined);
    reported = false;
  };
  const failed = (error: unknown) => {
    reportConnection(watch, !isTemporary(error));
    if (isTemporary(error)) return;
    reported = true;
    report(error);
  };
  const refresh = page.latest(ask, take, { failed });
  page.every(EVERY_MS, () => {
    if (!document.hidden || seen < 0) refresh();
  });
  refresh();
}
