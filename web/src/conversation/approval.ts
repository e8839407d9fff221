/** An approval as a card: a question, exactly what would run, what is known about it, and the answers. */

import { icon, type Icon } from "../icons";
import { make, makeButton } from "../page";
import { type Covered, type Uncommitted, v1 } from "../v1";
import { subjectOf } from "./calls";
import { dangers, lostBy, outside } from "./danger";
import { diffView } from "./diff";
import { countOf, linesOf } from "./diffLines";
import { coverWords } from "./grants";
import { type CardActs, box, exact, plain, pretty, relative } from "./pieces";
import type { Approval, CallPart, Option } from "./state";
import { duration, folder, who } from "./words";

/** The reason of most questions is none that anybody needs to read. */
const EVERYDAY = "No rule lets it pass.";
/** Further away than this nobody means a limit. */
const FOR_EVER_MS = 300 * 86_400_000;
/** Lines of a change on the card; the panel has all of them. */
const LINES = 400;
/** About so many are in sight at once. */
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
  card.dataset["since"] = String(performance.now());
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
  reason.placeholder = "A word to the agent (optional)";
  reason.setAttribute("aria-label", reason.placeholder);
  reason.dir = "auto";
  const answer = async (option: Option, breadth?: string) => {
    const changed = edit?.changed();
    const body = { option: option.id, ...(breadth ? { covers: breadth } : {}), ...(reason.value ? { reason: reason.value } : {}), ...(changed === undefined || !option.allow ? {} : { input: changed }) };
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    if (!(await acts.attempt(() => v1.approve(approval.id, body), option.allow))) for (const button of card.querySelectorAll("button")) button.disabled = false;
  };
  const scopes = (option: Option) => void chooseScope(card, approval, call, option, acts, answer);
  card.append(reason, reasons.length > 0 ? carefulButtons(approval, reasons, answer, uncommitted) : buttons(approval.options, answer, scopes));
  return card;
}

/** The title: a verb and its object. */
export function question(approval: Approval, call: CallPart, cwd: string): (string | HTMLElement)[] {
  const path = approval.path ? make("code", "", relative(approval.path, cwd)) : undefined;
  if (approval.result) return ["Use the result of ", make("code", "", exact(call.tool)), "?"];
  if (approval.kind === "write" && path) return ["Change ", path, "?"];
  if (approval.kind === "read" && path) return ["Read ", path, "?"];
  const [danger] = approval.command ? dangers(approval, cwd) : [];
  if (approval.command) return [danger ? `Run a command that ${danger.charAt(0).toLowerCase()}${danger.slice(1)}?` : "Run this command?"];
  if (call.kind === "fetch") return ["Open ", make("code", "", exact(subjectOf(call))), "?"];
  const named = approval.title === call.tool ? call.title : approval.title;
  return ["Use ", make("code", "", exact(named || call.tool)), "?"];
}

