/** What a conversation is made of on the screen: messages, texts, questions, and the ends of turns. Calls: callRows.ts. */

import { make, makeButton } from "../page";
import { html, iconOf, render } from "../render";
import { CONVERSATION } from "../texts/conversation";
import { sessionAddress } from "../v1";
import { type CallKind, kindOf } from "./calls";
import { copyButton, decorateCode } from "./code";
import { type Actions, box, picture, plain, sizeWords, withCaption } from "./pieces";
import { cards } from "./loadCards";
import type { Problem, QuestionPart, TextPart, Turn } from "./state";
import type { Row } from "./transcript";
import { clock } from "../time";
import { duration, stoppedWords, who, words } from "./words";

export const messageOf = (turn: Turn) => `${turn.id}/message`;
export const endOf = (turn: Turn) => `${turn.id}/end`;

/** Longer messages are folded. */
const FOLD_LINES = 12;

export class MessageRow implements Row {
  readonly key: string;

  constructor(
    private readonly turn: Turn,
    private readonly acts: Actions,
  ) {
    this.key = messageOf(turn);
  }

  build(): HTMLElement {
    const row = make("article", "row message");
    const head = make("header");
    head.append(make("strong", "", who(this.turn.by)), time(this.turn.started));
    const text = plain(this.turn.message.text);
    const body = make("div", "plain", text);
    body.dir = "auto";
    row.append(head, body);
    if (text.split("\n").length > FOLD_LINES || text.length > 1500) this.fold(row, body);
    const attached = (this.turn.message.attachments ?? []).map((each) => attachmentView(each as Record<string, unknown>));
    if (attached.length > 0) {
      const list = make("div", "attached");
      list.append(...attached);
      row.append(list);
    }
    const tools = make("div", "message-tools");
    if (this.acts.resend) tools.append(makeButton("quiet", CONVERSATION.resend, () => this.acts.resend?.(this.turn)));
    tools.append(copyButton(() => this.turn.message.text), makeButton("quiet", CONVERSATION.copy, () => this.acts.fork(this.turn.id)));
    row.append(tools);
    return row;
  }

  private fold(row: HTMLElement, body: HTMLElement): void {
    body.classList.add("folded");
    const more = makeButton("quiet more", CONVERSATION.showAll, () => {
      const folded = body.classList.toggle("folded");
      more.textContent = folded ? CONVERSATION.showAll : CONVERSATION.showLess;
    });
    row.append(more);
  }
}

/** Pictures are shown, another session is linked, everything else is named. */
export function attachmentView(each: Record<string, unknown>): HTMLElement {
  const label = String(each["label"] ?? each["displayName"] ?? each["uri"] ?? each["path"] ?? "a file");
  const type = String(each["contentType"] ?? "");
  if (typeof each["data"] === "string" && /^image\/(png|jpeg|gif|webp)$/.test(type)) return withCaption(picture(each["data"], type, label), plain(label), each["data"]);
  if (each["type"] === "chat" && /^[\w-]+$/.test(String(each["resource"]))) {
    const link = make("a", "attachment", plain(label));
    link.href = sessionAddress(String(each["resource"]));
    return link;
  }
  return make("span", "attachment", `${plain(label)}${typeof each["data"] === "string" ? ` · ${sizeWords(each["data"])}` : ""}`);
}

/** Loaded beside the page and not before it: the list is there sooner, and the first texts are plain for a moment. */
let toHtml: ((text: string) => string) | undefined;
const waiting = new Set<TextRow>();
export const markdownReady: Promise<void> = import("../markdown").then((module) => {
  toHtml = module.toHtml;
  for (const row of waiting) row.again();
  waiting.clear();
});

/** Rendering costs more the longer a text is, so a growing one is rendered again after ten times what it took. */
const REST = 10;
/** So many lines of a thought that still comes are shown. */
const THOUGHT_LINES = 4;

export class TextRow implements Row {
  readonly key: string;
  private body: HTMLElement | undefined;
  private shown = -1;
  private finished = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private details: HTMLDetailsElement | undefined;
  /** It was seen growing, so it was opened here. */
  private grew = false;
  /** So much of the text is final. */
  private settled = 0;
  private tail: HTMLElement | undefined;
  private fence = "";

  constructor(private readonly part: TextPart) {
    this.key = part.id;
  }

  build(): HTMLElement {
    const row = make("article", `row text ${this.part.kind}`);
    this.body = make("div", "markdown");
    this.body.dir = "auto";
    this.restart();
    this.grew ||= !this.part.done;
    if (this.part.kind === "reasoning") {
      this.details = make("details");
      this.details.open = !this.part.done;
      this.details.append(make("summary", "", ""), this.body);
      this.details.addEventListener("toggle", () => this.render());
      row.append(this.details);
    } else {
      row.append(this.body);
    }
    this.render();
    return row;
  }

