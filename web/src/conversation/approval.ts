/** An approval as a card: a question, exactly what would run, what is known about it, and the answers. */

import type { Icon } from "../icons";
import { make } from "../page";
import { type Content, html, iconOf, nothing, render, type TemplateResult } from "../render";
import { Scope } from "../scope";
import { ignoreEarlyClicks } from "../settle";
import { APPROVAL, VERDICT } from "../texts/cards";
import { clock } from "../time";
import { type Covered, type Grant, type Uncommitted, v1 } from "../v1";
import { subjectOf } from "./calls";
import { dangers, lostBy, outside } from "./danger";
import { diffView } from "./diff";
import { countOf, linesOf } from "./diffLines";
import { type CardActions, box, exact, plain, pretty, relative } from "./pieces";
import { coverPhrase } from "./grants";
import type { Scopes } from "./scopes";
import type { Approval, CallPart, Option } from "./state";
import { duration, ENDS, folder, verdictOf, who } from "./words";

/** The reason of most questions: not worth a line. */
const EVERYDAY = "No rule lets it pass.";
/** Longer than this means no limit. */
const FOR_EVER_MS = 300 * 86_400_000;
/** Lines of a change on the card; the panel has all of them. */
const LINES = 400;
/** About so many are visible without scrolling. */
const LINES_SEEN = 16;

const cards = new WeakMap<Element, ApprovalCard>();

export function approvalCard(approval: Approval, call: CallPart, acts: CardActions): HTMLElement {
  const card = new ApprovalCard(approval, call, acts);
  cards.set(card.element, card);
  return card.element;
}

/** Shows a name of the agent that became known after the card was opened. */
export function refreshCard(element: Element): void {
  cards.get(element)?.render();
}

class ApprovalCard {
  readonly element = make("section", "card approval");
  private readonly reasons: string[];
  /** The content of the call, built once. */
  private readonly thing: HTMLElement[];
  private readonly lines: number;
  private readonly uncommitted: () => Promise<Uncommitted>;
  private menu: Promise<Scopes> | undefined;
  /** What the command would delete for good, as soon as it is known. */
  private lost = "";
  /** Whether the change can be undone, as soon as it is known. */
  private undo = "";
  /** The second step of a dangerous answer is open. */
  private sure = false;
  private sending = false;

  constructor(
    private readonly approval: Approval,
    private readonly call: CallPart,
    private readonly acts: CardActions,
  ) {
    const { element } = this;
    this.reasons = dangers(approval, acts.cwd(), call.kind);
    this.thing = contentOf(approval);
    this.lines = approval.diff ? linesOf(approval.diff).filter(({ kind }) => kind !== "file").length : 0;
    this.uncommitted = once(() => v1.uncommitted(sessionOf(approval)));
    if (this.dangerous) element.classList.add("dangerous");
    element.setAttribute("aria-labelledby", `title-${approval.id}`);
    element.setAttribute("role", "group");
    element.dataset["approval"] = approval.id;
    ignoreEarlyClicks(element);
    this.render();
    if (hasLimit(approval.expires)) countDown(new WeakRef(this), approval.expires);
    void this.loadFacts();
  }

  private get dangerous(): boolean {
    return this.reasons.length > 0;
  }

  private get inside(): boolean {
    return Boolean(this.approval.path) && !outside(this.approval.path ?? "", this.acts.cwd());
  }

  /** Facts that the host has to look up. */
  private async loadFacts(): Promise<void> {
    const [lost, undo] = await Promise.all([this.dangerous ? lossOf(this.approval, this.uncommitted) : "", this.inside && this.approval.kind === "write" ? canBeUndone(this.approval, this.acts.cwd(), this.uncommitted) : ""]);
    Object.assign(this, { lost, undo });
    if (lost || undo) this.render();
  }

  render(): void {
    const { approval, call, acts } = this;
    render(
      html`<h2 id=${`title-${approval.id}`} tabindex="-1">${iconOf("need")}${question(approval, call, acts.cwd())}</h2>
        <p class="about"><span class="asking">${acts.agent?.() || APPROVAL.theAgent}</span> ${lead(approval, acts.cwd())}</p>
        ${this.thing}${this.facts()}${approval.editable ? editor(approval.input) : nothing}
        <input class="reason" placeholder=${APPROVAL.note} aria-label=${APPROVAL.note} dir="auto" />
        ${this.dangerous ? this.carefulAnswers() : this.answers()}`,
      this.element,
    );
  }

