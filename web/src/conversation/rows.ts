/** What a conversation is made of on the screen: messages, texts, tool calls, questions, and the ends of turns. */

import { toHtml } from "../markdown";
import { make, makeButton } from "../page";
import { blobAddress, terminalAddress } from "../v1";
import { approvalCard, verdict } from "./approval";
import { diffsOf } from "./changes";
import { diffView } from "./diff";
import { type Acts, box, exact, plain, pretty } from "./pieces";
import { questionCard } from "./question";
import { type CallPart, type QuestionPart, type TextPart, type Turn, waitingApproval } from "./state";
import type { Row } from "./transcript";
import { duration, who, words } from "./words";

export const messageOf = (turn: Turn) => `${turn.id}/message`;
export const endOf = (turn: Turn) => `${turn.id}/end`;

export class MessageRow implements Row {
  readonly key: string;

  constructor(
    private readonly turn: Turn,
    private readonly acts: Acts,
  ) {
    this.key = messageOf(turn);
  }

  build(): HTMLElement {
    const row = make("article", "row message");
    const head = make("header");
    const name = who(this.turn.by);
    head.append(make("strong", "", name), time(this.turn.started));
    const fork = makeButton("quiet", "Fork after this turn", () => this.acts.fork(this.turn.id));
    head.append(fork);
    row.append(head, make("div", "plain", plain(this.turn.message.text)));
    const count = this.turn.message.attachments?.length ?? 0;
    if (count > 0) row.append(make("p", "soft", `${count} ${count === 1 ? "attachment" : "attachments"}`));
    return row;
  }
}

/** Rendering costs more the longer a text is, so a growing one is rendered again after ten times what it took. */
const REST = 10;

export class TextRow implements Row {
  readonly key: string;
  private body: HTMLElement | undefined;
  private shown = -1;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private details: HTMLDetailsElement | undefined;

  constructor(private readonly part: TextPart) {
    this.key = part.id;
  }

  build(): HTMLElement {
    const row = make("article", `row text ${this.part.kind}`);
    this.body = make("div", "markdown");
    if (this.part.kind === "reasoning") {
      this.details = make("details");
      this.details.append(make("summary", "", "Reasoning"), this.body);
      this.details.addEventListener("toggle", () => this.update());
      row.append(this.details);
    } else {
      row.append(this.body);
    }
    this.render();
    return row;
  }

  update(): void {
    if (this.part.done) {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.render();
    } else if (this.timer === undefined) {
      const before = performance.now();
      this.render();
      const wait = (performance.now() - before) * REST;
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.render();
      }, wait);
    }
  }

  private render(): void {
    const text = this.part.text ?? "";
    this.details?.querySelector("summary")?.classList.toggle("working", !this.part.done);
    if (!this.body || text.length === this.shown || this.details?.open === false) return;
    this.shown = text.length;
    this.body.innerHTML = toHtml(plain(text));
  }
}

export class CallRow implements Row {
  readonly key: string;
  private details: HTMLDetailsElement | undefined;
  private card: HTMLElement | undefined;
  private asked: string | undefined;

  constructor(
    private readonly call: CallPart,
    private readonly acts: Acts,
  ) {
    this.key = call.id;
  }

  build(): HTMLElement {
    const row = make("article", "row");
    this.details = make("details", "call");
    this.details.append(make("summary"), make("div", "call-body"));
    this.details.addEventListener("toggle", () => this.fillBody());
    row.append(this.details);
    this.update();
    return row;
  }

  update(): void {
    const { call } = this;
    const state = stateOf(call);
    const title = plain((call.done && call.ok && call.past) || call.title || call.tool);
    const summary = this.details?.querySelector("summary");
    summary?.replaceChildren(make("span", `call-state ${state}`, SIGNS[state]), make("span", "call-title", title), make("span", "call-word", WORDS[state]));
    this.fillBody();
    this.showCard();
  }

  private showCard(): void {
    const waiting = waitingApproval(this.call);
    if (waiting?.id === this.asked) return;
    this.asked = waiting?.id;
    this.card?.remove();
    this.card = waiting && approvalCard(waiting, this.call, this.acts);
    if (this.card) this.details?.after(this.card);
  }

