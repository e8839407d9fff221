/** Everything that waits for a person, oldest first; one card is open, and its answer opens the next. */

import { guard } from "lit-html/directives/guard.js";
import { live } from "lit-html/directives/live.js";
import { repeat } from "lit-html/directives/repeat.js";
import { root } from "../root";
import { explain, isTemporary } from "../failure";
import { approvalCard, question, undoButton } from "../conversation/approval";
import { countOf, linesOf } from "../conversation/diffLines";
import { coverWords } from "../conversation/grants";
import { countsOf, exact, plain } from "../conversation/pieces";
import { questionCard } from "../conversation/question";
import type { CallPart, QuestionPart } from "../conversation/state";
import { who } from "../conversation/words";
import { make, makeButton } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { Scope } from "../scope";
import { askFirst } from "../shortcuts";
import { INBOX } from "../texts/inbox";
import { SELECTION } from "../texts/selection";
import type { InterruptedSession, PastAnswer, PendingRequest, UnansweredBudget, WaitingJob } from "../rest";
import { ignoreEarlyClicks, takesClicks } from "../settle";
import { ask, v1 } from "../v1";
import { lastName, needsResume } from "./entries";
import { type Icon, icon } from "../icons";
import { pathOf } from "./router";
import type { View, ViewContext } from "./view";
import { clock, span } from "../time";

/** Something that waits, with the parts as cards show them. */
type Asked = Omit<PendingRequest, "turn" | "call" | "question"> & { call?: CallPart; question?: QuestionPart };

/** An approval can be undone for this time. It is sent afterwards, or immediately when the user leaves. */
const HELD_MS = 3_000;
/** Answers of today that are listed. */
const HISTORY = 20;

/** The card that is open; `key` changes with what it shows. */
interface Open {
  key: string;
  element: HTMLElement;
}

export class Inbox implements View {
  readonly element = make("section", "place inbox");
  readonly title: string = INBOX.title;
  private readonly facts = make("p");
  private readonly list = make("div", "wide");
  private readonly trouble = make("p", "trouble");
  private readonly scope = new Scope((text) => this.report(text));
  /** The last request failed, and the text about it is shown. */
  private failing = false;
  /** Answered here: an answer of the host that was requested before does not bring them back. */
  private readonly closed = new Set<string>();
  private waiting: Asked[] = [];
  private interrupted: InterruptedSession[] = [];
  /** Interrupted sessions that are selected, and the last one: a range begins there. */
  private readonly picked = new Set<string>();
  private lastPicked = "";
  private jobs: WaitingJob[] = [];
  private budgets: UnansweredBudget[] = [];
  private known = "?";
  private loaded = false;
  private open: Open | undefined;
  private rows: HTMLElement | undefined;
  private opened = "";
  private answered: PastAnswer[] = [];
  private rules = 0;
  /** Approvals that are not sent yet, by id. */
  private readonly deferred = new Map<string, () => void>();
  private readonly sent = make("div", "held");
  private readonly flush = () => [...this.deferred.values()].forEach((send) => send());

  /** `wanted`: the item of a notice; it is open, at any position of the list. */
  constructor(
    private readonly context: ViewContext,
    private wanted = "",
  ) {
    this.opened = wanted;
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", INBOX.title), this.facts);
    head.append(text);
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    this.sent.setAttribute("role", "status");
    const scroll = make("div", "scroll");
    scroll.append(this.trouble, this.sent, this.list);
    this.element.append(head, scroll);
    this.scope.on(window, "pagehide", this.flush);
    this.scope.onEnd(context.board.subscribe(() => this.refresh()));
    this.refresh();
  }

  leave(): void {
    this.flush();
    this.scope.end();
  }

  /** The board reports what waits. When that changes, the cards are requested. */
  private refresh(): void {
    const known = [...this.context.board.rows.values()].flatMap((row) => [...(row.waiting ?? []).map(({ id }) => id), ...(needsResume(row, Date.now()) ? [row.session.id] : [])]).concat([...this.context.board.jobs.values()].filter(({ status }) => status === "waiting").map(({ id }) => id)).sort().join(" ");
    if (known === this.known) return this.loaded ? this.render() : undefined;
    this.known = known;
    this.load();
  }

