/** Automations: all of them with what they do next, and one of them with its history. */

import { guard } from "lit-html/directives/guard.js";
import { repeat } from "lit-html/directives/repeat.js";
import { root } from "../root";
import { explain, isTemporary } from "../failure";
import { commandView } from "../commands";
import { make } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { Scope } from "../scope";
import { askFirst } from "../shortcuts";
import { AUTOMATIONS, AUTOMATION } from "../texts/automations";
import { ask, channelAddress, sessionAddress } from "../v1";
import { AutomationForm } from "./automationForm";
import { frame, headOf, takeSecret } from "./automationFrame";
import { type Automation, causeWords, hasTrigger, inOrder, lastWords, MISSED, nextWords, outcomeOf, OVERLAP, type Run, running, startsWords, stateOf, timeWords, dueWords, tookWords, triggerWords, usedWords } from "./automationModel";
import { pathOf, type Place } from "./router";
import type { View, ViewContext } from "./view";

/** The board reports sessions and jobs, but not runs that were skipped. */
const LOOK_MS = 15_000;
const SETTLE_MS = 300;
const RUNS = 200;

export function automationsView(place: Extract<Place, { at: "automations" }>, context: ViewContext): View {
  if (place.form) return new AutomationForm(place.id, context);
  return place.id ? new AutomationView(place.id, context) : new AutomationsView(context);
}

/** A view that is loaded again when something has happened. */
abstract class Watching<T> {
  protected readonly scope = new Scope((text) => this.report(text));
  protected readonly refresh = this.scope.latest(
    (signal) => this.load(signal),
    (answer) => this.take(answer),
    { debounceMs: SETTLE_MS, failed: (error) => this.failed(error) },
  );

  constructor(protected readonly context: ViewContext) {
    this.scope.onEnd(context.board.subscribe(() => this.refresh()));
    this.scope.every(LOOK_MS, () => document.hidden || this.refresh());
  }

  leave(): void {
    this.scope.end();
  }

  protected abstract load(signal: AbortSignal): Promise<T>;
  protected abstract take(answer: T): void;
  protected abstract failed(error: unknown): void;
  protected abstract report(text: string): void;
}

interface Listed {
  automations: Automation[];
  file_error?: string;
}

class AutomationsView extends Watching<Listed> implements View {
  readonly element = make("section", "place automations");
  readonly title: string = AUTOMATIONS.title;
  private readonly body = make("div", "wide");
  private loaded = false;

  constructor(context: ViewContext) {
    super(context);
    const fresh = make("a", "button primary", AUTOMATIONS.new);
    fresh.href = pathOf({ at: "automations", form: true });
    frame(this.element, headOf(AUTOMATIONS.title, AUTOMATIONS.about), [fresh], this.body);
    this.refresh(0);
  }

  protected load(signal: AbortSignal): Promise<Listed> {
    return ask("GET /automations", {}, { signal });
  }

  protected take({ automations, file_error: wrong }: Listed): void {
    this.loaded = true;
    const now = Date.now();
    const all = automations.sort((one, other) => one.name.localeCompare(other.name));
    const list = html`<ul class="autos">${repeat(all, ({ id }) => id, (each) => row(each, now))}</ul>`;
    render(html`${wrong ? alert(AUTOMATIONS.fileError(wrong)) : nothing}${all.length ? list : empty()}`, this.body);
  }

  protected failed(error: unknown): void {
    if (!this.loaded) this.report(explain(error));
  }

  protected report(text: string): void {
    render(alert(text), this.body);
  }
}

const alert = (text: string): TemplateResult => html`<p class="trouble" role="alert">${text}</p>`;

function row(automation: Automation, now: number): TemplateResult {
  const { word, look, reason } = stateOf(automation);
  const next = nextWords(automation, now);
  const { title } = automation.plan;
  return html`<li><a class="auto" href=${pathOf({ at: "automations", id: automation.id })}
    ><span class="auto-text"><span class="auto-name"><b>${automation.name}</b><span class="pill ${look}">${word}</span></span>${title ? html`<span>${title}</span>` : nothing}<span class="soft">${triggerWords(automation)}</span>${reason ? html`<span class=${look === "bad" ? "bad" : "soft"}>${reason}</span>` : nothing}</span
    ><span class="auto-times">${next && !reason ? html`<span>${next}</span>` : nothing}<span class="auto-last">${automation.last ? outcomeMark(automation.last) : nothing}${lastWords(automation.last, now)}</span></span></a></li>`;
}

function outcomeMark(run: Run): TemplateResult {
  const { icon: name, look } = outcomeOf(run);
  return html`<span class="mark ${look}">${iconOf(name, name === "work" ? "spin" : "")}</span>`;
}