  private fillBody(): void {
    if (!this.details?.open) return;
    const { call } = this;
    const pieces: HTMLElement[] = [];
    if (call.detail) pieces.push(make("p", "soft", plain(call.detail)));
    for (const approval of call.approvals ?? []) if (approval.answered) pieces.push(verdict(approval));
    if (call.rule) pieces.push(make("p", "soft", `${call.denied ? "Refused" : "Allowed"} by a rule: ${call.rule}`));
    if (call.input) pieces.push(section(`Input of ${call.tool}`, box(pretty(call.input))));
    pieces.push(...diffsOf(call).map((diff) => section("Change", diffView(exact(diff)))));
    if (!call.done) pieces.push(...terminalsOf(call).map((id) => link(terminalAddress(id), "Watch it in its terminal")));
    if (call.output) pieces.push(section("Output", box(plain(call.output))));
    if (call.blob) pieces.push(link(blobAddress(call.blob), "The whole output"));
    if (call.error) pieces.push(make("p", "bad", plain(call.error.message)));
    if (pieces.length === 0) pieces.push(make("p", "soft", "Nothing yet."));
    this.details.lastElementChild?.replaceChildren(...pieces);
  }
}

export class QuestionRow implements Row {
  readonly key: string;
  private row: HTMLElement | undefined;
  private shown: string | undefined;

  constructor(
    private readonly question: QuestionPart,
    private readonly acts: Acts,
  ) {
    this.key = question.id;
  }

  build(): HTMLElement {
    this.row = make("article", "row");
    this.update();
    return this.row;
  }

  update(): void {
    const now = this.question.response ?? "open";
    // Drafts of others must not take the words out of somebody's mouth, so an open card stays as it is.
    if (now === this.shown) return;
    this.shown = now;
    this.row?.replaceChildren(questionCard(this.question, this.acts));
  }
}

/** What became of the turn, and what it cost. */
export class EndRow implements Row {
  readonly key: string;

  constructor(
    private readonly turn: Turn,
    private readonly last: () => boolean,
    private readonly acts: Acts,
  ) {
    this.key = endOf(turn);
  }

  build(): HTMLElement {
    const { turn } = this;
    const row = make("footer", "row end");
    if (turn.outcome !== "completed") {
      const note = make("div", `outcome ${turn.outcome}`);
      note.append(make("strong", "", OUTCOMES[turn.outcome ?? ""] ?? String(turn.outcome)));
      if (turn.error) note.append(make("span", "", plain(turn.error.message)));
      if (this.last() && (turn.outcome === "failed" || turn.outcome === "interrupted"))
        note.append(makeButton("", "Resume", () => this.acts.resume()));
      row.append(note);
    }
    const facts = [turn.ended ? duration(turn.ended - turn.started) : "", words(turn.usage)].filter(Boolean);
    const line = make("span", "soft", facts.join(" · "));
    if (turn.parts?.some(({ part }) => part === "call")) line.append(makeButton("quiet", "Files changed", () => this.acts.files(turn.id)));
    if (line.hasChildNodes()) row.append(line);
    return row;
  }
}

/** Where the agent runs it; they go when it is done with them. */
const terminalsOf = (call: CallPart): string[] =>
  (call.content ?? []).flatMap(({ type, terminal }) => (type === "terminal" && typeof terminal === "string" ? [terminal] : []));

const OUTCOMES: Record<string, string> = { failed: "Failed.", cancelled: "Cancelled.", interrupted: "Interrupted: the host stopped in the middle." };

type CallState = "waiting" | "running" | "ok" | "bad" | "refused" | "stopped";
const SIGNS: Record<CallState, string> = { waiting: "?", running: "…", ok: "✓", bad: "✗", refused: "–", stopped: "–" };
const WORDS: Record<CallState, string> = { waiting: "waits for you", running: "running", ok: "done", bad: "failed", refused: "refused", stopped: "stopped" };

function stateOf(call: CallPart): CallState {
  if (call.done && call.ok) return "ok";
  if (call.done && refused(call)) return "refused";
  if (call.outcome === "cancelled" || call.outcome === "interrupted") return "stopped";
  if (call.done) return "bad";
  return waitingApproval(call) ? "waiting" : "running";
}

/** By a rule or a person; the end of a turn answers with a no as well, but says so. */
function refused(call: CallPart): boolean {
  const last = call.approvals?.at(-1);
  return call.denied === true || (last?.answered === true && !last.allowed && !ENDS.has(last.reason ?? ""));
}

const ENDS = new Set(["cancelled", "interrupted", "failed", "completed"]);

function section(title: string, content: HTMLElement): HTMLElement {
  const found = make("section");
  found.append(make("h3", "", title), content);
  return found;
}

function link(href: string, text: string): HTMLElement {
  const anchor = make("a", "", text);
  anchor.href = href;
  return anchor;
}

function time(milliseconds: number): HTMLElement {
  const found = make("time", "soft", new Date(milliseconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  found.dateTime = new Date(milliseconds).toISOString();
  found.title = new Date(milliseconds).toLocaleString();
  return found;
}