  private facts(): TemplateResult {
    const { approval, acts } = this;
    return html`<ul class="card-facts">${this.lost ? fact("need", this.lost, "bad") : nothing}${this.reasons.map((reason) => fact("need", reason, "bad"))}${this.inside ? fact("folder", APPROVAL.inside) : nothing}${this.undo ? fact("shield", this.undo) : nothing}${
      approval.why && approval.why !== EVERYDAY ? fact("note", plain(APPROVAL.why(approval.why))) : nothing
    }${fact("clock", limitOf(approval.expires))}${
      acts.wholeChange && approval.path && this.lines > LINES_SEEN ? html`<li class="apart"><button type="button" class="link" ?disabled=${this.closed} @click=${() => acts.wholeChange?.(approval.path ?? "")}>${APPROVAL.showAll(this.lines)}</button></li>` : nothing
    }</ul>`;
  }

  // -- answers ------------------------------------------------------------------------------------------------------

  /** An answer is on its way, or the time is over. */
  private get closed(): boolean {
    return this.sending || isOver(this.approval.expires);
  }

  /** Yes first, then what allows more, and a gap before the no. The first yes answers `y`, the first no answers `n`. */
  private answers(): TemplateResult {
    const { options } = this.approval;
    const [yes, no] = [options.find(({ allow }) => allow), options.find(({ allow }) => !allow)];
    const ordered = [...options.filter(({ allow }) => allow), ...options.filter(({ allow }) => !allow)];
    return html`<div class="answers">${ordered.map((option) => this.button(option, option === yes ? "primary" : option.allow ? "" : option === no ? "danger apart" : "danger", option === yes ? "y" : option === no ? "n" : ""))}</div>`;
  }

  /** The safe answer is the large one; a yes takes two steps and no key. */
  private carefulAnswers(): TemplateResult {
    const { options } = this.approval;
    const no = options.find(({ allow }) => !allow);
    if (!this.sure) {
      const denials = options.filter(({ allow }) => !allow).map((option) => this.button(option, option === no ? "primary" : "", option === no ? "n" : ""));
      return html`<div class="answers">${denials}<button type="button" class="danger apart" ?disabled=${this.closed} @click=${() => this.turn(true)}>${APPROVAL.allow}</button></div>`;
    }
    const yes = options.filter(({ allow }) => allow).map((option, index) => this.button(option, index === 0 ? "danger apart" : "danger"));
    return html`<div class="answers"><p class="careful">${this.lost ? html`<b>${this.lost}</b> ` : nothing}${APPROVAL.sure(this.reasons)}</p><button type="button" class="primary" ?disabled=${this.closed} @click=${() => this.turn(false)}>${APPROVAL.back}</button>${yes}</div>`;
  }

  private turn(sure: boolean): void {
    this.sure = sure;
    this.render();
    ignoreEarlyClicks(this.element);
    if (sure) this.element.querySelector<HTMLElement>(".answers button")?.focus();
  }

  private button(option: Option, look: string, key = ""): TemplateResult {
    const remembered = isRemembered(option);
    const press = (event: Event) => (remembered ? this.openScopes(option, event.currentTarget as HTMLElement) : void this.answer(option));
    return html`<button type="button" class=${look} ?disabled=${this.closed} data-answer=${key || nothing} aria-keyshortcuts=${key.toUpperCase() || nothing} aria-haspopup=${remembered ? "true" : nothing} @click=${press}>${option.label}${key ? html`<kbd aria-hidden="true">${key.toUpperCase()}</kbd>` : nothing}</button>`;
  }

  /** Its code is loaded with its first use. */
  private openScopes(option: Option, button: HTMLElement): void {
    this.menu ??= import("./scopes").then((module) => new module.Scopes(this.element, this.approval, this.call, this.acts, (...chosen) => this.answer(...chosen)));
    void this.menu.then((found) => found.toggle(button, option));
  }

