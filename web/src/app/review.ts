/** The changes of a session: per turn or whole, unified or side by side, with comments that become the next message. */

import { live } from "lit-html/directives/live.js";
import { repeat } from "lit-html/directives/repeat.js";
import { explain } from "../api";
import type { DiffLine } from "../conversation/diffLines";
import type { Opened } from "../conversation/gaps";
import { countsOf, exact } from "../conversation/pieces";
import { active } from "../conversation/state";
import { hasKeys, make, makeButton } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { askFirst } from "../shortcuts";
import { REVIEW } from "../texts/review";
import { v1 } from "../v1";
import { type Changes, ChangeSource, type FileView } from "./changeSource";
import { type Comment, hasMoved, linesWord, loadComments, messageOf, quoteOf, saveComments } from "./comments";
import { commitDialog, discardDialog } from "./commit";
import { fileDiff, type Unfolded } from "./fileDiff";
import { fileTree } from "./fileTree";
import { prefer, remember, remembered, setPreference } from "./preferences";
import type { OpenSession } from "./view";

/** So often at most an agent's changes are looked at while it works. */
const AHEAD_MS = 1_000;
/** Files whose changes are longer are folded. */
const FOLD_LINES = 400;
/** More files than this are shown by their folders, and their changes folded. */
const TREE_FILES = 200;

/** The lines of one file, as they are in the page. */
interface Drawn {
  content: HTMLElement;
  beside: boolean;
}

export class Review {
  readonly element = make("div", "review");
  private readonly scope = make("select", "pick");
  private readonly body = make("div", "pbody");
  private files: FileView[] = [];
  /** The files whose names are listed: also those that were changed after the shown lines were loaded. */
  private named: FileView[] = [];
  private note = "";
  private shared = false;
  private newer = 0;
  private comments: Comment[];
  private current = "";
  private wanted = "";
  private wantedLine: number | undefined;
  private seen: string | undefined;
  /** The changes at the last visit; undefined: there was none. */
  private readonly looked: Record<string, string> | undefined;
  private loading = 0;
  private readonly source: ChangeSource;
  /** What is drawn of each file. A file that has changed is another object. */
  private readonly drawn = new WeakMap<FileView, Drawn>();
  private readonly openFolders = new Set<string>();

  /** `noteAt`: stores the current file and line in the address. */
  constructor(
    private readonly view: OpenSession,
    private readonly noteAt: (file: string, line?: number) => void,
  ) {
    this.source = new ChangeSource(view);
    this.comments = loadComments(view.id);
    this.looked = parsed(remembered(`looked.${view.id}`));
    this.scope.setAttribute("aria-label", REVIEW.which);
    this.scope.addEventListener("change", () => void this.load());
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-label", REVIEW.lines);
    this.render();
  }

  // -- loading ------------------------------------------------------------------------------------------------------

  /** Shows a turn, or a file of it. */
  aim(turn: string | undefined, file: string | undefined, line?: number): void {
    if (turn !== undefined) {
      this.fillScope();
      this.scope.value = turn;
    }
    if (file !== undefined) this.wanted = file;
    this.wantedLine = line;
    void this.load();
  }

  private fillScope(): void {
    const turns = this.view.state?.turns ?? [];
    const before = this.scope.value;
    const last = turns.at(-1);
    const options: [text: string, value: string][] = [
      ...(last ? [[REVIEW.thisTurn, last.id] as [string, string]] : []),
      ...(this.looked ? [[REVIEW.sinceLastVisit, "looked"] as [string, string]] : []),
      [REVIEW.whole, ""],
      [REVIEW.uncommitted, "uncommitted"],
      ...turns.slice(0, -1).map((turn, index): [string, string] => [REVIEW.turn(index + 1, turn.message.text.slice(0, 40)), turn.id]),
    ];
    render(repeat(options, ([, value]) => value, ([text, value]) => html`<option value=${value}>${text}</option>`), this.scope);
    this.scope.value = [...this.scope.options].some(({ value }) => value === before) ? before : "";
  }

  async load(fresh = false): Promise<void> {
    this.fillScope();
    const [mine, scope] = [++this.loading, this.scope.value];
    if (fresh || this.files.length === 0) this.render({ note: REVIEW.loading });
    try {
      const written = await this.changes(scope);
      if (mine !== this.loading) return;
      const files = [...this.source.asked(scope), ...written.files];
      this.seen = written.state;
      const note = files.length > 0 && written.files.length === 0 ? "" : written.note;
      this.setFiles(files, { note, shared: Boolean(written.shared) });
    } catch (error) {
      if (mine === this.loading) this.render({ note: explain(error) });
    }
  }

