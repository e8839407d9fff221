/** The signs that mean something in a message. */

export type Sign = "@" | "/" | "!";

/** What a message runs in place of asking the agent; a lone sign is a message. */
export function lineOf(text: string): string {
  return text.startsWith("!") ? text.slice(1).trim() : "";
}

/** The word before the cursor that asks for suggestions; a line to run is one word. */
export function wordAt(text: string, at: number): { sign: Sign; word: string; from: number } | undefined {
  if (text.startsWith("!") && at > 0) return text.includes("\n") ? undefined : { sign: "!", word: text.slice(1, at), from: 0 };
  const from = Math.max(...[" ", "\n", "\t"].map((sign) => text.lastIndexOf(sign, at - 1))) + 1;
  const word = text.slice(from, at);
  if (word.startsWith("@")) return { sign: "@", word: word.slice(1), from };
  if (word.startsWith("/") && from === 0) return { sign: "/", word: word.slice(1), from };
  return undefined;
}
