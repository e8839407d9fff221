/** The connection to one terminal: a socket that reconnects and continues from its last position. */

import { reportConnection } from "../connection";
import { pause } from "../page";
import { socketAddress, type Terminal, v1 } from "../v1";

export interface Screen extends Terminal {
  shown?: string;
}

export type TerminalEvent = { type: string } & Record<string, unknown>;

export interface Listener {
  /** All of it from the beginning; what was shown before is to be forgotten. */
  screen(screen: Screen): void;
  /** What came since. */
  events(events: TerminalEvent[]): void;
  /** The terminal does not exist any more: it was closed, or the host was restarted. */
  gone(how: "closed" | "lost"): void;
  /** The host did not do what was asked. */
  refused(reason: string): void;
}

export type Command = { type: "input"; data: string } | { type: "resize"; cols: number; rows: number };

interface Frame {
  terminal?: Screen;
  events?: { pos: number; event: TerminalEvent }[];
  error?: string;
}

const CLOSED = 1000;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;

export class Link {
  private socket: WebSocket | undefined;
  private pos: number | undefined;
  private ended = false;

  constructor(
    private readonly id: string,
    private readonly listener: Listener,
  ) {}

  open(): void {
    const socket = new WebSocket(socketAddress(this.id, this.pos));
    this.socket = socket;
    socket.onopen = () => reportConnection(this, true);
    socket.onmessage = ({ data }: MessageEvent<string>) => this.take(JSON.parse(data) as Frame);
    socket.onclose = ({ code }) => {
      if (this.socket !== socket) return;
      this.socket = undefined;
      if (code === CLOSED) this.end("closed");
      else void this.comeBack();
    };
  }

  /** False while there is no connection: what is typed into the void is better lost than typed later, unseen. */
  send(said: Command): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(said));
    return true;
  }

  /** Nothing more is taken until `open`; the host keeps it. */
  rest(): void {
    const { socket } = this;
    this.socket = undefined;
    socket?.close();
  }

  leave(): void {
    this.ended = true;
    this.rest();
    reportConnection(this, true);
  }

  private take({ terminal, events, error }: Frame): void {
    if (terminal) {
      this.pos = terminal.pos;
      this.listener.screen(terminal);
    }
    if (events) {
      this.pos = events.at(-1)?.pos ?? this.pos;
      this.listener.events(events.map(({ event }) => event));
    }
    if (error !== undefined) this.listener.refused(error);
  }

  /** A browser does not report why a socket was refused, so the list of terminals is checked. */
  private async comeBack(): Promise<void> {
    for (let wait = FIRST_RETRY_MS; !this.ended; wait = Math.min(2 * wait, LAST_RETRY_MS)) {
      try {
        const terminals = await v1.terminals();
        if (this.ended) return;
        return terminals.some(({ id }) => id === this.id) ? this.open() : this.end("lost");
      } catch {
        // Not there, or not yet: retried until it is.
        if (this.ended) return;
        reportConnection(this, false);
        await pause(wait);
      }
    }
  }

  private end(how: "closed" | "lost"): void {
    this.leave();
    this.listener.gone(how);
  }
}
