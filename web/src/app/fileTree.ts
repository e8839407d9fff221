/** Very many changed files, by their folders: one line for each folder, with how much has changed in it, to be opened. */

import { counted, exact } from "../conversation/pieces";
import { make } from "../page";
import type { FileView } from "./changeSource";
import { plural } from "../texts/plural";

export function fileTree(files: FileView[], row: (file: FileView) => HTMLElement): HTMLElement[] {
  const folders = new Map<string, FileView[]>();
  for (const file of files) {
    const folder = file.path.split("/").slice(0, -1).join("/") || ".";
    folders.set(folder, [...(folders.get(folder) ?? []), file]);
  }
  return [...folders].sort(([one], [other]) => one.localeCompare(other)).map(([folder, own]) => {
    const view = make("details", "folder");
    const summary = make("summary");
    const sum = (name: "added" | "removed") => own.reduce((all, file) => all + file[name], 0);
    summary.append(make("bdi", "", exact(folder)), make("span", "soft", ` ${plural(own.length, "file")} `), counted(sum("added"), sum("removed")));
    view.append(summary);
    view.addEventListener("toggle", () => view.childElementCount === 1 && view.append(...own.map(row)));
    return view;
  });
}