/** Built once: the command has a button that copies it. */
const emptyText = () => commandView('portico automations add morning --cron "0 7 * * 1-5" --zone Europe/Berlin --prompt "Review what changed."');

const empty = (): TemplateResult => html`<div class="empty-inbox autos-empty"><h2>${AUTOMATIONS.empty}</h2><p class="soft">${AUTOMATIONS.what}</p><p class="soft">${AUTOMATIONS.how}</p>${guard([], emptyText)}</div>`;

interface Whole {
  automation: Automation;
  runs: Run[];
}

class AutomationView extends Watching<Whole> implements View {
  readonly element = make("section", "place automations");
  title: string = AUTOMATIONS.one;
  private whole: Whole | undefined;
  private secret = "";
  private trouble = "";
  private missing = "";

  constructor(
    private readonly id: string,
    context: ViewContext,
  ) {
    super(context);
    this.secret = takeSecret(id);
    this.render();
    this.refresh(0);
    this.follow();
  }

  /** Events from now on; what was before is in the history. */
  private follow(): void {
    let [channel, head] = ["", 0];
    this.scope.follow<{ channel: string; head: number }>({
      load: async (signal) => {
        const { id } = await ask("GET /automations/{id}", { id: this.id }, { signal });
        const query = { channel: `automation/${id}`, limit: "1" };
        return { channel: `automation/${id}`, head: (await ask("GET /events", {}, { query, signal })).head };
      },
      loaded: (found) => {
        [channel, head] = [found.channel, found.head];
        this.refresh(); // what happened before `head`
      },
      address: () => channelAddress(channel, head),
      message: () => this.refresh(),
    });
  }

  protected async load(signal: AbortSignal): Promise<Whole> {
    const [automation, found] = await Promise.all([ask("GET /automations/{id}", { id: this.id }, { signal }), ask("GET /automations/{id}/runs", { id: this.id }, { query: { limit: String(RUNS) }, signal })]);
    return { automation, runs: inOrder(found.runs, found.missed ?? [], Date.now()) };
  }

  protected take(whole: Whole): void {
    if (!this.whole) this.trouble = "";
    this.whole = whole;
    this.title = whole.automation.name;
    this.context.titled(this.title, this);
    this.render();
  }

  protected failed(error: unknown): void {
    if (!isTemporary(error)) this.gone(explain(error));
    else if (!this.whole) this.report(explain(error));
  }

  private gone(text: string): void {
    this.leave();
    this.missing = text;
    this.render();
  }

  protected report(text: string): void {
    this.trouble = text;
    this.render();
  }

  private render(): void {
    render(this.missing ? this.missingPage() : this.page(), this.element);
  }

  private missingPage(): TemplateResult {
    return html`<div class="empty"><h1>${AUTOMATIONS.missing}</h1><p>${this.missing}</p><a class="button" href=${pathOf({ at: "automations" })}>${AUTOMATIONS.all}</a></div>`;
  }

  private page(): TemplateResult {
    const automation = this.whole?.automation;
    const about = automation ? (automation.plan.title ?? triggerWords(automation)) : "";
    return html`<header class="head"><a class="icon shown-back" href=${pathOf({ at: "automations" })} aria-label=${AUTOMATIONS.all}>${iconOf("back")}</a><div class="head-text"><h1>${automation?.name ?? AUTOMATIONS.one}</h1><p>${about}</p></div></header>
      <div class="scroll"><div class="wide">
        <p class="trouble" role="alert" ?hidden=${!this.trouble}>${this.trouble}</p>
        <div class="auto-acts">${automation ? this.actions(automation) : nothing}</div>
        <div>${this.secret ? guard([this.secret], () => secretBox(this.secret)) : nothing}</div>
        <dl class="facts-list">${automation ? this.facts(automation, Date.now()) : nothing}</dl>
        <h2>${AUTOMATIONS.history}</h2>
        <div>${this.whole ? this.history(this.whole.runs) : nothing}</div>
      </div></div>`;
  }

  private history(runs: Run[]): TemplateResult {
    if (runs.length === 0) return html`<p class="soft">${AUTOMATIONS.neverRan}</p>`;
    return history(runs, Date.now(), (run) => void this.do(() => ask("POST /runs/{id}/cancel", { id: run.id })));
  }

