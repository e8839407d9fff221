/** Everything that waits for a person, oldest first; one card is open, and its answer opens the next. */

import { root } from "../root";
import { explain, isTemporary } from "../failure";
import { approvalCard, question, undoButton } from "../conversation/approval";
import { countOf, linesOf } from "../conversation/diffLines";
import { coverWords } from "../conversation/grants";
import { counted, exact, plain } from "../conversation/pieces";
import { questionCard } from "../conversation/question";
import type { Approval, CallPart, QuestionPart } from "../conversation/state";
import { who } from "../conversation/words";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { settle, settled } from "../settle";
import { call, v1 } from "../v1";
import { lastName, needsResume } from "./entries";
import { type Icon, icon } from "../icons";
import { pathOf } from "./router";
import type { Shell, View } from "./shell";
import { clock, span } from "./time";

interface Asked {
  id: string;
  session: string;
  title: string;
  agent: string;
  cwd: string;
  since: number;
  text: string;
  by?: string;
  call?: CallPart | null;
  approval?: Approval | null;
  question?: QuestionPart | null;
}

interface Answer {
  id: string;
  session: string;
  title?: string;
  text: string;
  time: number;
  by: string;
  allowed?: boolean;
  question?: boolean;
  /** The grant that remembers it, while it is in force. */
  grant?: string;
  covers?: string[];
  tool?: string;
  cwd?: string;
}

/** A session whose turn ended with the host. */
interface Interrupted {
  session: string;
  title: string;
  agent: string;
  cwd: string;
  since: number;
}

/** So long a yes can be taken back: it is sent afterwards, or at once when somebody leaves. */
const HELD_MS = 3_000;
/** Answers of today that are listed. */
const HISTORY = 20;

export class Inbox implements View {
  readonly element = make("section", "place inbox");
  readonly title = "Inbox";
  private readonly facts = make("p");
  private readonly list = make("div", "wide");
  private readonly trouble = make("p", "trouble");
  private readonly scope = new Scope((text) => this.say(text));
  /** The last request failed, and the text about it is shown. */
  private failing = false;
  /** Answered here: an answer of the host that was requested before does not bring them back. */
  private readonly closed = new Set<string>();
  private waiting: Asked[] = [];
  private interrupted: Interrupted[] = [];
  private known = "?";
  private shown = "";
  private opened = "";
  private answered: Answer[] = [];
  private rules = 0;
  /** What somebody has allowed here and the host has yet to hear, by its id. */
  private readonly held = new Map<string, () => void>();
  private readonly sent = make("div", "held");
  private readonly flush = () => [...this.held.values()].forEach((send) => send());

  /** `wanted`: what a notice is about; it is open, wherever it stands in the list. */
  constructor(
    private readonly shell: Shell,
    private wanted = "",
  ) {
    this.opened = wanted;
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", "Inbox"), this.facts);
    head.append(text);
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    this.sent.setAttribute("role", "status");
    const scroll = make("div", "scroll");
    scroll.append(this.trouble, this.sent, this.list);
    this.element.append(head, scroll);
    this.scope.on(window, "pagehide", this.flush);
    this.scope.onEnd(shell.feed.watch(() => this.look()));
    this.look();
  }

  leave(): void {
    this.flush();
    this.scope.end();
  }

  /** The list says what waits. When that has changed, the cards are requested. */
  private look(): void {
    const known = [...this.shell.feed.rows.values()].flatMap((row) => [...(row.waiting ?? []).map(({ id }) => id), ...(needsResume(row, Date.now()) ? [row.session.id] : [])]).sort().join(" ");
    if (known === this.known) return this.shown === "" ? undefined : this.show();
    this.known = known;
    this.load();
  }