  /** A user who sees the whole session has seen all of it. */
  private async changes(scope: string, ahead = false): Promise<Changes> {
    const found = await this.source.load(scope === "looked" ? "" : scope);
    if (!ahead && (scope === "" || scope === "looked")) this.noteLooked(found.files);
    if (scope !== "looked") return found;
    const files = found.files.filter((file) => this.isNew(file));
    return { ...found, files, note: found.files.length > 0 && files.length === 0 ? REVIEW.nothingNew : found.note };
  }

  private noteLooked(files: FileView[]): void {
    remember(`looked.${this.view.id}`, JSON.stringify(Object.fromEntries(files.map((file) => [file.path, fingerprint(file.diff ?? "")]))));
  }

  /** It has changed since the last visit. */
  private isNew(file: FileView): boolean {
    return this.looked !== undefined && this.looked[file.path] !== fingerprint(file.diff ?? "");
  }

  private ahead: ReturnType<typeof setTimeout> | undefined;

  /** Something happened in the session: the list of files grows, what is open does not jump, and a button counts what is newer. */
  stale(): void {
    const state = this.view.state;
    if (this.files.length === 0 || !(state && active(state))) return void this.load();
    this.ahead ??= setTimeout(() => {
      this.ahead = undefined;
      void this.lookAhead();
    }, AHEAD_MS);
  }

  private async lookAhead(): Promise<void> {
    const [mine, scope] = [this.loading, this.scope.value];
    const files = await this.changes(scope, true).then(({ files: written }) => [...this.source.asked(scope), ...written], () => undefined);
    if (!files || mine !== this.loading || !this.element.isConnected) return; // out of reach, or something newer is shown
    this.render({ named: files, newer: newer(this.files, files) });
  }

  // -- showing ------------------------------------------------------------------------------------------------------

  private get sideBySide(): boolean {
    const chosen = prefer("sideBySide");
    return chosen === "auto" ? this.body.clientWidth >= 800 || window.innerWidth >= 1800 : chosen;
  }

  private setMode(beside: boolean): void {
    setPreference("sideBySide", beside);
    this.render();
  }

  switchMode(): void {
    this.setMode(!this.sideBySide);
  }

  /** Shows these files. One that has not changed keeps its lines, with their colors, open comments and focus. */
  private setFiles(files: FileView[], changed: Partial<{ note: string; shared: boolean }> = {}): void {
    const before = new Map(this.files.map((file) => [file.path, file]));
    const key = ({ lines: _, ...rest }: FileView) => JSON.stringify(rest);
    const same = (one: FileView | undefined, other: FileView) => one !== undefined && key(one) === key(other);
    this.files = files.map((file) => (same(before.get(file.path), file) ? (before.get(file.path) as FileView) : file));
    if (!this.files.some((file) => file.path === this.current)) this.current = this.files[0]?.path ?? "";
    this.render({ ...changed, named: this.files, newer: 0 });
    this.goWhereWanted();
  }

  private render(changed: Partial<{ note: string; shared: boolean; named: FileView[]; newer: number }> = {}): void {
    Object.assign(this, changed);
    const [focused, top] = [this.element.contains(document.activeElement), this.body.scrollTop];
    this.renderAll();
    this.body.scrollTop = top;
    // Keys keep working if the line with the focus was replaced.
    if (focused && !this.element.contains(document.activeElement)) this.body.focus({ preventScroll: true });
  }

  private renderAll(): void {
    const { files, named } = this;
    const beside = this.sideBySide;
    const sum = (name: "added" | "removed") => files.reduce((all, file) => all + file[name], 0);
    const mode = (text: string, on: boolean) => html`<button type="button" aria-pressed=${String(beside === on)} @click=${() => this.setMode(on)}>${text}</button>`;
    render(
      html`<div class="ph">${this.scope}<span>${sum("added") || sum("removed") ? countsOf(sum("added"), sum("removed")) : nothing}</span><span class="spring"></span><span class="modes">${mode(REVIEW.unified, false)}${mode(REVIEW.beside, true)}</span></div>
        <p class="soft review-note">${this.note || nothing}</p>
        <p class="soft review-note shared-note">${this.shared ? REVIEW.shared : nothing}</p>
        <div class="files" ?hidden=${named.length === 0}>${named.length > TREE_FILES ? fileTree(named, (file) => this.name(file), this.openFolders, () => this.render()) : repeat(named, ({ path }) => path, (file) => this.name(file))}</div>
        <button type="button" class="news" ?hidden=${this.newer === 0} @click=${() => void this.load(true)}>${REVIEW.newer(this.newer)}</button>
        ${this.body}${this.foot()}`,
      this.element,
    );
    render(repeat(files, ({ path }) => path, (file) => this.file(file, beside)), this.body);
  }

