/** Tool calls on the screen: commands with the end of their output, changes, runs of looking around, plans, helpers. */

import { guard } from "lit-html/directives/guard.js";
import type { Icon } from "../icons";
import { make } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { CALL } from "../texts/conversation";
import { blobAddress, terminalAddress } from "../v1";
import { type CallKind, type CallState, changeCounts, commandOf, kindOf, lookWords, linesRead, planOf, reasonOf, stateOf, subjectOf, tailOf } from "./calls";
import { changesOf } from "./changes";
import { copyButton } from "./code";
import { diffView } from "./diff";
import { type Actions, countsOf, exact, picture, plain, pretty, relative, withCaption } from "./pieces";
import { cards } from "./loadCards";
import { type CallPart, waitingApproval } from "./state";
import type { Row } from "./transcript";
import { duration, verdictOf } from "./words";

/** Enough for three lines of a log. */
const TAIL_CHARS = 2_000;
/** Lines of a running command's output that are shown: all of it would be laid out again with every piece. */
const LIVE_CHARS = 20_000;

const ICONS: Record<CallKind, Icon> = { command: "terminal", change: "edit", look: "search", plan: "done", tool: "done" };
const STATE_ICONS: Partial<Record<CallState, Icon>> = { waiting: "need", running: "work", bad: "failed", refused: "close", stopped: "stop" };

export class CallRow implements Row {
  readonly key: string;
  private row: HTMLElement | undefined;
  private details: HTMLDetailsElement | undefined;
  private tail = make("pre", "tail");
  private card: HTMLElement | undefined;
  private asked: string | undefined;
  private helper: HTMLElement | undefined;
  private answered = 0;

  constructor(
    private readonly call: CallPart,
    private readonly acts: Actions,
  ) {
    this.key = call.id;
  }

  build(): HTMLElement {
    this.row = make("article", "row");
    if (kindOf(this.call) === "plan") {
      this.renderPlan();
      return this.row;
    }
    this.details = make("details", "call");
    this.details.append(make("summary"), make("div", "call-body"));
    this.details.addEventListener("toggle", () => this.renderBody());
    this.tail = make("pre", "tail");
    this.tail.hidden = true;
    this.row.append(this.details, this.tail);
    this.asked = this.card = undefined;
    this.answered = 0;
    this.update();
    return this.row;
  }

  forget(): void {
    this.tail.remove();
    this.row = this.details = this.card = this.helper = undefined;
  }

  update(): void {
    const { call } = this;
    if (kindOf(call) === "plan") return this.renderPlan();
    this.renderSummary(stateOf(call));
    this.renderTail();
    this.renderBody();
    this.renderPictures();
    this.renderHelper();
    this.renderCard();
  }

  private renderSummary(state: CallState): void {
    const summary = this.details?.querySelector("summary");
    if (!this.details || !summary) return;
    const kind = kindOf(this.call);
    this.details.className = `call ${kind} ${state}`;
    const exit = this.call.exit_code ?? undefined;
    const took = tookOf([this.call]);
    const allowed = this.call.approvals?.findLast(({ answered }) => answered);
    const yes = allowed?.allowed && !allowed.reason && !allowed.grant ? verdictOf(allowed) : "";
    // The sign already shows "done"; the time, and who allowed it, are more useful.
    const hasWord = !((took || yes) && exit === undefined && state === "ok");
    const word = (text: string, look = "") => html`<span class=${`call-word ${look}`}>${text}</span>`;
    render(
      html`${signOf(kind, exit ? "bad" : state)}<span class="call-title">${this.title(kind)}</span>${yes ? word(yes, "verdict") : nothing}${hasWord ? word(exit === undefined ? wordOf(this.call, state) : CALL.exit(exit), exit ? "bad" : "") : nothing}${took ? word(took) : nothing}`,
      summary,
    );
  }

