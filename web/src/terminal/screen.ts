/** One terminal on the page: xterm.js over a `Link`. Large, so pages load it only when a terminal is opened. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { outsideAddress } from "../markdown";
import { letterScale } from "../page";
import { Link, type Listener, type Screen, type TerminalEvent } from "./link";
import { keepStrict } from "./strict";
import { themeOf } from "./theme";
import { SCREEN } from "../texts/terminal";

const FONT = "ui-monospace, \"SF Mono\", \"Cascadia Code\", Menlo, Consolas, \"DejaVu Sans Mono\", \"Liberation Mono\", monospace";
/** Characters that wait to be drawn before the host is asked to wait: more than a screenful, less than a stall. */
const BEHIND = 2_000_000;
const SETTLE_MS = 100;
/** Automatic answers of a terminal when a program asks for its type, cursor position or colors. */
const REPLY = /^\x1b(?:\[[?>=\d;]*[cRnIO]|\[\?[\d;]*\$y|[\]P])/;

export interface Viewer {
  /** What is known of the terminal has changed: title, folder, size, end. */
  changed(screen: Screen): void;
  gone(how: "closed" | "lost"): void;
  refused(reason: string): void;
}

export class TerminalView implements Listener {
  private readonly terminal: Terminal;
  private readonly fitting = new FitAddon();
  private readonly link: Link;
  private readonly sizes = new ResizeObserver(() => this.resized());
  private readonly night = window.matchMedia("(prefers-color-scheme: dark)");
  private readonly applyTheme = () => (this.terminal.options.theme = themeOf(this.night.matches));
  private state: Screen | undefined;
  /** Old output asks the terminal things; its answers must not be typed into the shell of today. */
  private replaying = false;
  private behind = 0;
  /** Typed before the terminal was there. */
  private early = "";
  private resting = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly holder: HTMLElement,
    id: string,
    private readonly viewer: Viewer,
  ) {
    this.terminal = new Terminal({
      fontFamily: FONT,
      fontSize: window.innerWidth < 640 ? 12 : Math.round(14 * letterScale()),
      minimumContrastRatio: 4.5,
      scrollback: 10_000,
      theme: themeOf(this.night.matches),
      linkHandler: { activate: (_, text) => visit(text) },
    });
    this.terminal.loadAddon(this.fitting);
    this.terminal.attachCustomKeyEventHandler((event) => this.key(event));
    keepStrict(document);
    this.terminal.open(holder);
    this.terminal.onData((data) => this.typed(data));
    this.terminal.textarea?.addEventListener("focus", () => this.fit());
    this.night.addEventListener("change", this.applyTheme);
    this.sizes.observe(holder);
    this.link = new Link(id, this);
    this.link.open();
  }

  // -- from the host

  screen(screen: Screen): void {
    this.state = screen;
    this.replaying = true;
    this.terminal.reset();
    this.terminal.resize(screen.cols, screen.rows);
    this.write(screen.shown ?? "", () => (this.replaying = false));
    this.render();
    this.fit();
    this.type(this.early);
    this.early = "";
  }

  events(events: TerminalEvent[]): void {
    for (const event of events) this.apply(event);
    if (events.some(({ type }) => type !== "terminal.data")) this.render();
  }

  private apply(event: TerminalEvent): void {
    const { state } = this;
    if (event.type === "terminal.data") this.write(String(event["text"] ?? ""));
    if (event.type === "terminal.cleared") this.terminal.clear();
    if (!state) return;
    if (event.type === "terminal.titled") state.title = String(event["title"]);
    if (event.type === "terminal.moved") state.cwd = String(event["cwd"]);
    if (event.type === "terminal.exited") Object.assign(state, { exited: true, code: event["code"] });
    if (event.type === "terminal.resized") {
      [state.cols, state.rows] = [Number(event["cols"]), Number(event["rows"])];
      this.terminal.resize(state.cols, state.rows);
    }
  }

  gone(how: "closed" | "lost"): void {
    this.terminal.options.disableStdin = true;
    this.viewer.gone(how);
  }

  refused(reason: string): void {
    this.viewer.refused(reason);
  }

  private render(): void {
    if (!this.state) return;
    this.terminal.options.disableStdin = Boolean(this.state.exited || this.state.held);
    this.viewer.changed(this.state);
  }

  /** A program can print faster than a browser draws: then the host is left, and asked again from where we are. */
  private write(text: string, done?: () => void): void {
    this.behind += text.length;
    if (this.behind > BEHIND && !this.resting) {
      this.resting = true;
      this.link.rest();
    }
    this.terminal.write(text, () => {
      this.behind -= text.length;
      done?.();
      if (this.behind > 0 || !this.resting) return;
      this.resting = false;
      this.link.open();
    });
  }

  // -- from the person

  private typed(data: string): void {
    // Two tabs on one terminal would answer a program's questions twice; the one in use answers.
    if (REPLY.test(data) && (this.replaying || !document.hasFocus())) return;
    if (this.state) this.type(data);
    else this.early += data;
  }

  type(data: string): void {
    if (data && this.state && !this.state.exited && !this.state.held) this.link.send({ type: "input", data });
  }

  /** False: the key is not the shell's. */
  private key(event: KeyboardEvent): boolean {
    const control = event.ctrlKey || event.metaKey;
    if (event.key === "Escape" && event.shiftKey) {
      if (event.type === "keydown") this.terminal.blur();
      return false;
    }
    if (control && event.key.toLowerCase() === "v") return false; // the browser pastes
    if (control && event.key.toLowerCase() === "c" && this.terminal.hasSelection()) {
      if (event.type === "keydown") void this.copy(event);
      return false;
    }
    return true;
  }

  private async copy(event: KeyboardEvent): Promise<void> {
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(this.terminal.getSelection());
      this.terminal.clearSelection();
    } catch {
      this.viewer.refused(SCREEN.theBrowserDoesNotLet);
    }
  }

  focus(): void {
    this.terminal.focus();
  }

  /** The terminal takes the size of this page. */
  private fit(): void {
    const wanted = this.fitting.proposeDimensions();
    const { state } = this;
    if (!wanted || !state || state.exited || state.held || !Number.isFinite(wanted.cols) || !Number.isFinite(wanted.rows)) return;
    if (wanted.cols === state.cols && wanted.rows === state.rows) return;
    this.link.send({ type: "resize", cols: wanted.cols, rows: wanted.rows });
  }

  private resized(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fit(), SETTLE_MS);
  }

  leave(): void {
    clearTimeout(this.timer);
    this.sizes.disconnect();
    this.night.removeEventListener("change", this.applyTheme);
    this.link.leave();
    this.terminal.dispose();
    this.holder.replaceChildren();
  }
}

function visit(text: string): void {
  const address = outsideAddress(text);
  if (address) window.open(address, "_blank", "noopener,noreferrer");
}