  private readonly load = this.scope.latest(
    (signal) =>
      Promise.all([
        call<{ waiting: Asked[]; interrupted?: Interrupted[] }>("GET", "/inbox", undefined, signal),
        call<{ answers: Answer[]; rules: number }>("GET", `/inbox/answered?since=${new Date().setHours(0, 0, 0, 0)}`, undefined, signal),
      ]),
    ([{ waiting, interrupted }, { answers, rules }]) => {
      if (this.failing) this.say("");
      this.failing = false;
      Object.assign(this, { waiting: waiting.filter(({ id }) => !this.held.has(id) && !this.closed.has(id)), interrupted: interrupted ?? [], answered: answers, rules });
      this.arrive();
      this.show();
    },
    {
      failed: (error) => {
        this.failing = isTemporary(error);
        this.say(explain(error));
      },
    },
  );

  /** Who comes for one of them and is late reads that, and is led to where it was. */
  private arrive(): void {
    const wanted = this.wanted;
    this.wanted = "";
    if (!wanted || this.waiting.some(({ id }) => id === wanted)) return;
    const link = make("a", "", "Its session");
    link.href = `${root}/app/s/${encodeURIComponent(wanted.split(".")[0] ?? "")}`;
    this.say("This does not wait any more: it was answered, or its turn has ended. ");
    this.trouble.append(link);
  }

  private say(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = text === "";
  }