  private title(kind: CallKind): Content {
    const { call } = this;
    if (kind === "command") return html`<code>${exact(commandOf(call)).split("\n").join(" ⏎ ")}</code>`;
    const changes = kind === "change" ? changeCounts(call) : [];
    if (changes.length > 0) {
      const verb = call.done ? (call.ok ? CALL.wrote : CALL.notWritten) : CALL.changes;
      return html`${verb}${changes.map(({ path, added, removed }, index) => html`${index ? ", " : ""}${this.fileName(path)} ${countsOf(added, removed)}`)}`;
    }
    if (/job_boolean_(true|false)$/.test(call.tool)) return plain(CALL.answered(call.tool.endsWith("true"), reasonOf(call)));
    if (call.kind === "fetch" && (!call.title || call.title === call.tool)) return html`${call.done ? (call.ok ? CALL.fetched : CALL.notFetched) : CALL.fetches}<code>${exact(subjectOf(call))}</code>`;
    return plain((call.done && call.ok && call.past) || call.title || call.tool);
  }

  /** A click on it shows the change beside the conversation; one beside it opens the change here, with a button to go there by keys. */
  private fileName(path: string): TemplateResult {
    const { wholeChange } = this.acts;
    const name = relative(path, this.acts.cwd());
    if (!wholeChange || !this.call.ok) return html`<code>${name}</code>`;
    const openChange = (event: Event) => {
      event.preventDefault();
      wholeChange(path);
    };
    return html`<code class="file-link" title=${CALL.showInChanges} @click=${openChange}>${name}</code>`;
  }

  /** A command shows its last lines without a click, and a failed call shows the reason. */
  private renderTail(): void {
    const { call } = this;
    const output = kindOf(call) === "command" ? tailOf(plain((call.output ?? "").slice(-TAIL_CHARS))) : "";
    const text = output || (stateOf(call) === "bad" ? tailOf(plain(call.error?.message ?? "")) : "");
    this.tail.classList.toggle("bad", output === "" && text !== "");
    const hidden = text === "" || this.details?.open === true;
    if (this.tail.hidden !== hidden) this.tail.hidden = hidden;
    if (!hidden && this.tail.textContent !== text) this.tail.textContent = text;
  }

  private renderPlan(): void {
    if (!this.row) return;
    // It may have been an ordinary call before its input arrived.
    this.details?.remove();
    this.tail.remove();
    this.details = undefined;
    const steps = planOf(this.call);
    const done = steps.filter(({ state }) => state === "done").length;
    const item = ({ text, state }: (typeof steps)[number]) => html`<li class=${state}><span class=${`call-state ${state === "done" ? "ok" : state === "work" ? "running" : ""}`}>${state === "done" ? "✓" : state === "work" ? "…" : ""}</span><span>${plain(text)}</span></li>`;
    render(html`<section class="plan"><h2>${CALL.plan(done, steps.length)}</h2><ol>${steps.map(item)}</ol></section>`, this.row);
  }

  private renderPictures(): void {
    const pictures = (this.call.content ?? []).filter(({ type, data }) => type === "image" && typeof data === "string");
    if (pictures.length === 0 || this.row?.querySelector(".pictures")) return;
    const list = make("div", "pictures");
    const name = plain(this.call.title || this.call.tool);
    list.append(...pictures.flatMap(({ data, mimeType }) => (/^image\/(png|jpeg|gif|webp)$/.test(String(mimeType)) ? [withCaption(picture(String(data), String(mimeType), name), name, String(data))] : [])));
    this.details?.after(list);
  }

  private renderHelper(): void {
    this.helper ??= this.acts.helper?.(this.call.id);
    if (!this.helper || this.helper.isConnected) return;
    this.row?.append(this.helper);
    this.row?.classList.add("has-helper"); // its line replaces the call's
  }

