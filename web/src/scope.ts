/**
 * The lifetime of a view: listeners, timers, requests and connections that a view starts end when the view ends.
 *
 * Only this file calls `fetch`, `setInterval`, `new EventSource` and `addEventListener` of the document or the window
 * (tests/scope.test.ts), so that nothing outlives the view that started it and every connection is retried in the same way.
 */

import { reportConnection } from "./connection";
import { keyHeader } from "./key";
import { explain, isTemporary } from "./failure";

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;
/** Browsers open six connections to one host: a hidden page that waits for nothing closes its own after this time. */
const HIDDEN_MS = 30_000;
/** A request that takes longer hangs on a dead connection, for example after a laptop slept. */
const HANGING_MS = 30_000;

/** The time before each retry: doubles up to five seconds. */
export class Backoff {
  private wait = 0;

  constructor(private readonly first = FIRST_RETRY_MS) {}

  next(): number {
    return (this.wait = Math.min(this.wait ? 2 * this.wait : this.first, LAST_RETRY_MS));
  }

  reset(): void {
    this.wait = 0;
  }
}

/** The only call of `fetch`: with the key of this login, and never from the browser's cache. */
export function request(address: string, init: RequestInit = {}): Promise<Response> {
  return fetch(address, { cache: "no-store", ...init, headers: { ...keyHeader(), ...init.headers } });
}

export interface Source<T> {
  /**
   * Loads the state that the events build on, before each connection. `refused`: the last connection was refused, so the state
   * may have changed in between. Returns undefined if what is known is enough.
   */
  load?(signal: AbortSignal, refused: boolean): Promise<T> | undefined;
  loaded?(state: T): void;
  address(): string;
  message(data: string): void;
  /** The host refused it for good: it does not exist, or is not for this user. */
  gone?(error: unknown): void;
  /** True: no event is expected, so a hidden page may close the connection. */
  idle?(): boolean;
}

/** Something that works while its scope is open, and rests while it is paused. */
interface Part {
  open(): void;
  close(): void;
  /** Not opened again. */
  end?(): void;
}

/** One EventSource that survives every interruption. At any time there is at most one request or connection. */
class Following<T> implements Part {
  private source: EventSource | undefined;
  private loading: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private readonly backoff = new Backoff();
  private refused = false;
  private readonly scope = new Scope();

  constructor(private readonly from: Source<T>) {
    if (from.idle) this.scope.on(document, "visibilitychange", () => this.isOpen && this.seen());
  }

  private isOpen = false;

  open(): void {
    this.isOpen = true;
    if (!this.source && !this.loading && this.timer === undefined) void this.connect();
  }

  close(): void {
    this.isOpen = false;
    this.disconnect();
  }

  end(): void {
    this.close();
    this.scope.end();
  }

  private disconnect(): void {
    this.loading?.abort();
    clearTimeout(this.timer);
    clearTimeout(this.resting);
    this.source?.close();
    this.source = this.loading = this.timer = undefined;
    reportConnection(this, true);
  }

  /** The page was hidden or shown. */
  private seen(): void {
    clearTimeout(this.resting);
    if (!document.hidden) return this.open();
    this.resting = setTimeout(() => (this.source && this.from.idle?.() ? this.disconnect() : this.seen()), HIDDEN_MS);
  }

  private async connect(): Promise<void> {
    const loading = (this.loading = new AbortController());
    try {
      const state = await this.from.load?.(loading.signal, this.refused);
      if (loading.signal.aborted) return;
      if (state !== undefined) this.from.loaded?.(state);
    } catch (error) {
      if (loading.signal.aborted) return;
      this.loading = undefined;
      if (isTemporary(error)) return this.retry();
      this.end();
      return this.from.gone?.(error);
    }
    // `loaded` may have ended the view.
    if (loading.signal.aborted) return;
    this.loading = undefined;
    this.listen();
  }

  private listen(): void {
    const source = (this.source = new EventSource(this.from.address()));
    source.onopen = () => {
      this.backoff.reset();
      this.refused = false;
      reportConnection(this, true);
    };
    source.onmessage = ({ data }: MessageEvent<string>) => this.source === source && this.from.message(data);
    source.onerror = () => {
      if (this.source !== source) return;
      // The browser retries while the host is out of reach. An answer with an error (502 of a proxy, 401) ends its tries.
      if (source.readyState !== EventSource.CLOSED) return reportConnection(this, false);
      this.source = undefined;
      this.refused = true;
      this.retry();
    };
  }

  private retry(): void {
    reportConnection(this, false);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.connect();
    }, this.backoff.next());
  }
}

/** Requests for the newest state, one at a time: an older answer never replaces a newer one. */
class Latest<T> implements Part {
  private asking: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private wanted = false;
  private readonly backoff = new Backoff();

  constructor(
    private readonly ask: (signal: AbortSignal) => Promise<T>,
    private readonly take: (answer: T) => void,
    private readonly failed: (error: unknown) => void,
    private readonly debounceMs: number,
    private readonly isOpen: () => boolean,
  ) {}

  /** Something has changed: ask, or ask again after the request that runs. */
  readonly refresh = (wait = this.debounceMs): void => {
    this.wanted = true;
    this.next(wait);
  };

