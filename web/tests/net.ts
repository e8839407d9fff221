/** A scripted network for views: requests that wait, fail or are refused, and event streams, with everything that is open counted. */

import { vi } from "vitest";

type Answer = object | ((query: URLSearchParams) => object);

export class FakeSource {
  static readonly CLOSED = 2;
  readonly CLOSED = 2;
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onerror: (() => void) | null = null;

  constructor(readonly url: string) {
    current.sources.push(this);
    queueMicrotask(() => (current.refused > 0 ? this.refuse() : this.begin()));
  }

  get channel(): string {
    const address = new URL(this.url, "http://host");
    return address.searchParams.get("channel") ?? address.pathname;
  }

  private begin(): void {
    if (this.readyState === 2) return;
    this.readyState = 1;
    this.onopen?.();
  }

  /** The answer of a proxy while the host restarts: the browser gives up. */
  refuse(): void {
    if (this.readyState === 2) return;
    current.refused = Math.max(0, current.refused - 1);
    this.readyState = 2;
    this.onerror?.();
  }

  send(record: object): void {
    if (this.readyState !== 2) this.onmessage?.({ data: JSON.stringify(record) });
  }

  close(): void {
    this.readyState = 2;
  }
}

let current: Net;

export class Net {
  readonly sources: FakeSource[] = [];
  readonly calls: string[] = [];
  /** Event streams that are refused from now on. */
  refused = 0;
  /** Requests that fail from now on, and how: "offline", or a status. */
  failing: ("offline" | number)[] = [];
  private held: { run: () => void; signal?: AbortSignal | undefined }[] | undefined;
  private listening = 0;

  /** `answers`: by method and path without the query, such as `GET /jobs/j1`. */
  constructor(readonly answers: Record<string, Answer>) {
    current = this;
    vi.stubGlobal("fetch", (address: string, init: RequestInit = {}) => this.fetch(address, init));
    vi.stubGlobal("EventSource", FakeSource);
    for (const target of [document, window]) this.count(target);
  }

  /** Streams that are open. */
  get open(): FakeSource[] {
    return this.sources.filter(({ readyState }) => readyState !== 2);
  }

  /** Listeners of the document and the window. */
  get listeners(): number {
    return this.listening;
  }

  /** Requests that wait for an answer, and whose view still wants it. */
  get waiting(): number {
    return this.held?.filter(({ signal }) => !signal?.aborted).length ?? 0;
  }

  /** From now on answers wait for `release`. */
  hold(): void {
    this.held ??= [];
  }

  /** `order`: "reversed" answers the newest request first. */
  async release(order: "asked" | "reversed" = "asked"): Promise<void> {
    const held = this.held ?? [];
    this.held = undefined;
    for (const { run } of order === "asked" ? held : held.reverse()) {
      run();
      await vi.advanceTimersByTimeAsync(0);
    }
  }

  private count(target: EventTarget): void {
    const add = target.addEventListener.bind(target);
    vi.spyOn(target, "addEventListener").mockImplementation((type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions) => {
      this.listening += 1;
      const signal = typeof options === "object" ? options.signal : undefined;
      signal?.addEventListener("abort", () => (this.listening -= 1), { once: true });
      add(type, listener, options);
    });
    const remove = target.removeEventListener.bind(target);
    vi.spyOn(target, "removeEventListener").mockImplementation((type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | EventListenerOptions) => {
      this.listening -= 1;
      remove(type, listener, options);
    });
  }

  private async fetch(address: string, init: RequestInit): Promise<Response> {
    const url = new URL(address, "http://host");
    const name = `${init.method ?? "GET"} ${decodeURIComponent(url.pathname.replace(/^.*\/v1/, ""))}`;
    this.calls.push(name);
    const failing = this.failing.shift();
    // As the host answers now, however late it arrives.
    const given = this.answers[name];
    const body = JSON.stringify(typeof given === "function" ? given(url.searchParams) : (given ?? { error: "There is no such thing." }));
    if (this.held) await new Promise<void>((run) => this.held?.push({ run, signal: init.signal ?? undefined }));
    if (init.signal?.aborted) throw new DOMException("Aborted", "AbortError");
    if (failing === "offline") throw new TypeError("Failed to fetch");
    if (failing !== undefined) return answerOf(failing, "<h1>Bad Gateway</h1>");
    return answerOf(given === undefined ? 404 : 200, body);
  }
}

/** A response that is read in microtasks: a real one takes turns of the event loop, which fake timers do not wait for. */
export function answerOf(status: number, body: string): Response {
  const answer = { ok: status < 400, status, headers: new Headers(), json: async () => JSON.parse(body) as unknown, text: async () => body, clone: () => answer };
  return answer as unknown as Response;
}
