/** The host's own words over HTTP, scripted: `GET /path` to an answer, a status that refuses, or a function. */

import { vi } from "vitest";

type Given = object | number | ((body: unknown) => object | number | Promise<object | number>);

export class V1Host {
  readonly calls: string[] = [];
  readonly bodies = new Map<string, unknown>();
  /** While down, nothing gets through. */
  down = false;

  constructor(readonly answers: Record<string, Given> = {}) {
    vi.stubGlobal("fetch", (input: string, init?: RequestInit) => this.fetch(input, init));
  }

  private async fetch(input: string, init?: RequestInit): Promise<Response> {
    const name = `${init?.method ?? "GET"} ${decodeURIComponent(input.replace(/^.*\/v1/, "").replace(/\+/g, " "))}`;
    const body: unknown = typeof init?.body === "string" && init.body ? JSON.parse(init.body) : undefined;
    this.calls.push(name);
    this.bodies.set(name, body);
    if (this.down) throw new TypeError("Failed to fetch");
    const given = this.answers[name];
    const answer = typeof given === "function" ? await given(body) : (given ?? 404);
    return typeof answer === "number" ? Response.json({ error: `refused with ${answer}` }, { status: answer }) : Response.json(answer);
  }
}
