/** Marks words in a text. */

import { make } from "../page";

export function markWords(text: string, words: string[]): (string | HTMLElement)[] {
  const escaped = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (escaped.length === 0) return [text];
  return text.split(new RegExp(`(${escaped.join("|")})`, "gi")).map((piece, index) => (index % 2 ? make("mark", "", piece) : piece));
}
