/** What a search found in messages, one line for each session, with the words marked. */

import { plain } from "../conversation/pieces";
import { icon } from "../icons";
import { make } from "../page";
import type { Hit } from "../v1";
import type { Feed } from "./feed";
import { hitHash, pathOf } from "./router";

export function matchSection(hits: Hit[], text: string, feed: Feed): HTMLElement {
  const section = make("section", "group");
  section.append(make("h2", "group-head", "Said in a session"));
  const once = new Map(hits.map((hit) => [hit.session, hit]).reverse() as [string, Hit][]);
  const words = text.split(" ");
  for (const hit of [...once.values()].reverse()) {
    const anchor = make("a", "entry hit");
    anchor.href = pathOf({ at: "session", id: hit.session }) + hitHash(hit, text);
    const excerpt = make("span", "act");
    excerpt.append(...markWords(plain(hit.excerpt), words));
    const sub = make("span", "sub");
    sub.append(excerpt);
    anchor.append(icon("chats"), make("span", "t", feed.rows.get(hit.session)?.session.title || hit.session), make("span"), sub);
    section.append(anchor);
  }
  return section;
}

export function markWords(text: string, words: string[]): (string | HTMLElement)[] {
  const escaped = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (escaped.length === 0) return [text];
  return text.split(new RegExp(`(${escaped.join("|")})`, "gi")).map((piece, index) => (index % 2 ? make("mark", "", piece) : piece));
}
