/** Following a session, task or job: one long poll after the other, through every interruption. */

import { api, type Kind, type LiveElement, Refused } from "./api";
import { reportConnection } from "./connection";
import { pause } from "./page";

export interface Follower {
  /** `again`: after an interruption the events start from the beginning; discard what was shown before. */
  elements(list: LiveElement[], again: boolean): void;
  /** Closed, or not known (any more); nothing follows. */
  ended?(error: string): void;
  /** The connection broke and the loop ended, because the caller starts again. Without it the loop retries. */
  lost?(): void;
}

const ENDS = /^(Session|Task|Jobs?)(Closed|NotFound)$/;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;
/** The host answers within 5 s; a call that takes this long hangs on a connection that is gone (a laptop that slept). */
const HANGING_MS = 30_000;

/**
 * Browsers open six connections to one host. Visible loops start immediately; loops in the background share two,
 * and those that were never served go first, so that the host remembers their place.
 */
export class Lanes {
  private waiting: { rank: () => number; go: () => void }[] = [];
  private busy = 0;

  constructor(private readonly limit = 2) {}

  async run<T>(rank: () => number, work: () => Promise<T>): Promise<T> {
    if (rank() === 0) return work();
    if (this.busy >= this.limit) await new Promise<void>((go) => this.waiting.push({ rank, go }));
    if (rank() === 0) {
      this.next();
      return work();
    }
    this.busy++;
    try {
      return await work();
    } finally {
      this.busy--;
      this.next();
    }
  }

  /** Something came to the screen: let it go now. */
  promote(): void {
    const urgent = this.waiting.filter(({ rank }) => rank() === 0);
    this.waiting = this.waiting.filter((each) => !urgent.includes(each));
    for (const { go } of urgent) go();
  }

  private next(): void {
    if (this.busy >= this.limit || this.waiting.length === 0) return;
    const best = this.waiting.reduce((a, b) => (b.rank() < a.rank() ? b : a));
    this.waiting.splice(this.waiting.indexOf(best), 1);
    best.go();
  }
}

export class Live {
  private stopped = false;
  private served = false;
  private delivered = false;
  private readonly abort = new AbortController();
  private finish!: () => void;
  /** Resolves when the loop is over, for any reason. */
  readonly over = new Promise<void>((done) => (this.finish = done));

  constructor(
    readonly kind: Kind,
    readonly id: string,
    private readonly follower: Follower,
    private readonly lanes?: Lanes,
    private readonly onScreen: () => boolean = () => true,
  ) {
    void this.run().finally(() => {
      reportConnection(this, true);
      this.finish();
    });
  }

  /** No more calls, and answers on their way are ignored. */
  stop(): void {
    this.stopped = true;
    this.abort.abort();
  }

  private async run(): Promise<void> {
    let token: string | undefined;
    /** This token has not been given anything yet. */
    let fresh = true;
    let wait = FIRST_RETRY_MS;
    while (!this.stopped) {
      let answer: Awaited<ReturnType<typeof api.live>>;
      try {
        token ??= (await api.token()).token ?? "";
        answer = await this.ask(token);
      } catch (error) {
        if (this.stopped) return;
        if (error instanceof Refused && error.status < 500 && error.status !== 429) return this.end(error.message);
        reportConnection(this, false);
        // The elements of a lost answer are missing, so only the beginning is a safe place to continue.
        token = undefined;
        fresh = true;
        await pause(Math.max(wait, error instanceof Refused ? error.retryAfter * 1000 : 0));
        wait = Math.min(wait * 2, LAST_RETRY_MS);
        if (this.follower.lost && !this.stopped) return this.follower.lost();
        continue;
      }
      if (this.stopped) return;
      reportConnection(this, true);
      wait = FIRST_RETRY_MS;
      if (answer.responses) {
        this.deliver(answer.responses, fresh);
        fresh = false;
      } else if (answer.error === "ParallelCallNotSupported") {
        await pause(100);
      } else if (answer.error && ENDS.test(answer.error)) {
        if (fresh && answer.error.endsWith("NotFound")) await this.recall();
        return this.end(answer.error);
      }
    }
  }

  private deliver(list: LiveElement[], fresh: boolean): void {
    this.follower.elements(list, fresh && this.delivered);
    this.delivered = true;
  }

  private ask(token: string): ReturnType<typeof api.live> {
    const signal = AbortSignal.any([this.abort.signal, AbortSignal.timeout(HANGING_MS)]);
    const work = () => api.live(this.kind, this.id, token, signal).finally(() => (this.served = true));
    const rank = () => (this.stopped || this.onScreen() ? 0 : this.served ? 2 : 1);
    return this.lanes ? this.lanes.run(rank, work) : work();
  }

  /** The live calls know it no longer; what is stored of it is as good. */
  private async recall(): Promise<void> {
    try {
      const { responses } = await api.history(this.kind, this.id);
      if (responses && !this.stopped) this.deliver(responses, true);
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof TypeError)) throw error;
      // Nothing stored, or not reachable: `ended` reports it.
    }
  }

  private end(error: string): void {
    this.stopped = true;
    this.follower.ended?.(error);
  }
}
