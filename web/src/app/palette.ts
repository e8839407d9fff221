/** Search or run a command: what needs you, sessions, things to do, files; `>` only things to do, `@` files, `#` only messages. */

import { plain } from "../conversation/pieces";
import { make } from "../page";
import { html, iconOf, nothing, render, type TemplateResult } from "../render";
import { PALETTE } from "../texts/palette";
import { ask, v1 } from "../v1";
import type { Entry } from "./entries";
import type { Icon } from "../icons";
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
  if (!document.querySelector("dialog.palette")) new Palette(shell, keys).open(text);
}

class Palette {
  private readonly box = make("dialog", "palette");
  private items: Item[] = [];
  private chosen = 0;
  /** Numbers the searches: an older answer does not replace a newer one. */
  private asked = 0;

  constructor(
    private readonly shell: Workbench,
    private readonly keys: Key[],
  ) {
    this.box.setAttribute("aria-label", PALETTE.title);
    this.box.addEventListener("click", (event) => event.target === this.box && this.box.close());
    this.box.addEventListener("close", () => this.box.remove());
  }

  open(text: string): void {
    this.render(text);
    document.body.append(this.box);
    this.box.showModal();
    this.input?.focus();
    this.input?.setSelectionRange(text.length, text.length);
    this.search(text);
  }

  private get input(): HTMLInputElement | null {
    return this.box.querySelector("input");
  }

  private search(text: string): void {
    const mine = ++this.asked;
    this.update(local(this.shell, this.keys, text), text);
    void remote(this.shell, text).then((more) => mine === this.asked && more.length > 0 && this.update([...local(this.shell, this.keys, text), ...more], text));
  }

  private update(items: Item[], text: string): void {
    Object.assign(this, { items, chosen: 0 });
    this.render(text);
  }

  private run(index: number): void {
    const item = this.items[index];
    if (!item) return;
    this.box.close();
    item.run();
  }

  private press(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      this.chosen = (this.chosen + step + this.items.length) % Math.max(this.items.length, 1);
      this.render(this.input?.value ?? "");
      this.box.querySelector(`#palette-${this.chosen}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") this.run(this.chosen);
    else return;
    event.preventDefault();
  }

  private render(text: string): void {
    const groups = new Map<string, { item: Item; index: number }[]>();
    for (const [index, item] of this.items.entries()) groups.set(item.group, [...(groups.get(item.group) ?? []), { item, index }]);
    const group = ([name, rows]: [string, { item: Item; index: number }[]]) => html`<div data-group=${name} role="group" aria-label=${name}><h3 role="presentation">${name}</h3>${rows.map(({ item, index }) => this.row(item, index, text))}</div>`;
    render(
      html`<input placeholder=${PALETTE.placeholder} aria-label=${PALETTE.title} role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${this.chosen}`} .defaultValue=${text} @input=${(event: Event) => this.search((event.target as HTMLInputElement).value)} @keydown=${(event: KeyboardEvent) => this.press(event)} /><div class="palette-list" id="palette-list" role="listbox" aria-label=${PALETTE.results}>${this.items.length === 0 ? html`<div role="option">${PALETTE.none}</div>` : [...groups].map(group)}</div>`,
      this.box,
    );
  }

  private row(item: Item, index: number, query: string): TemplateResult {
    const text = markWords(item.text, query.replace(/^[>@#]/, "").trim().split(/\s+/));
    return html`<div class=${item.icon} id=${`palette-${index}`} role="option" aria-selected=${String(index === this.chosen)} @click=${() => this.run(index)}>${iconOf(item.icon)}<span>${text}</span>${item.about ? html`<small>${item.about}</small>` : nothing}${item.key ? html`<kbd aria-hidden="true">${item.key}</kbd>` : nothing}</div>`;
  }
}

const has = (text: string, words: string[]) => words.every((word) => text.toLowerCase().includes(word));

function local(shell: Workbench, keys: Key[], query: string): Item[] {
  const sign = /^[>@#]/.exec(query)?.[0] ?? "";
  const words = query.replace(/^[>@#]/, "").toLowerCase().split(/\s+/).filter(Boolean);
  const pages = added().map(({ row, place }): Key => ({ keys: "", text: row.title, run: () => shell.go(place) }));
  const commands = [...keys, ...pages].filter(({ run, text }) => run && has(text, words)).map((key): Item => ({ group: PALETTE.groups.do, icon: "next", text: key.text, key: key.keys.toUpperCase(), run: () => void key.run?.(shell) }));
  if (sign === ">") return commands;
  if (sign) return [];
  const open = (entry: Entry, group: string): Item => ({ group, icon: MARKS[entry.state][0], text: entry.title, about: `${entry.line} · ${entry.folder}`, run: () => shell.open(entry) });
  const entries = shell.board.entries().filter((entry) => has(`${entry.words} ${entry.line}`, words)).sort((one, other) => other.time - one.time);
  const needed = entries.filter(({ state }) => state === "need" || state === "ask").sort((one, other) => (one.since ?? 0) - (other.since ?? 0));
  const others = entries.filter(({ state }) => state !== "need" && state !== "ask");
  return [...needed.slice(0, MOST).map((entry) => open(entry, PALETTE.groups.need)), ...others.slice(0, MOST).map((entry) => open(entry, PALETTE.groups.all)), ...commands.slice(0, words.length ? MOST : 6)];
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
    group: PALETTE.groups.messages,
    icon: "chats",
    text: plain(hit.excerpt),
    about: shell.board.rows.get(hit.session)?.session.title ?? hit.session,
    run: () => shell.go({ at: "session", id: hit.session }, false, hitHash(hit, text)),
  }));
}

async function files(view: OpenSession, text: string): Promise<Item[]> {
  const { items } = await ask("GET /sessions/{id}/suggestions", { id: view.id }, { query: { q: `@${text}` } });
  return items.slice(0, MOST).map(({ text: found }) => ({ group: PALETTE.groups.files, icon: "file", text: found.slice(1), about: PALETTE.intoMessage, run: () => view.composer.add(found) }));
}