  private goWhereWanted(): void {
    if (!this.wanted) return;
    this.goTo(this.wanted, this.wantedLine);
    this.wanted = "";
    this.wantedLine = undefined;
  }

  private name(file: FileView): TemplateResult {
    const go = () => {
      this.noteAt(file.path);
      if (this.files.some(({ path }) => path === file.path)) return this.goTo(file.path);
      this.wanted = file.path; // it was changed after the last load
      void this.load(true);
    };
    const viewed = this.isViewed(file);
    const dot = !file.asked && this.isNew(file) && !viewed ? html`<i class="dot" role="img" aria-label=${REVIEW.changedSince}></i>` : nothing;
    const tick = file.asked ? html`?<span class="vh">${REVIEW.notWritten}</span>` : viewed ? html`${iconOf("check")}<span class="vh">${REVIEW.viewedMark}</span>` : nothing;
    return html`<button type="button" class="file" data-name=${file.path} aria-current=${file.path === this.current ? "true" : nothing} @click=${go}
      >${iconOf(file.asked ? "need" : "file")}<span class="file-name"><bdi>${exact(file.from ? `${file.from} → ${file.path}` : file.path)}</bdi></span>${file.others ? html`<span class="pill">${REVIEW.otherSession}</span>` : nothing}${file.binary ? html`<span class="pm">${REVIEW.binary}</span>` : countsOf(file.added, file.removed)}<span class=${file.asked ? "tick asked-for" : "tick"}>${dot}${tick}</span></button>`;
  }

  private file(file: FileView, beside: boolean): TemplateResult {
    const viewed = this.isViewed(file);
    const pill = (text: string, look = "") => (text ? html`<span class=${`pill ${look}`}>${text}</span>` : nothing);
    const check = ({ target }: Event) => this.setViewed(file, (target as HTMLInputElement).checked);
    const facts = file.asked ? pill(REVIEW.notWritten, "need") : html`${file.others ? pill(REVIEW.otherSession) : nothing}${pill(REVIEW.status[file.status])}<label class="check"><input type="checkbox" .checked=${live(viewed)} @change=${check} />${REVIEW.viewed}</label>`;
    return html`<section class="file-diff" data-path=${file.path}><div class="fh"><h2 class="file-name"><bdi>${exact(file.path)}</bdi></h2>${facts}</div>${this.lines(file, beside, viewed)}</section>`;
  }

  /** The lines of a file; of a viewed, long or large change, a button that shows them. */
  private lines(file: FileView, beside: boolean, viewed: boolean): Content {
    const long = (file.lines?.length ?? 0) > FOLD_LINES || this.files.length > TREE_FILES;
    let drawn = this.drawn.get(file);
    if (!drawn && !viewed && !long) drawn = this.draw(file, beside);
    if (!drawn) {
      const open = () => {
        this.draw(file, beside);
        this.render();
      };
      return html`<div><button type="button" class="link" @click=${open}>${long && !viewed && file.lines ? REVIEW.showLines(file.lines.length) : REVIEW.showChange}</button></div>`;
    }
    if (drawn.beside !== beside) {
      drawn.beside = beside;
      this.fill(drawn.content, file, beside);
    }
    return drawn.content;
  }

  private draw(file: FileView, beside: boolean): Drawn {
    const drawn = { content: make("div"), beside };
    this.drawn.set(file, drawn);
    this.fill(drawn.content, file, beside);
    return drawn;
  }

  private fill(content: HTMLElement, file: FileView, beside: boolean): void {
    const scope = this.hostScope;
    fileDiff(content, file, beside, {
      comments: this.comments.filter((comment) => comment.path === file.path),
      moved: (comment) => hasMoved(comment, file.lines),
      write: (line, side, from) => this.write(file, line, side, content, beside, from),
      remove: (comment) => this.remove(comment),
      side: (side) => this.source.side(file, side, scope),
      unfolded: this.unfolded.get(file),
      // The host cannot show a file that is not written yet, or only reported by the agent.
      ...(file.asked || file.reported ? {} : { unfold: (range: Opened) => void this.unfold(content, file, beside, range, scope) }),
    });
  }

