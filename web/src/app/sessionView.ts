/** One session in the middle: its head, its conversation, what happens now, the queue and the field to write in. */

import { Conversation } from "../conversation/conversation";
import { explain } from "../failure";
import { type Acts, counted, plain, relative } from "../conversation/pieces";
import { commandOf, helperName, kindOf, subjectOf } from "../conversation/calls";
import type { QueueView } from "../conversation/queue";
import { active, type LogRecord, type Part, type SessionState, statusOf, type Turn, waits } from "../conversation/state";
import { cards } from "../conversation/loadCards";
import { Stream } from "../conversation/stream";
import { make, makeButton } from "../page";
import { settle } from "../settle";
import { Scope } from "../scope";
import { v1 } from "../v1";
import { Announcer } from "./announcer";
import { Composer } from "./composer";
import { lastName, queuedLine } from "./entries";
import type { Helper } from "./helper";
import { icon } from "../icons";
import type { MessageMap } from "./messageMap";
import { pathOf, turnLink } from "./router";
import { sessionMenu } from "./sessionMenu";
import { cost, elapsed, tokens } from "../time";
import type { OpenSession, SessionContext } from "./view";

const DELTAS = new Set(["part.delta", "tool.input", "tool.output"]);
/** Without a byte for so long the model is what everybody waits for. */
const SILENT_MS = 5_000;
/** So long a text about a request that failed stays at least. */
const SAID_MS = 2_000;
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
  private readonly title = make("h1");
  private readonly facts = make("p");
  private readonly status = make("span", "status");
  private readonly toggle: HTMLButtonElement;
  private readonly trouble = make("p", "trouble");
  private queue: QueueView | undefined;
  private readonly queueView = make("section");
  private readonly now = make("div", "now");
  private readonly sticky = make("button", "sticky");
  private readonly scope = new Scope((text) => this.say(text));
  private readonly acts: Acts;
  private readonly announcer = new Announcer();
  private map: MessageMap | undefined;
  private readonly helpers = new Map<string, Helper>();
  /** Calls whose helper is not in the feed yet. */
  private readonly expected = new Set<string>();
  private heard = Date.now();
  private shownNow = "";

  constructor(
    readonly id: string,
    private readonly frame: SessionContext,
  ) {
    this.title.id = "title";
    this.title.textContent = "…";
    this.facts.id = "facts";
    this.status.id = "status";
    this.status.setAttribute("role", "status");
    this.trouble.id = "trouble";
    this.trouble.setAttribute("role", "alert");
    this.trouble.hidden = true;
    this.toggle = makeButton("btn", "", () => this.frame.panelAt("changes"));
    this.toggle.id = "changes-button";
    const view = make("div");
    view.id = "transcript";
    view.tabIndex = 0;
    view.setAttribute("role", "log");
    view.setAttribute("aria-live", "off"); // the announcer reads what is finished; a text that grows would be read over and over
    view.setAttribute("aria-label", "Conversation");
    const end = makeButton("", "", () => undefined);
    end.id = "to-end";
    end.hidden = true;
    this.sticky.type = "button";
    this.sticky.hidden = true;
    const acts: Acts = {
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
    this.queueView.setAttribute("aria-label", "Waiting messages");
    this.queueView.hidden = true;
    this.composer = new Composer(id, (work) => this.attempt(work), (text) => this.say(text));
    const dock = make("div", "dock");
    dock.append(this.now, this.queueView, this.composer.element);
    const middle = make("div", "middle");
    middle.append(this.sticky, view, end);
    void this.openMap(view);
    this.element.append(this.head(), this.trouble, middle, dock, this.announcer.element);
    this.followOwnWords(view);
    this.scope.every(1000, () => this.showNow());
    new Stream(this.scope, id, {
      opened: (state) => this.opened(state),
      moved: (state, events) => this.moved(state, events),
      gone: () => this.gone(),
    });
  }

  private head(): HTMLElement {
    const head = make("header", "head");
    const back = makeButton("icon back", "", () => this.frame.go({ at: "home" }));
    back.append(icon("back"));
    back.setAttribute("aria-label", "Back to the list");
    const text = make("div", "head-text");
    text.append(this.title, this.facts);
    head.append(back, text, this.status, this.toggle, sessionMenu(this, this.frame));
    return head;
  }

  get agentName(): string {
    return this.state ? this.frame.feed.agentName(this.state.agent) : "";
  }

  // -- coming and going ---------------------------------------------------------------------------------------------

  shown(): void {
    this.scope.resume();
    // The second tap on a row of the list would land on the card that has come in its place.
    for (const card of this.element.querySelectorAll<HTMLElement>(".card")) settle(card);
    if (this.state) {
      this.showHead();
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
    this.frame.feed.retryNow();
    this.map?.show(state);
    this.announcer.begin(state);
    this.showHead();
    this.markRead();
    this.frame.changed(this, "opened");
  }

  private moved(state: SessionState, events: LogRecord["event"][]): void {
    this.heard = Date.now();
    this.conversation.move(state, events);
    // Deltas change nothing up there, and there are thousands of them.
    const plainOnes = events.every(({ type }) => DELTAS.has(type));
    if (!plainOnes) {
      this.showHead();
      this.map?.show(state);
      this.announcer.tellCard(this.element);
    }
    this.announcer.tellText(state);
    if (events.some(({ type }) => type === "turn.ended")) this.markRead();
    this.frame.changed(this, plainOnes ? "delta" : "state");
  }

  private gone(): void {
    const lead = make("div", "empty");
    const link = make("a", "button", "All sessions");
    link.href = pathOf({ at: "home" });
    lead.append(make("h1", "", "There is no such session"), make("p", "", `No session of this host is called ${this.id}. It may have been deleted.`), link);
    this.element.replaceChildren(lead);
    this.frame.titled("Not found", this);
  }

  /** A session that is visible and idle is read. */
  markRead(): void {
    const now = this.state;
    // Read-only users cannot mark it, and see no error.
    if (now?.read === false && !document.hidden && this.element.isConnected && !active(now)) v1.change(this.id, { read: true }).catch(() => undefined);
  }

  showHead(): void {
    const now = this.state;
    if (!now) return;
    const status = statusOf(now);
    for (const call of this.expected) this.conversation.refresh(call);
    const asks = this.helperAsking() !== undefined;
    const interrupted = !active(now) && now.turns?.at(-1)?.outcome === "interrupted" && !now.rewound;
    const stopped = !active(now) && now.turns?.at(-1)?.outcome === "cancelled" && !now.rewound;
    const title = now.title || "New session";
    this.title.textContent = title;
    this.title.title = title;
    const [look, word] = now.closed ? ["closed", "Closed"] : now.archived && !active(now) ? ["archived", "Archived"] : interrupted ? ["interrupted", "Interrupted"] : stopped ? ["idle stopped", "Stopped"] : asks ? ["waiting", WORDS.waiting] : status === "running" && this.frame.feed.rows.get(this.id)?.queued ? ["queued", "Queued"] : ([status, WORDS[status]] as const);
    const unknown = this.frame.feed.lost && active(now) !== undefined;
    const shown = unknown ? "Not connected" : word;
    if (this.status.textContent !== shown) this.status.textContent = shown;
    this.status.className = `status ${unknown ? "queued" : look}`;
    this.status.hidden = shown === "";
    const used = (now.usage?.input ?? 0) + (now.usage?.output ?? 0);
    const branch = now.worktree?.branch;
    const facts = [lastName(now.cwd), branch ?? "", this.agentName, used ? tokens(used) : "", used ? cost(now.usage?.cost) : ""];
    this.facts.textContent = facts.filter(Boolean).join(" · ");
    this.facts.title = now.cwd;
    // A card may be shown before the names of the agents are loaded.
    for (const card of this.element.querySelectorAll(".card.approval")) cards().refreshCard(card);
    this.showToggle();
    if (this.queue) this.queue.show(now);
    else if (now.queue?.length) void this.openQueue();
    this.composer.show(now, this.frame.feed.lost);
    this.showNow();
    this.frame.titled(title, this);
  }

  /** Its code comes beside the conversation, and not before it. */
  private async openMap(view: HTMLElement): Promise<void> {
    const { MessageMap: View } = await import("./messageMap");
    this.map = new View((turn) => this.conversation.goToMessage(turn));
    view.after(this.map.element);
    if (this.state) this.map.show(this.state);
  }

  /** Its code is loaded with the first message that waits. */
  private async openQueue(): Promise<void> {
    const { QueueView: View } = await import("../conversation/queue");
    this.queue ??= new View(this.queueView, this.acts);
    if (this.state) this.queue.show(this.state);
  }

  private showToggle(): void {
    const changes = this.frame.feed.rows.get(this.id)?.session.changes;
    this.toggle.replaceChildren(icon("panel"), make("span", "vh", "Show panel"));
    if (changes?.files) this.toggle.append(counted(changes.additions ?? 0, changes.deletions ?? 0));
  }

  /** The truth in one sentence; nothing while nothing happens. */
  private showNow(): void {
    // The host answers again: that it did not is over.
    const { feed } = this.frame;
    if (feed.live && feed.downSince === undefined && this.trouble.textContent === UNREACHABLE && Date.now() - this.saidAt > SAID_MS) this.say("");
    const state = this.state;
    const turn = state && active(state);
    const asking = turn && this.helperAsking();
    const row = this.frame.feed.rows.get(this.id);
    const text: Now | undefined = turn && this.frame.feed.lost ? LOST : asking ? HELPER_WAITS : turn && row?.queued ? ["queued", queuedLine(row, this.frame.feed.titleOf), ""] : state && turn ? nowOf(turn, Date.now() - this.heard) : undefined;
    const key = JSON.stringify(text?.slice(0, 3));
    if (!turn || !text) {
      if (this.shownNow) this.now.replaceChildren();
      this.shownNow = "";
      return;
    }
    const [look, verb, object] = text;
    if (key !== this.shownNow) {
      // The host knows since when, also for those who come later.
      this.nowSince = this.shownNow ? Date.now() : (this.frame.feed.rows.get(this.id)?.since ?? turn.started);
      this.shownNow = key;
      const stop = makeButton("btn small", "Stop", () => void this.stop());
      stop.id = "stop";
      stop.prepend(icon("stop"));
      const letter = make("kbd", "", "Esc Esc");
      letter.setAttribute("aria-hidden", "true");
      stop.append(letter);
      this.now.className = `now ${look}`;
      const line = make("span", "now-text");
      line.append(make("b", "", verb), ...(object ? [" ", make("code", "", object)] : []));
      this.now.replaceChildren(look === "work" ? icon("work", "spin") : icon(look === "need" ? "need" : "todo"), line, make("span", "el"), make("span", "spring"), ...(text === LOST ? [] : [stop]));
    }
    const clock = this.now.querySelector(".el");
    if (clock) clock.textContent = text === LOST ? "" : elapsed(Date.now() - this.nowSince);
  }
  private nowSince = Date.now();

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

  private saidAt = 0;

  say(text: string): void {
    this.saidAt = Date.now();
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

  /** The helper that a call started has its own session, which is in the feed. */
  private helperOf(callId: string): HTMLElement | undefined {
    const known = this.helpers.get(callId);
    if (known) return known.element;
    const row = [...this.frame.feed.rows.values()].find(({ session }) => session.parent === this.id && session.origin?.call === callId);
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
        this.showHead();
      });
      return undefined;
    }
    this.expected.delete(callId);
    const helper = new HelperView(row.session.id, name, this.frame.feed, this.scope.child());
    this.helpers.set(callId, helper);
    return helper.element;
  }
}

