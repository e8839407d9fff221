/** One session in the middle: its head, its conversation, what happens now, the queue and the field to write in. */

import { Conversation } from "../conversation/conversation";
import { explain } from "../failure";
import { type Actions, countsOf, plain, relative } from "../conversation/pieces";
import { commandOf, helperName, kindOf, subjectOf } from "../conversation/calls";
import type { QueueView } from "../conversation/queue";
import { active, type LogRecord, type Part, type SessionState, statusOf, type Turn, waits } from "../conversation/state";
import { cards } from "../conversation/loadCards";
import { Stream } from "../conversation/stream";
import { make, makeButton } from "../page";
import { html, iconOf, nothing, render } from "../render";
import { ignoreEarlyClicks } from "../settle";
import { Scope } from "../scope";
import { v1 } from "../v1";
import { Announcer } from "./announcer";
import { Composer } from "./composer";
import { lastName, queuedLine } from "./entries";
import type { Helper } from "./helper";
import type { MessageMap } from "./messageMap";
import { pathOf, turnLink } from "./router";
import { sessionMenu } from "./sessionMenu";
import { SESSION } from "../texts/session";
import { cost, elapsed, tokens } from "../time";
import type { OpenSession, SessionContext } from "./view";

const DELTAS = new Set(["part.delta", "tool.input", "tool.output"]);
/** Without a byte for so long the model is what everybody waits for. */
const SILENT_MS = 5_000;
/** So long a text about a request that failed stays at least. */
const REPORTED_MS = 2_000;
const UNREACHABLE = explain(new TypeError());
/** The height of the line with the user's last message, and a little more. */
const STICKY_PX = 36;

/** Its code is loaded with the first helper that an agent sends out. */
let HelperView: typeof Helper | undefined;

export class SessionView implements OpenSession {
  readonly element = make("section", "place session");
  state: SessionState | undefined;
  readonly conversation: Conversation;
  readonly composer: Composer;
  private readonly head = make("header", "head");
  private readonly menu: HTMLElement;
  private readonly trouble = make("p", "trouble");
  private queue: QueueView | undefined;
  private readonly queueView = make("section");
  private readonly now = make("div", "now");
  private readonly sticky = make("button", "sticky");
  private readonly scope = new Scope((text) => this.report(text));
  private readonly acts: Actions;
  private readonly announcer = new Announcer();
  private map: MessageMap | undefined;
  private readonly helpers = new Map<string, Helper>();
  /** Calls whose helper is not in the board yet. */
  private readonly expected = new Set<string>();
  private lastEvent = Date.now();

  constructor(
    readonly id: string,
    private readonly frame: SessionContext,
  ) {
    this.menu = sessionMenu(this, frame);
    this.trouble.id = "trouble";
    this.trouble.setAttribute("role", "alert");
    this.trouble.hidden = true;
    const view = make("div");
    view.id = "transcript";
    view.tabIndex = 0;
    view.setAttribute("role", "log");
    view.setAttribute("aria-live", "off"); // the announcer reads what is finished; a text that grows would be read over and over
    view.setAttribute("aria-label", SESSION.conversation);
    const end = makeButton("", "", () => undefined);
    end.id = "to-end";
    end.hidden = true;
    this.sticky.type = "button";
    this.sticky.hidden = true;
    const acts: Actions = {
      attempt: (work: () => Promise<unknown>) => this.attempt(work),
      cwd: () => this.state?.cwd ?? "",
      agent: () => this.agentName,
      wholeChange: (path: string) => this.frame.panelAt("changes", { file: relative(path, this.state?.cwd ?? "") }),
      terminal: () => this.frame.panelAt("terminal"),
      fork: (turn: string) => void this.fork(turn),
      resume: () => void this.attempt(() => v1.resume(this.id)),
      files: (turn: string) => this.frame.panelAt("changes", { turn }),
      resend: (turn: Turn) => void import("./resend").then((module) => module.resend(this, this.frame, turn)),
      again: (turn: Turn) => void import("./resend").then((module) => module.tryAgain(this, this.frame, turn)),
      link: (turn: string) => turnLink(this.id, turn),
      helper: (callId: string) => this.helperOf(callId),
    };
    this.conversation = new Conversation(view, end, acts);
    this.acts = acts;
    this.queueView.id = "queue";
    this.queueView.setAttribute("aria-label", SESSION.queue);
    this.queueView.hidden = true;
    this.composer = new Composer(id, (work) => this.attempt(work), (text) => this.report(text));
    const dock = make("div", "dock");
    dock.append(this.now, this.queueView, this.composer.element);
    const middle = make("div", "middle");
    middle.append(this.sticky, view, end);
    void this.openMap(view);
    this.renderHead();
    this.element.append(this.head, this.trouble, middle, dock, this.announcer.element);
    this.followOwnWords(view);
    this.scope.every(1000, () => this.renderNow());
    new Stream(this.scope, id, {
      opened: (state) => this.opened(state),
      moved: (state, events) => this.moved(state, events),
      gone: () => this.gone(),
    });
  }

