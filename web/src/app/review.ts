/** The changes of a session: per turn or whole, unified or side by side, with comments that become the next message. */

import { explain } from "../api";
import type { DiffLine } from "../conversation/diffLines";
import type { Opened } from "../conversation/gaps";
import { counted, exact } from "../conversation/pieces";
import { active } from "../conversation/state";
import { make, makeButton } from "../page";
import { ask } from "../shortcuts";
import { type ChangedFile, v1 } from "../v1";
import { type Changes, ChangeSource, type FileView } from "./changeSource";
import { type Comment, hasMoved, linesWord, loadComments, messageOf, quoteOf, saveComments } from "./comments";
import { commitDialog, discardDialog } from "./commit";
import { fileDiff, type Unfolded } from "./fileDiff";
import { fileTree } from "./fileTree";
import { icon } from "../icons";
import { prefer, remember, remembered, setPreference } from "./preferences";
import type { OpenSession } from "./view";
import { plural } from "../texts/plural";

const OTHERS = "not this session";
const SHARED = "Another session is using this folder; some of these changes may be its own.";
/** So often at most an agent's changes are looked at while it works. */
const AHEAD_MS = 1_000;
/** Files whose changes are longer are folded. */
const FOLD_LINES = 400;
/** More files than this are shown by their folders, and their changes folded. */
const TREE_FILES = 200;

export class Review {
  readonly element = make("div", "review");
  private readonly scope = make("select", "pick");
  private readonly total = make("span");
  private readonly unified = makeButton("", "Unified", () => this.setMode(false));
  private readonly beside = makeButton("", "Side by side", () => this.setMode(true));
  private readonly news = makeButton("news", "", () => void this.load(true));
  private readonly shared = make("p", "soft review-note shared-note");
  private readonly names = make("div", "files");
  private readonly body = make("div", "pbody");
  private readonly foot = make("div", "pf");
  private readonly note = make("p", "soft review-note");
  private files: FileView[] = [];
  private comments: Comment[];
  private current = "";
  private wanted = "";
  private wantedLine: number | undefined;
  private seen: string | undefined;
  /** The changes at the last visit; undefined: there was none. */
  private readonly looked: Record<string, string> | undefined;
  private loading = 0;
  private readonly source: ChangeSource;

  /** `noteAt`: stores the current file and line in the address. */
  constructor(
    private readonly view: OpenSession,
    private readonly noteAt: (file: string, line?: number) => void,
  ) {
    this.source = new ChangeSource(view);
    this.comments = loadComments(view.id);
    this.looked = parsed(remembered(`looked.${view.id}`));
    this.scope.setAttribute("aria-label", "Which changes");
    this.scope.addEventListener("change", () => void this.load());
    const modes = make("span", "modes");
    modes.append(this.unified, this.beside);
    const head = make("div", "ph");
    head.append(this.scope, this.total, make("span", "spring"), modes);
    this.news.hidden = true;
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-label", "Changed lines");
    this.element.append(head, this.note, this.shared, this.names, this.news, this.body, this.foot);
    this.showModes();
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
    const options = [...(last ? [new Option("This turn", last.id)] : []), ...(this.looked ? [new Option("Since I last looked", "looked")] : []), new Option("Whole session", ""), new Option("Uncommitted", "uncommitted")];
    for (const [index, turn] of turns.slice(0, -1).entries()) options.push(new Option(`Turn ${index + 1}: ${turn.message.text.slice(0, 40)}`, turn.id));
    this.scope.replaceChildren(...options);
    this.scope.value = [...this.scope.options].some(({ value }) => value === before) ? before : "";
  }

  async load(fresh = false): Promise<void> {
    this.fillScope();
    const [mine, scope] = [++this.loading, this.scope.value];
    if (fresh || this.files.length === 0) this.note.textContent = "Looking…";
    try {
      const written = await this.changes(scope);
      if (mine !== this.loading) return;
      const files = [...this.source.asked(scope), ...written.files];
      this.seen = written.state;
      this.shared.textContent = written.shared ? SHARED : "";
      this.note.textContent = files.length > 0 && written.files.length === 0 ? "" : written.note;
      const same = this.files.length > 0 && JSON.stringify(this.files.map(({ path: each, diff }) => [each, diff])) === JSON.stringify(files.map(({ path: each, diff }) => [each, diff]));
      this.news.hidden = true;
      if (!same || fresh || this.body.childElementCount === 0) {
        this.files = files;
        this.show();
      } else this.goWhereWanted();
    } catch (error) {
      if (mine === this.loading) this.note.textContent = explain(error);
    }
  }

