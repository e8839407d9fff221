/** What can be done with a session, behind one button. */

import { active } from "../conversation/state";
import { exportAddress, v1 } from "../v1";
import { menu } from "./menu";
import { pathOf } from "./router";
import type { OpenSession, SessionContext } from "./view";
import { SESSION_MENU } from "../texts/session";

const EXPORTS = [["markdown", SESSION_MENU.markdown], ["html", "HTML"], ["jsonl", SESSION_MENU.jsonLines]] as const;

export function sessionMenu(view: OpenSession, frame: SessionContext): HTMLElement {
  const attempt = (work: () => Promise<unknown>) => void view.attempt(work);
  return menu("menu", SESSION_MENU.moreOfThisSession, () => {
    const { id, state } = view;
    const last = state?.turns?.at(-1);
    const stopped = state && !active(state) && (last?.outcome === "interrupted" || last?.outcome === "failed");
    return [
      ...(stopped ? [{ id: "resume", text: SESSION_MENU.resume, run: () => attempt(() => v1.resume(id)) }] : []),
      { id: "rename", text: SESSION_MENU.rename, key: "R", run: () => rename(view) },
      { id: "fork", text: SESSION_MENU.continueInACopy, run: () => void view.fork() },
      { id: "link", text: SESSION_MENU.copyTheLink, run: () => attempt(() => navigator.clipboard.writeText(window.location.origin + pathOf({ at: "session", id }))) },
      { id: "native", text: SESSION_MENU.continueInTheTerminal, run: () => attempt(async () => (await import("./listLater")).showCommand(id)) },
      { id: "changes", text: SESSION_MENU.filesChanged, key: "D", run: () => frame.panelAt("changes") },
      { id: "terminal", text: SESSION_MENU.terminal, key: "T", run: () => frame.panelAt("terminal") },
      { id: "details", text: SESSION_MENU.detailsAndCost, run: () => frame.panelAt("details") },
      { id: "grants", text: SESSION_MENU.rememberedAnswers, run: () => state && attempt(async () => (await import("../conversation/grants")).showGrants(state, (work) => view.attempt(work))) },
      { id: "archive", text: state?.archived ? SESSION_MENU.takeOutOfTheArchive : SESSION_MENU.archive, key: "E", run: () => attempt(() => v1.change(id, { archived: !state?.archived })) },
      { id: "close", text: state?.closed ? SESSION_MENU.reopen : SESSION_MENU.close, run: () => attempt(() => (state?.closed ? v1.reopen(id) : v1.close(id))) },
      ...EXPORTS.map(([format, name]) => ({ id: `export-${format}`, text: SESSION_MENU.export(name), href: exportAddress(id, format) })),
      { id: "delete", text: SESSION_MENU.deleteIt, danger: true, run: () => remove(view, frame) },
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
