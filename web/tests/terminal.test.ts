import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerOf } from "./net";
import { Link, type Listener } from "../src/terminal/link";
import { wordsOf } from "../src/terminal/pane";
import { keepStrict } from "../src/terminal/strict";
import type { Terminal } from "../src/v1";

class FakeSocket {
  static all: FakeSocket[] = [];
  static readonly OPEN = 1;
  readyState = FakeSocket.OPEN;
  sent: string[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.readyState = 3;
  }
  say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  drop(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

const TERMINAL: Terminal = { id: "terminal-1", title: "sh", cwd: "/srv/app", cols: 80, rows: 24, pos: 5 };
const heard: unknown[] = [];
const listener: Listener = {
  screen: (screen) => heard.push(["screen", screen.shown]),
  events: (events) => heard.push(...events.map(({ type }) => type)),
  gone: (how) => heard.push(["gone", how]),
  refused: (reason) => heard.push(["refused", reason]),
};
const lastSocket = () => FakeSocket.all.at(-1)!;

function answer(terminals: Terminal[] | undefined): void {
  vi.stubGlobal("fetch", async () => {
    if (!terminals) throw new TypeError("refused");
    return answerOf(200, JSON.stringify({ terminals }));
  });
}

beforeEach(() => {
  FakeSocket.all = [];
  heard.length = 0;
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function opened(): Link {
  const link = new Link("terminal-1", listener);
  link.open();
  lastSocket().say({ terminal: { ...TERMINAL, shown: "$ " } });
  lastSocket().say({ events: [{ pos: 6, event: { type: "terminal.data", text: "ls" } }, { pos: 7, event: { type: "terminal.titled" } }] });
  return link;
}

test("the first address has no cursor; what comes is handed on", () => {
  const link = opened();
  expect(lastSocket().url).toBe("ws://127.0.0.1:8888/v1/terminals/terminal-1/socket");
  expect(heard).toEqual([["screen", "$ "], "terminal.data", "terminal.titled"]);
  expect(link.send({ type: "input", data: "x" })).toBe(true);
  expect(lastSocket().sent).toEqual(['{"type":"input","data":"x"}']);
  lastSocket().say({ error: "No.", code: "conflict" });
  expect(heard.at(-1)).toEqual(["refused", "No."]);
});

test("a dropped socket comes back with its cursor, also after tries that fail", async () => {
  const link = opened();
  answer(undefined);
  lastSocket().drop();
  expect(link.send({ type: "input", data: "lost" })).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(document.querySelector<HTMLElement>(".connection-lost")?.hidden).toBe(false);
  answer([TERMINAL]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lastSocket().url).toMatch(/\?after=7$/);
  lastSocket().onopen?.();
  expect(document.querySelector<HTMLElement>(".connection-lost")?.hidden).toBe(true);
});

test("a terminal that is not there any more is gone, and one that was closed as well", async () => {
  opened();
  answer([]);
  lastSocket().drop();
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.at(-1)).toEqual(["gone", "lost"]);
  opened();
  lastSocket().drop(1000);
  expect(heard.at(-1)).toEqual(["gone", "closed"]);
});

test("who rests takes nothing, and goes on from there; who leaves never comes back", async () => {
  const link = opened();
  link.rest();
  lastSocket().drop(1000);
  expect(FakeSocket.all).toHaveLength(1);
  link.open();
  expect(lastSocket().url).toMatch(/\?after=7$/);
  link.leave();
  lastSocket().drop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(FakeSocket.all).toHaveLength(2);
  expect(heard).not.toContainEqual(["gone", "closed"]);
});

test("one line says what a terminal is", () => {
  expect(wordsOf(TERMINAL)).toBe("/srv/app · 80 × 24");
  expect(wordsOf({ ...TERMINAL, held: true })).toMatch(/an editor or an agent has it/);
  expect(wordsOf({ ...TERMINAL, exited: true, code: 3 })).toBe("The shell has ended with code 3.");
  expect(wordsOf({ ...TERMINAL, exited: true, code: null as never })).toBe("The shell has ended.");
});

test("style elements become sheets, style attributes become properties", () => {
  const sheets: { text: string }[] = [];
  class Sheet {
    text = "";
    constructor() {
      sheets.push(this);
    }
    replaceSync(text: string): void {
      this.text = text;
    }
  }
  vi.stubGlobal("CSSStyleSheet", Sheet);
  const page = document.implementation.createHTMLDocument() as Document & { adoptedStyleSheets: unknown[] };
  page.adoptedStyleSheets = [];
  keepStrict(page);
  keepStrict(page);
  const style = page.createElement("style");
  page.body.append(style);
  style.textContent = ".a { color: red }";
  expect([sheets[0]?.text, page.adoptedStyleSheets.length, page.querySelector("style")]).toEqual([".a { color: red }", 1, null]);
  style.remove();
  expect(page.adoptedStyleSheets).toEqual([]);
  const span = page.createElement("span");
  span.setAttribute("style", "color: rgb(1, 2, 3);");
  span.setAttribute("class", "b");
  expect([span.style.color, span.className]).toEqual(["rgb(1, 2, 3)", "b"]);
});