  /** The unchanged parts that the user opened. A file that changed starts closed. */
  private readonly unfolded = new WeakMap<FileView, Unfolded>();

  private async unfold(content: HTMLElement, file: FileView, beside: boolean, range: Opened, scope: string): Promise<void> {
    await this.view.attempt(async () => {
      let known = this.unfolded.get(file);
      if (!known) {
        const whole = await this.source.side(file, "after", scope);
        if (!whole) throw new Error(REVIEW.noRest(file.path));
        known = { content: exact(await whole.text()).replace(/\n$/, "").split("\n"), ranges: [] };
        this.unfolded.set(file, known);
      }
      known.ranges.push(range);
      const top = this.body.scrollTop;
      this.fill(content, file, beside);
      this.body.scrollTop = top;
      content.querySelector<HTMLElement>(`[data-new="${range[0]}"] .line-number`)?.focus({ preventScroll: true });
    });
  }

  private foot(): TemplateResult {
    const { files, comments } = this;
    const git = files.some(({ asked }) => !asked) && this.note === "";
    const shown = () => new Set(files.flatMap(({ path, from, asked }) => (asked ? [] : [path, ...(from ? [from] : [])])));
    const again = () => void this.load(true);
    return html`<div class="pf" ?hidden=${!git && comments.length === 0}><span class="hint soft">${files.length && comments.length === 0 ? (hasKeys() ? REVIEW.hint : REVIEW.tapHint) : nothing}</span><button type="button" class="danger" ?hidden=${!git} @click=${() => void discardDialog(this.view, shown(), again)}>${REVIEW.discard}</button><button type="button" ?hidden=${!git} @click=${() => void commitDialog(this.view, shown(), again)}>${REVIEW.commit}</button><button type="button" class="primary" id="send-comments" ?hidden=${comments.length === 0} @click=${() => this.send()}>${REVIEW.send(comments.length)}</button></div>`;
  }

  /** The scope as the host names it. */
  private get hostScope(): string {
    return this.scope.value === "looked" ? "" : this.scope.value;
  }

  // -- viewed -------------------------------------------------------------------------------------------------------

  private key(file: FileView): string {
    return `viewed.${this.view.id}.${file.path}`;
  }

  /** A file that has changed since is to be looked at again. */
  private isViewed(file: FileView): boolean {
    return remembered(this.key(file)) === fingerprint(file.diff ?? "");
  }

  private setViewed(file: FileView, on: boolean): void {
    remember(this.key(file), on ? fingerprint(file.diff ?? "") : undefined);
    // A viewed file is folded; its lines can be shown again.
    if (on) this.drawn.delete(file);
    this.render();
  }

  toggleViewed(): boolean {
    const file = this.files.find((each) => each.path === this.current);
    if (!file) return false;
    this.setViewed(file, !this.isViewed(file));
    return true;
  }

  /** `line`: of the file as it is now, as `#L17` in an address means it. */
  private goTo(name: string, line?: number): void {
    this.current = this.files.find((file) => file.path === name)?.path ?? this.current;
    this.render();
    const section = this.body.querySelector(`[data-path="${CSS.escape(this.current)}"]`);
    const row = line === undefined ? undefined : section?.querySelector<HTMLElement>(`[data-new="${line}"]`);
    if (!row) return section?.scrollIntoView({ block: "start" });
    row.scrollIntoView({ block: "center" });
    row.querySelector<HTMLElement>(".line-number")?.focus({ preventScroll: true });
  }

  /** The next or previous changed place. */
  step(by: 1 | -1): boolean {
    const places = [...this.body.querySelectorAll<HTMLElement>(".dl.diff-added, .dl.diff-removed")].filter((line) => !/diff-(added|removed)/.test(line.previousElementSibling?.className ?? ""));
    const line = document.activeElement?.closest(".dl");
    const here = (line && this.body.contains(line) ? line : this.body).getBoundingClientRect().top;
    const at = by > 0 ? places.findIndex((each) => each.getBoundingClientRect().top > here + 4) : places.findLastIndex((each) => each.getBoundingClientRect().top < here - 4);
    const found = places[at];
    if (!found) return false;
    found.scrollIntoView({ block: "start" });
    this.body.scrollTop -= 56;
    found.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
    return true;
  }

