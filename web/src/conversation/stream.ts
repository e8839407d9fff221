/** Following a session: its state in one GET, then its events from there, through every interruption. */

import { Refused } from "../api";
import { reportConnection } from "../connection";
import { pause } from "../page";
import { eventsAddress, v1 } from "../v1";
import { apply } from "./fold";
import { active, type LogRecord, type SessionState } from "./state";

export interface Listener {
  /** The story from its beginning; what was shown before is to be forgotten. */
  opened(state: SessionState): void;
  /** The state has moved on, by these events. */
  moved(state: SessionState, events: LogRecord["event"][]): void;
  /** The host does not know the session (any more). */
  gone(): void;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;
/** Browsers open six connections to one host, so tabs that nobody looks at and that have nothing to wait for give theirs back. */
const HIDDEN_MS = 30_000;

export class Stream {
  private source: EventSource | undefined;
  private state: SessionState | undefined;
  private waiting: LogRecord[] = [];
  private hidden: ReturnType<typeof setTimeout> | undefined;
  /** Nobody looks at this session just now, or ever again. */
  private paused = false;
  private readonly look = () => this.seen();

  constructor(
    private readonly id: string,
    private readonly listener: Listener,
  ) {
    document.addEventListener("visibilitychange", this.look);
  }

  /** Gives the connection back; what is known stays, and `resume` goes on from there. */
  pause(): void {
    this.paused = true;
    this.source?.close();
    this.source = undefined;
    reportConnection(this, true);
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    if (this.state) this.follow(this.state.pos);
    else void this.open();
  }

  stop(): void {
    this.pause();
    document.removeEventListener("visibilitychange", this.look);
  }

  async open(): Promise<void> {
    for (let wait = FIRST_RETRY_MS; ; wait = Math.min(2 * wait, LAST_RETRY_MS)) {
      try {
        this.state = await v1.show(this.id);
        break;
      } catch (error) {
        if (error instanceof Refused && error.status === 404) {
          reportConnection(this, true);
          return this.listener.gone();
        }
        reportConnection(this, false);
        await pause(wait);
        if (this.paused) return reportConnection(this, true);
      }
    }
    reportConnection(this, true);
    this.listener.opened(this.state);
    if (!this.paused) this.follow(this.state.pos);
  }

  private follow(after: number): void {
    const source = new EventSource(eventsAddress(this.id, after));
    this.source = source;
    source.onopen = () => reportConnection(this, true);
    source.onmessage = ({ data }: MessageEvent<string>) => this.take(JSON.parse(data) as LogRecord);
    source.onerror = () => {
      reportConnection(this, false);
      // The browser tries again by itself while it is connecting; a refusal (a restart in between, a login that ended) is final.
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.source = undefined;
        setTimeout(() => !this.paused && void this.open(), FIRST_RETRY_MS);
      }
    };
  }

  /** Many events come in one piece; the page is told once per frame. */
  private take(record: LogRecord): void {
    this.waiting.push(record);
    if (this.waiting.length === 1) {
      if (document.hidden) setTimeout(() => this.flush());
      else requestAnimationFrame(() => this.flush());
    }
  }

  private flush(): void {
    const [records, state] = [this.waiting, this.state];
    this.waiting = [];
    if (!state) return;
    const fresh = records.filter(({ pos }) => pos > state.pos);
    for (const record of fresh) apply(state, record);
    if (fresh.length > 0) this.listener.moved(state, fresh.map(({ event }) => event));
  }

  private seen(): void {
    clearTimeout(this.hidden);
    if (document.hidden) {
      this.hidden = setTimeout(() => this.rest(), HIDDEN_MS);
    } else if (!this.source && this.state && !this.paused) {
      this.follow(this.state.pos);
    }
  }

  private rest(): void {
    if (this.paused) return;
    if (!this.state || active(this.state)) return void (this.hidden = setTimeout(() => this.rest(), HIDDEN_MS));
    this.source?.close();
    this.source = undefined;
  }
}
