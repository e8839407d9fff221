/** Search or run a command: what needs you, sessions, things to do, files; `>` only things to do, `@` files, `#` only messages. */

import { plain } from "../conversation/pieces";
import { make } from "../page";
import { call, v1 } from "../v1";
import type { Entry } from "./entries";
import { icon, type Icon } from "../icons";
import { markWords } from "./marks";
import { added } from "./places";
import { MARKS } from "./row";
import { hitHash } from "./router";
import type { OpenSession } from "./view";
import type { Key, Workbench } from "./workbench";

interface Item {
  group: string;
  icon: Icon;
  text: string;
  about?: string;
  key?: string;
  run(): void;
}

const MOST = 8;

export function openPalette(shell: Workbench, keys: Key[], text = ""): void {
  if (document.querySelector("dialog.palette")) return;
  const box = make("dialog", "palette");
  box.setAttribute("aria-label", "Search or run a command");
  const input = make("input");
  input.value = text;
  input.placeholder = "Search, or > commands, @ files, # messages";
  input.setAttribute("aria-label", "Search or run a command");
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-expanded", "true");
  input.setAttribute("aria-controls", "palette-list");
  const list = make("div", "palette-list");
  list.id = "palette-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  box.append(input, list);
  document.body.append(box);
  let [items, chosen, asked]: [Item[], number, number] = [[], 0, 0];
  const mark = () => {
    [...list.querySelectorAll("[role=option]")].forEach((row, index) => row.setAttribute("aria-selected", String(index === chosen)));
    input.setAttribute("aria-activedescendant", `palette-${chosen}`);
    list.querySelector(`#palette-${chosen}`)?.scrollIntoView({ block: "nearest" });
  };
  const run = (index: number) => {
    const item = items[index];
    if (!item) return;
    box.close();
    item.run();
  };
  const show = (found: Item[]) => {
    items = found;
    chosen = 0;
    list.replaceChildren();
    let group: HTMLElement | undefined;
    found.forEach((item, index) => {
      if (group?.dataset["group"] !== item.group) {
        group = make("div");
        group.dataset["group"] = item.group;
        group.setAttribute("role", "group");
        group.setAttribute("aria-label", item.group);
        const heading = make("h3", "", item.group);
        heading.setAttribute("role", "presentation");
        group.append(heading);
        list.append(group);
      }
      group.append(row(item, index, input.value, () => run(index)));
    });
    if (found.length === 0) {
      const nothing = make("div", "", "Nothing found");
      nothing.setAttribute("role", "option");
      list.append(nothing);
    }
    mark();
  };
  const look = () => {
    const mine = ++asked;
    const text = input.value;
    show(local(shell, keys, text));
    void remote(shell, text).then((more) => mine === asked && more.length > 0 && show([...local(shell, keys, text), ...more]));
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + items.length) % Math.max(items.length, 1);
      mark();
    } else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("close", () => box.remove());
  box.showModal();
  input.setSelectionRange(text.length, text.length);
  look();
}

function row(item: Item, index: number, query: string, run: () => void): HTMLElement {
  const found = make("div", item.icon);
  found.id = `palette-${index}`;
  found.setAttribute("role", "option");
  const text = make("span");
  text.append(...markWords(item.text, query.replace(/^[>@#]/, "").trim().split(/\s+/)));
  found.append(icon(item.icon), text);
  if (item.about) found.append(make("small", "", item.about));
  if (item.key) {
    const letter = make("kbd", "", item.key);
    letter.setAttribute("aria-hidden", "true");
    found.append(letter);
  }
  found.addEventListener("click", run);
  return found;
}

const has = (text: string, words: string[]) => words.every((word) => text.toLowerCase().includes(word));

function local(shell: Workbench, keys: Key[], query: string): Item[] {
  const sign = /^[>@#]/.exec(query)?.[0] ?? "";
  const words = query.replace(/^[>@#]/, "").toLowerCase().split(/\s+/).filter(Boolean);
  const pages = added().map(({ row, place }): Key => ({ keys: "", text: row.title, run: () => shell.go(place) }));
  const commands = [...keys, ...pages].filter(({ run, text }) => run && has(text, words)).map((key): Item => ({ group: "Do", icon: "next", text: key.text, key: key.keys.toUpperCase(), run: () => void key.run?.(shell) }));
  if (sign === ">") return commands;
  if (sign) return [];
  const open = (entry: Entry, group: string): Item => ({ group, icon: MARKS[entry.state][0], text: entry.title, about: `${entry.line} · ${entry.folder}`, run: () => shell.open(entry) });
  const entries = shell.feed.entries().filter((entry) => has(`${entry.words} ${entry.line}`, words)).sort((one, other) => other.time - one.time);
  const needed = entries.filter(({ state }) => state === "need" || state === "ask").sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
  const others = entries.filter(({ state }) => state !== "need" && state !== "ask");
  return [...needed.slice(0, MOST).map((entry) => open(entry, "Needs you")), ...others.slice(0, MOST).map((entry) => open(entry, "Sessions and jobs")), ...commands.slice(0, words.length ? MOST : 6)];
}

async function remote(shell: Workbench, query: string): Promise<Item[]> {
  const text = query.replace(/^[>@#]/, "").trim();
  const view = shell.session;
  try {
    const none = Promise.resolve<Item[]>([]);
    const inText = !/^[>@]/.test(query) && text.length >= 2;
    const inFiles = view && (query.startsWith("@") || (text.length >= 2 && !/^[>#]/.test(query)));
    const found = await Promise.all([inText ? matches(shell, text) : none, inFiles ? files(view, text) : none]);
    return found.flat();
  } catch {
    return []; // unreachable, or not allowed: the local results stay
  }
}

/** Messages and answers that contain the text. */
async function matches(shell: Workbench, text: string): Promise<Item[]> {
  const { hits } = await v1.search(text);
  return hits.slice(0, MOST).map((hit) => ({
    group: "In messages",
    icon: "chats",
    text: plain(hit.excerpt),
    about: shell.feed.rows.get(hit.session)?.session.title ?? hit.session,
    run: () => shell.go({ at: "session", id: hit.session }, false, hitHash(hit, text)),
  }));
}

async function files(view: OpenSession, text: string): Promise<Item[]> {
  const { items } = await call<{ items: { text: string }[] }>("GET", `/sessions/${encodeURIComponent(view.id)}/suggestions?${new URLSearchParams({ q: `@${text}` })}`);
  return items.slice(0, MOST).map(({ text: found }) => ({ group: "Files", icon: "file", text: found.slice(1), about: "put into the message", run: () => view.composer.add(found) }));
}
