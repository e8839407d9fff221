/** All sessions: what runs, what waits for you, what you have not read; and a new one. */

import { explain } from "./api";
import { plain } from "./conversation/pieces";
import type { Summary } from "./conversation/state";
import { ago, folder, STATUS, words } from "./conversation/words";
import { NewSession } from "./newSession";
import { byId, make } from "./page";
import { matches, ofJob } from "./search";
import { shortcuts } from "./shortcuts";
import { type Hit, sessionAddress, v1 } from "./v1";
import { watch } from "./watch";

const list = byId("list");
const search = byId("search", HTMLInputElement);
const archived = byId("archived", HTMLInputElement);
/** Jobs leave closed sessions by the dozen, so these are shown on request. */
const closed = byId("closed", HTMLInputElement);
const trouble = byId("trouble");
const empty = byId("empty");
/** Rows that are built at once; a list of thousands is as quick as one of a hundred. */
const PAGE = 100;
const more = byId("more", HTMLButtonElement);
let sessions: Summary[] | undefined;
/** The host tells of the newest thousand; older ones are found by search. */
let older = 0;
let rows = PAGE;

function say(error: unknown): void {
  trouble.textContent = explain(error);
  trouble.hidden = false;
}

const form = new NewSession(say);

function show(): void {
  if (!sessions) return;
  const text = search.value.trim();
  const found = sessions.filter((session) => matches(session, text));
  const shown = found.filter((session) => (archived.checked || !session.archived) && (closed.checked || !session.closed));
  label("closed-text", "Closed", found.filter((session) => session.closed).length);
  label("archived-text", "Archived", found.filter((session) => session.archived).length);
  // Moving the focus under somebody's fingers is worse than a list that is a second old.
  const focused = (document.activeElement as HTMLElement | null)?.dataset["session"];
  list.replaceChildren(...shown.slice(0, rows).map(item));
  more.hidden = shown.length <= rows;
  more.textContent = `Show more (${shown.length - rows})`;
  byId("older").hidden = older === 0 || !more.hidden;
  byId("older").textContent = `${older} older sessions are not listed; search finds what was said in them.`;
  if (focused) list.querySelector<HTMLElement>(`[data-session="${CSS.escape(focused)}"]`)?.focus();
  teach(shown.length, text);
  const waiting = sessions.filter(({ status }) => status === "waiting").length;
  document.title = `${waiting ? `(${waiting}) ` : ""}Sessions · Portico`;
}

function label(id: string, text: string, number: number): void {
  byId(id).textContent = number ? `${text} (${number})` : text;
}

function item(session: Summary): HTMLElement {
  const row = make("li");
  const unread = session.read === false;
  const anchor = make("a", unread ? "session unread" : "session");
  anchor.href = sessionAddress(session.id);
  anchor.dataset["session"] = session.id;
  const title = make("span", "session-name");
  title.append(make("span", "session-title", session.title || "New session"), ...(unread ? [make("span", "unread-mark", "new")] : []), ...(ofJob(session) ? [make("span", "tag", "job")] : []));
  const status = session.closed ? make("span", "status closed", "Closed") : make("span", `status ${session.status}`, STATUS[session.status]);
  const turns = session.turns ?? 0;
  const facts = [
    `${session.agent} · ${session.model}`,
    `${turns} ${turns === 1 ? "turn" : "turns"}`,
    session.queued ? `${session.queued} waiting` : "",
    words(session.usage),
    session.archived ? "archived" : "",
    folder(session.cwd),
  ].filter(Boolean);
  const when = make("time", "soft", ago(session.modified));
  when.dateTime = new Date(session.modified).toISOString();
  const detail = make("span", "facts soft");
  detail.append(...facts.map((fact) => make("span", "", fact)));
  anchor.append(title, status, detail, when);
  row.append(anchor);
  return row;
}

function teach(shown: number, text: string): void {
  empty.hidden = shown > 0 || !byId("found").hidden;
  if (empty.hidden) return;
  if (text) return empty.replaceChildren(make("h2", "", "Nothing found"), make("p", "", "No title, agent or folder shown here has all of these words."));
  if (sessions?.length) return empty.replaceChildren(make("h2", "", "All put away"), make("p", "", "Every session is closed or archived. Tick Closed or Archived to see them."));
  empty.replaceChildren(
    make("h2", "", "No session yet"),
    make("p", "", "A session is one conversation with one agent in one folder. It lives on this host: close the page, come back from your phone, and it has gone on."),
    make("p", "", "Begin with New session. The demo agent needs no account and shows everything: try “write something”."),
  );
}

let asked = 0;
/** Typing is quicker than searching; only the last question counts. */
function searchTexts(): void {
  const text = search.value.trim();
  const mine = ++asked;
  if (text.length < 2) {
    byId("found").hidden = true;
    return show();
  }
  setTimeout(async () => {
    if (mine !== asked) return;
    try {
      const { hits } = await v1.search(text);
      if (mine !== asked) return;
      byId("found").hidden = hits.length === 0;
      byId("hits").replaceChildren(...hits.map(hitItem));
      show();
    } catch (error) {
      say(error);
    }
  }, 250);
}

function hitItem(hit: Hit): HTMLElement {
  const row = make("li");
  const anchor = make("a", "session hit");
  anchor.href = sessionAddress(hit.session);
  const title = sessions?.find(({ id }) => id === hit.session)?.title || hit.session;
  anchor.append(make("span", "session-title", title), make("span", "facts soft", plain(hit.excerpt)));
  row.append(anchor);
  return row;
}

function step(by: 1 | -1): boolean {
  const all = [...document.querySelectorAll<HTMLElement>(".list a")];
  const now = all.indexOf(document.activeElement as HTMLElement);
  all[Math.min(Math.max(now < 0 ? 0 : now + by, 0), all.length - 1)]?.focus();
  return all.length > 0;
}

search.addEventListener("input", () => {
  rows = PAGE;
  show();
  searchTexts();
});
more.addEventListener("click", () => {
  const next = list.children.length;
  rows += PAGE;
  show();
  list.children[next]?.querySelector("a")?.focus();
});
archived.addEventListener("change", show);
closed.addEventListener("change", show);
shortcuts(
  [
    { key: "j", text: "Next session", run: () => step(1) },
    { key: "k", text: "Session before", run: () => step(-1) },
    { key: "/", text: "Search", run: () => search.focus() },
    { key: "c", text: "New session", run: () => form.open() },
    { key: "a", text: "Agents", run: () => window.location.assign("./agents.html") },
  ],
  [["Enter", "Open the session"]],
);

watch(async () => {
  const found = await v1.sessions();
  sessions = found.sessions;
  older = found.total - sessions.length;
  show();
}).catch(say);
