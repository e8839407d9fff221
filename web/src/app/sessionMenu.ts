/** What can be done with a session, behind one button. */

import { active } from "../conversation/state";
import { exportAddress, v1 } from "../v1";
import { menu } from "./menu";
import { pathOf } from "./router";
import type { OpenSession, SessionContext } from "./view";

const EXPORTS = [["markdown", "Markdown"], ["html", "HTML"], ["jsonl", "JSON Lines"]] as const;

export function sessionMenu(view: OpenSession, frame: SessionContext): HTMLElement {
  const attempt = (work: () => Promise<unknown>) => void view.attempt(work);
  return menu("menu", "More of this session", () => {
    const { id, state } = view;
    const last = state?.turns?.at(-1);
    const stopped = state && !active(state) && (last?.outcome === "interrupted" || last?.outcome === "failed");
    return [
      ...(stopped ? [{ id: "resume", text: "Resume", run: () => attempt(() => v1.resume(id)) }] : []),
      { id: "rename", text: "Rename", key: "R", run: () => rename(view) },
      { id: "fork", text: "Continue in a copy", run: () => void view.fork() },
      { id: "link", text: "Copy the link", run: () => attempt(() => navigator.clipboard.writeText(window.location.origin + pathOf({ at: "session", id }))) },
      { id: "native", text: "Continue in the terminal…", run: () => attempt(async () => (await import("./listLater")).showCommand(id)) },
      { id: "changes", text: "Files changed", key: "D", run: () => frame.panelAt("changes") },
      { id: "terminal", text: "Terminal", key: "T", run: () => frame.panelAt("terminal") },
      { id: "details", text: "Details and cost", run: () => frame.panelAt("details") },
      { id: "grants", text: "Remembered answers", run: () => state && attempt(async () => (await import("../conversation/grants")).showGrants(state, (work) => view.attempt(work))) },
      { id: "archive", text: state?.archived ? "Take out of the archive" : "Archive", key: "E", run: () => attempt(() => v1.change(id, { archived: !state?.archived })) },
      { id: "close", text: state?.closed ? "Reopen" : "Close", run: () => attempt(() => (state?.closed ? v1.reopen(id) : v1.close(id))) },
      ...EXPORTS.map(([format, name]) => ({ id: `export-${format}`, text: `Export as ${name}`, href: exportAddress(id, format) })),
      { id: "delete", text: "Delete…", danger: true, run: () => remove(view, frame) },
    ];
  });
}

function remove(view: OpenSession, frame: SessionContext): void {
  const work = async () => {
    await v1.remove(view.id);
    frame.go({ at: "home" });
  };
  void import("./sessionDialogs").then(({ askDelete }) => askDelete("this session", () => view.attempt(work)));
}

export function rename(view: OpenSession): void {
  void import("./sessionDialogs").then(({ askTitle }) => askTitle(view.state?.title ?? "", (title) => void view.attempt(() => v1.change(view.id, { title }))));
}