  private readonly load = this.scope.latest(
    (signal) =>
      Promise.all([
        ask("GET /inbox", {}, { signal }),
        ask("GET /inbox/answered", {}, { query: { since: String(new Date().setHours(0, 0, 0, 0)) }, signal }),
      ]),
    ([{ waiting, interrupted, jobs, budgets }, { answers, rules }]) => {
      if (this.failing) this.report("");
      this.failing = false;
      Object.assign(this, { waiting: waiting.filter(({ id }) => !this.deferred.has(id) && !this.closed.has(id)), interrupted: interrupted ?? [], jobs: jobs ?? [], budgets: budgets ?? [], answered: answers, rules });
      for (const id of this.picked) if (!this.interrupted.some(({ session }) => session === id)) this.picked.delete(id);
      this.openWanted();
      this.render();
    },
    {
      failed: (error) => {
        this.failing = isTemporary(error);
        this.report(explain(error));
      },
    },
  );

  /** Who comes for one of them and is late reads that, and is led to where it was. */
  private openWanted(): void {
    const wanted = this.wanted;
    this.wanted = "";
    if (!wanted || this.waiting.some(({ id }) => id === wanted)) return;
    const link = make("a", "", INBOX.itsSession);
    link.href = `${root}/app/s/${encodeURIComponent(wanted.split(".")[0] ?? "")}`;
    this.report(INBOX.late);
    this.trouble.append(link);
  }

  private report(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = text === "";
  }

  private render(): void {
    this.loaded = true;
    const count = this.waiting.length + this.interrupted.length + this.jobs.length + this.budgets.length;
    this.facts.textContent = INBOX.count(count);
    if (!this.waiting.some(({ id }) => id === this.opened)) this.opened = this.waiting[0]?.id ?? "";
    const [before, focused] = [this.open, this.list.contains(document.activeElement)];
    this.open = this.openCard();
    const item = (asked: Asked) => (asked.id === this.opened && this.open ? this.open.element : this.line(asked));
    render(html`${repeat(this.waiting, ({ id }) => id, item)}${this.exhausted()}${this.waitingJobs()}${this.stopped()}${count === 0 ? this.nothing() : nothing}${this.history()}`, this.list);
    this.settleRows();
    if (this.open !== before && (focused || document.activeElement === document.body)) this.focusCard();
  }

  private focusCard(): void {
    this.open?.element.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  }

  /** The card that is open stays the same element while others come and go: a person may be writing into it. */
  private openCard(): Open | undefined {
    const asked = this.waiting.find(({ id }) => id === this.opened);
    if (!asked) return undefined;
    const key = `${asked.id} ${this.context.board.agentName(asked.agent)}`;
    return this.open?.key === key ? this.open : { key, element: this.card(asked) };
  }

  /** Rows with Resume take no click that was meant for what was there before. */
  private settleRows(): void {
    const section = this.list.querySelector<HTMLElement>("section.interrupted") ?? undefined;
    if (section && section !== this.rows) ignoreEarlyClicks(section);
    this.rows = section;
  }

  /** Who asks: a step of a job, or a session. */
  private asker({ session, title }: Asked): { name: string; path: string } {
    const by = this.context.board.rows.get(session)?.session.by;
    const job = [...this.context.board.jobs.values()].find(({ works }) => works?.some(({ task }) => by === `task:${task}`));
    if (job) return { name: `${job.name}, step “${title.replace(`${job.name}: `, "")}”`, path: pathOf({ at: "job", id: job.id }) };
    return { name: title || INBOX.untitled, path: pathOf({ at: "session", id: session }) };
  }

  private about(asked: Asked): HTMLElement {
    const { name, path } = this.asker(asked);
    const link = make("a", "", name);
    link.href = path;
    const line = make("p", "asked-where");
    line.append(link, ` · ${this.where(asked)}`);
    return line;
  }