/** How much of what the agent wants. */
function lead(approval: Approval, cwd: string): string {
  if (!approval.diff) return approval.command ? `wants to run it in ${folder(cwd)}. Nothing runs until you allow it.` : "asks. Nothing happens until you answer.";
  const { added, removed } = countOf(linesOf(approval.diff));
  const lines = (count: number) => `${count} ${count === 1 ? "line" : "lines"}`;
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

/** How long it waits; a limit counts down in words. */
function limit(expires: number): HTMLElement {
  if (expires <= 0 || expires - Date.now() > FOR_EVER_MS) return fact("clock", "Waits as long as you need");
  const item = fact("clock", "");
  const by = new Date(expires).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
  const count = () => {
    const left = Math.max(0, Math.ceil((expires - Date.now()) / 1000)) * 1000;
    const text = left === 0 ? "Nobody answered in time" : `Not done if nobody answers within ${left < 90_000 ? `${left / 1000} s` : duration(left)}, by ${by}`;
    if (item.lastChild?.textContent !== text) item.lastChild?.replaceWith(text);
  };
  item.append("");
  count();
  const ticking = setInterval(() => (item.isConnected ? count() : clearInterval(ticking)), 1000);
  return item;
}

/** What would be lost for good, in words; empty where nothing is known to be. */
async function lossOf({ command }: Approval, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  try {
    return lostBy(command ?? "", (await uncommitted()).files);
  } catch {
    return ""; // not known here: the reasons stand
  }
}

function fact(name: Icon, text: string, look = ""): HTMLElement {
  const item = make("li", look);
  item.append(icon(name), text);
  return item;
}

/** What git holds can be had back; what it does not hold yet cannot. Nothing is said where that is not known. */
async function canBeUndone(approval: Approval, cwd: string, uncommitted: () => Promise<Uncommitted>): Promise<string> {
  if (approval.diff?.startsWith("--- /dev/null")) return "A new file";
  try {
    const { git, files } = await uncommitted();
    if (!git) return "Not in git: the old text is not kept";
    const path = relative(approval.path ?? "", cwd);
    return files.some((file) => file.path === path) ? "Has changes that are not committed" : "Can be undone";
  } catch {
    return ""; // not for this reader, or out of reach
  }
}

function answerButton(option: Option, look: string, key: string, answer: (option: Option) => unknown): HTMLButtonElement {
  const button = makeButton(look, option.label, () => void answer(option));
  if (option.grant && option.grant !== "once") button.setAttribute("aria-haspopup", "true");
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
function buttons(options: Option[], answer: (option: Option) => Promise<void>, scopes: (option: Option) => void): HTMLElement {
  const row = make("div", "answers");
  const [yes, no] = [options.find(({ allow }) => allow), options.find(({ allow }) => !allow)];
  const ordered = [...options.filter(({ allow }) => allow), ...options.filter(({ allow }) => !allow)];
  for (const option of ordered) {
    const button = answerButton(option, option === yes ? "primary" : option.allow ? "" : "danger", option === yes ? "y" : option === no ? "n" : "", option.allow && option.grant && option.grant !== "once" ? scopes : answer);
    if (option === no) button.classList.add("apart");
    row.append(button);
  }
  return row;
}

/** What is remembered says its scope before it is: this file, this folder, this command, or all that the tool does. */
async function chooseScope(card: HTMLElement, approval: Approval, call: CallPart, option: Option, acts: CardActs, answer: (option: Option, breadth?: string) => Promise<void>): Promise<void> {
  if (card.querySelector(".scopes")) return card.querySelector(".scopes")?.remove();
  let covers: Covered[] = [];
  if (!(await acts.attempt(async () => void (covers = await v1.covers(approval.id))))) return;
  const menu = make("div", "scopes");
  menu.setAttribute("role", "group");
  menu.setAttribute("aria-label", `${option.label}: what for?`);
  const until = option.grant === "session" ? "Not asked again in this session. Details lists it, to take it back." : "Not asked again in this folder. Details lists it, to take it back.";
  menu.append(make("p", "soft", until), ...covers.map(({ breadth, covers: each }) => makeButton("option", `Allow ${coverWords(each, call.tool, acts.cwd())}`, () => void answer(option, breadth))));
  card.append(menu);
  menu.querySelector("button")?.focus();
  menu.scrollIntoView({ block: "nearest" });
}

/** The safe answer is the large one; a yes takes two steps and no key. */
function carefulButtons(approval: Approval, reasons: string[], answer: (option: Option) => Promise<void>, uncommitted: () => Promise<Uncommitted>): HTMLElement {
  const row = make("div", "answers");
  const { options } = approval;
  const no = options.find(({ allow }) => !allow);
  const yes = options.filter(({ allow }) => allow);
  const first = () => {
    const rest = options.filter((option) => !option.allow).map((option) => answerButton(option, option === no ? "primary" : "", option === no ? "n" : "", answer));
    const more = makeButton("danger apart", "Allow…", second);
    row.replaceChildren(...rest, more);
  };
  const second = () => {
    const sure = make("p", "careful", `${reasons.join(". ")}. Allow it all the same?`);
    row.replaceChildren(sure, makeButton("primary", "Back", first), ...yes.map((option, index) => answerButton(option, index === 0 ? "danger apart" : "danger", "", answer)));
    row.querySelector("button")?.focus();
    void lossOf(approval, uncommitted).then((lost) => lost && sure.prepend(make("b", "", lost), " "));
  };
  first();
  return row;
}

/** A change or a command line is what the agent says about the call; this is the call itself. */
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

/** What was answered, by whom; a limit that passed is nobody's no. */
export function verdict(approval: Approval): HTMLElement {
  if (!approval.allowed && approval.by === "timeout") {
    const until = approval.expires > 0 ? ` by ${new Date(approval.expires).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" })}` : " in time";
    return make("p", "bad", `Nobody answered${until}, so it was not done.`);
  }
  if (!approval.allowed && (approval.by === "host" || approval.by === "turn")) return make("p", "soft", "Not answered: the turn ended before.");
  return make("p", approval.allowed ? "good" : "bad", `${verdictOf(approval)}${approval.reason ? `: ${approval.reason}` : "."}`);
}

const ENDS = { once: "", session: " in this session", project: " in this folder" };

/** Who said what, and for how long. */
export function verdictOf({ by = "", allowed, option, options }: Approval): string {
  return `${who(by)} ${allowed ? "allowed" : "denied"} it${ENDS[options.find(({ id }) => id === option)?.grant ?? "once"]}`;
}
