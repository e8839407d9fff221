/** The keys of the workbench: one table of what each does (also listed behind `?`), and one of when a key applies. */

import { active } from "../conversation/state";
import { page, Scope } from "../scope";
import { v1 } from "../v1";
import { listed } from "./places";
import { rename } from "./sessionMenu";
import type { Key, Workbench } from "./workbench";
import { KEY_TEXTS } from "../texts/keys";

let loading = false;

/** Its code is loaded with its first use; what is typed before it is here is its text, and runs no key of the page. */
export function openPalette(shell: Workbench): void {
  if (loading) return;
  loading = true;
  let typed = "";
  const keep = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Backspace") typed = typed.slice(0, -1);
    else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) typed += event.key;
  };
  const scope = new Scope();
  scope.on(document, "keydown", keep, { capture: true });
  void import("./palette")
    .then((module) => module.openPalette(shell, KEYS, typed))
    .finally(() => {
      loading = false;
      scope.end();
    });
}

const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const TWICE_MS = 700;

const step = (by: 1 | -1) => (shell: Workbench) => {
  if (shell.view?.stepBy) return shell.view.stepBy(by);
  const entry = shell.list.step(by);
  if (!entry) return false;
  shell.open(entry, true);
  return undefined;
};

export const KEYS: Key[] = [
  { keys: "Ctrl+K", text: KEY_TEXTS.searchOrRunACommand },
  { keys: "j", text: KEY_TEXTS.nextSessionOrNext, run: step(1) },
  { keys: "k", text: KEY_TEXTS.previous, run: step(-1) },
  { keys: "z", text: KEY_TEXTS.nextThatNeedsYou, run: (shell) => shell.nextNeeded() },
  { keys: "g s", text: KEY_TEXTS.sessions, run: (shell) => shell.go({ at: "home" }) },
  ...listed().flatMap(({ row, place }): Key[] => (row.key ? [{ keys: row.key, text: row.title, run: (shell) => shell.go(place) }] : [])),
  { keys: "/", text: KEY_TEXTS.toTheMessageBox, run: (shell) => (shell.session && !document.activeElement?.closest(".list") ? shell.session.composer.focus() : shell.list.search.focus()) },
  { keys: "f", text: KEY_TEXTS.filterTheList, run: (shell) => shell.list.search.focus() },
  { keys: "y", text: KEY_TEXTS.allowOnceWhatWaits, run: (shell) => shell.answering?.press?.("y") ?? false },
  { keys: "n", text: KEY_TEXTS.denyWhatWaits, run: (shell) => (shell.panel.hasFocus() ? shell.panel.step(1) : (shell.answering?.press?.("n") ?? false)) },
  { keys: "a", text: KEY_TEXTS.allowMore, run: allowMore },
  { keys: "o", text: KEY_TEXTS.openOrFoldTheBlock, run: (shell) => shell.session?.conversation.toggle() ?? false },
  { keys: ".", text: KEY_TEXTS.moreOfTheSession, run: () => openMore() },
  { keys: "1…9", text: KEY_TEXTS.chooseAnAnswer },
  { keys: "w", text: KEY_TEXTS.goToWhatWaits, run: (shell) => shell.session?.conversation.goToWaiting() ?? false },
  { keys: "d", text: KEY_TEXTS.changesOpenOrClosed, run: (shell) => shell.panel.toggle("changes") },
  { keys: "t", text: KEY_TEXTS.terminal, run: (shell) => shell.panel.toggle("terminal") },
  { keys: "[", text: KEY_TEXTS.listHiddenOrShown, run: (shell) => shell.toggleSide() },
  { keys: "]", text: KEY_TEXTS.panelHiddenOrShown, run: (shell) => shell.panel.toggle() },
  { keys: "u", text: KEY_TEXTS.unifiedOrSideBySide, run: (shell) => shell.panel.switchMode() },
  { keys: "p", text: KEY_TEXTS.previousChangeInTheChanges, run: (shell) => (shell.panel.hasFocus() ? shell.panel.step(-1) : false) },
  { keys: "v", text: KEY_TEXTS.markTheFileAsViewed, run: (shell) => shell.panel.viewed() },
  { keys: "m", text: KEY_TEXTS.commentOnTheLine, run: (shell) => shell.panel.comment() },
  { keys: "r", text: KEY_TEXTS.renameResumeIfInterrupted, run: renameOrResume },
  { keys: "e", text: KEY_TEXTS.archive, run: (shell) => (shell.session ? void shell.archive() : false) },
  { keys: "End", text: KEY_TEXTS.toTheNewestAndFollow, run: (shell) => (shell.session ? shell.session.conversation.toEnd() : false) },
  { keys: "Alt+Up", text: KEY_TEXTS.previousMessageOfYoursAlt },
  { keys: "Enter", text: KEY_TEXTS.sendShiftEnterALine },
  { keys: "Ctrl+Enter", text: KEY_TEXTS.sendToTheWorkingAgent },
  { keys: "Esc", text: KEY_TEXTS.closeOrLeaveTheField },
  { keys: "Shift+Esc", text: KEY_TEXTS.leaveTheTerminal },
  { keys: "Esc Esc", text: KEY_TEXTS.stopTheTurn },
  { keys: "?", text: KEY_TEXTS.thisList, run: () => void import("./keyList").then(({ showKeys }) => showKeys(KEYS)) },
];

