/** Parts of the list that are loaded when they are needed: what a search found in messages, and folders to begin in. */

import { LIST } from "../texts/list";
import { plain } from "../conversation/pieces";
import { icon } from "../icons";
import { make } from "../page";
import { root } from "../root";
import { type Hit, v1 } from "../v1";
import { lastName } from "./entries";
import type { BoardStore } from "./boardStore";
import { markWords } from "./marks";
import { hitHash, pathOf } from "./router";

export function matchSection(hits: Hit[], text: string, board: BoardStore): HTMLElement {
  const section = make("section", "group");
  section.append(make("h2", "group-head", LIST.inMessages));
  const once = new Map(hits.map((hit) => [hit.session, hit]).reverse() as [string, Hit][]);
  const words = text.split(" ");
  for (const hit of [...once.values()].reverse()) {
    const anchor = make("a", "entry hit");
    anchor.href = pathOf({ at: "session", id: hit.session }) + hitHash(hit, text);
    const excerpt = make("span", "act");
    excerpt.append(...markWords(plain(hit.excerpt), words));
    const sub = make("span", "sub");
    sub.append(excerpt);
    anchor.append(icon("chats"), make("span", "t", board.rows.get(hit.session)?.session.title || hit.session), make("span"), sub);
    section.append(anchor);
  }
  return section;
}

/** Folders of the host that an empty list offers. */
const FOLDERS = 3;

let found: Promise<string[]> | undefined;

/** Adds links to them to an empty list. */
export async function offerFolders(list: HTMLElement): Promise<void> {
  found ??= v1.about().then(({ workspaces }) => workspaces.slice(0, FOLDERS), () => []); // the form asks again
  const links = (await found).map(folderLink);
  if (!list.querySelector("a[title]")) list.append(...links);
}

function folderLink(path: string): HTMLElement {
  const anchor = make("a", "button", LIST.newIn(lastName(path)));
  anchor.href = `${root}/app/new?${new URLSearchParams({ folder: path })}`;
  anchor.title = path;
  return anchor;
}
