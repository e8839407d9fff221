/** What was answered once and for all: which calls of this session are allowed or refused without asking again. */

import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { type Grant, v1 } from "../v1";
import { exact, relative } from "./pieces";
import type { Approval, CallPart, SessionState } from "./state";

type Attempt = (work: () => Promise<unknown>) => Promise<boolean>;

/** Those that can meet a call of this session. */
export function grantsOf(state: SessionState, grants: Grant[]): Grant[] {
  const inside = (folder: string) => state.cwd === folder || state.cwd.startsWith(`${folder}/`);
  return grants.filter(({ agent, session, project }) => agent === state.agent && (session === state.id || (project !== undefined && project !== null && inside(project))));
}

/** What a remembered answer is about, in words; nothing listed: all that the tool does. */
export function coverWords(covers: string[], tool: string, cwd: string): string {
  if (covers.length === 0) return `everything ${exact(tool)} does`;
  return covers.map((each) => oneCover(each, cwd)).join(", ");
}

/** What an answer allows, in words that follow "Allow" or "You allowed". */
export function coverPhrase(covers: string[], approval: Approval, call: CallPart, cwd: string): string {
  const words = coverWords(covers, call.tool, cwd);
  const files = covers.length > 0 && covers.every((each) => /^(path|folder):/.test(each));
  return files && approval.kind === "write" ? `edits to ${words}` : files && approval.kind === "read" ? `reading ${words}` : words;
}

function oneCover(cover: string, cwd: string): string {
  const [kind = "", about = ""] = cover.split(/:(.*)/s);
  if (kind === "path") return relative(about, cwd);
  if (kind === "folder") return about === cwd ? "every file in this project" : `every file in ${relative(about, cwd)}/`;
  if (kind === "host") return `connections to ${exact(about)}`;
  if (kind === "read" || kind === "write") return `${kind === "read" ? "reading" : "reading and writing"} ${exact(about)}`;
  if (kind === "command") return `${exact(about)} …`;
  return kind === "line" ? exact(about) : "exactly this call";
}

export async function showGrants(state: SessionState, attempt: Attempt): Promise<void> {
  const box = dialog("Remembered answers");
  box.addEventListener("close", () => box.remove());
  const list = make("ul", "grants");
  const load = async () => {
    const found = grantsOf(state, await v1.grants());
    list.replaceChildren(...found.map((grant) => item(grant, state.cwd, () => void attempt(() => v1.revoke(grant.id)).then((done) => (done ? load() : undefined)))));
    if (found.length === 0) list.replaceChildren(make("li", "soft", "None. “Allow in this session” on an approval remembers the answer here, until you forget it or it expires."));
  };
  box.append(list);
  await load();
  box.showModal();
}

export function grantWords(grant: Grant, cwd: string): string {
  const pattern = grant.pattern && grant.pattern !== "*" ? [exact(grant.pattern)] : [];
  const about = grant.covers?.length ? coverWords(grant.covers, grant.tool, cwd) : pattern[0] ?? coverWords([], grant.tool, cwd);
  return `${grant.allow ? "Allowed" : "Refused"}: ${about === `everything ${exact(grant.tool)} does` ? about : `${exact(grant.tool)}, ${about}`}`;
}

function item(grant: Grant, cwd: string, forget: () => void): HTMLElement {
  const row = make("li");
  const text = make("span", "", grantWords(grant, cwd));
  const until = new Date(grant.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const about = make("span", "soft", `${grant.session ? "this session" : "this project"}, until ${until}`);
  row.append(text, about, makeButton("quiet", "Forget", forget));
  return row;
}
