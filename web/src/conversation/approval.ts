/** An approval as a card: a question, exactly what would run, what is known about it, and the answers. */

import { icon, type Icon } from "../icons";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { settle } from "../settle";
import { type Covered, type Grant, type Uncommitted, v1 } from "../v1";
import { subjectOf } from "./calls";
import { dangers, lostBy, outside } from "./danger";
import { diffView } from "./diff";
import { countOf, linesOf } from "./diffLines";
import { type CardActs, box, exact, plain, pretty, relative } from "./pieces";
import { coverPhrase } from "./grants";
import type { Scopes } from "./scopes";
import type { Approval, CallPart, Option } from "./state";
import { duration, folder, who } from "./words";
import { plural } from "../texts/plural";

/** The reason of most questions is none that anybody needs to read. */
const EVERYDAY = "No rule lets it pass.";
/** Longer than this means no limit. */
const FOR_EVER_MS = 300 * 86_400_000;
/** Lines of a change on the card; the panel has all of them. */
const LINES = 400;
/** About so many are visible without scrolling. */
const LINES_SEEN = 16;

export function approvalCard(approval: Approval, call: CallPart, acts: CardActs): HTMLElement {
  const card = make("section", "card approval");
  const reasons = dangers(approval, acts.cwd(), call.kind);
  if (reasons.length > 0) card.classList.add("dangerous");
  const title = make("h2");
  title.append(icon("need"), ...question(approval, call, acts.cwd()));
  title.id = `title-${approval.id}`;
  title.tabIndex = -1;
  card.setAttribute("aria-labelledby", title.id);
  card.setAttribute("role", "group");
  settle(card);
  card.dataset["approval"] = approval.id;
  const about = make("p", "about");
  about.append(make("span", "asking", acts.agent?.() || "The agent"), ` ${lead(approval, acts.cwd())}`);
  card.append(title, about);
  card.append(...theThing(approval));
  const uncommitted = once(() => v1.uncommitted(sessionOf(approval)));
  card.append(facts(approval, acts, reasons, uncommitted));
  const edit = approval.editable ? editor(approval.input) : undefined;
  if (edit) card.append(edit.view);
  const reason = make("input", "reason");
  reason.placeholder = "Note to the agent (optional)";
  reason.setAttribute("aria-label", reason.placeholder);
  reason.dir = "auto";
  const answer = async (option: Option, breadth?: Covered["breadth"], covers?: string[]) => {
    const changed = edit?.changed();
    const body = { option: option.id, ...(breadth ? { covers: breadth } : {}), ...(reason.value ? { reason: reason.value } : {}), ...(changed === undefined || !option.allow ? {} : { input: changed }) };
    const scope = covers && `${coverPhrase(covers, approval, call, acts.cwd())}${ENDS[option.grant ?? "once"]}`;
    enable(card, false);
    if (!(await acts.attempt(() => v1.approve(approval.id, body), option.allow, scope))) enable(card, !isOver(approval.expires));
  };
  let menu: Promise<Scopes> | undefined;
  const scopes = (option: Option, button: HTMLElement) => {
    // Its code is loaded with its first use.
    menu ??= import("./scopes").then((module) => new module.Scopes(card, approval, call, acts, answer));
    void menu.then((found) => found.toggle(button, option));
  };
  card.append(reason, reasons.length > 0 ? carefulButtons(card, approval, reasons, answer, uncommitted, scopes) : buttons(approval.options, answer, scopes));
  if (isOver(approval.expires)) enable(card, false);
  return card;
}

const isOver = (expires: number) => expires > 0 && Date.now() >= expires;

function enable(card: HTMLElement, on: boolean): void {
  for (const button of card.querySelectorAll("button")) button.disabled = !on;
}

