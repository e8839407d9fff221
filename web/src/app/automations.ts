/** Automations: all of them with what they do next, and one of them with its history. */

import { keyed } from "../key";
import { root } from "../root";
import { explain, isTemporary } from "../failure";
import { commandView } from "../commands";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { ask } from "../shortcuts";
import { call, sessionAddress } from "../v1";
import { AutomationForm } from "./automationForm";
import { frame, headOf, takeSecret, trouble } from "./automationFrame";
import { type Automation, causeWords, inOrder, lastWords, type Missed, MISSED, nextWords, outcomeOf, OVERLAP, type Run, running, startsWords, stateOf, timeWords, dueWords, tookWords, triggerWords, usedWords } from "./automationModel";
import { icon } from "../icons";
import { pathOf, type Place } from "./router";
import type { Shell, View } from "./shell";

/** The list that is always there tells of sessions and jobs, not of runs that were skipped. */
const LOOK_MS = 15_000;
const SETTLE_MS = 300;
const RUNS = 200;

export function automationsView(place: Extract<Place, { at: "automations" }>, shell: Shell): View {
  if (place.form) return new AutomationForm(place.id, shell);
  return place.id ? new AutomationView(place.id, shell) : new AutomationsView(shell);
}

/** A view that is loaded again when something has happened. */
abstract class Watching<T> {
  protected readonly scope = new Scope((text) => this.say(text));
  protected readonly refresh = this.scope.latest(
    (signal) => this.load(signal),
    (answer) => this.take(answer),
    { settleMs: SETTLE_MS, failed: (error) => this.failed(error) },
  );

  constructor(protected readonly shell: Shell) {
    this.scope.onEnd(shell.feed.watch(() => this.refresh()));
    this.scope.every(LOOK_MS, () => document.hidden || this.refresh());
  }

  leave(): void {
    this.scope.end();
  }

  protected abstract load(signal: AbortSignal): Promise<T>;
  protected abstract take(answer: T): void;
  protected abstract failed(error: unknown): void;
  protected abstract say(text: string): void;
}

interface Listed {
  automations: Automation[];
  file_error?: string;
}

class AutomationsView extends Watching<Listed> implements View {
  readonly element = make("section", "place automations");
  readonly title = "Automations";
  private readonly body = make("div", "wide");
  private shown = "";

  constructor(shell: Shell) {
    super(shell);
    const fresh = make("a", "button primary", "New automation");
    fresh.href = pathOf({ at: "automations", form: true });
    frame(this.element, headOf("Automations", "Work that starts by itself: at a time, on a call, on a change, after something else."), [fresh], this.body);
    this.refresh(0);
  }

  protected load(signal: AbortSignal): Promise<Listed> {
    return call("GET", "/automations", undefined, signal);
  }

  protected take({ automations, file_error: wrong }: Listed): void {
    const now = Date.now();
    const shown = JSON.stringify([automations, wrong, Math.floor(now / 30_000)]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = document.activeElement instanceof HTMLAnchorElement && this.body.contains(document.activeElement) ? document.activeElement.href : "";
    const list = make("ul", "autos");
    list.append(...automations.sort((one, other) => one.name.localeCompare(other.name)).map((each) => row(each, now)));
    this.body.replaceChildren(...(wrong ? [trouble(`automations.toml: ${wrong} Until it is mended, what it said before holds.`)] : []), automations.length ? list : empty());
    if (focused) [...list.querySelectorAll("a")].find(({ href }) => href === focused)?.focus();
  }

  protected failed(error: unknown): void {
    if (!this.shown) this.say(explain(error));
  }

  protected say(text: string): void {
    this.body.replaceChildren(trouble(text));
  }
}

function row(automation: Automation, now: number): HTMLElement {
  const { word, look, reason } = stateOf(automation);
  const link = make("a", "auto");
  link.href = pathOf({ at: "automations", id: automation.id });
  const name = make("span", "auto-name");
  name.append(make("b", "", automation.name), make("span", `pill ${look}`, word));
  const text = make("span", "auto-text");
  text.append(name, ...(automation.plan.title ? [make("span", "", automation.plan.title)] : []), make("span", "soft", triggerWords(automation)));
  if (reason) text.append(make("span", look === "bad" ? "bad" : "soft", reason));
  const times = make("span", "auto-times");
  const next = nextWords(automation, now);
  if (next && !reason) times.append(make("span", "", next));
  const last = make("span", "auto-last");
  if (automation.last) last.append(outcomeMark(automation.last));
  last.append(lastWords(automation.last, now));
  times.append(last);
  link.append(text, times);
  const item = make("li");
  item.append(link);
  return item;
}

function outcomeMark(run: Run): HTMLElement {
  const { icon: name, look } = outcomeOf(run);
  const mark = make("span", `mark ${look}`);
  mark.append(icon(name, name === "work" ? "spin" : ""));
  return mark;
}

function empty(): HTMLElement {
  const text = make("div", "empty-inbox autos-empty");
  text.append(
    make("h2", "", "No automations yet."),
    make("p", "soft", "An automation starts a job, or a prompt for an agent, without you: every weekday at seven, when another system calls, when files change, or after something else has ended. Each run is in its history, also when it was skipped, with the reason."),
    make("p", "soft", "Make one here, in the file automations.toml of the host, or on the command line:"),
    commandView('portico automations add morning --cron "0 7 * * 1-5" --zone Europe/Berlin --prompt "Review what changed."'),
  );
  return text;
}

export interface Whole {
  automation: Automation;
  runs: Run[];
}

class AutomationView extends Watching<Whole> implements View {
  readonly element = make("section", "place automations");
  title = "Automation";
  private readonly heading = make("h1", "", "Automation");
  private readonly about = make("p");
  private readonly acts = make("div", "auto-acts");
  private readonly wrong = trouble("");
  private readonly secret = make("div");
  private readonly facts = make("dl", "facts-list");
  private readonly runs = make("div");
  private shown = "";

