/** Follows a session: its state in one GET, then its events from there. */

import type { Scope } from "../scope";
import { eventsAddress, v1 } from "../v1";
import { apply } from "./fold";
import { loadCards } from "./loadCards";
import { active, type LogRecord, type SessionState } from "./state";

export interface Listener {
  /** The whole state; what was shown before is replaced. */
  opened(state: SessionState): void;
  /** The state has changed by these events. */
  moved(state: SessionState, events: LogRecord["event"][]): void;
  /** The host does not know the session, or no longer. */
  gone(): void;
}

export class Stream {
  private state: SessionState | undefined;
  private waiting: LogRecord[] = [];

  /** Paused, resumed and ended by `scope`. */
  constructor(
    private readonly scope: Scope,
    id: string,
    private readonly listener: Listener,
  ) {
    scope.follow<SessionState>({
      load: (signal, refused) => (this.state && !refused ? undefined : Promise.all([v1.session(id, signal), loadCards()]).then(([state]) => state)),
      loaded: (state) => {
        this.state = state;
        listener.opened(state);
      },
      address: () => eventsAddress(id, this.state?.pos ?? 0),
      message: (data) => this.take(JSON.parse(data) as LogRecord),
      gone: () => listener.gone(),
      idle: () => this.state !== undefined && !active(this.state),
    });
  }

  /** Many events arrive together; the listener is called once per frame. */
  private take(record: LogRecord): void {
    this.waiting.push(record);
    if (this.waiting.length > 1) return;
    if (document.hidden) setTimeout(() => this.flush());
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    const [records, state] = [this.waiting, this.state];
    this.waiting = [];
    // A paused stream requests them again when it is resumed.
    if (!state || this.scope.paused || this.scope.ended) return;
    const fresh = records.filter(({ pos }) => pos > state.pos);
    for (const record of fresh) apply(state, record);
    if (fresh.length > 0) this.listener.moved(state, fresh.map(({ event }) => event));
  }
}
