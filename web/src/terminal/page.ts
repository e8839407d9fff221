/** The terminals of this host: one is shown, the others are a click away. */

import { explain } from "../api";
import { byId, make, makeButton } from "../page";
import { askFirst, shortcuts } from "../shortcuts";
import { type Terminal, terminalAddress, v1 } from "../v1";
import { watch } from "../watch";
import { TerminalPane } from "./pane";
import { TERMINAL_PAGE } from "../texts/terminal";

const query = new URLSearchParams(window.location.search);
const trouble = byId("trouble");
const tabs = byId("tabs");
const close = byId("close", HTMLButtonElement);
const empty = byId("empty");
let terminals: Terminal[] = [];
let selected = query.get("id") ?? "";
/** A terminal is shown. It stays after its end: its last screen can be read. */
let showing = false;

const pane = new TerminalPane({
  changed(terminal) {
    const known = terminals.find(({ id }) => id === terminal.id);
    if (known) Object.assign(known, terminal);
    render();
  },
  gone() {
    terminals = terminals.filter(({ id }) => id !== selected);
    render();
  },
});
pane.element.hidden = true;
byId("place").append(pane.element);

function report(error: unknown): void {
  trouble.textContent = error === undefined ? "" : explain(error);
  trouble.hidden = error === undefined;
}

async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    trouble.hidden = true;
  } catch (error) {
    report(error);
  }
}

function render(): void {
  tabs.replaceChildren(...terminals.map(tab));
  tabs.hidden = terminals.length === 0;
  const now = terminals.find(({ id }) => id === selected);
  close.hidden = !now;
  pane.element.hidden = !showing;
  empty.hidden = showing;
  document.title = `${now?.title ?? TERMINAL_PAGE.terminals} · Portico`;
}

function tab(terminal: Terminal): HTMLElement {
  const button = makeButton("tab", nameOf(terminal), () => select(terminal.id));
  button.setAttribute("role", "tab");
  button.setAttribute("aria-selected", String(terminal.id === selected));
  button.tabIndex = terminal.id === selected ? 0 : -1;
  if (terminal.exited) button.append(make("span", "soft", " (ended)"));
  button.title = terminal.cwd;
  button.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step) (button.parentElement?.children[(terminals.indexOf(terminal) + step + terminals.length) % terminals.length] as HTMLElement | undefined)?.focus();
  });
  return button;
}

/** Shells have the same name; the folder distinguishes them. */
function nameOf({ title, cwd }: Terminal): string {
  return `${title} · ${cwd.split("/").at(-1) || "/"}`;
}

function select(id: string): void {
  selected = id;
  showing = true;
  window.history.replaceState(null, "", terminalAddress(id));
  render();
  void pane.open(id);
}

function open(): void {
  void attempt(async () => {
    const terminal = await v1.openTerminal(query.get("session") ?? undefined);
    if (!terminals.some(({ id }) => id === terminal.id)) terminals.push(terminal); // the watch may have been quicker
    if (selected !== terminal.id) select(terminal.id);
  });
}

function end(): void {
  const now = terminals.find(({ id }) => id === selected);
  if (!now) return;
  const work = () => attempt(() => v1.closeTerminal(now.id));
  if (now.exited) void work();
  else askFirst(TERMINAL_PAGE.endThisShell, TERMINAL_PAGE.theShellAndAllPrograms, TERMINAL_PAGE.endIt, work);
}

async function load(): Promise<void> {
  terminals = await v1.terminals();
  const first = selected ? terminals.find(({ id }) => id === selected) : terminals[0];
  if (first && !showing) return select(first.id);
  if (selected && !showing) {
    byId("empty-title").textContent = TERMINAL_PAGE.thisShellIsNoMore;
    byId("empty-text").textContent = TERMINAL_PAGE.itWasClosed;
  }
  render();
}

byId("new").addEventListener("click", open);
byId("first").addEventListener("click", open);
close.addEventListener("click", end);
shortcuts(
  [
    { key: "c", text: TERMINAL_PAGE.newTerminal, run: open },
    { key: "x", text: TERMINAL_PAGE.closeTheTerminal, run: end },
    { key: "i", text: TERMINAL_PAGE.typeIntoTheTerminal, run: () => pane.focus() },
    { key: "s", text: TERMINAL_PAGE.allSessions, run: () => window.location.assign("./app") },
  ],
  [
    ["Shift+Esc", TERMINAL_PAGE.leaveTheTerminal],
    ["Ctrl+C", TERMINAL_PAGE.copyIfSomethingIsSelected],
    ["Ctrl+V", TERMINAL_PAGE.paste],
  ],
);

watch(load, report);
