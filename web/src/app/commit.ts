/** Commit and discard: lists the files, refuses if they have changed, and a discard can be undone. */

import { explain } from "../api";
import { counted } from "../conversation/pieces";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { ask, type ChangedFile, type Uncommitted, v1 } from "../v1";
import type { OpenSession } from "./view";
import { plural } from "../texts/plural";
import { COMMIT } from "../texts/review";

const UNDO_MS = 10_000;

interface Chosen {
  seen: Uncommitted;
  paths(): string[];
  list: HTMLElement;
}

/** `shown`: the files that the user has seen. Other changes in the folder are not selected. */
async function choose(view: OpenSession, shown: ReadonlySet<string>): Promise<Chosen> {
  const seen = await v1.uncommitted(view.id);
  const list = make("div", "tick-list");
  const files = seen.files ?? [];
  const others = files.filter(({ path: each }) => !shown.has(each));
  const boxes = [...files.filter(({ path: each }) => shown.has(each)), ...others].map((file) => {
    if (file === others[0]) list.append(make("p", "soft", COMMIT.alsoNotCommittedBut));
    const box = make("input");
    box.type = "checkbox";
    box.checked = shown.has(file.path);
    box.value = file.path;
    const label = make("label", "check");
    label.append(box, make("code", "", file.path), file.binary ? make("span", "pm", "binary") : counted(file.added, file.removed));
    list.append(label);
    return box;
  });
  if (boxes.length === 0) list.append(make("p", "soft", COMMIT.nothingHasChangedSince));
  return { seen, list, paths: () => boxes.filter(({ checked }) => checked).map(({ value }) => value) };
}

export async function commitDialog(view: OpenSession, shown: ReadonlySet<string>, done: () => void): Promise<void> {
  await view.attempt(async () => {
    const { paths, list, seen } = await choose(view, shown);
    const box = dialog(COMMIT.commit);
    box.addEventListener("close", () => box.remove());
    const form = make("form", "stack");
    const message = make("textarea");
    message.rows = 3;
    message.value = view.state?.title ?? "";
    const label = make("label", "", COMMIT.message);
    label.append(message);
    const trouble = make("p", "bad");
    trouble.setAttribute("role", "alert");
    const button = make("button", "primary", COMMIT.commit);
    const ticked = () => void (button.disabled = paths().length === 0);
    list.addEventListener("change", ticked);
    ticked();
    const row = make("div", "answers");
    row.append(button);
    form.append(label, list, trouble, row);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await ask("POST /sessions/{id}/commit", { id: view.id }, { body: { message: message.value, paths: paths(), state: seen.state ?? null } });
        box.close();
        done();
      } catch (error) {
        trouble.textContent = explain(error);
      }
    });
    box.append(form);
    box.showModal();
    message.select();
  });
}

export async function discardDialog(view: OpenSession, shown: ReadonlySet<string>, done: () => void): Promise<void> {
  await view.attempt(async () => {
    const { paths, list, seen } = await choose(view, shown);
    const box = dialog(COMMIT.discardChanges);
    box.addEventListener("close", () => box.remove());
    const trouble = make("p", "bad");
    trouble.setAttribute("role", "alert");
    const row = make("div", "answers");
    const go = makeButton("danger", COMMIT.discardTheseFiles, async () => {
      const chosen = paths();
      try {
        const { undo } = await ask("POST /sessions/{id}/discard", { id: view.id }, { body: { paths: chosen, state: seen.state ?? null } });
        box.close();
        done();
        offerUndo(view, chosen, undo, done);
      } catch (error) {
        trouble.textContent = explain(error);
      }
    });
    row.append(go);
    const lost = make("p");
    const update = () => {
      const chosen = new Set(paths());
      lost.textContent = lostWords((seen.files ?? []).filter((file) => chosen.has(file.path)));
      go.disabled = chosen.size === 0;
    };
    list.addEventListener("change", update);
    update();
    box.append(make("p", "", COMMIT.theSelectedFilesAreRestored), list, lost, trouble, row);
    box.showModal();
  });
}

/** What is gone afterwards, in words. */
export function lostWords(files: readonly ChangedFile[]): string {
  const fresh = files.filter(({ status }) => status === "added");
  const changed = files.filter(({ status }) => status !== "added");
  const count = (number: number, word: string) => plural(number, word);
  const lines = changed.reduce((sum, { added, removed }) => sum + added + removed, 0);
  const words = [changed.length ? COMMIT.changed(lines, changed.length) : "", fresh.length ? `${count(fresh.length, "new file")}, deleted` : ""].filter(Boolean);
  return words.length ? COMMIT.lost(words) : "";
}

function offerUndo(view: OpenSession, paths: string[], undo: string, done: () => void): void {
  const strip = make("div", "undo");
  strip.setAttribute("role", "status");
  const count = paths.length;
  strip.append(
    `${plural(count, "file")} discarded. `,
    makeButton("", COMMIT.undo, () => {
      strip.remove();
      void view.attempt(async () => {
        await ask("POST /sessions/{id}/discard/undo", { id: view.id }, { body: { paths, undo } });
        done();
      });
    }),
  );
  document.body.append(strip);
  setTimeout(() => strip.remove(), UNDO_MS);
}