  /** A user who sees the whole session has seen all of it. */
  private async changes(scope: string, ahead = false): Promise<Changes> {
    const found = await this.source.load(scope === "looked" ? "" : scope);
    if (!ahead && (scope === "" || scope === "looked")) this.noteLooked(found.files);
    if (scope !== "looked") return found;
    const files = found.files.filter((file) => this.isNew(file));
    return { ...found, files, note: found.files.length > 0 && files.length === 0 ? "Nothing has changed since you last looked." : found.note };
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
    const count = newer(this.files, files);
    this.news.textContent = `${plural(count, "newer change")}, show`;
    this.news.hidden = count === 0;
    this.showNames(files);
  }

  // -- showing ------------------------------------------------------------------------------------------------------

  private get sideBySide(): boolean {
    const chosen = prefer("sideBySide");
    return chosen === "auto" ? this.body.clientWidth >= 800 || window.innerWidth >= 1800 : chosen;
  }

  private setMode(beside: boolean): void {
    setPreference("sideBySide", beside);
    this.show();
  }

  switchMode(): void {
    this.setMode(!this.sideBySide);
  }

  private showModes(): void {
    this.unified.setAttribute("aria-pressed", String(!this.sideBySide));
    this.beside.setAttribute("aria-pressed", String(this.sideBySide));
  }

  private show(): void {
    this.showModes();
    const added = this.files.reduce((sum, file) => sum + file.added, 0);
    const removed = this.files.reduce((sum, file) => sum + file.removed, 0);
    this.total.replaceChildren(...(added || removed ? [counted(added, removed)] : []));
    if (!this.files.some((file) => file.path === this.current)) this.current = this.files[0]?.path ?? "";
    this.showNames(this.files);
    const [top, beside] = [this.body.scrollTop, this.sideBySide];
    const focused = this.element.contains(document.activeElement);
    this.body.replaceChildren(...this.files.map((file) => this.file(file, beside)));
    // Keys keep working: the line with the focus was replaced.
    if (focused && !this.element.contains(document.activeElement)) this.body.focus({ preventScroll: true });
    this.body.scrollTop = top;
    this.showFoot();
    this.goWhereWanted();
  }

  private showNames(files: FileView[]): void {
    this.names.replaceChildren(...(files.length > TREE_FILES ? fileTree(files, (file) => this.name(file)) : files.map((file) => this.name(file))));
    this.names.hidden = files.length === 0;
  }

  private goWhereWanted(): void {
    if (!this.wanted) return;
    this.goTo(this.wanted, this.wantedLine);
    this.wanted = "";
    this.wantedLine = undefined;
  }

  private name(file: FileView): HTMLElement {
    const row = makeButton("file", "", () => {
      this.noteAt(file.path);
      if (this.files.some(({ path }) => path === file.path)) return this.goTo(file.path);
      this.wanted = file.path; // it was changed after the last load
      void this.load(true);
    });
    row.dataset["name"] = file.path;
    if (file.path === this.current) row.setAttribute("aria-current", "true");
    const name = make("span", "file-name");
    name.append(make("bdi", "", exact(file.from ? `${file.from} → ${file.path}` : file.path)));
    const counts = file.binary ? make("span", "pm", "binary") : counted(file.added, file.removed);
    const tick = make("span", "tick");
    if (!file.asked && this.isNew(file) && !this.isViewed(file)) {
      const dot = make("i", "dot");
      dot.setAttribute("role", "img");
      dot.setAttribute("aria-label", "changed since you last looked");
      tick.append(dot);
    }
    if (file.asked) tick.classList.add("asked-for");
    if (file.asked) tick.append("?", make("span", "vh", "not written yet"));
    else if (this.isViewed(file)) tick.append(icon("check"), make("span", "vh", "viewed"));
    row.append(file.asked ? icon("need") : icon("file"), name, ...(file.others ? [make("span", "pill", OTHERS)] : []), counts, tick);
    return row;
  }

  private file(file: FileView, beside: boolean): HTMLElement {
    const section = make("section", "file-diff");
    section.dataset["path"] = file.path;
    const head = make("div", "fh");
    const viewed = make("input");
    viewed.type = "checkbox";
    viewed.checked = this.isViewed(file);
    viewed.addEventListener("change", () => this.setViewed(file, viewed.checked));
    const label = make("label", "check");
    label.append(viewed, "Viewed");
    const title = make("h2", "file-name");
    title.append(make("bdi", "", exact(file.path)));
    if (file.asked) head.append(title, make("span", "pill need", "not written yet"));
    else head.append(title, ...(file.others ? [make("span", "pill", OTHERS)] : []), ...(file.status === "modified" ? [] : [make("span", "pill", STATUS[file.status])]), label);
    const content = make("div");
    const long = (file.lines?.length ?? 0) > FOLD_LINES || this.files.length > TREE_FILES;
    const fill = () => this.fill(content, file, beside);
    if (viewed.checked || long) {
      content.append(makeButton("link", long && !viewed.checked && file.lines ? `Show ${file.lines.length} lines` : "Show the change", fill));
    } else {
      fill();
    }
    section.append(head, content);
    return section;
  }