  forget(): void {
    clearTimeout(this.timer);
    this.body = this.details = this.tail = this.timer = undefined;
  }

  private restart(): void {
    this.shown = -1;
    this.finished = false;
    this.settled = 0;
    this.tail = undefined;
  }

  update(): void {
    if (this.part.done) {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.end();
      this.render();
    } else if (this.timer === undefined) {
      this.grew = true;
      const before = performance.now();
      this.render();
      const wait = (performance.now() - before) * REST;
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.render();
      }, wait);
    }
  }

  private end(): void {
    if (this.finished) return;
    // It opened automatically, so it closes automatically; the user can open it again.
    if (this.details && this.grew) this.details.open = false;
  }

  private render(): void {
    const text = this.part.text ?? "";
    const summary = this.details?.querySelector("summary");
    if (summary) {
      const took = duration(this.part.took ?? 0);
      render(html`<span class="call-sign">${iconOf("think")}</span>${this.part.done ? CONVERSATION.thought(took) : CONVERSATION.thinking}`, summary);
      summary.classList.toggle("working", !this.part.done);
    }
    if (!this.body || this.details?.open === false) return;
    if (text.length === this.shown && this.finished === Boolean(this.part.done)) return;
    this.shown = text.length;
    this.finished = this.part.done === true;
    this.body.classList.toggle("growing", !this.finished);
    if (this.details && !this.part.done) {
      this.body.textContent = plain(text.slice(-4_000)).trimEnd().split("\n").slice(-THOUGHT_LINES).join("\n").slice(-600);
      this.settled = 0;
    } else if (toHtml) this.renderMarkdown(this.body, text, toHtml);
    else {
      this.body.textContent = plain(text);
      waiting.add(this);
    }
  }

  /** A long text is rendered piece by piece, each once: the cost of a frame does not grow with the text before it. */
  private renderMarkdown(body: HTMLElement, text: string, html: (text: string) => string): void {
    if (!this.tail || this.settled === 0) {
      this.tail = make("div", "markdown-piece");
      this.settled = 0;
      this.fence = "";
      body.replaceChildren(this.tail);
    }
    for (let cut; (cut = pieceEnd(text, this.settled, this.fence !== "")) > 0; ) {
      const [piece, source] = [make("div", "markdown-piece"), text.slice(this.settled, cut)];
      fill(piece, this.fence + source, html);
      decorateCode(piece, true);
      this.tail.before(piece);
      this.settled = cut;
      this.fence = openFence(this.fence + source);
    }
    const rest = text.slice(this.settled);
    // Without a place to cut it is read as it comes, and as Markdown in the end.
    if (!this.finished && rest.length > 2 * PIECE) this.tail.textContent = plain(rest);
    else fill(this.tail, this.fence + rest, html);
    decorateCode(this.tail, this.finished);
  }

  again(): void {
    this.restart();
    this.render();
  }
}

/** A piece is rendered within a few milliseconds. */
const PIECE = 4_000;
/** What has no place to cut for so long is cut anywhere. */
const MOST = 32_000;
/** A longer line is data and no prose, and Markdown's rules cost its square. */
const LINE = 4_000;
const FENCE = /^ {0,3}(```+|~~~+)[^`\n]*$/;

function fill(piece: HTMLElement, source: string, html: (text: string) => string): void {
  const text = plain(source);
  if (!text.split("\n").some(({ length }) => length > LINE)) return void (piece.innerHTML = html(text));
  let [markdown, fence] = ["", false];
  piece.replaceChildren();
  const settle = () => {
    if (!markdown.trim()) return void (markdown = "");
    const part = make("div", "markdown-piece");
    part.innerHTML = html(markdown);
    piece.append(part);
    markdown = "";
  };
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) fence = !fence;
    if (fence || line.length <= LINE) {
      markdown += `${line}\n`;
      continue;
    }
    settle();
    piece.append(make("div", "markdown-piece", line));
  }
  settle();
}

/** The line that opens the block of code in which this text ends; empty: it ends outside of one. */
function openFence(text: string): string {
  let open = "";
  for (const line of text.split("\n")) if (FENCE.test(line)) open = open ? "" : `${line}\n`;
  return open;
}

/**
 * Where the piece that begins at `from` ends: after an empty line that ends a block in any case, since no list, quote, table or code
 * continues after it. 0: not yet.
 */
