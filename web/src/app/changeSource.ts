/** Where the changes of a session come from: the host's captures of turns, git, or the agent's own reports. */

import { root } from "../root";
import { request } from "../scope";
import { changedFiles } from "../conversation/changes";
import { countOf, type DiffLine, filesOf, linesOf } from "../conversation/diffLines";
import { exact, relative } from "../conversation/pieces";
import { active, waitingApproval } from "../conversation/state";
import { type ChangedFile, v1 } from "../v1";
import type { OpenSession } from "./view";
import { CHANGE_SOURCE } from "../texts/review";

export interface FileView {
  path: string;
  added: number;
  removed: number;
  status: ChangedFile["status"];
  from?: string;
  binary: boolean;
  /** Not allowed yet: the file is not written. */
  asked?: boolean;
  /** Reported by the agent only: the host has no copy. */
  reported?: boolean;
  /** It changed while no turn of this session ran: another session did it, or a person. */
  others?: boolean;
  diff?: string;
  lines?: DiffLine[];
}

export interface Changes {
  files: FileView[];
  /** A note above the files; empty: none. */
  note: string;
  /** Names the folder as it is now, for a commit. */
  state?: string;
  /** Other sessions work in this folder as well. */
  shared?: boolean;
}

const NOTHING = CHANGE_SOURCE.noFilesChangedYet;
const path = (id: string) => `/sessions/${encodeURIComponent(id)}`;

export class ChangeSource {
  constructor(private readonly view: OpenSession) {}

  /** `scope`: a turn, `uncommitted`, or empty for the whole session. */
  async load(scope: string): Promise<Changes> {
    if (scope === "uncommitted") return this.uncommitted();
    const [changes, own] = await Promise.all([this.captured(scope), v1.ownChanges(this.view.id)]);
    return { ...changes, shared: own.shared === true, files: scope || !own.files ? changes.files : changes.files.map((file) => ({ ...file, others: own.files?.includes(file.path) === false })) };
  }

  private async captured(scope: string): Promise<Changes> {
    const found = await v1.changes(this.view.id, scope || undefined);
    const files = found.files ?? [];
    if (!found.git) return this.reported(scope);
    if (found.note) return { ...this.reported(scope), note: CHANGE_SOURCE.onlyWhatTheAgentReported(found.note) };
    if (files.length === 0) return { files: [], note: scope ? CHANGE_SOURCE.thisTurnHasChanged : NOTHING };
    return { files: withDiffs(files, await text(`${path(this.view.id)}/changes/diff${scope ? `?${new URLSearchParams({ turn: scope })}` : ""}`)), note: "" };
  }

  private async uncommitted(): Promise<Changes> {
    const { git, state = "", files = [] } = await v1.uncommitted(this.view.id);
    if (!git) return { ...this.reported(""), state };
    if (files.length === 0) return { files: [], note: CHANGE_SOURCE.everythingIsCommitted, state };
    return { files: withDiffs(files, await text(`${path(this.view.id)}/uncommitted/diff`)), note: "", state };
  }

  /** A folder outside of git: the changes that the agent reported. */
  private reported(turn: string): Changes {
    const { state } = this.view;
    const found = state ? changedFiles(state, turn) : new Map<string, string[]>();
    const files = [...found].map(([name, diffs]): FileView => {
      const diff = diffs.join("\n");
      const lines = linesOf(exact(diff)).filter(({ kind }) => kind !== "file");
      return { path: relative(name, state?.cwd ?? ""), status: "modified", binary: false, reported: true, diff, lines, ...countOf(lines) };
    });
    return { files, note: files.length === 0 ? NOTHING : CHANGE_SOURCE.thisFolder };
  }

  /** Changes that wait for approval are listed first. */
  asked(scope: string): FileView[] {
    const { state } = this.view;
    const turn = state && active(state);
    if (!turn || (scope !== "" && scope !== turn.id)) return [];
    return (turn.parts ?? []).flatMap((part) => {
      const approval = part.part === "call" ? waitingApproval(part) : undefined;
      if (!approval?.diff || !approval.path) return [];
      const lines = linesOf(exact(approval.diff)).filter(({ kind }) => kind !== "file");
      return [{ path: relative(approval.path, state.cwd), status: "modified" as const, binary: false, asked: true, diff: approval.diff, lines, ...countOf(lines) }];
    });
  }

  /** The whole file, before or after the change; undefined: it was not there, or is too large to be shown. */
  async side(file: FileView, side: "before" | "after", scope: string): Promise<Blob | undefined> {
    const query = new URLSearchParams({ path: (side === "before" && file.from) || file.path, side });
    if (scope !== "" && scope !== "uncommitted") query.set("turn", scope);
    const response = await get(`${path(this.view.id)}/${scope === "uncommitted" ? scope : "changes"}/file?${query}`);
    return response.ok ? response.blob() : undefined;
  }
}

const get = (address: string) => request(`${root}/v1${address}`);

async function text(address: string): Promise<string> {
  const response = await get(address);
  return response.ok ? response.text() : "";
}

function withDiffs(files: ChangedFile[], diff: string): FileView[] {
  const parts = filesOf(exact(diff));
  return files.map((file) => {
    const own = parts.get(file.path);
    return { ...file, ...(own === undefined || file.binary ? {} : { diff: own, lines: linesOf(own).filter(({ kind }) => kind !== "file") }) };
  });
}