  private renderCard(): void {
    const waiting = waitingApproval(this.call);
    const answered = this.call.approvals?.filter(({ answered }) => answered) ?? [];
    if (answered.length !== this.answered) {
      this.answered = answered.length;
      this.row?.querySelector("p.verdict")?.remove();
      const last = answered.at(-1);
      // A yes is in the call's own line, unless it is remembered or has a note.
      if (last && (!last.allowed || last.reason || last.grant)) {
        const line = cards().verdict(last, this.call, this.acts);
        line.classList.add("verdict");
        this.row?.append(line);
      }
    }
    if (waiting?.id === this.asked) return;
    this.asked = waiting?.id;
    this.card?.remove();
    this.card = waiting && cards().approvalCard(waiting, this.call, this.acts);
    // The card contains the text of the line. A result that waits for approval is in the body of the line.
    if (this.details) this.details.hidden = this.card !== undefined && waiting?.result !== true;
    if (this.card) this.details?.after(this.card);
  }

  private renderBody(): void {
    if (!this.details) return;
    this.renderTail();
    if (!this.details.open) return;
    const body = this.details.lastElementChild as HTMLElement;
    const before = body.querySelector(".output .box");
    const place = before && { top: before.scrollTop, end: atEnd(before) };
    render(this.body(), body);
    const now = body.querySelector(".output .box");
    // What still comes is followed, unless its reader has gone up.
    if (now) now.scrollTop = place && !place.end ? place.top : this.call.done && !place ? 0 : now.scrollHeight;
  }

  private body(): TemplateResult {
    const { call } = this;
    const changes = changesOf(call);
    const terminals = call.done ? [] : terminalsOf(call);
    const empty = !call.detail && !call.rule && !call.input && !call.output && !call.blob && !call.error && changes.length + terminals.length === 0;
    const soft = (text: string) => html`<p class="soft">${text}</p>`;
    return html`${call.detail ? soft(plain(call.detail)) : nothing}${call.rule ? soft(CALL.byRule(Boolean(call.denied), call.rule)) : nothing}${call.input ? section(CALL.inputOf(call.tool), boxOf(pretty(call.input))) : nothing}${changes.map(({ path, diff }) =>
      guard([diff], () => this.change(path, diff)),
    )}${terminals.map((id) => html`<a href=${terminalAddress(id)}>${CALL.watch}</a>`)}${call.output ? this.output(call.output) : nothing}${call.blob ? html`<a href=${blobAddress(call.blob)}>${CALL.wholeOutput}</a>` : nothing}${
      call.error ? html`<p class="bad">${plain(call.error.message)}</p>` : nothing
    }${empty ? soft(CALL.nothingYet) : nothing}`;
  }

  private output(text: string): TemplateResult {
    const terminal = this.acts.terminal && kindOf(this.call) === "command" ? html`<button type="button" class="quiet" @click=${() => this.acts.terminal?.()}>${CALL.terminal}</button>` : nothing;
    this.copy ??= copyButton(() => this.call.output ?? "", CALL.copyOutput);
    return html`<section class="output"><p class="label">${CALL.output}</p>${boxOf(plain(this.call.done ? text : text.slice(-LIVE_CHARS)))}<div class="output-tools">${this.copy}${terminal}</div></section>`;
  }
  private copy: HTMLElement | undefined;

  private change(path: string, diff: string): TemplateResult {
    const button = this.acts.wholeChange ? html`<button type="button" class="quiet" @click=${() => this.acts.wholeChange?.(path)}>${CALL.showInChanges}</button>` : nothing;
    return html`<section><p class="label">${CALL.change}</p>${diffView(exact(diff), undefined, path)}<div class="output-tools">${button}</div></section>`;
  }
}

const atEnd = ({ scrollTop, scrollHeight, clientHeight }: Element) => scrollHeight - scrollTop - clientHeight < 24;