export function pieceEnd(text: string, from: number, fence = false): number {
  if (text.length - from <= PIECE) return 0;
  for (let at = from, end = 0; (end = text.indexOf("\n", at)) >= 0 && at - from < MOST; at = end + 1) {
    const line = text.slice(at, Math.min(end, at + 200));
    if (FENCE.test(line)) fence = !fence;
    if (fence || line.trim() !== "" || end - from < PIECE / 2) continue;
    if (/^[A-Za-z#]/.test(text.slice(end + 1, end + 2))) return end + 1;
  }
  if (text.length - from <= MOST) return 0;
  const line = text.lastIndexOf("\n", from + MOST);
  return line > from + PIECE ? line + 1 : from + MOST;
}

export class QuestionRow implements Row {
  readonly key: string;
  private row: HTMLElement | undefined;
  private shown: string | undefined;

  constructor(
    private readonly question: QuestionPart,
    private readonly acts: Actions,
  ) {
    this.key = question.id;
  }

  build(): HTMLElement {
    this.row = make("article", "row");
    this.shown = undefined;
    this.update();
    return this.row;
  }

  forget(): void {
    this.row = undefined;
  }

  update(): void {
    const now = this.question.response ?? "open";
    // Drafts of others must not replace what the user types, so an open card stays as it is.
    if (now === this.shown) return;
    this.shown = now;
    this.row?.replaceChildren(cards().questionCard(this.question, this.acts));
  }
}

/** Calls of these kinds may change files. */
const CHANGING = new Set<CallKind>(["change", "command"]);
/** What can be read at a glance of what went wrong: its first line, up to what is for machines. */
const PROBLEM = /^[^\n{]{0,240}/;

/** The rest is there for those who want it. */
function problem({ message }: Problem): HTMLElement[] {
  const text = plain(message).trim();
  const first = PROBLEM.exec(text)?.[0].trim() ?? "";
  if (first === text) return [make("span", "", text)];
  const more = make("details");
  more.append(make("summary", "soft", CONVERSATION.details), box(text));
  return [make("span", "", first), more];
}

/** The text that the agent wrote in a turn, without its reasoning. */
export const answerOf = (turn: Turn): string =>
  (turn.parts ?? [])
    .flatMap((part) => (part.part === "text" && part.kind !== "reasoning" && part.text ? [part.text.trim()] : []))
    .join("\n\n");

/** What became of the turn, and what it cost. */
export class EndRow implements Row {
  readonly key: string;

  constructor(
    private readonly turn: Turn,
    private readonly last: () => boolean,
    private readonly acts: Actions,
  ) {
    this.key = endOf(turn);
  }

  build(): HTMLElement {
    const { turn } = this;
    const row = make("footer", "row end");
    if (turn.outcome !== "completed") {
      const note = make("div", `outcome ${turn.outcome}`);
      note.append(make("strong", "", this.sentence()));
      // The sentence already reports that the host ended.
      if (turn.error && turn.outcome !== "interrupted") note.append(...problem(turn.error));
      if (this.last() && turn.outcome === "failed") note.append(make("span", "soft", CONVERSATION.tryAgainHint));
      if (this.last() && (turn.outcome === "failed" || turn.outcome === "interrupted"))
        note.append(makeButton("", turn.outcome === "failed" ? CONVERSATION.tryAgain : CONVERSATION.resume, () => this.acts.resume()));
      row.append(note);
    }
    const facts = [turn.ended ? duration(turn.ended - turn.started) : "", words(turn.usage)].filter(Boolean);
    const line = make("span", "soft", facts.join(" · "));
    if (turn.parts?.some((part) => part.part === "call" && part.ok && CHANGING.has(kindOf(part)))) line.append(makeButton("quiet", CONVERSATION.turnChanges, () => this.acts.files(turn.id)));
    if (line.hasChildNodes()) row.append(line);
    row.append(this.tools());
    return row;
  }

  /** Actions on the answer; shown on hover and on keyboard focus. */
  private tools(): HTMLElement {
    const { turn, acts } = this;
    const tools = make("div", "answer-tools");
    const answer = answerOf(turn);
    if (answer) tools.append(copyButton(() => answer, CONVERSATION.copyAnswer));
    // A failed turn has this button in its card.
    if (acts.again && this.last() && turn.outcome !== "failed" && turn.outcome !== "interrupted") tools.append(makeButton("quiet", CONVERSATION.tryAgain, () => acts.again?.(turn)));
    tools.append(makeButton("quiet", CONVERSATION.copyFromHere, () => acts.fork(turn.id)));
    if (acts.link) tools.append(copyButton(() => acts.link?.(turn.id) ?? "", CONVERSATION.copyLink));
    return tools;
  }

  private sentence(): string {
    if (this.turn.outcome === "failed") return CONVERSATION.failed;
    if (this.turn.outcome === "cancelled") return `${stoppedWords(this.turn.stopped_by)}.`;
    return this.turn.ended ? CONVERSATION.interruptedAt(clock(this.turn.ended)) : CONVERSATION.interrupted;
  }
}

function time(milliseconds: number): HTMLElement {
  const found = make("time", "soft", clock(milliseconds));
  found.dateTime = new Date(milliseconds).toISOString();
  found.title = new Date(milliseconds).toLocaleString();
  return found;
}