/** The title: a verb and its object. */
export function question(approval: Approval, call: CallPart, cwd: string): (string | HTMLElement)[] {
  const path = approval.path ? make("code", "", relative(approval.path, cwd)) : undefined;
  if (approval.result) return ["Use the result of ", make("code", "", exact(call.tool)), "?"];
  if (approval.kind === "write" && path) return ["Change ", path, "?"];
  if (approval.kind === "read" && path) return ["Read ", path, "?"];
  const [danger] = approval.command ? dangers(approval, cwd) : [];
  if (approval.command) return [danger ? `Run a command that ${danger.charAt(0).toLowerCase()}${danger.slice(1)}?` : "Run this command?"];
  if (call.tool === "network" && leavesSandbox(approval)) return ["Connect to ", make("code", "", exact(targetOf(call.input ?? ""))), "?"];
  if (call.kind === "fetch") return ["Open ", make("code", "", exact(subjectOf(call))), "?"];
  const named = approval.title === call.tool ? call.title : approval.title;
  return ["Use ", make("code", "", exact(named || call.tool)), "?"];
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
  if (!approval.diff) return approval.command ? `wants to run it in ${folder(cwd)}. Nothing runs until you allow it.` : "asks. Nothing happens until you answer.";
  const { added, removed } = countOf(linesOf(approval.diff));
  const lines = (count: number) => plural(count, "line");
  const what = removed === 0 ? `write ${lines(added)}` : added === 0 ? `remove ${lines(removed)}` : `write ${lines(added)} and remove ${removed}`;
  return `wants to ${what}. Nothing is written until you allow it.`;
}

/** The ids of what waits begin with their session's. */
const sessionOf = ({ id }: Approval) => id.split(".")[0] ?? "";

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let found: Promise<T> | undefined;
  return () => (found ??= work());
}

function theThing(approval: Approval): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (approval.command) found.push(box(`$ ${exact(approval.command)}`));
  if (approval.diff) found.push(diffView(exact(approval.diff), LINES, approval.path ?? ""));
  else if (!approval.command) found.push(box(pretty(approval.input)));
  if (approval.diff || approval.command) found.push(whole(approval.input));
  return found;
}

function facts(approval: Approval, acts: CardActs, reasons: string[], uncommitted: () => Promise<Uncommitted>): HTMLElement {
  const list = make("ul", "card-facts");
  const inside = approval.path && !outside(approval.path, acts.cwd());
  list.append(...reasons.map((reason) => fact("need", reason, "bad")));
  if (reasons.length > 0) void lossOf(approval, uncommitted).then((lost) => lost && list.prepend(fact("need", lost, "bad")));
  if (inside) list.append(fact("folder", "Inside the project folder"));
  if (inside && approval.kind === "write") void canBeUndone(approval, acts.cwd(), uncommitted).then((text) => text && list.children[reasons.length]?.after(fact("shield", text)));
  if (approval.why && approval.why !== EVERYDAY) list.append(fact("note", plain(approval.why)));
  list.append(limit(approval.expires));
  const lines = approval.diff ? linesOf(approval.diff).filter(({ kind }) => kind !== "file").length : 0;
  if (acts.wholeChange && approval.path && lines > LINES_SEEN) {
    const item = make("li", "apart");
    item.append(makeButton("link", `Show all ${lines} lines`, () => acts.wholeChange?.(approval.path ?? "")));
    list.append(item);
  }
  return list;
}

/** How long it waits; a limit counts down in words, and after it the card takes no answer. */
function limit(expires: number): HTMLElement {
  if (expires <= 0 || expires - Date.now() > FOR_EVER_MS) return fact("clock", "No time limit");
  const item = fact("clock", "");
  item.append("");
  showLeft(item, expires);
  countDown(new WeakRef(item), expires);
  return item;
}

/** Continues while the card is out of the page: it may be shown again. The countdown does not keep a removed card alive. */
function countDown(held: WeakRef<HTMLElement>, expires: number): void {
  const scope = new Scope();
  scope.every(1000, () => {
    const item = held.deref();
    if (item) showLeft(item, expires);
    if (!item || isOver(expires)) scope.end();
  });
}

