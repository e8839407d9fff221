/** What was answered once and for all: which calls of this session are allowed or refused without asking again. */

import { make } from "../page";
import { html, render, type TemplateResult } from "../render";
import { dialog } from "../shortcuts";
import { GRANTS, COVERS } from "../texts/cards";
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
  if (covers.length === 0) return COVERS.everythingDoes(exact(tool));
  return covers.map((each) => oneCover(each, cwd)).join(", ");
}

/** What an answer allows, in words that follow "Allow" or "You allowed". */
export function coverPhrase(covers: string[], approval: Approval, call: CallPart, cwd: string): string {
  const words = coverWords(covers, call.tool, cwd);
  const files = covers.length > 0 && covers.every((each) => /^(path|folder):/.test(each));
  return files && approval.kind === "write" ? COVERS.edits(words) : files && approval.kind === "read" ? COVERS.reads(words) : words;
}

function oneCover(cover: string, cwd: string): string {
  const [kind = "", about = ""] = cover.split(/:(.*)/s);
  if (kind === "path") return relative(about, cwd);
  if (kind === "folder") return about === cwd ? COVERS.everyFileInThisProject : COVERS.everyFile(relative(about, cwd));
  if (kind === "host") return COVERS.host(exact(about));
  if (kind === "read" || kind === "write") return COVERS.folder(kind, exact(about));
  if (kind === "command") return `${exact(about)} …`;
  return kind === "line" ? exact(about) : COVERS.thisCall;
}

export async function showGrants(state: SessionState, attempt: Attempt): Promise<void> {
  const box = dialog(GRANTS.title);
  box.addEventListener("close", () => box.remove());
  const list = make("ul", "grants");
  const load = async () => {
    const found = grantsOf(state, await v1.grants());
    const forget = async ({ id }: Grant) => ((await attempt(() => v1.revoke(id))) ? load() : undefined);
    render(found.length === 0 ? html`<li class="soft">${GRANTS.none}</li>` : found.map((grant) => item(grant, state.cwd, () => void forget(grant))), list);
  };
  box.append(list);
  await load();
  box.showModal();
}

export function grantWords(grant: Grant, cwd: string): string {
  const pattern = grant.pattern && grant.pattern !== "*" ? [exact(grant.pattern)] : [];
  const about = grant.covers?.length ? coverWords(grant.covers, grant.tool, cwd) : pattern[0] ?? coverWords([], grant.tool, cwd);
  return `${grant.allow ? COVERS.allowed : COVERS.refused}: ${about === `everything ${exact(grant.tool)} does` ? about : `${exact(grant.tool)}, ${about}`}`;
}

function item(grant: Grant, cwd: string, forget: () => void): TemplateResult {
  const until = new Date(grant.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return html`<li><span>${grantWords(grant, cwd)}</span><span class="soft">${GRANTS.until(grant.session ? GRANTS.session : GRANTS.project, until)}</span><button type="button" class="quiet" @click=${forget}>${GRANTS.forget}</button></li>`;
}
