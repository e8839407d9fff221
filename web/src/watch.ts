/** Looks after something that may have changed, for as long as somebody looks at the page. */

import { reportConnection } from "./connection";
import { pause } from "./page";
import { v1 } from "./v1";

const EVERY_MS = 2_000;

/**
 * Calls `load` at once and whenever the log has moved on. One small question every two seconds costs less than following
 * every event of every session to show a list.
 */
export async function watch(load: () => Promise<void>): Promise<never> {
  const me = {};
  for (let seen = -1; ; await pause(EVERY_MS)) {
    if (document.hidden && seen >= 0) continue;
    try {
      const { log } = await v1.about();
      if (log.seq !== seen) await load();
      seen = log.seq;
      reportConnection(me, true);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      reportConnection(me, false);
    }
  }
}