function showLeft(item: HTMLElement, expires: number): void {
  const by = new Date(expires).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
  const left = Math.max(0, Math.ceil((expires - Date.now()) / 1000)) * 1000;
  const text = left === 0 ? "No one answered in time" : `Not done if no one answers within ${left < 90_000 ? `${left / 1000} s` : duration(left)}, by ${by}`;
  if (item.lastChild?.textContent !== text) item.lastChild?.replaceWith(text);
  const card = item.closest<HTMLElement>(".card");
  if (left === 0 && card) enable(card, false);
}

/** What would be lost for good, in words; empty where nothing is known to be. */
async function lossOf({ command }: Approval, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  try {
    return lostBy(command ?? "", (await uncommitted()).files ?? []);
  } catch {
    return ""; // not known here: the reasons are shown
  }
}

function fact(name: Icon, text: string, look = ""): HTMLElement {
  const item = make("li", look);
  item.append(icon(name), text);
  return item;
}

/** What git stores can be restored; uncommitted changes cannot. Empty if that is not known. */
async function canBeUndone(approval: Approval, cwd: string, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  if (approval.diff?.startsWith("--- /dev/null")) return "A new file";
  try {
    const { git, files = [] } = await uncommitted();
    if (!git) return "Not in git: the old text is not kept";
    const path = relative(approval.path ?? "", cwd);
    return files.some((file) => file.path === path) ? "Has changes that are not committed" : "Can be undone";
  } catch {
    return ""; // not for this reader, or out of reach
  }
}

type Opens = (option: Option, button: HTMLElement) => void;
type Answer = (option: Option) => Promise<void>;
const isRemembered = ({ allow, grant }: Option) => allow && grant !== undefined && grant !== "once";

function answerButton(option: Option, look: string, key: string, answer: (option: Option, button: HTMLElement) => unknown): HTMLButtonElement {
  const button: HTMLButtonElement = makeButton(look, option.label, () => void answer(option, button));
  if (isRemembered(option)) button.setAttribute("aria-haspopup", "true");
  if (key) {
    button.dataset["answer"] = key;
    button.setAttribute("aria-keyshortcuts", key.toUpperCase());
    const letter = make("kbd", "", key.toUpperCase());
    letter.setAttribute("aria-hidden", "true");
    button.append(letter);
  }
  return button;
}

/** Yes first, then what allows more, and a gap before the no. The first yes answers `y`, the first no answers `n`. */
function buttons(options: Option[], answers: Answer, scopes: Opens): HTMLElement {
  const row = make("div", "answers");
  const answer = (option: Option) => answers(option);
  const [yes, no] = [options.find(({ allow }) => allow), options.find(({ allow }) => !allow)];
  const ordered = [...options.filter(({ allow }) => allow), ...options.filter(({ allow }) => !allow)];
  for (const option of ordered) {
    const button = answerButton(option, option === yes ? "primary" : option.allow ? "" : "danger", option === yes ? "y" : option === no ? "n" : "", isRemembered(option) ? scopes : answer);
    if (option === no) button.classList.add("apart");
    row.append(button);
  }
  return row;
}

/** The safe answer is the large one; a yes takes two steps and no key. */
function carefulButtons(card: HTMLElement, approval: Approval, reasons: string[], answers: Answer, uncommitted: () => Promise<Uncommitted>, scopes: Opens): HTMLElement {
  const row = make("div", "answers");
  const answer = (option: Option) => answers(option);
  const { options } = approval;
  const no = options.find(({ allow }) => !allow);
  const yes = options.filter(({ allow }) => allow);
  const first = () => {
    const rest = options.filter((option) => !option.allow).map((option) => answerButton(option, option === no ? "primary" : "", option === no ? "n" : "", answer));
    const more = makeButton("danger apart", "Allow…", second);
    row.replaceChildren(...rest, more);
    settle(card);
  };
  const second = () => {
    const sure = make("p", "careful", `${sentence(reasons)} Allow it anyway?`);
    row.replaceChildren(sure, makeButton("primary", "Back", first), ...yes.map((option, index) => answerButton(option, index === 0 ? "danger apart" : "danger", "", isRemembered(option) ? scopes : answer)));
    settle(card);
    row.querySelector("button")?.focus();
    void lossOf(approval, uncommitted).then((lost) => lost && sure.prepend(make("b", "", lost), " "));
  };
  first();
  return row;
}

