/** The page of one session. */

import { explain } from "../api";
import { notificationButton, notify } from "../notifications";
import { byId, make } from "../page";
import { ask, dialog, shortcuts } from "../shortcuts";
import { TerminalPanel } from "../terminal/panel";
import { exportAddress, sessionAddress, v1 } from "../v1";
import { Composer } from "./composer";
import { Conversation } from "./conversation";
import { showFiles } from "./files";
import { showGrants } from "./grants";
import { chooseModel } from "./model";
import type { Acts } from "./pieces";
import { QueueView } from "./queue";
import { active, type LogRecord, type SessionState, statusOf } from "./state";
import { Stream } from "./stream";
import { folder, STATUS, words } from "./words";

const id = new URLSearchParams(window.location.search).get("id") ?? "";
const trouble = byId("trouble");
let state: SessionState | undefined;

async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    trouble.hidden = true;
    return true;
  } catch (error) {
    trouble.textContent = explain(error);
    trouble.hidden = false;
    return false;
  }
}

const acts: Acts = {
  attempt,
  cwd: () => state?.cwd ?? "",
  fork: (turn) => void attempt(async () => window.location.assign(sessionAddress((await v1.fork(id, turn)).id))),
  resume: () => void attempt(() => v1.resume(id)),
  files: (turn) => state && showFiles(state, turn),
};
const conversation = new Conversation(byId("transcript"), byId("to-end", HTMLButtonElement), acts);
const queue = new QueueView(byId("queue"), acts);
const composer = new Composer(id, acts);
const terminal = new TerminalPanel(id, attempt);

function showHead(now: SessionState): void {
  const status = statusOf(now);
  const title = now.title || "New session";
  byId("title").textContent = title;
  document.title = `${status === "waiting" ? "(!) " : status === "running" ? "… " : ""}${title} · Portico`;
  const pill = byId("status");
  const word = now.closed ? "Closed" : STATUS[status];
  if (pill.textContent !== word) pill.textContent = word;
  pill.className = `status ${now.closed ? "closed" : status}`;
  const place = make("span", "", folder(now.cwd));
  place.title = now.cwd;
  const usage = words(now.usage);
  byId("facts").replaceChildren(make("span", "", `${now.agent} · ${now.model}`), place, ...(usage ? [make("span", "", usage)] : []), ...relatives(now));
  byId("stop").hidden = !active(now);
  byId("archive").textContent = now.archived ? "Take out of the archive" : "Archive";
  byId("close").textContent = now.closed ? "Reopen" : "Close";
  queue.show(now);
  composer.show(now);
}

function relatives(now: SessionState): HTMLElement[] {
  const link = (session: string, text: string) => {
    const anchor = make("a", "", text);
    anchor.href = sessionAddress(session);
    return anchor;
  };
  const children = now.children ?? [];
  return [...(now.parent ? [link(now.parent, "from another session")] : []), ...children.slice(-3).map((child) => link(child, `child ${child}`))];
}

/** Whoever looks at the page has read it, once nothing moves any more. */
function markRead(now: SessionState): void {
  // Who may only read cannot leave a mark, and need not hear of it.
  if (now.read === false && !document.hidden && !active(now)) v1.change(id, { read: true }).catch(() => undefined);
}

/** Whoever looked away is told what waits for them, and what is done. */
function tellAway(now: SessionState, events: LogRecord["event"][]): void {
  const title = now.title || "New session";
  const asked = events.some(({ type }) => type === "approval.asked" || type === "question.asked");
  const ended = events.findLast(({ type }) => type === "turn.ended");
  if (asked && statusOf(now) === "waiting") notify(title, "The agent waits for your answer.", id);
  else if (ended) notify(title, ended["outcome"] === "completed" ? "The agent is done." : `The agent stopped: ${String(ended["outcome"])}.`, id);
}