  private facts(automation: Automation, now: number): TemplateResult[] {
    const { word, look, reason } = stateOf(automation);
    const names = AUTOMATIONS.facts;
    const facts: [string, Content][] = [[names.state, html`<span class="pill ${look}">${word}</span>${reason ? ` ${reason}` : ""}`], [names.when, triggerWords(automation)]];
    if (automation.next?.length) facts.push([names.next, automation.next.map((time) => dueWords(time, now)).join(", then ")]);
    facts.push([names.starts, startsWords(automation.plan)]);
    const { place, label } = automation.plan.job ?? automation.plan.prompt ?? {};
    if (place || label) facts.push([names.where, [place, label && AUTOMATIONS.onlyLabel(label)].filter(Boolean).join(", ")]);
    const { missed = "last", hook, after, overlap = hook || after ? "queue" : "skip" } = automation.plan as { missed?: string; overlap?: string; hook?: object; after?: object };
    if (hasTrigger(automation, "schedule")) facts.push([names.missed, MISSED[missed] ?? missed]);
    facts.push([names.overlap, OVERLAP[overlap] ?? overlap], [names.by, automation.source === "file" ? AUTOMATIONS.fromFile : automation.by.replace(/^\w+:/, "")]);
    return facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
  }

  private actions(automation: Automation): TemplateResult {
    const { actions } = AUTOMATIONS;
    const post = (word: "run" | "pause" | "resume") => () => void this.do(() => ask(`POST /automations/{id}/${word}`, { id: this.id }));
    const renew = () => askFirst(...AUTOMATIONS.renewConfirm, () => this.renew());
    const remove = () => askFirst(...AUTOMATIONS.deleteConfirm(automation.name), () => this.remove());
    const button = (text: string, run: () => void, look = "") => html`<button type="button" class=${look} @click=${run}>${text}</button>`;
    return html`${button(actions.run, post("run"), "primary")}${automation.enabled ? button(actions.pause, post("pause")) : button(actions.resume, post("resume"))}${hasTrigger(automation, "hook") ? button(actions.secret, renew) : nothing}${automation.source === "door" ? html`<a class="button" href=${pathOf({ at: "automations", id: automation.id, form: true })}>${actions.edit}</a>${button(actions.delete, remove, "danger apart")}` : nothing}`;
  }

  private async do(work: () => Promise<unknown>): Promise<void> {
    if (await this.scope.attempt(work)) this.refresh(0);
  }

  private async remove(): Promise<void> {
    await this.do(async () => {
      await ask("DELETE /automations/{id}", { id: this.id });
      this.leave();
      this.context.go({ at: "automations" });
    });
  }

  private async renew(): Promise<void> {
    await this.do(async () => {
      this.secret = (await ask("POST /automations/{id}/secret", { id: this.id })).secret;
      this.render();
    });
  }
}

function secretBox(secret: string): HTMLElement {
  const once = make("div", "token-once");
  once.setAttribute("role", "group");
  once.setAttribute("aria-label", AUTOMATIONS.secret);
  once.append(make("b", "", AUTOMATIONS.secretOnce), commandView(secret), make("span", "soft", AUTOMATIONS.secretUse));
  return once;
}

/** A table; on a phone each run is a block with its columns named. */
function history(runs: Run[], now: number, cancel: (run: Run) => void): TemplateResult {
  const cell = (content: Content, index: number) => html`<td role="cell" data-label=${AUTOMATIONS.columns[index] ?? ""} class=${content === "" ? "none" : ""}>${content}</td>`;
  const cells = (run: Run): Content[] => [outcomeCell(run), `${timeWords(run.due, now)}, ${causeWords(run)}`, run.started ? timeWords(run.started, now) : "", endedCell(run, now, cancel), startedLink(run), usedWords(run)];
  const rowOf = (run: Run) => html`<tr role="row">${cells(run).map(cell)}</tr>`;
  return html`<table class="table runs" role="table"><tbody><tr role="row">${AUTOMATIONS.columns.map((name) => html`<th role="columnheader">${name}</th>`)}</tr>${repeat(runs, ({ id }) => id, rowOf)}</tbody></table>`;
}

const outcomeCell = (run: Run): TemplateResult => html`<div><span class="job-state">${outcomeMark(run)}${outcomeOf(run).word}</span>${run.reason ? html`<span class=${run.status === "failed" ? "bad" : "soft"}>${run.reason}</span>` : nothing}</div>`;

function endedCell(run: Run, now: number, cancel: (run: Run) => void): Content {
  if (running(run)) return html`<button type="button" class="btn small" aria-label=${AUTOMATIONS.stopRun(timeWords(run.due, now))} @click=${() => cancel(run)}>${AUTOMATIONS.stop}</button>`;
  const took = tookWords(run);
  return run.ended && run.started ? `${timeWords(run.ended, now)}${AUTOMATION.after(took)}` : "";
}

function startedLink(run: Run): Content {
  if (!run.session && !run.job) return "";
  const href = run.job ? `${root}/app/j/${encodeURIComponent(run.job)}` : sessionAddress(run.session ?? "");
  return html`<a href=${href}>${run.job ? AUTOMATIONS.openJob : AUTOMATIONS.openSession}</a>`;
}