  constructor(
    private readonly id: string,
    shell: Shell,
  ) {
    super(shell);
    this.wrong.hidden = true;
    const body = make("div", "wide");
    body.append(this.wrong, this.acts, this.secret, this.facts, make("h2", "", "History"), this.runs);
    const text = make("div", "head-text");
    text.append(this.heading, this.about);
    frame(this.element, text, [], body, true);
    this.showSecret(takeSecret(id));
    this.refresh(0);
    this.follow();
  }

  /** Events from now on; what was before is in the history. */
  private follow(): void {
    let [channel, head] = ["", 0];
    this.scope.follow<{ channel: string; head: number }>({
      load: async (signal) => {
        const { id } = await call<Automation>("GET", this.path, undefined, signal);
        const query = new URLSearchParams({ channel: `automation/${id}`, limit: "1" });
        return { channel: `automation/${id}`, head: (await call<{ head: number }>("GET", `/events?${query}`, undefined, signal)).head };
      },
      loaded: (found) => {
        [channel, head] = [found.channel, found.head];
        this.refresh(); // what happened before `head`
      },
      address: () => keyed(`${root}/v1/events?${new URLSearchParams({ channel, after: String(head) })}`),
      message: () => this.refresh(),
    });
  }

  private get path(): string {
    return `/automations/${encodeURIComponent(this.id)}`;
  }

  protected async load(signal: AbortSignal): Promise<Whole> {
    const [automation, found] = await Promise.all([call<Automation>("GET", this.path, undefined, signal), call<{ runs: Run[]; missed?: Missed[] }>("GET", `${this.path}/runs?limit=${RUNS}`, undefined, signal)]);
    return { automation, runs: inOrder(found.runs, found.missed ?? [], Date.now()) };
  }

  protected take({ automation, runs }: Whole): void {
    const shown = JSON.stringify([automation, runs, Math.floor(Date.now() / 30_000)]);
    if (shown === this.shown) return;
    if (!this.shown) this.say("");
    this.shown = shown;
    this.show(automation, runs);
  }

  protected failed(error: unknown): void {
    if (!isTemporary(error)) this.gone(explain(error));
    else if (!this.shown) this.say(explain(error));
  }

  private gone(text: string): void {
    this.leave();
    const lead = make("div", "empty");
    const link = make("a", "button", "All automations");
    link.href = pathOf({ at: "automations" });
    lead.append(make("h1", "", "There is no such automation"), make("p", "", text), link);
    this.element.replaceChildren(lead);
  }

  protected say(text: string): void {
    this.wrong.textContent = text;
    this.wrong.hidden = text === "";
  }

  private show(automation: Automation, runs: Run[]): void {
    const now = Date.now();
    if (this.title !== automation.name) this.shell.titled((this.title = automation.name), this);
    this.heading.textContent = automation.name;
    this.about.textContent = automation.plan.title ?? triggerWords(automation);
    this.showActs(automation);
    this.showFacts(automation, now);
    const table = runs.length ? history(runs, now, (run) => this.do(() => call("POST", `/runs/${encodeURIComponent(run.id)}/cancel`))) : make("p", "soft", "It has not run yet. Run it now to see whether it does what you want.");
    this.runs.replaceChildren(table);
  }

  private showFacts(automation: Automation, now: number): void {
    const { word, look, reason } = stateOf(automation);
    const state = make("dd");
    state.append(make("span", `pill ${look}`, word), ...(reason ? [` ${reason}`] : []));
    const facts: [string, string | HTMLElement][] = [["State", state], ["When", triggerWords(automation)]];
    if (automation.next?.length) facts.push(["Next", automation.next.map((time) => dueWords(time, now)).join(", then ")]);
    facts.push(["Starts", startsWords(automation.plan)]);
    const { place, label } = automation.plan.job ?? automation.plan.prompt ?? {};
    if (place || label) facts.push(["Where", [place, label && `only at a host with the label ${label}`].filter(Boolean).join(", ")]);
    const { missed = "last", overlap = "skip" } = automation.plan as { missed?: string; overlap?: string };
    if (automation.trigger === "schedule") facts.push(["If missed", MISSED[missed] ?? missed]);
    facts.push(["If still working", OVERLAP[overlap] ?? overlap], ["Written by", automation.source === "file" ? "automations.toml, and changed there" : automation.by.replace(/^\w+:/, "")]);
    this.facts.replaceChildren(
      ...facts.flatMap(([name, value]) => {
        const found = typeof value === "string" ? make("dd", "", value) : value;
        return [make("dt", "", name), found];
      }),
    );
  }

