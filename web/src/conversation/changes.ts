/** The files a session has changed, from its calls: for folders outside of git. */

import { make } from "../page";
import { diffView, unified } from "./diff";
import { exact, relative } from "./pieces";
import type { CallPart, SessionState } from "./state";
import { CHANGES } from "../texts/conversation";

export interface Change {
  path: string;
  diff: string;
}

/** What a call changes: what was shown for approval, or what the agent reported. */
export function changesOf(call: CallPart): Change[] {
  const shown = call.approvals?.findLast(({ diff }) => diff);
  if (shown?.diff) return [{ path: shown.path ?? call.title ?? call.tool, diff: shown.diff }];
  return (call.content ?? []).flatMap((each) => {
    if (each["type"] !== "diff" || typeof each["new"] !== "string") return [];
    const path = String(each["path"] ?? call.tool);
    // The host has compared both sides; an older one has not.
    return [{ path, diff: typeof each["diff"] === "string" ? each["diff"] : unified(path, typeof each["old"] === "string" ? each["old"] : "", each["new"]) }];
  });
}

/** By file, in the order in which they were first changed; only what really happened. */
export function changedFiles(state: SessionState, only = ""): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const turn of (state.turns ?? []).filter(({ id }) => !only || id === only))
    for (const part of turn.parts ?? [])
      if (part.part === "call" && part.ok)
        for (const { path, diff } of changesOf(part)) files.set(path, [...(files.get(path) ?? []), diff]);
  return files;
}

export function changesView(files: Map<string, string[]>, cwd: string): HTMLElement[] {
  if (files.size === 0) return [make("p", "soft", CHANGES.noneChangesThatTheAgent)];
  return [...files].map(([path, diffs]) => {
    const details = make("details", "file");
    details.open = files.size <= 3;
    details.append(make("summary", "", relative(path, cwd)), ...diffs.map((diff) => diffView(exact(diff), undefined, path)));
    return details;
  });
}