  open(): void {
    this.next(0);
  }

  close(): void {
    if (this.asking) this.wanted = true; // its answer is dropped, so `open` asks again
    this.asking?.abort();
    clearTimeout(this.timer);
    this.asking = this.timer = undefined;
  }

  private next(wait: number): void {
    if (!this.wanted || this.asking || this.timer !== undefined || !this.isOpen()) return;
    if (wait === 0) return void this.run();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.run();
    }, wait);
  }

  private async run(): Promise<void> {
    const asking = (this.asking = new AbortController());
    this.wanted = false;
    let wait = this.debounceMs;
    try {
      const answer = await this.ask(AbortSignal.any([asking.signal, AbortSignal.timeout(HANGING_MS)]));
      if (asking.signal.aborted) return;
      this.backoff.reset();
      this.take(answer);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.failed(error);
      if (isTemporary(error)) {
        this.wanted = true;
        wait = this.backoff.next();
      }
    }
    if (asking.signal.aborted) return;
    this.asking = undefined;
    this.next(wait);
  }
}

class Timer implements Part {
  private id: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly ms: number,
    private readonly run: () => void,
  ) {}

  open(): void {
    this.id ??= setInterval(this.run, this.ms);
  }

  close(): void {
    clearInterval(this.id);
    this.id = undefined;
  }
}

export class Scope {
  private readonly abort = new AbortController();
  private readonly parts = new Set<Part>();
  private isPaused = false;

  /** `report` shows the text of an error on the view; "" removes it. */
  constructor(private readonly report: (text: string) => void = () => undefined) {}

  get ended(): boolean {
    return this.abort.signal.aborted;
  }

  /** Aborts a single request when the view ends. */
  get signal(): AbortSignal {
    return this.abort.signal;
  }

  get paused(): boolean {
    return this.isPaused;
  }

  on<K extends keyof DocumentEventMap>(target: Document, type: K, run: (event: DocumentEventMap[K]) => void, options?: AddEventListenerOptions): void;
  on<K extends keyof WindowEventMap>(target: Window, type: K, run: (event: WindowEventMap[K]) => void, options?: AddEventListenerOptions): void;
  on(target: EventTarget, type: string, run: (event: Event) => void, options?: AddEventListenerOptions): void;
  on(target: EventTarget, type: string, run: (event: never) => void, options: AddEventListenerOptions = {}): void {
    target.addEventListener(type, run as EventListener, { ...options, signal: this.abort.signal });
  }

  every(ms: number, run: () => void): void {
    this.add(new Timer(ms, run));
  }

  after(ms: number, run: () => void): void {
    const timer = setTimeout(run, ms);
    this.onEnd(() => clearTimeout(timer));
  }

  /** Follows events of the host. `close` of what it returns ends this one alone. */
  follow<T = never>(from: Source<T>): { close(): void } {
    const following = new Following(from);
    this.add(following);
    return {
      close: () => {
        this.parts.delete(following);
        following.end();
      },
    };
  }

  /**
   * Returns the function that asks the host, and later asks again. `settleMs` joins changes that come together; a call with 0 does
   * not wait for them. A request that fails for now is retried.
   */
  latest<T>(ask: (signal: AbortSignal) => Promise<T>, take: (answer: T) => void, options: { failed?: (error: unknown) => void; debounceMs?: number } = {}): (wait?: number) => void {
    const failed = options.failed ?? ((error: unknown) => this.report(explain(error)));
    const latest = new Latest(ask, take, failed, options.debounceMs ?? 0, () => !this.isPaused && !this.ended);
    this.add(latest);
    return latest.refresh;
  }

  /** Does something for the user, and shows on the view if it failed. */
  async attempt(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      if (!this.ended) this.report("");
      return true;
    } catch (error) {
      if (!this.ended) this.report(explain(error));
      return false;
    }
  }

  /** Runs when the view ends; immediately if it already has. */
  onEnd(run: () => void): void {
    if (this.ended) run();
    else this.abort.signal.addEventListener("abort", run, { once: true });
  }

  /** A part of the view: paused, resumed and ended with it, or earlier. */
  child(report: (text: string) => void = this.report): Scope {
    const child = new Scope(report);
    const part = { open: () => child.resume(), close: () => child.pause(), end: () => child.end() };
    this.add(part);
    child.onEnd(() => this.parts.delete(part));
    return child;
  }

  /** The view is kept, but not shown: timers stop, requests are aborted and connections are closed until `resume`. */
  pause(): void {
    if (this.isPaused || this.ended) return;
    this.isPaused = true;
    for (const part of this.parts) part.close();
  }

  resume(): void {
    if (!this.isPaused || this.ended) return;
    this.isPaused = false;
    for (const part of this.parts) part.open();
  }

  end(): void {
    if (this.ended) return;
    this.abort.abort();
    for (const part of [...this.parts]) part.end ? part.end() : part.close();
    this.parts.clear();
  }

  private add(part: Part): void {
    if (this.ended) return part.end?.();
    this.parts.add(part);
    if (this.isPaused) part.close();
    else part.open();
  }
}

/** The page itself: what it starts ends with the tab. */
export const page = new Scope();