  private async answer(option: Option, breadth?: Covered["breadth"], covers?: string[]): Promise<void> {
    const { approval, call, acts } = this;
    const reason = this.element.querySelector<HTMLInputElement>(".reason")?.value;
    const edited = this.element.querySelector<HTMLTextAreaElement>(".edit")?.value;
    const changed = option.allow && edited !== undefined && edited !== approval.input ? edited : undefined;
    const body = { option: option.id, ...(breadth ? { covers: breadth } : {}), ...(reason ? { reason } : {}), ...(changed === undefined ? {} : { input: changed }) };
    const scope = covers && `${coverPhrase(covers, approval, call, acts.cwd())}${ENDS[option.grant ?? "once"]}`;
    this.sending = true;
    this.render();
    if (await acts.attempt(() => v1.approve(approval.id, body), option.allow, scope)) return;
    this.sending = false;
    this.render();
  }
}

const isRemembered = ({ allow, grant }: Option) => allow && grant !== undefined && grant !== "once";
const isOver = (expires: number) => expires > 0 && Date.now() >= expires;
const hasLimit = (expires: number) => expires > 0 && expires - Date.now() <= FOR_EVER_MS;

/** Continues while the card is out of the page: it may be shown again. The countdown does not keep a removed card alive. */
function countDown(held: WeakRef<ApprovalCard>, expires: number): void {
  const scope = new Scope();
  scope.every(1000, () => {
    const card = held.deref();
    card?.render();
    if (!card || isOver(expires)) scope.end();
  });
}

/** How long it waits. */
function limitOf(expires: number): string {
  if (!hasLimit(expires)) return APPROVAL.noLimit;
  const left = Math.max(0, Math.ceil((expires - Date.now()) / 1000)) * 1000;
  return left === 0 ? APPROVAL.tooLate : APPROVAL.limit(left < 90_000 ? `${left / 1000} s` : duration(left), clock(expires));
}

/** The title: a verb and its object. */
export function question(approval: Approval, call: CallPart, cwd: string): Content {
  const about = (verb: string, object: string) => html`${verb}<code>${object}</code>?`;
  if (approval.result) return about(APPROVAL.useResult, exact(call.tool));
  if (approval.kind === "write" && approval.path) return about(APPROVAL.change, relative(approval.path, cwd));
  if (approval.kind === "read" && approval.path) return about(APPROVAL.read, relative(approval.path, cwd));
  const [danger] = approval.command ? dangers(approval, cwd) : [];
  if (approval.command) return danger ? APPROVAL.runDangerous(danger) : APPROVAL.run;
  if (call.tool === "network" && leavesSandbox(approval)) return about(APPROVAL.connect, exact(targetOf(call.input ?? "")));
  if (call.kind === "fetch") return about(APPROVAL.open, exact(subjectOf(call)));
  const named = approval.title === call.tool ? call.title : approval.title;
  return about(APPROVAL.use, exact(named || call.tool));
}

/** The host uses this reason only for its own network check. */
const leavesSandbox = ({ why }: Approval) => why === "It always asks: it leaves the sandbox.";

/** The host and port of a connection that waits. */
function targetOf(input: string): string {
  try {
    const { host, port } = JSON.parse(input) as { host?: unknown; port?: unknown };
    return `${String(host)}:${String(port)}`;
  } catch {
    return input;
  }
}

/** How much of what the agent wants. */
function lead(approval: Approval, cwd: string): string {
  if (changesNothing(approval)) return APPROVAL.changesNothing;
  if (!approval.diff) return approval.command ? APPROVAL.wantsToRun(folder(cwd)) : APPROVAL.asks;
  const { added, removed } = countOf(linesOf(approval.diff));
  return APPROVAL.wantsToWrite(added, removed);
}

/** The new text is the text of the file. */
const changesNothing = ({ kind, diff }: Approval) => kind === "write" && diff === "";

/** The ids of what waits begin with their session's. */
const sessionOf = ({ id }: Approval) => id.split(".")[0] ?? "";

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let found: Promise<T> | undefined;
  return () => (found ??= work());
}

