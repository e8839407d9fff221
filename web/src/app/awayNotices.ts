/** Browser notifications while the page is hidden: what needs the user, by folder, and what is done. Each is sent once, only for changes. */

import { notify } from "../notifications";
import { type Entry, moves } from "./entries";
import { AWAY } from "../texts/settings";

interface Away {
  title: string;
  body: string;
  /** A later one takes the place of an earlier one with the same. */
  tag: string;
  /** Where it leads; several lead to the inbox. */
  entry?: Entry;
}

const asks = ({ state }: Entry) => state === "need" || state === "ask";

export function notifyAway(before: ReadonlyMap<string, Entry["state"]>, entries: Entry[], open: (entry?: Entry) => void): void {
  for (const { title, body, tag, entry } of awayNotices(before, entries)) notify(title, body, tag, () => open(entry));
}

/** `before`: the state of each entry when this was last asked. */
export function awayNotices(before: ReadonlyMap<string, Entry["state"]>, entries: Entry[]): Away[] {
  const moved = entries.filter(({ key, state }) => before.get(key) !== state && !(before.get(key) === undefined && state === "done"));
  const folders = new Set(moved.filter(asks).map(({ folder }) => folder));
  const waiting = [...folders].map((folder): Away => {
    const [first, ...others] = entries.filter((entry) => entry.folder === folder && asks(entry));
    const tag = `need/${folder}`;
    if (first && others.length === 0) return { title: first.title, body: first.line || AWAY.waitingForYou, tag, entry: first };
    return { title: AWAY.thingsWait(others.length + 1, folder), body: [first, ...others].map((entry) => entry?.title).join(", "), tag };
  });
  const ended = moved.filter((entry) => !moves(entry) && ["work", "queued"].includes(before.get(entry.key) ?? ""));
  return [...waiting, ...ended.map((entry): Away => ({ title: entry.title, body: entry.state === "done" ? AWAY.done : entry.line, tag: entry.key, entry }))];
}