/** Reasons such as "Deletes files" and "Outside the project folder" as whole sentences. */
function sentence(reasons: string[]): string {
  return reasons.map((reason) => `This ${reason.startsWith("Outside") ? "is " : ""}${reason.charAt(0).toLowerCase()}${reason.slice(1)}.`).join(" ");
}

/** A change or a command line is the agent's description of the call; this is the call itself. */
function whole(input: string): HTMLElement {
  const view = make("details");
  view.append(make("summary", "soft", "The exact input"), box(pretty(input)));
  return view;
}

function editor(input: string): { view: HTMLElement; changed(): string | undefined } {
  const view = make("details");
  const area = make("textarea", "edit");
  area.value = input;
  area.rows = 6;
  area.setAttribute("aria-label", "Input");
  view.append(make("summary", "", "Change the input"), area);
  return { view, changed: () => (area.value === input ? undefined : area.value) };
}

/** What was answered, by whom; no one denied what timed out. What is remembered names its scope, and can be undone. */
export function verdict(approval: Approval, call: CallPart, acts: CardActs): HTMLElement {
  if (!approval.allowed && approval.by === "timeout") {
    const until = approval.expires > 0 ? ` by ${new Date(approval.expires).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" })}` : " in time";
    return make("p", "bad", `No one answered${until}, so it was not done.`);
  }
  if (!approval.allowed && !approval.option) {
    const stopped = approval.reason === "cancelled" && approval.by !== "host" && approval.by !== "turn";
    return make("p", "soft", stopped ? `Not run: ${who(approval.by ?? "").replace(/^You$/, "you")} stopped the turn.` : "Not answered: the turn ended first.");
  }
  const line = make("p", approval.allowed ? "good" : "bad", `${verdictOf(approval, coveredBy(approval, call, acts))}${approval.reason ? `: ${approval.reason}` : "."}`);
  if (approval.grant) line.append(" ", undoButton(approval.grant, (work) => acts.attempt(work)));
  return line;
}

function coveredBy(approval: Approval, call: CallPart, acts: CardActs): string {
  return approval.grant ? coverPhrase(approval.covers ?? [], approval, call, acts.cwd()) : "it";
}

/** Revokes a remembered answer. What another reader has revoked already cannot be undone again. */
export function undoButton(grant: string, attempt: (work: () => Promise<unknown>) => Promise<unknown>): HTMLElement {
  const place = make("span", "undo-grant");
  const undone = () => place.replaceChildren(make("span", "soft", "Undone: it will ask again."));
  const button = makeButton("link", "Undo", () => {
    button.disabled = true;
    void attempt(() => v1.revoke(grant)).then((done) => (done ? undone() : (button.disabled = false)));
  });
  place.append(button);
  liveGrants().then((live) => (live.some(({ id }) => id === grant) ? undefined : place.replaceChildren()), () => undefined);
  return place;
}

/** One request for all receipts that are built together. */
let live: Promise<Grant[]> | undefined;
function liveGrants(): Promise<Grant[]> {
  live ??= v1.grants().finally(() => setTimeout(() => (live = undefined), 1000));
  return live;
}

const ENDS = { once: "", session: " in this session", project: " in this folder" };

/** Who allowed or denied what, and for how long. */
export function verdictOf({ by = "", allowed, option, options }: Approval, what = "it"): string {
  return `${who(by)} ${allowed ? "allowed" : "denied"} ${what}${ENDS[options.find(({ id }) => id === option)?.grant ?? "once"]}`;
}
