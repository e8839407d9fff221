/** An editor: an AHP client over its own WebSocket, in a page of its own, since Node 20 has no WebSocket. */

import type { Page } from "playwright-core";
import type { RealHost } from "./host";

type Action = { type: string } & Record<string, unknown>;
interface Wire {
  send(message: object): void;
  ask(method: string, params: object): Promise<unknown>;
  actions: Action[];
}
type Window = { wire: Wire };

export class Editor {
  private said = 0;

  private constructor(
    private readonly page: Page,
    readonly chat: string,
    /** The conversation as it was when the editor came. */
    readonly opened: { activeTurn?: { responseParts: { content?: string }[] } },
  ) {}

  /** Connects, and follows the conversation of a session. */
  static async open(page: Page, host: RealHost, session: string): Promise<Editor> {
    await page.goto(`${host.url}/test.html`);
    await page.evaluate(async (address) => {
      const socket = new WebSocket(address);
      const waiting = new Map<number, (result: unknown) => void>();
      let next = 0;
      const wire: Wire = {
        actions: [],
        send: (message) => socket.send(JSON.stringify({ jsonrpc: "2.0", ...message })),
        ask: (method, params) => new Promise((done) => (waiting.set(++next, done), wire.send({ id: next, method, params }))),
      };
      socket.onmessage = ({ data }: MessageEvent<string>) => {
        const message = JSON.parse(data) as { id?: number; method?: string; result?: unknown; error?: unknown; params?: { action: Action; rejectionReason?: string } };
        if (message.method === "action" && message.params) wire.actions.push({ ...message.params.action, rejected: message.params.rejectionReason });
        else if (message.id !== undefined) waiting.get(message.id)?.(message.result ?? message.error);
      };
      (window as unknown as Window).wire = wire;
      await new Promise((done) => (socket.onopen = done));
      await wire.ask("initialize", { channel: "ahp-root://", protocolVersions: ["1.0.0"], clientId: "editor", initialSubscriptions: [] });
    }, `${host.url.replace("http", "ws")}/ahp?tkn=${host.token}`);
    const { items } = (await Editor.ask(page, "listSessions", { channel: "ahp-root://" })) as { items: { resource: string; title?: string }[] };
    const found = items.find(({ resource }) => resource.endsWith(session));
    if (!found) throw new Error(`The editor does not see ${session} among ${JSON.stringify(items)}.`);
    const chat = `ahp-chat://default/${Buffer.from(found.resource).toString("base64url")}`;
    const { snapshot } = (await Editor.ask(page, "subscribe", { channel: chat })) as { snapshot: { state: Editor["opened"] } };
    return new Editor(page, chat, snapshot.state);
  }

  private static ask(page: Page, method: string, params: object): Promise<unknown> {
    return page.evaluate(([name, given]) => (window as unknown as Window).wire.ask(name, given), [method, params] as const);
  }

  async act(type: string, fields: object): Promise<void> {
    const params = { channel: this.chat, clientSeq: ++this.said, action: { type, ...fields } };
    await this.page.evaluate((given) => (window as unknown as Window).wire.send({ method: "dispatchAction", params: given }), params);
  }

  async say(turn: string, text: string): Promise<void> {
    await this.act("chat/turnStarted", { turnId: turn, message: { text, origin: { kind: "user" } }, startedAt: "2026-01-01T00:00:00.000Z" });
  }

  /** The `count`-th action of this type, once it has come. */
  async heard(type: string, count = 1): Promise<Action> {
    const found = await this.page.waitForFunction(([wanted, number]) => (window as unknown as Window).wire.actions.filter((each) => each.type === wanted)[number - 1], [type, count] as const);
    return (await found.jsonValue()) as Action;
  }
}