  private fill(content: HTMLElement, file: FileView, beside: boolean): void {
    const scope = this.scope.value === "looked" ? "" : this.scope.value;
    fileDiff(content, file, beside, {
      comments: this.comments.filter((comment) => comment.path === file.path),
      moved: (comment) => hasMoved(comment, file.lines),
      write: (line, side, from) => this.write(file, line, side, content, beside, from),
      remove: (comment) => this.remove(comment),
      side: (side) => this.source.side(file, side, scope),
      unfolded: this.unfolded.get(file),
      // The host cannot show a file that is not written yet, or only reported by the agent.
      ...(file.asked || file.told ? {} : { unfold: (range: Opened) => void this.unfold(content, file, beside, range, scope) }),
    });
  }

  /** The unchanged parts that the user opened. A file that changed starts closed. */
  private readonly unfolded = new WeakMap<FileView, Unfolded>();

  private async unfold(content: HTMLElement, file: FileView, beside: boolean, range: Opened, scope: string): Promise<void> {
    await this.view.attempt(async () => {
      let known = this.unfolded.get(file);
      if (!known) {
        const whole = await this.source.side(file, "after", scope);
        if (!whole) throw new Error(`The rest of ${file.path} cannot be shown: it is too large, or has changed since.`);
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

  private showFoot(): void {
    const count = this.comments.length;
    const send = makeButton("primary", `Send ${plural(count, "comment")}`, () => this.send());
    send.hidden = count === 0;
    send.id = "send-comments";
    const git = this.files.some(({ asked }) => !asked) && this.note.textContent === "";
    const shown = () => new Set(this.files.flatMap(({ path, from, asked }) => (asked ? [] : [path, ...(from ? [from] : [])])));
    const commit = makeButton("", "Commit…", () => void commitDialog(this.view, shown(), () => void this.load(true)));
    const discard = makeButton("danger", "Discard…", () => void discardDialog(this.view, shown(), () => void this.load(true)));
    commit.hidden = discard.hidden = !git;
    this.foot.replaceChildren(make("span", "hint soft", this.files.length && count === 0 ? "Click a line to comment" : ""), discard, commit, send);
    this.foot.hidden = !git && count === 0;
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
    this.show();
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
    for (const row of this.names.querySelectorAll<HTMLElement>(".file")) {
      if (row.dataset["name"] === this.current) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
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
    area.setAttribute("aria-label", `Comment on ${file.path}, ${linesWord({ line: number, ...(from === undefined ? {} : { from }) })}`);
    const buttons = make("div", "answers");
    buttons.append(make("button", "primary", "Add comment"), makeButton("", "Cancel", () => form.remove()));
    form.append(area, buttons);
    const add = () => {
      if (!area.value.trim()) return form.remove();
      this.comments.push({ id: String(Date.now()) + Math.random(), path: file.path, side, line: number, ...(from === undefined ? {} : { from }), quote: quoteOf(file.lines, side, from ?? number, number) ?? line.text, text: area.value.trim() });
      this.store();
      this.fill(content, file, beside);
      this.showFoot();
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
    this.show();
  }

  private store(): void {
    saveComments(this.view.id, this.comments);
  }

  /** Checks the lines again first: the agent may have changed them since. */
  private send(): void {
    void this.view.attempt(async () => {
      const scope = this.scope.value === "looked" ? "" : this.scope.value;
      const files = [...this.source.asked(scope), ...(await this.source.load(scope)).files];
      const moved = this.comments.filter((comment) => hasMoved(comment, files.find((file) => file.path === comment.path)?.lines));
      if (moved.length === 0) return this.sendNow();
      this.files = files;
      this.show();
      const what = moved.map((comment) => `${comment.path}, ${linesWord(comment)}`).join("; ");
      ask("Some lines have changed since", `You commented on lines that are different now: ${what}. The message quotes the lines as they were.`, "Send all the same", () => this.view.attempt(() => this.sendNow()));
    });
  }

  private async sendNow(): Promise<void> {
    await v1.send(this.view.id, messageOf(this.comments), "queue");
    this.comments = [];
    this.store();
    this.show();
    this.view.conversation.toEnd();
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

const STATUS: Record<ChangedFile["status"], string> = { added: "new", modified: "", deleted: "deleted", renamed: "renamed" };

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
