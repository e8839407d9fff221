/** The files that a session, or one of its turns, has changed in its folder, with their diffs. */

import { explain } from "../api";
import { make } from "../page";
import { dialog } from "../shortcuts";
import { type ChangedFile, type Changes, v1 } from "../v1";
import { changedFiles, changesView } from "./changes";
import { diffView } from "./diff";
import { exact } from "./pieces";
import type { SessionState } from "./state";

/** So many are shown opened at once. */
const OPEN = 3;
const SIGNS: Record<ChangedFile["status"], string> = { added: "new", modified: "", deleted: "deleted", renamed: "renamed" };

export function showFiles(state: SessionState, turn = ""): void {
  const box = dialog("Files changed");
  box.classList.add("wide");
  const body = make("div", "files");
  const choice = turnChoice(state, turn);
  const load = async () => {
    const wanted = choice.value;
    body.replaceChildren(make("p", "soft", "Looking …"));
    const found = await v1.changes(state.id, wanted || undefined).then((changes) => filesView(state, changes, wanted), (error: unknown) => [make("p", "bad", explain(error))]);
    if (choice.value === wanted) body.replaceChildren(...found);
  };
  choice.addEventListener("change", () => void load());
  box.append(choice, body);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  void load();
}

function turnChoice(state: SessionState, turn: string): HTMLSelectElement {
  const choice = make("select");
  choice.setAttribute("aria-label", "Which turn");
  const turns = state.turns ?? [];
  const names = turns.map(({ id, message }, index) => new Option(`Turn ${index + 1}: ${message.text.replace(/\s+/g, " ").slice(0, 60)}`, id));
  choice.append(new Option("The whole session", ""), ...names.reverse());
  choice.value = turn;
  return choice;
}

export function filesView(state: SessionState, changes: Changes, turn: string): HTMLElement[] {
  // A note says that there is nothing to compare with (the machine was too busy, or the host died): that is not "no file".
  const unknown = changes.git ? changes.note : "This folder is not in a git work tree.";
  if (unknown)
    return [
      make("p", "note", `${unknown} Only what the agent itself showed or reported is known:`),
      ...changesView(changedFiles(state, turn), state.cwd),
    ];
  if (changes.files.length === 0) return [make("p", "soft", turn ? "This turn has changed no file." : "No file has changed since the session began.")];
  const [added, removed] = (["added", "removed"] as const).map((side) => changes.files.reduce((sum, file) => sum + file[side], 0));
  const number = changes.files.length;
  const total = make("p", "soft", `${number} ${number === 1 ? "file" : "files"}${changes.cut ? " and more" : ""}, `);
  total.append(...counts(added ?? 0, removed ?? 0));
  return [total, ...changes.files.map((file) => fileView(state.id, file, turn, number <= OPEN))];
}

function fileView(session: string, file: ChangedFile, turn: string, open: boolean): HTMLElement {
  const details = make("details", "file");
  const summary = make("summary");
  const name = file.from ? `${file.from} → ${file.path}` : file.path;
  summary.append(make("span", "file-name", exact(name)));
  if (SIGNS[file.status]) summary.append(make("span", "tag", SIGNS[file.status]));
  summary.append(...(file.binary ? [make("span", "soft", "binary")] : counts(file.added, file.removed)));
  details.append(summary);
  let asked = false;
  const fill = async () => {
    if (asked || !details.open) return;
    asked = true;
    if (file.binary) return details.append(make("p", "soft", "A binary file: there is no diff to read."));
    try {
      details.append(diffView(exact(await v1.diff(session, file.path, turn || undefined))));
    } catch (error) {
      asked = false;
      details.append(make("p", "bad", explain(error)));
    }
  };
  details.addEventListener("toggle", () => void fill());
  details.open = open;
  return details;
}

const counts = (added: number, removed: number) => [make("span", "good", `+${added}`), " ", make("span", "bad", `−${removed}`)];