  /** The buttons stay the same elements where they can: somebody may have the focus on one. */
  private showActs(automation: Automation): void {
    const key = JSON.stringify([automation.enabled, automation.source, automation.trigger, automation.name]);
    if (this.acts.dataset["key"] === key) return;
    this.acts.dataset["key"] = key;
    const act = (word: string) => this.do(() => call("POST", `${this.path}/${word}`));
    const all: HTMLElement[] = [makeButton("primary", "Run now", () => void act("run")), automation.enabled ? makeButton("", "Pause", () => void act("pause")) : makeButton("", "Resume", () => void act("resume"))];
    if (automation.trigger === "hook") all.push(makeButton("", "New secret…", () => ask("Make a new secret?", "The secret of now is void at once: whoever calls this hook needs the new one.", "Make a new secret", () => this.renew())));
    if (automation.source === "door") {
      const edit = make("a", "button", "Edit");
      edit.href = pathOf({ at: "automations", id: automation.id, form: true });
      all.push(edit, makeButton("danger apart", "Delete…", () => ask(`Delete ${automation.name}?`, "Its history goes with it. What it has started goes on. This cannot be undone.", "Delete", () => this.remove())));
    }
    const focused = this.acts.contains(document.activeElement) ? [...this.acts.children].indexOf(document.activeElement as Element) : -1;
    this.acts.replaceChildren(...all);
    if (focused >= 0) all[focused]?.focus();
  }

  private async do(work: () => Promise<unknown>): Promise<void> {
    if (await this.scope.attempt(work)) this.refresh(0);
  }

  private async remove(): Promise<void> {
    await this.do(async () => {
      await call("DELETE", this.path);
      this.leave();
      this.shell.go({ at: "automations" });
    });
  }

  private async renew(): Promise<void> {
    await this.do(async () => this.showSecret((await call<{ secret: string }>("POST", `${this.path}/secret`)).secret));
  }

  private showSecret(secret: string): void {
    if (!secret) return;
    const once = make("div", "token-once");
    once.setAttribute("role", "group");
    once.setAttribute("aria-label", "The hook's secret");
    once.append(make("b", "", "Copy the secret now: it is shown this once."), commandView(secret), make("span", "soft", "The other system signs its calls with it, as GitHub does or by Standard Webhooks."));
    this.secret.replaceChildren(once);
  }
}

const COLUMNS = ["Outcome", "Due", "Started", "Ended", "What", "Used"];

/** A table; on a phone each run is a block with its columns named. */
function history(runs: Run[], now: number, cancel: (run: Run) => void): HTMLElement {
  const table = make("table", "table runs");
  table.setAttribute("role", "table");
  const head = make("tr");
  head.append(...COLUMNS.map((name) => make("th", "", name)));
  head.setAttribute("role", "row");
  for (const cell of head.children) cell.setAttribute("role", "columnheader");
  table.append(head);
  for (const run of runs) {
    const found = make("tr");
    found.setAttribute("role", "row");
    const cells = [outcomeCell(run), `${timeWords(run.due, now)}, ${causeWords(run)}`, run.started ? timeWords(run.started, now) : "", endedCell(run, now, cancel), startedLink(run), usedWords(run)];
    cells.forEach((content, index) => {
      const cell = make("td");
      cell.setAttribute("role", "cell");
      cell.dataset["label"] = COLUMNS[index] ?? "";
      cell.append(content);
      if (cell.textContent === "") cell.className = "none";
      found.append(cell);
    });
    table.append(found);
  }
  return table;
}

function outcomeCell(run: Run): HTMLElement {
  const cell = make("div");
  const line = make("span", "job-state");
  line.append(outcomeMark(run), outcomeOf(run).word);
  cell.append(line, ...(run.reason ? [make("span", run.status === "failed" ? "bad" : "soft", run.reason)] : []));
  return cell;
}

function endedCell(run: Run, now: number, cancel: (run: Run) => void): HTMLElement | string {
  if (running(run)) {
    const button = makeButton("btn small", "Stop", () => cancel(run));
    button.setAttribute("aria-label", `Stop the run of ${timeWords(run.due, now)}`);
    return button;
  }
  const took = tookWords(run);
  return run.ended && run.started ? `${timeWords(run.ended, now)}${took ? `, after ${took}` : ""}` : "";
}

function startedLink(run: Run): HTMLElement | string {
  if (!run.session && !run.job) return "";
  const link = make("a", "", run.job ? "Open the job" : "Open the session");
  link.href = run.job ? `${root}/app/j/${encodeURIComponent(run.job)}` : sessionAddress(run.session ?? "");
  return link;
}
