/** What a question is about: a diff, what checks printed, pictures. All of it is an agent's, and shown as it is. */

import { make } from "../page";
import { diffView } from "./diff";
import { box, exact, picture, plain } from "./pieces";
import { EVIDENCE } from "../texts/cards";

export interface Evidence {
  type: "text" | "diff" | "image";
  title: string;
  text?: string;
  data?: string;
  mimeType?: string;
}

/** Lines of each file; the session's page has all of them. */
const LINES = 400;
/** Files that are open at the same time. */
const OPEN = 3;

export function evidenceView(evidence: Evidence[]): HTMLElement {
  const list = make("div", "evidence");
  for (const each of evidence) {
    if (each.type === "diff") list.append(...filesOf(each.text ?? "").map(({ path, diff }, index) => folded(path, diffView(exact(diff), LINES), index < OPEN)));
    else if (each.type === "text") list.append(folded(plain(each.title), box(exact(each.text ?? "")), false));
    else if (each.data && /^image\/(png|jpeg|gif|webp)$/.test(each.mimeType ?? "")) list.append(picture(each.data, each.mimeType!, plain(each.title)));
  }
  return list;
}

function folded(title: string, body: HTMLElement, open: boolean): HTMLElement {
  const details = make("details");
  details.open = open;
  details.append(make("summary", "", title), body);
  return details;
}

/** The files of a diff, each under its own name. */
export function filesOf(diff: string): { path: string; diff: string }[] {
  return diff
    .split(/^(?=diff --git )/m)
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const names = [/^\+\+\+ "?b\/(.*?)"?$/m, /^--- "?a\/(.*?)"?$/m, /^diff --git a\/.* b\/(.*)$/m].map((name) => name.exec(part)?.[1]);
      return { path: exact(names.find((name) => name) ?? EVIDENCE.theChange), diff: part };
    });
}