  get agentName(): string {
    return this.state ? this.frame.board.agentName(this.state.agent) : "";
  }

  // -- coming and going ---------------------------------------------------------------------------------------------

  shown(): void {
    this.scope.resume();
    // The second tap on a row of the list would land on the card that has come in its place.
    for (const card of this.element.querySelectorAll<HTMLElement>(".card")) ignoreEarlyClicks(card);
    if (this.state) {
      this.update();
      this.conversation.toEnd();
      this.markRead();
    }
  }

  hidden(): void {
    void this.composer.save();
    this.scope.pause();
  }

  leave(): void {
    this.hidden();
    this.scope.end();
  }

  // -- the state ----------------------------------------------------------------------------------------------------

  /** The turn to show as soon as the session is loaded. */
  private wanted: { turn: string; text: string } | undefined;

  /** Shows a turn; with `text`, the row that contains it, and marks it there. */
  goTo(turn: string, text = ""): void {
    const { turns } = this.state ?? {};
    if (text && turns) return void import("../conversation/found").then(({ goToText }) => goToText(this.conversation, turns, turn, text));
    const found = turns?.find(({ id }) => id === turn);
    this.wanted = found ? undefined : { turn, text };
    if (found) this.conversation.goToMessage(found);
  }

  private opened(state: SessionState): void {
    this.state = state;
    this.conversation.open(state);
    if (this.wanted) this.goTo(this.wanted.turn, this.wanted.text);
    this.frame.board.retryNow();
    this.map?.render(state);
    this.announcer.begin(state);
    this.update();
    this.markRead();
    this.frame.changed(this, "opened");
  }

  private moved(state: SessionState, events: LogRecord["event"][]): void {
    this.lastEvent = Date.now();
    this.conversation.move(state, events);
    // Deltas change nothing up there, and there are thousands of them.
    const plainOnes = events.every(({ type }) => DELTAS.has(type));
    if (!plainOnes) {
      this.update();
      this.map?.render(state);
      this.announcer.announceCard(this.element);
    }
    this.announcer.announceText(state);
    if (events.some(({ type }) => type === "turn.ended")) this.markRead();
    this.frame.changed(this, plainOnes ? "delta" : "state");
  }

  private gone(): void {
    const lead = make("div", "empty");
    render(html`<h1>${SESSION.missing}</h1><p>${SESSION.missingText(this.id)}</p><a class="button" href=${pathOf({ at: "home" })}>${SESSION.allSessions}</a>`, lead);
    this.element.replaceChildren(lead);
    this.frame.titled(SESSION.notFound, this);
  }

  /** A session that is visible and idle is read. */
  markRead(): void {
    const now = this.state;
    // Read-only users cannot mark it, and see no error.
    if (now?.read === false && !document.hidden && this.element.isConnected && !active(now)) v1.change(this.id, { read: true }).catch(() => undefined);
  }

  /** Everything around the conversation that depends on the state of the session. */
  update(): void {
    const now = this.state;
    if (!now) return;
    for (const call of this.expected) this.conversation.refresh(call);
    this.renderHead();
    // A card may be shown before the names of the agents are loaded.
    for (const card of this.element.querySelectorAll(".card.approval")) cards().refreshCard(card);
    if (this.queue) this.queue.update(now);
    else if (now.queue?.length) void this.openQueue();
    this.composer.render(now, this.frame.board.lost);
    this.renderNow();
    this.frame.titled(now.title || SESSION.untitled, this);
  }