  private card(asked: Asked): HTMLElement {
    const acts = {
      cwd: () => asked.cwd,
      agent: () => this.context.board.agentName(asked.agent),
      wholeChange: () => this.context.go({ at: "session", id: asked.session, tab: "changes" }),
      attempt: async (work: () => Promise<unknown>, allows?: boolean, scope?: string) => {
        if (allows === undefined) return this.answer(work, () => undefined);
        if (!allows) return this.answer(work, () => this.done(asked));
        this.defer(asked, work, scope);
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
      this.report(explain(error));
      this.load();
      return false;
    }
  }

  /** An approval opens the next item immediately and can be undone for a moment, until it is sent. */
  private defer(asked: Asked, work: () => Promise<unknown>, scope = ""): void {
    const strip = make("div", "held-strip");
    const end = () => {
      clearTimeout(timer);
      this.deferred.delete(asked.id);
      strip.remove();
    };
    const send = () => {
      end();
      void this.answer(work, () => undefined, asked.id);
    };
    const timer = setTimeout(send, HELD_MS);
    this.deferred.set(asked.id, send);
    const text = make("span", "strip-text");
    render(html`${INBOX.allowed}${scope ? html`<b>${scope}</b> · ` : nothing}${titleOf(asked)}`, text);
    const back = makeButton("btn small", INBOX.undo, () => {
      end();
      this.closed.delete(asked.id);
      this.opened = asked.id;
      this.load();
    });
    strip.append(icon("done"), text, make("span", "spring"), back);
    this.sent.append(strip);
    this.done(asked);
  }

  private line(asked: Asked): TemplateResult {
    const open = () => {
      this.opened = asked.id;
      this.render();
      this.focusCard();
    };
    return html`<button type="button" class="asked" aria-expanded="false" @click=${open}
      ><span class="mark need">${iconOf(asked.question ? "ask" : "need")}</span><span class="asked-text"><span class="asked-title">${guard([asked.id], () => titleOf(asked))}</span><small>${this.asker(asked).name} · ${this.where(asked)}</small></span>${iconOf("down")}</button>`;
  }

  private where({ cwd, agent, since }: Asked): string {
    return [lastName(cwd), this.context.board.agentName(agent), INBOX.waits(span(Date.now() - since))].filter(Boolean).join(" · ");
  }

  /** The question about a budget outlives the turn that reached it. Nothing that counts toward it starts before the answer. */
  private exhausted(): Content {
    if (this.budgets.length === 0) return nothing;
    const gone = (budget: string) => () => {
      this.budgets = this.budgets.filter((each) => each.budget !== budget);
      this.render();
    };
    const button = (budget: string, answer: string) => html`<button type="button" class="btn small" @click=${() => void this.answer(() => v1.answerBudget(budget, answer), gone(budget))}>${answer}</button>`;
    // The middle option lets a turn finish, and none waits.
    const row = ({ budget, text, options, session }: UnansweredBudget) => html`<div class="interrupted-row"><span class="mark">${iconOf("need")}</span><span class="asked-text"><a class="asked-title" href=${pathOf({ at: "session", id: session })}>${text}</a></span
      >${[options[0], options[2]].map((each) => (each ? button(budget, each) : nothing))}</div>`;
    return html`<section class="interrupted budgets"><header class="section-head"><h2>${INBOX.budgets}</h2></header>${repeat(this.budgets, ({ budget }) => budget, row)}</section>`;
  }

  /** A person decides whether an interrupted job resumes. */
  private waitingJobs(): Content {
    if (this.jobs.length === 0) return nothing;
    const gone = (job: string) => () => {
      this.jobs = this.jobs.filter((each) => each.job !== job);
      this.render();
    };
    const row = ({ job, name, reason }: WaitingJob) => html`<div class="interrupted-row"><span class="mark">${iconOf("need")}</span><span class="asked-text"><a class="asked-title" href=${pathOf({ at: "job", id: job })}>${name}</a><small>${reason}</small></span
      ><button type="button" class="btn small" aria-label="${INBOX.resume} ${name}" @click=${() => void this.answer(() => v1.resumeJob(job), gone(job))}>${INBOX.resume}</button></div>`;
    return html`<section class="interrupted jobs"><header class="section-head"><h2>${INBOX.jobs}</h2></header>${repeat(this.jobs, ({ job }) => job, row)}</section>`;
  }

  /** What the end of the host interrupted: nothing of it runs until a person resumes it. */
  private stopped(): Content {
    if (this.interrupted.length === 0) return nothing;
    const all = this.picked.size > 0 ? this.tools() : this.interrupted.length > 1 ? html`<button type="button" class="btn primary" @click=${() => void this.resume(this.interrupted)}>${INBOX.resumeAll}</button>` : nothing;
    return html`<section class="interrupted"><header class="section-head"><h2>${INBOX.interrupted}</h2><span class="spring"></span>${all}</header>${repeat(this.interrupted, ({ session }) => session, (each) => this.stoppedRow(each))}</section>`;
  }

  /** What can be done with the selected sessions. Those that fail stay selected. */
  private tools(): TemplateResult {
    const chosen = this.interrupted.filter(({ session }) => this.picked.has(session));
    const each = (work: (id: string) => Promise<unknown>) => async () => {
      for (const one of chosen) await this.answer(() => work(one.session), () => this.resumed(one));
    };
    const remove = () => askFirst(SELECTION.deleteTitle(chosen.length), SELECTION.deleteText, SELECTION.deleteAction, each((id) => v1.remove(id)));
    const clear = () => {
      this.picked.clear();
      this.render();
    };
    const button = (text: string, run: () => unknown, look = "") => html`<button type="button" class="btn small ${look}" @click=${run}>${text}</button>`;
    return html`<div class="picked" role="toolbar" aria-label=${SELECTION.name}><b role="status">${SELECTION.count(chosen.length)}</b>${button(SELECTION.resume, each((id) => v1.resume(id)), "primary")}${button(SELECTION.archive, each((id) => v1.change(id, { archived: true })))}${button(SELECTION.delete, remove, "danger")}${button(SELECTION.done, clear)}</div>`;
  }

  /** With Shift, everything from the row that was selected last. */
  private pick(id: string, range: boolean): void {
    const order = this.interrupted.map(({ session }) => session);
    const [from, to] = [order.indexOf(this.lastPicked), order.indexOf(id)];
    if (range && from >= 0) order.slice(Math.min(from, to), Math.max(from, to) + 1).forEach((each) => this.picked.add(each));
    else if (!this.picked.delete(id)) this.picked.add(id);
    this.lastPicked = id;
    this.render();
  }

  private stoppedRow(each: InterruptedSession): TemplateResult {
    const archive = () => void this.answer(() => v1.change(each.session, { archived: true }), () => this.resumed(each));
    const facts = [lastName(each.cwd), this.context.board.agentName(each.agent), INBOX.interruptedAt(clock(each.since))].join(" · ");
    const title = each.title || INBOX.untitled;
    const mark = this.interrupted.length > 1 ? html`<label class="pick"><input type="checkbox" aria-label="${SELECTION.select} ${title}" .checked=${live(this.picked.has(each.session))} @click=${(event: MouseEvent) => this.pick(each.session, event.shiftKey)} /></label>` : html`<span class="mark">${iconOf("interrupted")}</span>`;
    return html`<div class="interrupted-row">${mark}<span class="asked-text"><a class="asked-title" href=${pathOf({ at: "session", id: each.session })}>${title}</a><small>${facts}</small></span
      ><button type="button" class="btn small" aria-label="${INBOX.resume} ${each.title}" @click=${() => void this.resume([each])}>${INBOX.resume}</button
      ><button type="button" class="btn small" aria-label="${INBOX.archive} ${each.title}" @click=${archive}>${INBOX.archive}</button></div>`;
  }

  /** One after the other: an error of one does not keep the others from running. */
  private async resume(all: InterruptedSession[]): Promise<void> {
    for (const each of [...all]) await this.answer(() => v1.resume(each.session), () => this.resumed(each));
  }

  private resumed({ session }: InterruptedSession): void {
    this.interrupted = this.interrupted.filter((each) => each.session !== session);
    this.picked.delete(session);
    this.render();
  }

  /** Shown immediately; the host's event follows. */
  private done(asked: Asked): void {
    const at = this.waiting.findIndex(({ id }) => id === asked.id);
    this.trouble.hidden = true;
    this.closed.add(asked.id);
    this.waiting = this.waiting.filter(({ id }) => id !== asked.id);
    this.opened = (this.waiting[at] ?? this.waiting[0])?.id ?? "";
    this.render();
  }

  private nothing(): TemplateResult {
    const working = this.context.board.entries().filter(({ state }) => state === "work").map(({ title }) => title);
    return html`<div class="empty-inbox"><h2>${INBOX.empty}</h2><p class="soft">${INBOX.working(working)}</p></div>`;
  }

  private history(): Content {
    if (this.answered.length === 0 && this.rules === 0) return nothing;
    const row = (answer: PastAnswer) => html`<div class="answered-row">${guard([answer.id], () => this.historyRow(answer))}<time class="soft">${clock(answer.time)}</time></div>`;
    return html`<section class="answered"><h2>${INBOX.answered}</h2>${this.rules > 0 ? html`<p class="soft">${INBOX.rules(this.rules)}</p>` : nothing}${repeat(this.answered.slice(0, HISTORY), ({ id }) => id, row)}</section>`;
  }

  private historyRow(answer: PastAnswer): TemplateResult {
    const { icon: name, who: by, what } = outcome(answer);
    const undo = answer.grant ? undoButton(answer.grant, (work) => this.answer(work, () => undefined)) : nothing;
    return html`${iconOf(name)}<a class="asked-text" href=${`${root}/app/s/${encodeURIComponent(answer.session)}`}><b>${by}</b> ${what}${answer.title ? INBOX.inSession(answer.title) : ""}</a>${undo}`;
  }

  /** The next or previous one is opened. */
  stepBy(by: 1 | -1): void {
    const at = this.waiting.findIndex(({ id }) => id === this.opened);
    const next = this.waiting[Math.min(Math.max(at + by, 0), this.waiting.length - 1)];
    if (!next) return;
    this.opened = next.id;
    this.render();
    this.focusCard();
  }

  chooseAnswer(number: string): boolean {
    const card = this.list.querySelector<HTMLElement>(".card.question");
    const button = card?.querySelector<HTMLButtonElement>(`button[data-answer="${number}"]:enabled`);
    if (!card || !button) return false;
    if (takesClicks(card)) button.click();
    return true;
  }

  press(key: "y" | "n"): boolean {
    const card = this.list.querySelector<HTMLElement>(".card.approval");
    if (!card) return false;
    if (takesClicks(card)) card.querySelector<HTMLButtonElement>(`button[data-answer="${key}"]:enabled`)?.click();
    return true;
  }
}

/** The question of its card; a command is named, so that it can be identified. */
function titleOf({ approval, call: part, question: asked, cwd }: Asked): Content {
  if (!approval || !part) return plain(asked?.text ?? "");
  const { added, removed } = countOf(linesOf(approval.diff ?? ""));
  return html`${question(approval, part, cwd)}${approval.command ? html` <code>${exact(approval.command)}</code>` : nothing}${approval.diff ? html` ${countsOf(added, removed)}` : nothing}`;
}

/** What became of it, by whom, and for how long; no one denied what timed out. */
function outcome({ by, allowed, question: asked, text, grant, covers = [], tool = "", cwd = "" }: PastAnswer): { icon: Icon; who: string; what: string } {
  const what = INBOX.action(text);
  if (by === "timeout") return { icon: "clock", who: INBOX.timeout, what };
  const scope = grant ? INBOX.fromNowOn(coverWords(covers, tool, cwd)) : "";
  return { icon: allowed ? "done" : "close", who: `${who(by)} ${INBOX.verb(asked === true, allowed === true)}`, what: `${what}${scope}` };
}
