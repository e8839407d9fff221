/** Colours for the lines of a change, with the words that changed still in marks. */

import { coloured, languageOfFile } from "../highlight";
import { make } from "../page";
import type { DiffLine } from "./diffLines";

/** So many lines are coloured before the page gets its turn. */
const AT_ONCE = 100;

export async function colourLines(path: string, spans: [HTMLElement, DiffLine][]): Promise<void> {
  const language = languageOfFile(path);
  if (!language) return;
  for (let at = 0; at < spans.length; at += AT_ONCE) {
    const part = spans.slice(at, at + AT_ONCE);
    const html = await coloured(part.map(([, { text }]) => text).join("\n"), language).catch(() => undefined); // out of reach: plain code is code, too
    if (html === undefined) return;
    const pieces = splitHtml(html);
    if (pieces.length !== part.length) continue;
    part.forEach(([span, { marks = [] }], index) => {
      span.innerHTML = pieces[index] ?? "";
      for (const [from, to] of marks) markRange(span, from, to);
    });
    await new Promise((done) => setTimeout(done));
  }
}

/** Coloured HTML line by line: a `span` that goes over the end of a line is closed there and opened again. */
export function splitHtml(html: string): string[] {
  let open: string[] = [];
  return html.split("\n").map((line) => {
    const before = open.join("");
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === "</span>") open = open.slice(0, -1);
      else open = [...open, tag];
    }
    return before + line + "</span>".repeat(open.length);
  });
}

/** Puts the characters from `from` to `to` into marks, with any colors. */
export function markRange(span: HTMLElement, from: number, to: number): void {
  const walker = document.createTreeWalker(span, NodeFilter.SHOW_TEXT);
  const pieces: [Text, number, number][] = [];
  let at = 0;
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    const [start, end] = [Math.max(from - at, 0), Math.min(to - at, node.data.length)];
    if (start < end) pieces.push([node, start, end]);
    at += node.data.length;
  }
  for (const [node, start, end] of pieces) {
    const middle = node.splitText(start);
    middle.splitText(end - start);
    const mark = make("mark");
    middle.replaceWith(mark);
    mark.append(middle);
  }
}