  private renderHead(): void {
    const { state } = this;
    const title = state ? state.title || SESSION.untitled : "…";
    const used = (state?.usage?.input ?? 0) + (state?.usage?.output ?? 0);
    const facts = state ? [lastName(state.cwd), state.worktree?.branch, this.agentName, used ? tokens(used) : "", used ? cost(state.usage?.cost) : ""].filter(Boolean).join(" · ") : "";
    const [look, word] = state ? this.status(state) : ["", ""];
    const changes = this.frame.board.rows.get(this.id)?.session.changes;
    render(
      html`<button type="button" class="icon back" aria-label=${SESSION.back} @click=${() => this.frame.go({ at: "home" })}>${iconOf("back")}</button>
        <div class="head-text"><h1 id="title" title=${title}>${title}</h1><p id="facts" title=${state?.cwd ?? ""}>${facts}</p></div>
        <span id="status" role="status" class=${`status ${look}`} ?hidden=${word === ""}>${word}</span>
        <button type="button" class="btn" id="changes-button" @click=${() => this.frame.panelAt("changes")}>${iconOf("panel")}<span class="vh">${SESSION.showPanel}</span>${changes?.files ? countsOf(changes.additions ?? 0, changes.deletions ?? 0) : nothing}</button>
        ${this.menu}`,
      this.head,
    );
  }

  private status(now: SessionState): [look: string, word: string] {
    const words = SESSION.status;
    const working = active(now) !== undefined;
    const last = now.turns?.at(-1)?.outcome;
    if (working && this.frame.board.lost) return ["queued", words.lost];
    if (now.closed) return ["closed", words.closed];
    if (now.archived && !working) return ["archived", words.archived];
    if (!working && !now.rewound && last === "interrupted") return ["interrupted", words.interrupted];
    if (!working && !now.rewound && last === "cancelled") return ["idle stopped", words.stopped];
    if (this.helperAsking()) return ["waiting", words.waiting];
    const status = statusOf(now);
    if (status === "running" && this.frame.board.rows.get(this.id)?.queued) return ["queued", words.queued];
    return [status, words[status]];
  }

  /** Its code comes beside the conversation, and not before it. */
  private async openMap(view: HTMLElement): Promise<void> {
    const { MessageMap: View } = await import("./messageMap");
    this.map = new View((turn) => this.conversation.goToMessage(turn));
    view.after(this.map.element);
    if (this.state) this.map.render(this.state);
  }

  /** Its code is loaded with the first message that waits. */
  private async openQueue(): Promise<void> {
    const { QueueView: View } = await import("../conversation/queue");
    this.queue ??= new View(this.queueView, this.acts);
    if (this.state) this.queue.update(this.state);
  }

  /** What happens now, in one sentence; nothing while nothing happens. */
  private renderNow(): void {
    const { board } = this.frame;
    // The host answers again: the error about it is removed.
    if (board.live && board.downSince === undefined && this.trouble.textContent === UNREACHABLE && Date.now() - this.reportedAt > REPORTED_MS) this.report("");
    const text = this.nowText();
    const [look, verb, object] = text ?? ["", "", ""];
    const key = text ? text.join("\n") : "";
    // The host knows since when, also if the page was opened later.
    if (text && key !== this.nowKey) this.nowSince = this.nowKey ? Date.now() : (board.rows.get(this.id)?.since ?? (this.state && active(this.state)?.started) ?? Date.now());
    this.nowKey = key;
    // While it waits, the list shows this time, too.
    const since = (look === "need" ? board.rows.get(this.id)?.since : undefined) ?? this.nowSince;
    this.now.className = `now ${look}`;
    const stop = html`<button type="button" class="btn small" id="stop" @click=${() => void this.stop()}>${iconOf("stop")}${SESSION.stop}<kbd aria-hidden="true">${SESSION.stopKey}</kbd></button>`;
    render(
      text
        ? html`${iconOf(look === "work" ? "work" : look === "need" ? "need" : "todo", look === "work" ? "spin" : "")}<span class="now-text"><b>${verb}</b>${object ? html` <code>${object}</code>` : nothing}</span><span class="el">${text === LOST ? "" : elapsed(Date.now() - since)}</span><span class="spring"></span>${text === LOST ? nothing : stop}`
        : nothing,
      this.now,
    );
  }
  private nowSince = Date.now();
  private nowKey = "";

  private nowText(): Now | undefined {
    const { board } = this.frame;
    const turn = this.state && active(this.state);
    if (!turn) return undefined;
    if (board.lost) return LOST;
    if (this.helperAsking()) return HELPER_WAITS;
    const row = board.rows.get(this.id);
    return row?.queued ? ["queued", queuedLine(row, board.titleOf), ""] : nowOf(turn, Date.now() - this.lastEvent);
  }