/** Opens the menu of the wider answers, which lists what each of them covers. An answer without a menu only gets the focus: a key grants nothing. */
function allowMore(): boolean {
  const found = document.querySelector<HTMLElement>("main .card.approval .answers button:enabled:not(.primary, .danger, .apart)");
  if (found?.matches("[aria-haspopup]")) found.click();
  else found?.focus();
  return found !== null;
}

function openMore(): boolean {
  const row = document.activeElement?.closest(".entry-row")?.querySelector<HTMLElement>(".row-more");
  if (row) return row.click(), true;
  const menu = document.querySelector<HTMLDetailsElement>("main .menu-button");
  if (!menu) return false;
  menu.open = true;
  // Its choices are made as it opens.
  setTimeout(() => menu.querySelector<HTMLElement>(".menu > *")?.focus());
  return true;
}

function renameOrResume(shell: Workbench): boolean | void {
  const view = shell.session;
  if (!view?.state) return false;
  const interrupted = !active(view.state) && view.state.turns?.at(-1)?.outcome === "interrupted";
  if (interrupted) void view.attempt(() => v1.resume(view.id));
  else rename(view);
}

/** One key that was pressed. */
interface Press {
  event: KeyboardEvent;
  /** Letters in lower case: Caps Lock changes nothing. */
  key: string;
  /** With Ctrl or Cmd. */
  command: boolean;
  /** In a field: letters are text. */
  typing: boolean;
  target: Element | undefined;
}

/** What was pressed before: `g` begins a sequence, a second Escape stops the turn. */
interface Before {
  sequence: string;
  escaped: number;
}

interface Rule {
  when(press: Press, shell: Workbench): boolean;
  /** False: the key stays the browser's. */
  run(press: Press, shell: Workbench, before: Before): boolean | void;
}

const isOpen = (selector: string) => document.querySelector(selector) !== null;

/** In this order: the first rule that applies takes the key. */
const RULES: Rule[] = [
  { when: ({ command, key }) => command && key === "k", run: (_, shell) => openPalette(shell) },
  { when: () => isOpen("dialog[open]"), run: () => false },
  { when: ({ key }) => key === "Escape", run: escape },
  { when: ({ event, key }) => event.altKey && (key === "ArrowUp" || key === "ArrowDown"), run: ({ key }, shell) => shell.session?.conversation.stepMessage(key === "ArrowUp" ? -1 : 1) ?? false },
  { when: ({ command, key, typing }, shell) => command && key === "Enter" && !typing && shell.panel.sendComments(), run: () => true },
  { when: ({ event, command, typing, target }) => command || event.altKey || typing || target?.closest(".xterm") != null, run: () => false },
  { when: ({ key }, shell) => key.length === 1 && !shell.lettersOn(), run: () => false },
  { when: ({ key }, shell) => /^[1-9]$/.test(key) && (shell.answering?.chooseAnswer?.(key) ?? false), run: () => true },
  { when: () => true, run: runKey },
];

/** Leaves a field; twice stops the turn; otherwise closes the panel where it covers the conversation. */
function escape({ event, typing, target }: Press, shell: Workbench, before: Before): boolean {
  const twice = event.timeStamp - before.escaped < TWICE_MS;
  before.escaped = event.timeStamp;
  if (typing && target instanceof HTMLElement) target.blur();
  else if (twice && shell.session?.state && active(shell.session.state)) {
    before.escaped = Number.NEGATIVE_INFINITY; // a third press does not stop it again
    void shell.session.stop();
  } else shell.panel.escape();
  return false;
}

/** A key of the table. Two keys in a row have their own meaning, independent of what the second does alone. */
function runKey({ key, target }: Press, shell: Workbench, before: Before): boolean | void {
  const sequence = `${before.sequence} ${key}`;
  before.sequence = key === "g" ? "g" : "";
  const arrow = target?.closest(".list, .inbox") ? { ArrowDown: "j", ArrowUp: "k" }[key] : undefined;
  const find = (wanted: string) => KEYS.find(({ run, keys: each }) => run && each === wanted);
  const found = find(sequence) ?? find(arrow ?? key);
  return found?.run ? found.run(shell) : false;
}

export function keys(shell: Workbench): void {
  const before: Before = { sequence: "", escaped: Number.NEGATIVE_INFINITY };
  page.on(document, "keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const target = event.target instanceof Element ? event.target : undefined;
    const press: Press = { event, key: event.key.length === 1 ? event.key.toLowerCase() : event.key, command: event.ctrlKey || event.metaKey, typing: target?.matches(TYPING) ?? false, target };
    const rule = RULES.find(({ when }) => when(press, shell));
    if (rule && rule.run(press, shell, before) !== false) event.preventDefault();
  });
}
