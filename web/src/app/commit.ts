/** Commit and discard: says which files, refuses when they have moved on, and a discard can be taken back. */

import { explain } from "../api";
import { counted } from "../conversation/pieces";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { call, type Uncommitted, v1 } from "../v1";
import type { SessionView } from "./sessionView";

const UNDO_MS = 10_000;
const path = (view: SessionView) => `/sessions/${encodeURIComponent(view.id)}`;

interface Chosen {
  seen: Uncommitted;
  paths(): string[];
  list: HTMLElement;
}

async function choose(view: SessionView): Promise<Chosen> {
  const seen = await v1.uncommitted(view.id);
  const list = make("div", "tick-list");
  const boxes = seen.files.map((file) => {
    const box = make("input");
    box.type = "checkbox";
    box.checked = true;
    box.value = file.path;
    const label = make("label", "check");
    label.append(box, make("code", "", file.path), file.binary ? make("span", "pm", "binary") : counted(file.added, file.removed));
    list.append(label);
    return box;
  });
  if (boxes.length === 0) list.append(make("p", "soft", "Nothing has changed since the last commit."));
  return { seen, list, paths: () => boxes.filter(({ checked }) => checked).map(({ value }) => value) };
}

export async function commitDialog(view: SessionView, done: () => void): Promise<void> {
  await view.attempt(async () => {
    const { seen, paths, list } = await choose(view);
    const box = dialog("Commit");
    box.addEventListener("close", () => box.remove());
    const form = make("form", "stack");
    const message = make("textarea");
    message.rows = 3;
    message.value = view.state?.title ?? "";
    const label = make("label", "", "Message");
    label.append(message);
    const trouble = make("p", "bad");
    trouble.setAttribute("role", "alert");
    const button = make("button", "primary", "Commit");
    button.disabled = seen.files.length === 0;
    const row = make("div", "answers");
    row.append(button);
    form.append(label, list, trouble, row);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await call("POST", `${path(view)}/commit`, { message: message.value, paths: paths(), state: seen.state });
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

export async function discardDialog(view: SessionView, done: () => void): Promise<void> {
  await view.attempt(async () => {
    const { seen, paths, list } = await choose(view);
    const box = dialog("Discard changes?");
    box.addEventListener("close", () => box.remove());
    const trouble = make("p", "bad");
    trouble.setAttribute("role", "alert");
    const row = make("div", "answers");
    const go = makeButton("danger", "Discard these files", async () => {
      const chosen = paths();
      try {
        const { undo } = await call<{ undo: string }>("POST", `${path(view)}/discard`, { paths: chosen, state: seen.state });
        box.close();
        done();
        offerUndo(view, chosen, undo, done);
      } catch (error) {
        trouble.textContent = explain(error);
      }
    });
    go.disabled = seen.files.length === 0;
    row.append(go);
    box.append(make("p", "", "The ticked files go back to the last commit. New files are deleted."), list, trouble, row);
    box.showModal();
  });
}

function offerUndo(view: SessionView, paths: string[], undo: string, done: () => void): void {
  const strip = make("div", "undo");
  strip.setAttribute("role", "status");
  const count = paths.length;
  strip.append(
    `${count} ${count === 1 ? "file" : "files"} discarded. `,
    makeButton("", "Undo", () => {
      strip.remove();
      void view.attempt(async () => {
        await call("POST", `${path(view)}/discard/undo`, { paths, undo });
        done();
      });
    }),
  );
  document.body.append(strip);
  setTimeout(() => strip.remove(), UNDO_MS);
}
