/** What can be done with a session, behind one button. */

import { showGrants } from "../conversation/grants";
import { active } from "../conversation/state";
import { make } from "../page";
import { ask, dialog } from "../shortcuts";
import { exportAddress, v1 } from "../v1";
import { menu } from "./menu";
import type { Frame, SessionView } from "./sessionView";

export function sessionMenu(view: SessionView, frame: Frame): HTMLElement {
  const attempt = (work: () => Promise<unknown>) => void view.attempt(work);
  return menu("menu", "More of this session", () => {
    const { id, state } = view;
    const last = state?.turns?.at(-1);
    const stopped = state && !active(state) && (last?.outcome === "interrupted" || last?.outcome === "failed");
    return [
      ...(stopped ? [{ id: "resume", text: "Resume", run: () => attempt(() => v1.resume(id)) }] : []),
      { id: "rename", text: "Rename", key: "R", run: () => rename(view) },
      { id: "fork", text: "Continue in a copy", run: () => void view.fork() },
      { id: "changes", text: "Files changed", key: "D", run: () => frame.panelAt("changes") },
      { id: "terminal", text: "Terminal", key: "T", run: () => frame.panelAt("terminal") },
      { id: "details", text: "Details and cost", run: () => frame.panelAt("details") },
      { id: "grants", text: "Remembered answers", run: () => state && attempt(() => showGrants(state, (work) => view.attempt(work))) },
      { id: "archive", text: state?.archived ? "Take out of the archive" : "Archive", key: "E", run: () => attempt(() => v1.change(id, { archived: !state?.archived })) },
      { id: "close", text: state?.closed ? "Reopen" : "Close", run: () => attempt(() => (state?.closed ? v1.reopen(id) : v1.close(id))) },
      { id: "export-markdown", text: "Export as Markdown", href: exportAddress(id, "markdown") },
      { id: "export-html", text: "Export as HTML", href: exportAddress(id, "html") },
      { id: "export-jsonl", text: "Export as JSON Lines", href: exportAddress(id, "jsonl") },
      { id: "delete", text: "Delete…", danger: true, run: () => remove(view, frame) },
    ];
  });
}

function remove(view: SessionView, frame: Frame): void {
  askDelete("this session", () =>
    view.attempt(async () => {
      await v1.remove(view.id);
      frame.go({ at: "home" });
    }),
  );
}

export function askDelete(name: string, work: () => Promise<unknown>): void {
  ask(`Delete ${name}?`, "Its history and the sessions that came out of it go with it. This cannot be undone.", "Delete", work);
}

export function rename(view: SessionView): void {
  askTitle(view.state?.title ?? "", (title) => void view.attempt(() => v1.change(view.id, { title })));
}

export function askTitle(title: string, given: (title: string) => void): void {
  const box = dialog("Rename");
  const form = make("form", "stack");
  const input = make("input");
  input.value = title;
  input.maxLength = 200;
  input.setAttribute("aria-label", "Title");
  form.append(input, make("button", "primary", "Rename"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.close();
    given(input.value.trim());
  });
  box.append(form);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  input.select();
}