  private show(): void {
    const shown = JSON.stringify([this.waiting.map(({ id, agent }) => [id, this.shell.feed.agentName(agent)]), this.opened, this.interrupted.map(({ session }) => session), this.answered.map(({ id }) => id), this.rules]);
    if (shown === this.shown) return;
    this.shown = shown;
    const count = this.waiting.length + this.interrupted.length;
    this.facts.textContent = count === 0 ? "You're all caught up" : `${count} ${count === 1 ? "item needs" : "items need"} you, oldest first`;
    if (!this.waiting.some(({ id }) => id === this.opened)) this.opened = this.waiting[0]?.id ?? "";
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...this.waiting.map((asked) => (asked.id === this.opened ? this.card(asked) : this.line(asked))), ...this.stopped(), ...(count === 0 ? [this.nothing()] : []), ...this.history());
    if (focused || document.activeElement === document.body) this.list.querySelector<HTMLElement>(".card h2")?.focus({ preventScroll: true });
  }

  /** Who asks: a step of a job, or a session. */
  private asker({ session, title }: Asked): { name: string; path: string } {
    const by = this.shell.feed.rows.get(session)?.session.by;
    const job = [...this.shell.feed.jobs.values()].find(({ works }) => works?.some(({ task }) => by === `task:${task}`));
    if (job) return { name: `${job.name}, step “${title}”`, path: pathOf({ at: "job", id: job.id }) };
    return { name: title || "New session", path: pathOf({ at: "session", id: session }) };
  }

  private about(asked: Asked): HTMLElement {
    const { name, path } = this.asker(asked);
    const link = make("a", "", name);
    link.href = path;
    const line = make("p", "asked-where");
    const waits = span(Date.now() - asked.since);
    line.append(link, ` · ${lastName(asked.cwd)} · ${this.shell.feed.agentName(asked.agent)}${waits ? ` · waiting ${waits}` : ""}`);
    return line;
  }

  private card(asked: Asked): HTMLElement {
    const acts = {
      cwd: () => asked.cwd,
      agent: () => this.shell.feed.agentName(asked.agent),
      wholeChange: () => this.shell.go({ at: "session", id: asked.session, tab: "changes" }),
      attempt: async (work: () => Promise<unknown>, allows?: boolean, scope?: string) => {
        if (allows === undefined) return this.answer(work, () => undefined);
        if (!allows) return this.answer(work, () => this.done(asked));
        this.hold(asked, work, scope);
        return true;
      },
    };
    const card = asked.approval && asked.call ? approvalCard(asked.approval, asked.call, acts) : questionCard(asked.question as QuestionPart, acts);
    card.querySelector("h2")?.after(this.about(asked));
    return card;
  }

  private async answer(work: () => Promise<unknown>, done: () => void, held = ""): Promise<boolean> {
    try {
      await work();
      done();
      return true;
    } catch (error) {
      this.closed.delete(held);
      this.say(explain(error));
      this.load();
      return false;
    }
  }

  /** A yes opens the next one at once, and can be taken back for a moment, while the agent has not begun. */
  private hold(asked: Asked, work: () => Promise<unknown>, scope = ""): void {
    const strip = make("div", "held-strip");
    const end = () => {
      clearTimeout(timer);
      this.held.delete(asked.id);
      strip.remove();
    };
    const send = () => {
      end();
      void this.answer(work, () => undefined, asked.id);
    };
    const timer = setTimeout(send, HELD_MS);
    this.held.set(asked.id, send);
    const text = make("span", "strip-text");
    text.append("Allowed: ", ...(scope ? [make("b", "", scope), " · "] : []), ...titleOf(asked));
    const back = makeButton("btn small", "Undo", () => {
      end();
      this.closed.delete(asked.id);
      this.opened = asked.id;
      this.load();
    });
    strip.append(icon("done"), text, make("span", "spring"), back);
    this.sent.append(strip);
    this.done(asked);
  }

  private line(asked: Asked): HTMLElement {
    const row = makeButton("asked", "", () => {
      this.opened = asked.id;
      this.show();
      this.list.querySelector<HTMLElement>(".card h2")?.focus();
    });
    const text = make("span", "asked-text");
    const waits = span(Date.now() - asked.since);
    const title = make("span", "asked-title");
    title.append(...titleOf(asked));
    text.append(title, make("small", "", `${this.asker(asked).name} · ${lastName(asked.cwd)} · ${this.shell.feed.agentName(asked.agent)}${waits ? ` · waiting ${waits}` : ""}`));
    const sign = make("span", "mark need");
    sign.append(icon(asked.question ? "ask" : "need"));
    row.append(sign, text, icon("down"));
    row.setAttribute("aria-expanded", "false");
    return row;
  }

  /** What the host's end interrupted: nothing of it runs until a person resumes it. */
  private stopped(): HTMLElement[] {
    if (this.interrupted.length === 0) return [];
    const section = make("section", "interrupted");
    const head = make("header", "section-head");
    head.append(make("h2", "", "Interrupted when the host stopped"), make("span", "spring"));
    if (this.interrupted.length > 1) head.append(makeButton("btn primary", "Resume all", () => void this.resume(this.interrupted)));
    section.append(head, ...this.interrupted.map((each) => this.stoppedRow(each)));
    settle(section);
    return [section];
  }

  private stoppedRow(each: Interrupted): HTMLElement {
    const [row, text, link] = [make("div", "interrupted-row"), make("span", "asked-text"), make("a", "asked-title", each.title || "New session")];
    link.href = pathOf({ at: "session", id: each.session });
    text.append(link, make("small", "", `${lastName(each.cwd)} · ${this.shell.feed.agentName(each.agent)} · interrupted at ${clock(each.since)}`));
    const sign = make("span", "mark");
    sign.append(icon("interrupted"));
    const [resume, archive] = [makeButton("btn small", "Resume", () => void this.resume([each])), makeButton("btn small", "Archive", () => void this.answer(() => v1.change(each.session, { archived: true }), () => this.resumed(each)))];
    resume.setAttribute("aria-label", `Resume ${each.title}`);
    archive.setAttribute("aria-label", `Archive ${each.title}`);
    row.append(sign, text, resume, archive);
    return row;
  }

  /** One after the other: an error of one does not keep the others from running. */
  private async resume(all: Interrupted[]): Promise<void> {
    for (const each of [...all]) await this.answer(() => v1.resume(each.session), () => this.resumed(each));
  }

  private resumed({ session }: Interrupted): void {
    this.interrupted = this.interrupted.filter((each) => each.session !== session);
    this.show();
  }

  /** At once: the host's own word follows. */
  private done(asked: Asked): void {
    const at = this.waiting.findIndex(({ id }) => id === asked.id);
    this.trouble.hidden = true;
    this.closed.add(asked.id);
    this.waiting = this.waiting.filter(({ id }) => id !== asked.id);
    this.opened = (this.waiting[at] ?? this.waiting[0])?.id ?? "";
    this.show();
  }

  private nothing(): HTMLElement {
    const text = make("div", "empty-inbox");
    const working = this.shell.feed.entries().filter(({ state }) => state === "work");
    text.append(make("h2", "", "You're all caught up."));
    text.append(make("p", "soft", working.length === 0 ? "No agent is running right now." : `Working: ${working.slice(0, 5).map(({ title }) => title).join(", ")}${working.length > 5 ? ` and ${working.length - 5} more` : ""}.`));
    return text;
  }

  private history(): HTMLElement[] {
    if (this.answered.length === 0 && this.rules === 0) return [];
    const section = make("section", "answered");
    section.append(make("h2", "", "Answered today"));
    if (this.rules > 0) section.append(make("p", "soft", `Rules and remembered answers decided ${this.rules} ${this.rules === 1 ? "call" : "calls"} without asking.`));
    section.append(
      ...this.answered.slice(0, HISTORY).map((answer) => {
        const row = make("div", "answered-row");
        const link = make("a", "asked-text");
        link.href = `${root}/app/s/${encodeURIComponent(answer.session)}`;
        const [name, ...words] = outcome(answer);
        link.append(...words, ...(answer.title ? [` in ${answer.title}`] : []));
        row.append(icon(name), link);
        if (answer.grant) row.append(undoButton(answer.grant, (work) => this.answer(work, () => undefined)));
        row.append(make("time", "soft", clock(answer.time)));
        return row;
      }),
    );
    return [section];
  }

  /** The next or previous one is opened. */
  step(by: 1 | -1): void {
    const at = this.waiting.findIndex(({ id }) => id === this.opened);
    const next = this.waiting[Math.min(Math.max(at + by, 0), this.waiting.length - 1)];
    if (!next) return;
    this.opened = next.id;
    this.show();
    this.list.querySelector<HTMLElement>(".card h2")?.focus();
  }

  choose(number: string): boolean {
    const card = this.list.querySelector<HTMLElement>(".card.question");
    const button = card?.querySelector<HTMLButtonElement>(`button[data-answer="${number}"]:enabled`);
    if (!card || !button) return false;
    if (settled(card)) button.click();
    return true;
  }

  press(key: "y" | "n"): boolean {
    const card = this.list.querySelector<HTMLElement>(".card.approval");
    if (!card) return false;
    if (settled(card)) card.querySelector<HTMLButtonElement>(`button[data-answer="${key}"]:enabled`)?.click();
    return true;
  }
}