const stream = new Stream(id, {
  opened(now) {
    state = now;
    conversation.open(now);
    showHead(now);
    markRead(now);
  },
  moved(now, events: LogRecord["event"][]) {
    conversation.move(now, events);
    // Deltas change nothing up there, and there are thousands of them.
    if (events.some(({ type }) => !DELTAS.has(type))) showHead(now);
    if (events.some(({ type }) => type === "turn.ended")) markRead(now);
    tellAway(now, events);
  },
  gone() {
    const lead = make("p", "page-hint", "This session does not exist (any more). ");
    const anchor = make("a", "", "All sessions");
    anchor.href = "./sessions.html";
    lead.append(anchor);
    document.querySelector("main")?.replaceChildren(lead);
  },
});
const DELTAS = new Set(["part.delta", "tool.input", "tool.output"]);

document.addEventListener("visibilitychange", () => state && markRead(state));

function rename(): void {
  const box = dialog("Rename");
  const form = make("form", "stack");
  const input = make("input");
  input.value = state?.title ?? "";
  input.maxLength = 200;
  input.setAttribute("aria-label", "Title");
  form.append(input, make("button", "primary", "Rename"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.close();
    void attempt(() => v1.change(id, { title: input.value.trim() }));
  });
  box.append(form);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  input.select();
}

function withState(work: (now: SessionState) => void): void {
  if (state) work(state);
}

const showChanges = () => withState((now) => showFiles(now));
const switchModel = () => withState((now) => void attempt(() => chooseModel(now, attempt)));

const menu = byId("menu", HTMLDetailsElement);
function on(button: string, click: () => void): void {
  byId(button).addEventListener("click", () => {
    menu.open = false;
    click();
  });
}
document.addEventListener("click", (event) => {
  if (menu.open && !menu.contains(event.target as Node)) menu.open = false;
});
menu.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !menu.open) return;
  menu.open = false;
  menu.querySelector("summary")?.focus();
});

const stop = () => void attempt(() => v1.cancel(id));
on("stop", stop);
on("rename", rename);
on("fork", () => void attempt(async () => window.location.assign(sessionAddress((await v1.fork(id)).id))));
on("model", switchModel);
on("changes", showChanges);
on("grants", () => withState((now) => void attempt(() => showGrants(now, attempt))));
on("terminal", () => terminal.toggle());
on("archive", () => void attempt(() => v1.change(id, { archived: !state?.archived })));
on("close", () => void attempt(() => (state?.closed ? v1.reopen(id) : v1.close(id))));
on("delete", () =>
  ask("Delete this session?", "Its history and the sessions that came out of it go with it. This cannot be undone.", "Delete", () =>
    attempt(async () => {
      await v1.remove(id);
      window.location.assign("./sessions.html");
    }),
  ),
);
notificationButton(byId("notify", HTMLButtonElement));
byId("export-markdown", HTMLAnchorElement).href = exportAddress(id, "markdown");
byId("export-html", HTMLAnchorElement).href = exportAddress(id, "html");
byId("export-jsonl", HTMLAnchorElement).href = exportAddress(id, "jsonl");

shortcuts(
  [
    { key: "y", text: "Allow what waits", run: () => conversation.press("y") },
    { key: "n", text: "Refuse what waits", run: () => conversation.press("n") },
    { key: "w", text: "Go to what waits for you", run: () => conversation.goToWaiting() },
    { key: "i", text: "Write a message", run: () => composer.focus() },
    { key: "e", text: "Go to the end", run: () => conversation.toEnd() },
    { key: "f", text: "Files changed", run: showChanges },
    { key: "t", text: "Terminal", run: () => terminal.toggle() },
    { key: "m", text: "Another model", run: switchModel },
    { key: "r", text: "Rename", run: rename },
    { key: ".", text: "Stop the agent", run: () => (state && active(state) ? stop() : false) },
    { key: "s", text: "All sessions", run: () => window.location.assign("./sessions.html") },
  ],
  [
    ["Ctrl+Enter", "Send; while the agent works: queue"],
    ["Ctrl+Shift+Enter", "Steer: give it to the working agent now"],
  ],
);

if (id) void stream.open();
else window.location.replace("./sessions.html");