  // -- comments -----------------------------------------------------------------------------------------------------

  commentHere(): boolean {
    const button = document.activeElement?.closest(".dl")?.querySelector<HTMLButtonElement>("button.line-number") ?? this.body.querySelector<HTMLButtonElement>(".diff-added button.line-number");
    button?.click();
    return button !== null;
  }

  private write(file: FileView, line: DiffLine, side: "old" | "new", content: HTMLElement, beside: boolean, from?: number): void {
    const number = line[side];
    if (number === undefined) return;
    const row = content.querySelector(`[data-${side}="${number}"]`);
    if (!row || row.nextElementSibling?.matches("form.note")) return;
    const form = make("form", "note");
    const area = make("textarea");
    area.rows = 2;
    area.dir = "auto";
    area.setAttribute("aria-label", REVIEW.commentOn(file.path, linesWord({ line: number, ...(from === undefined ? {} : { from }) })));
    const buttons = make("div", "answers");
    buttons.append(make("button", "primary", REVIEW.addComment), makeButton("", REVIEW.cancel, () => form.remove()));
    form.append(area, buttons);
    const add = () => {
      if (!area.value.trim()) return form.remove();
      this.comments.push({ id: String(Date.now()) + Math.random(), path: file.path, side, line: number, ...(from === undefined ? {} : { from }), quote: quoteOf(file.lines, side, from ?? number, number) ?? line.text, text: area.value.trim() });
      this.store();
      this.fill(content, file, beside);
      this.render();
      content.querySelector<HTMLElement>(`[data-${side}="${number}"] .line-number`)?.focus();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      add();
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) add();
      else if (event.key === "Escape") {
        form.remove();
        row.querySelector<HTMLElement>(".line-number")?.focus();
      }
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    row.after(form);
    area.focus();
    this.noteAt(file.path, side === "new" ? number : undefined);
  }

  /** False: there is nothing to send. */
  sendComments(): boolean {
    if (this.comments.length > 0) this.send();
    return this.comments.length > 0;
  }

  private remove(comment: Comment): void {
    this.comments = this.comments.filter(({ id }) => id !== comment.id);
    this.store();
    this.refill(comment.path);
  }

  private store(): void {
    saveComments(this.view.id, this.comments);
  }

  /** Checks the lines again first: the agent may have changed them since. */
  private send(): void {
    void this.view.attempt(async () => {
      const scope = this.hostScope;
      const files = [...this.source.asked(scope), ...(await this.source.load(scope)).files];
      const moved = this.comments.filter((comment) => hasMoved(comment, files.find((file) => file.path === comment.path)?.lines));
      if (moved.length === 0) return this.sendNow();
      this.setFiles(files);
      for (const { path } of moved) this.refill(path);
      const what = moved.map((comment) => `${comment.path}, ${linesWord(comment)}`).join("; ");
      askFirst(REVIEW.moved.title, REVIEW.moved.text(what), REVIEW.moved.send, () => this.view.attempt(() => this.sendNow()));
    });
  }

  private async sendNow(): Promise<void> {
    await v1.send(this.view.id, messageOf(this.comments), "queue");
    const commented = new Set(this.comments.map(({ path }) => path));
    this.comments = [];
    this.store();
    for (const path of commented) this.refill(path);
    this.view.conversation.toEnd();
  }

  /** Draws the lines of a file again: its comments have changed. */
  private refill(path: string): void {
    const file = this.files.find((each) => each.path === path);
    const drawn = file && this.drawn.get(file);
    if (drawn) this.fill(drawn.content, file, drawn.beside);
    this.render();
  }

  get state(): string | undefined {
    return this.seen;
  }
}

/** How many files have changed since they were shown. */
export function newer(shown: FileView[], files: FileView[]): number {
  const before = new Map(shown.map(({ path, diff }) => [path, diff]));
  return files.filter(({ path, diff }) => before.get(path) !== diff).length + shown.filter(({ path }) => !files.some((file) => file.path === path)).length;
}

function parsed(text: string | undefined): Record<string, string> | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, string>);
  } catch {
    return undefined;
  }
}

/** Enough to notice a difference. */
export function fingerprint(diff: string): string {
  let hash = 5381;
  for (let at = 0; at < diff.length; at++) hash = (hash * 33) ^ diff.charCodeAt(at);
  return (hash >>> 0).toString(36);
}