function contentOf(approval: Approval): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (approval.command) found.push(box(`$ ${exact(approval.command)}`));
  if (approval.diff) found.push(diffView(exact(approval.diff), LINES, approval.path ?? ""));
  else if (!approval.command && !changesNothing(approval)) found.push(box(pretty(approval.input)));
  if (approval.diff || approval.command || changesNothing(approval)) found.push(whole(approval.input));
  return found;
}

/** A change or a command line is the agent's description of the call; this is the call itself. */
function whole(input: string): HTMLElement {
  const view = make("details");
  view.append(make("summary", "soft", APPROVAL.exactInput), box(pretty(input)));
  return view;
}

const editor = (input: string): TemplateResult => html`<details><summary>${APPROVAL.changeInput}</summary><textarea class="edit" rows="6" aria-label=${APPROVAL.input} .defaultValue=${input}></textarea></details>`;

const fact = (name: Icon, text: string, look = ""): TemplateResult => html`<li class=${look || nothing}>${iconOf(name)}${text}</li>`;

/** What would be lost for good, in words; empty where nothing is known to be. */
async function lossOf({ command }: Approval, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  try {
    return lostBy(command ?? "", (await uncommitted()).files ?? []);
  } catch {
    return ""; // not known here: the reasons are shown
  }
}

/** What git stores can be restored; uncommitted changes cannot. Empty if that is not known. */
async function canBeUndone(approval: Approval, cwd: string, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  if (approval.diff?.startsWith("--- /dev/null")) return APPROVAL.newFile;
  try {
    const { git, files = [] } = await uncommitted();
    if (!git) return APPROVAL.notInGit;
    const path = relative(approval.path ?? "", cwd);
    return files.some((file) => file.path === path) ? APPROVAL.uncommitted : APPROVAL.undoable;
  } catch {
    return ""; // not for this reader, or out of reach
  }
}

// -- what was answered ------------------------------------------------------------------------------------------------

/** What was answered, by whom; no one denied what timed out. What is remembered names its scope, and can be undone. */
export function verdict(approval: Approval, call: CallPart, acts: CardActions): HTMLElement {
  if (!approval.allowed && approval.by === "timeout") return make("p", "bad", VERDICT.timeout(approval.expires > 0 ? clock(approval.expires) : ""));
  if (!approval.allowed && !approval.option) {
    const stopped = approval.reason === "cancelled" && approval.by !== "host" && approval.by !== "turn";
    return make("p", "soft", stopped ? VERDICT.stopped(who(approval.by ?? "").replace(/^You$/, "you")) : VERDICT.ended);
  }
  const covered = approval.grant ? coverPhrase(approval.covers ?? [], approval, call, acts.cwd()) : "it";
  const line = make("p", approval.allowed ? "good" : "bad", `${verdictOf(approval, covered)}${approval.reason ? `: ${approval.reason}` : "."}`);
  if (approval.grant) line.append(" ", undoButton(approval.grant, (work) => acts.attempt(work)));
  return line;
}

/** Revokes a remembered answer. What another reader has revoked already cannot be undone again. */
export function undoButton(grant: string, attempt: (work: () => Promise<unknown>) => Promise<unknown>): HTMLElement {
  const place = make("span", "undo-grant");
  const draw = (state: "live" | "sending" | "undone" | "gone") =>
    render(
      state === "gone" ? nothing : state === "undone" ? html`<span class="soft">${VERDICT.undone}</span>` : html`<button type="button" class="link" ?disabled=${state === "sending"} @click=${() => void revoke()}>${VERDICT.undo}</button>`,
      place,
    );
  const revoke = async () => {
    draw("sending");
    draw((await attempt(() => v1.revoke(grant))) ? "undone" : "live");
  };
  draw("live");
  liveGrants().then((live) => (live.some(({ id }) => id === grant) ? undefined : draw("gone")), () => undefined);
  return place;
}

/** One request for all receipts that are built together. A failed one is not kept. */
let live: Promise<Grant[]> | undefined;
function liveGrants(): Promise<Grant[]> {
  if (live) return live;
  const forget = () => (live = undefined);
  live = v1.grants();
  live.then(() => setTimeout(forget, 1000), forget);
  return live;
}