const WORDS = { idle: "", running: "Working", waiting: "Needs you", failed: "Failed" } as const;

type Now = [look: string, verb: string, object: string];
/** What happens there is not known here. */
const LOST: Now = ["queued", "The host cannot be reached", ""];
const HELPER_WAITS: Now = ["need", "Waiting for you", ""];

export function nowOf(turn: Turn, silent: number): Now {
  const parts = turn.parts ?? [];
  if (parts.some(waits)) return ["need", "Waiting for you", ""];
  for (let at = parts.length - 1; at >= 0; at--) {
    const part = parts[at] as Part;
    const helper = part.part === "call" && !part.done ? helperName(part) : "";
    if (helper) return ["work", `${helper} helps`, ""];
    if (part.part === "call" && !part.done && part.kind !== "think") {
      const kind = kindOf(part);
      if (kind === "command") return ["work", "Running", plain(commandOf(part)).split("\n")[0] ?? ""];
      return ["work", kind === "change" ? "Changing" : kind === "look" ? "Looking at" : "Using", plain(kind === "tool" ? part.title || part.tool : subjectOf(part))];
    }
    if (part.part === "text" && !part.done) {
      if (silent > SILENT_MS) return ["work", "Waiting for the model", ""];
      return ["work", part.kind === "reasoning" ? "Thinking" : "Writing", ""];
    }
  }
  return ["work", "Waiting for the model", ""];
}
