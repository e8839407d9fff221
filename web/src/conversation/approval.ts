/** An approval as a card: a question, exactly what would run, what is known about it, and the answers. */

import { make, makeButton } from "../page";
import { type Covered, v1 } from "../v1";
import { dangers, outside } from "./danger";
import { diffView } from "./diff";
import { countOf, linesOf } from "./diffLines";
import { coverWords } from "./grants";
import { type CardActs, box, exact, plain, pretty, relative } from "./pieces";
import type { Approval, CallPart, Option } from "./state";
import { who } from "./words";

/** The reason of most questions is none that anybody needs to read. */
const EVERYDAY = "No rule lets it pass.";
/** Further away than this nobody means a limit. */
const FOR_EVER_MS = 300 * 86_400_000;
/** Lines of a change on the card; the panel has all of them. */
const LINES = 400;

export function approvalCard(approval: Approval, call: CallPart, acts: CardActs): HTMLElement {
  const card = make("section", "card approval");
  const reasons = dangers(approval, acts.cwd());
  if (reasons.length > 0) card.classList.add("dangerous");
  const title = make("h2");
  title.append(...question(approval, call, acts.cwd()));
  title.id = `title-${approval.id}`;
  title.tabIndex = -1;
  card.setAttribute("aria-labelledby", title.id);
  card.setAttribute("role", "group");
  card.dataset["since"] = String(performance.now());
  card.dataset["approval"] = approval.id;
  card.append(title, make("p", "about", lead(approval)));
  card.append(...theThing(approval));
  card.append(facts(approval, acts.cwd(), reasons));
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
    if (!(await acts.attempt(() => v1.approve(approval.id, body)))) for (const button of card.querySelectorAll("button")) button.disabled = false;
  };
  const scopes = (option: Option) => void chooseScope(card, approval, call, option, acts, answer);
  card.append(reason, reasons.length > 0 ? carefulButtons(approval.options, reasons, answer) : buttons(approval.options, answer, scopes));
  return card;
}

/** The title: a verb and its object. */
function question(approval: Approval, call: CallPart, cwd: string): (string | HTMLElement)[] {
  const path = approval.path ? make("code", "", relative(approval.path, cwd)) : undefined;
  if (approval.result) return ["Use the result of ", make("code", "", exact(call.tool)), "?"];
  if (approval.kind === "write" && path) return ["Change ", path, "?"];
  if (approval.kind === "read" && path) return ["Read ", path, "?"];
  if (approval.command) return ["Run this command?"];
  const named = approval.title === call.tool ? call.title : approval.title;
  return ["Use ", make("code", "", exact(named || call.tool)), "?"];
}

function lead(approval: Approval): string {
  if (!approval.diff) return "Nothing happens until you answer.";
  const { added, removed } = countOf(linesOf(approval.diff));
  return `It would add ${added} ${added === 1 ? "line" : "lines"} and remove ${removed}. Nothing is written until you allow it.`;
}

function theThing(approval: Approval): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (approval.command) found.push(box(`$ ${exact(approval.command)}`));
  if (approval.diff) found.push(diffView(exact(approval.diff), LINES, approval.path ?? ""));
  else if (!approval.command) found.push(box(pretty(approval.input)));
  if (approval.diff || approval.command) found.push(whole(approval.input));
  return found;
}

function facts(approval: Approval, cwd: string, reasons: string[]): HTMLElement {
  const list = make("ul", "card-facts");
  list.append(...reasons.map((reason) => make("li", "bad", reason)));
  if (approval.path && !outside(approval.path, cwd)) list.append(make("li", "", "Inside the project folder"));
  if (approval.why && approval.why !== EVERYDAY) list.append(make("li", "", plain(approval.why)));
  const left = approval.expires - Date.now();
  const forEver = approval.expires <= 0 || left > FOR_EVER_MS;
  list.append(make("li", "", forEver ? "Waits as long as you need" : `Not done if nobody answers by ${new Date(approval.expires).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" })}`));
  return list;
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
function carefulButtons(options: Option[], reasons: string[], answer: (option: Option) => Promise<void>): HTMLElement {
  const row = make("div", "answers");
  const no = options.find(({ allow }) => !allow);
  const yes = options.filter(({ allow }) => allow);
  const first = () => {
    const rest = options.filter((option) => !option.allow).map((option) => answerButton(option, option === no ? "primary" : "", option === no ? "n" : "", answer));
    const more = makeButton("danger apart", "Allow…", second);
    row.replaceChildren(...rest, more);
  };
  const second = () => {
    const sure = make("p", "careful", `${reasons.join(". ")}. Allow it all the same?`);
    row.replaceChildren(sure, makeButton("primary", "Back", first), ...yes.map((option) => answerButton(option, "danger apart", "", answer)));
    row.querySelector("button")?.focus();
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
  const option = approval.options.find(({ id }) => id === approval.option)?.label;
  const text = `${who(approval.by ?? "")} ${approval.allowed ? "allowed" : "denied"} it${option ? ` (${option})` : ""}${approval.reason ? `: ${approval.reason}` : "."}`;
  return make("p", approval.allowed ? "good" : "bad", text);
}
