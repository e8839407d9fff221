/** Very many changed files, by their folders: one line for each folder, with how much has changed in it, to be opened. */

import { repeat } from "lit-html/directives/repeat.js";
import { countsOf, exact } from "../conversation/pieces";
import { type Content, html, nothing } from "../render";
import { REVIEW } from "../texts/review";
import type { FileView } from "./changeSource";

/** `open`: the folders whose files are shown; `toggled` is called when that changes. */
export function fileTree(files: FileView[], row: (file: FileView) => Content, open: Set<string>, toggled: () => void): unknown {
  const folders = new Map<string, FileView[]>();
  for (const file of files) {
    const folder = file.path.split("/").slice(0, -1).join("/") || ".";
    folders.set(folder, [...(folders.get(folder) ?? []), file]);
  }
  const view = ([folder, own]: [string, FileView[]]) => {
    const sum = (name: "added" | "removed") => own.reduce((all, file) => all + file[name], 0);
    const toggle = ({ currentTarget }: Event) => {
      const now = (currentTarget as HTMLDetailsElement).open;
      if (now === open.has(folder)) return;
      if (now) open.add(folder);
      else open.delete(folder);
      toggled();
    };
    return html`<details class="folder" ?open=${open.has(folder)} @toggle=${toggle}><summary><bdi>${exact(folder)}</bdi><span class="soft">${REVIEW.files(own.length)}</span>${countsOf(sum("added"), sum("removed"))}</summary>${open.has(folder) ? own.map(row) : nothing}</details>`;
  };
  return repeat([...folders].sort(([one], [other]) => one.localeCompare(other)), ([folder]) => folder, view);
}