  /** One line with the last message of a person, while it is out of sight above. */
  private followOwnWords(view: HTMLElement): void {
    let waiting = false;
    this.sticky.addEventListener("click", () => {
      const turn = this.conversation.passed();
      if (turn) this.conversation.goToMessage(turn);
    });
    view.addEventListener(
      "scroll",
      () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(look);
      },
      { passive: true },
    );
    const look = () => {
      waiting = false;
      const top = view.getBoundingClientRect().top;
      const text = plain(this.conversation.passed()?.message.text ?? "").split("\n")[0] ?? "";
      // Nothing lies over a card: what it asks must be read before it is answered.
      const overCard = [...view.querySelectorAll(".card")].map((card) => card.getBoundingClientRect()).some((card) => card.top < top + STICKY_PX && card.bottom > top);
      if (text !== this.sticky.textContent) this.sticky.textContent = text;
      this.sticky.hidden = text === "" || overCard;
    };
  }

  // -- what can be done ---------------------------------------------------------------------------------------------

  attempt(work: () => Promise<unknown>): Promise<boolean> {
    return this.scope.attempt(work);
  }

  private reportedAt = 0;

  report(text: string): void {
    this.reportedAt = Date.now();
    this.trouble.textContent = text;
    this.trouble.hidden = text === "";
  }

  stop(): Promise<boolean> {
    return this.attempt(() => v1.cancel(this.id));
  }

  fork(turn?: string): Promise<boolean> {
    return this.attempt(async () => this.frame.go({ at: "session", id: (await v1.fork(this.id, turn)).id }));
  }

  /** A helper of this session that waits for a person. */
  private helperAsking(): Helper | undefined {
    return [...this.helpers.values()].find((helper) => helper.waits);
  }

  press(key: "y" | "n"): boolean {
    return this.conversation.press(key) || (this.helperAsking()?.conversation?.press(key) ?? false);
  }

  chooseAnswer(number: string): boolean {
    return this.conversation.choose(number) || (this.helperAsking()?.conversation?.choose(number) ?? false);
  }

  /** The helper that a call started has its own session, which is in the board. */
  private helperOf(callId: string): HTMLElement | undefined {
    const known = this.helpers.get(callId);
    if (known) return known.element;
    const row = [...this.frame.board.rows.values()].find(({ session }) => session.parent === this.id && session.origin?.call === callId);
    const call = this.state?.turns?.flatMap(({ parts = [] }) => parts).find((part) => part.part === "call" && part.id === callId);
    const name = call?.part === "call" ? helperName(call) : "";
    if (!row) {
      if (name) this.expected.add(callId);
      return undefined;
    }
    if (!HelperView) {
      this.expected.add(callId);
      void import("./helper").then((module) => {
        HelperView = module.Helper;
        this.update();
      });
      return undefined;
    }
    this.expected.delete(callId);
    const helper = new HelperView(row.session.id, name, this.frame.board, this.scope.child());
    this.helpers.set(callId, helper);
    return helper.element;
  }
}

type Now = [look: string, verb: string, object: string];
/** What happens there is not known here. */
const LOST: Now = ["queued", SESSION.now.lost, ""];
const HELPER_WAITS: Now = ["need", SESSION.now.waiting, ""];

export function nowOf(turn: Turn, silent: number): Now {
  const parts = turn.parts ?? [];
  if (parts.some(waits)) return ["need", SESSION.now.waiting, ""];
  for (let at = parts.length - 1; at >= 0; at--) {
    const part = parts[at] as Part;
    const helper = part.part === "call" && !part.done ? helperName(part) : "";
    if (helper) return ["work", SESSION.now.helper(helper), ""];
    if (part.part === "call" && !part.done && part.kind !== "think") {
      const kind = kindOf(part);
      if (kind === "command") return ["work", SESSION.now.running, plain(commandOf(part)).split("\n")[0] ?? ""];
      return ["work", kind === "change" ? SESSION.now.changing : kind === "look" ? SESSION.now.looking : SESSION.now.using, plain(kind === "tool" ? part.title || part.tool : subjectOf(part))];
    }
    if (part.part === "text" && !part.done) {
      if (silent > SILENT_MS) return ["work", SESSION.now.model, ""];
      return ["work", part.kind === "reasoning" ? SESSION.now.thinking : SESSION.now.writing, ""];
    }
  }
  return ["work", SESSION.now.model, ""];
}
