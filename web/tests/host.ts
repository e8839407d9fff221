/** A host small enough to see through: scripted answers by path, live lists that wait until something is pushed. */

import { vi } from "vitest";
import type { LiveElement } from "../src/api";

type Answer = object | ((body: string) => object | Promise<object>);

export class FakeHost {
  readonly calls: { path: string; body: string }[] = [];
  readonly answers = new Map<string, Answer>();
  /** While down, nothing gets through. */
  down = false;
  private readonly lists = new Map<string, { elements: LiveElement[]; closed?: string }>();
  private readonly places = new Map<string, number>();
  private waiting: (() => void)[] = [];
  private tokens = 0;

  constructor() {
    this.answers.set("token", () => ({ token: `token-${++this.tokens}` }));
    vi.stubGlobal("fetch", (input: string, init?: RequestInit) => this.fetch(input, init));
  }

  push(entity: string, ...elements: LiveElement[]): void {
    this.list(entity).elements.push(...elements);
    this.wake();
  }

  close(entity: string, error: string): void {
    this.list(entity).closed = error;
    this.wake();
  }

  /** The connection breaks: what waits fails, and so does everything until it is up again. */
  drop(): void {
    this.down = true;
    this.wake();
  }

  paths(part: string): string[] {
    return this.calls.map(({ path }) => path).filter((path) => path.includes(part));
  }

  private list(entity: string): { elements: LiveElement[]; closed?: string } {
    const known = this.lists.get(entity);
    if (known) return known;
    const made = { elements: [] };
    this.lists.set(entity, made);
    return made;
  }

  private wake(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  private async fetch(input: string, init?: RequestInit): Promise<Response> {
    const path = decodeURIComponent(input.replace(/^\.\/api\//, "").replace(/\?.*$/, ""));
    const body = typeof init?.body === "string" ? init.body : "";
    this.calls.push({ path, body });
    const live = /^copilot\/((?:session|task|job)\/[^/]+)\/live\/(.+)$/.exec(path);
    const answer = live ? await this.live(live[1]!, live[2]!, init?.signal ?? undefined) : await this.answer(path, body);
    if (this.down) throw new TypeError("Failed to fetch");
    return answer === undefined ? Response.json({ error: "Unknown API endpoint" }, { status: 404 }) : Response.json(answer);
  }

  private async answer(path: string, body: string): Promise<object | undefined> {
    const answer = this.answers.get(path);
    return typeof answer === "function" ? answer(body) : answer;
  }

  private async live(entity: string, token: string, signal: AbortSignal | undefined): Promise<object> {
    const key = `${entity} ${token}`;
    for (;;) {
      if (signal?.aborted || this.down) throw new TypeError("Failed to fetch");
      const list = this.lists.get(entity);
      if (!list) return { error: `${entity[0]!.toUpperCase()}${entity.slice(1, entity.indexOf("/"))}NotFound` };
      const place = this.places.get(key) ?? 0;
      if (place < list.elements.length) {
        this.places.set(key, list.elements.length);
        return { responses: list.elements.slice(place) };
      }
      if (list.closed) return { error: list.closed };
      await new Promise<void>((go) => {
        this.waiting.push(go);
        signal?.addEventListener("abort", () => go());
      });
    }
  }
}