/** What it is, once it is done; before that, and where it went wrong, how it goes. */
function signOf(kind: CallKind, state: CallState): TemplateResult {
  return html`<span class=${`call-sign ${state}`}>${iconOf(STATE_ICONS[state] ?? ICONS[kind], state === "running" ? "spin" : "")}</span>`;
}

/** An unanswered call was not run, but not denied either. */
function wordOf(call: CallPart, state: CallState): string {
  return state === "refused" && call.approvals?.at(-1)?.by === "timeout" ? CALL.notDone : CALL.state[state];
}

/** Reads and searches that follow each other are one line. */
export class LookRow implements Row {
  readonly key: string;
  readonly calls: CallPart[];
  private details: HTMLDetailsElement | undefined;
  private card: HTMLElement | undefined;
  private asked: string | undefined;

  constructor(
    first: CallPart,
    private readonly acts: Actions,
  ) {
    this.key = first.id;
    this.calls = [first];
  }

  build(): HTMLElement {
    const row = make("article", "row");
    this.details = make("details", "call look");
    this.details.append(make("summary"), make("ul", "call-body looks"));
    this.details.addEventListener("toggle", () => this.renderBody());
    row.append(this.details);
    this.asked = this.card = undefined;
    this.update();
    return row;
  }

  forget(): void {
    this.details = this.card = undefined;
  }

  update(): void {
    const summary = this.details?.querySelector("summary");
    if (!summary) return;
    const running = this.calls.some(({ done }) => !done);
    const failed = this.calls.filter((call) => call.done && !call.ok).length;
    const state: CallState = running ? "running" : failed === this.calls.length ? "bad" : "ok";
    const one = this.calls.length === 1 ? html`${running ? CALL.looksAt : CALL.lookedAt}${lookedAt(this.calls[0] as CallPart)}` : undefined;
    const title = one ?? html`<b>${running ? CALL.looks : CALL.looked}</b>: ${lookWords(this.calls)}`;
    render(html`${signOf("look", state)}<span class="call-title">${title}</span><span class="call-word">${failed ? CALL.failed(failed) : tookOf(this.calls) || CALL.state[state]}</span>`, summary);
    this.renderBody();
    this.renderCard();
  }

  /** A call that only reads may need approval, too: for example a file outside the folder. */
  private renderCard(): void {
    const call = this.calls.find((each) => waitingApproval(each));
    const waiting = call && waitingApproval(call);
    if (waiting?.id === this.asked) return;
    this.asked = waiting?.id;
    this.card?.remove();
    this.card = call && waiting && cards().approvalCard(waiting, call, this.acts);
    if (this.card) this.details?.after(this.card);
  }

  private renderBody(): void {
    const list = this.details?.lastElementChild as HTMLElement | null | undefined;
    if (!list || !this.details?.open) return;
    const item = (call: CallPart) => {
      const state = stateOf(call);
      return html`<li><details><summary>${lookedAt(call)}${state === "ok" ? nothing : ` (${CALL.state[state]})`}</summary>${boxOf(plain(call.output || call.error?.message || CALL.nothing))}</details></li>`;
    };
    render(this.calls.map(item), list);
  }
}

const lookedAt = (call: CallPart): TemplateResult => html`<code>${exact(subjectOf(call))}</code>${linesRead(call)}`;

/** How long they took; nothing where a person was asked, since that is not the call's own time. */
function tookOf(calls: CallPart[]): string {
  return calls.some(({ approvals }) => approvals?.length) ? "" : duration(calls.reduce((sum, { took = 0 }) => sum + took, 0));
}

/** Where the agent runs it; they go when it is done with them. */
const terminalsOf = (call: CallPart): string[] =>
  (call.content ?? []).flatMap(({ type, terminal }) => (type === "terminal" && typeof terminal === "string" ? [terminal] : []));

const section = (title: string, content: Content): TemplateResult => html`<section><p class="label">${title}</p>${content}</section>`;

const boxOf = (text: string): TemplateResult => html`<pre class="box" tabindex="0">${text}</pre>`;