/** As its card asks it; a command is named, so that it can be told from the others. */
function titleOf({ approval, call: part, question: asked, cwd }: Asked): (string | HTMLElement)[] {
  if (!approval || !part) return [plain(asked?.text ?? "")];
  const command = approval.command ? [" ", make("code", "", exact(approval.command))] : [];
  const { added, removed } = countOf(linesOf(approval.diff ?? ""));
  return [...question(approval, part, cwd), ...command, ...(approval.diff ? [" ", counted(added, removed)] : [])];
}

const ACTIONS: [pattern: RegExp, noun: string][] = [
  [/^Wants to change /, "the change to "],
  [/^Wants to run /, "running "],
  [/^Wants to read /, "reading "],
  [/^Wants to use /, "using "],
  [/^Asks: /, ""],
];

/** What became of it, by whom, and for how long; no one denied what timed out. */
function outcome({ by, allowed, question: asked, text, grant, covers = [], tool = "", cwd = "" }: Answer): [Icon, HTMLElement, string] {
  const [pattern, noun] = ACTIONS.find(([each]) => each.test(text)) ?? [/^/, ""];
  const what = text.replace(pattern, noun) || "a question";
  if (by === "timeout") return ["clock", make("b", "", "No one answered in time:"), ` ${what}`];
  const verb = asked ? (allowed ? "answered" : "declined") : allowed ? "allowed" : "denied";
  const scope = grant ? `, and ${coverWords(covers, tool, cwd)} from now on` : "";
  return [allowed ? "done" : "close", make("b", "", `${who(by)} ${verb}`), ` ${what}${scope}`];
}
