/** Tool calls on the screen: commands with the end of their output, changes, runs of looking around, plans, helpers. */

import { icon, type Icon } from "../icons";
import { make, makeButton } from "../page";
import { blobAddress, terminalAddress } from "../v1";
import { type CallKind, type CallState, changeCounts, commandOf, kindOf, lookWords, linesRead, planOf, reasonOf, stateOf, subjectOf, tailOf } from "./calls";
import { changesOf } from "./changes";
import { copyButton } from "./code";
import { diffView } from "./diff";
import { type Acts, box, counted, exact, picture, plain, pretty, relative, withCaption } from "./pieces";
import { cards } from "./loadCards";
import { type CallPart, waitingApproval } from "./state";
import type { Row } from "./transcript";
import { duration, verdictOf } from "./words";

/** Enough for three lines of a log. */
const TAIL_CHARS = 2_000;
/** Lines of a running command's output that are shown: all of it would be laid out again with every piece. */
const LIVE_CHARS = 20_000;

const ICONS: Record<CallKind, Icon> = { command: "terminal", change: "edit", look: "search", plan: "done", tool: "done" };
const STATE_ICONS: Partial<Record<CallState, Icon>> = { waiting: "need", running: "work", bad: "failed", refused: "close", stopped: "stop" };
const WORDS: Record<CallState, string> = { waiting: "waits for you", running: "running", ok: "done", bad: "failed", refused: "denied", stopped: "stopped" };

export class CallRow implements Row {
  readonly key: string;
  private row: HTMLElement | undefined;
  private details: HTMLDetailsElement | undefined;
  private tail = make("pre", "tail");
  private card: HTMLElement | undefined;
  private asked: string | undefined;
  private helper: HTMLElement | undefined;
  private answered = 0;

  constructor(
    private readonly call: CallPart,
    private readonly acts: Acts,
  ) {
    this.key = call.id;
  }

  build(): HTMLElement {
    this.row = make("article", "row");
    this.details = make("details", "call");
    this.details.append(make("summary"), make("div", "call-body"));
    this.details.addEventListener("toggle", () => this.fillBody());
    this.tail = make("pre", "tail");
    this.tail.hidden = true;
    this.row.append(this.details, this.tail);
    this.asked = this.card = undefined;
    this.answered = 0;
    this.update();
    return this.row;
  }

  forget(): void {
    this.tail.remove();
    this.row = this.details = this.card = this.helper = undefined;
  }

  update(): void {
    const { call } = this;
    if (kindOf(call) === "plan") return this.showPlan();
    this.showSummary(stateOf(call));
    this.showTail();
    this.fillBody();
    this.showPictures();
    this.showHelper();
    this.showCard();
  }

  private showSummary(state: CallState): void {
    const summary = this.details?.querySelector("summary");
    if (!this.details || !summary) return;
    const kind = kindOf(this.call);
    this.details.className = `call ${kind} ${state}`;
    const exit = this.call.exit_code ?? undefined;
    const seen = exit ? "bad" : state;
    const word = make("span", `call-word ${exit ? "bad" : ""}`, exit === undefined ? wordOf(this.call, state) : `exit ${exit}`);
    const took = tookOf([this.call]);
    const allowed = this.call.approvals?.findLast(({ answered }) => answered);
    const yes = allowed?.allowed && !allowed.reason && !allowed.grant ? [make("span", "call-word verdict", verdictOf(allowed))] : [];
    // The sign already shows "done"; the time, and who allowed it, are more useful.
    summary.replaceChildren(signOf(kind, seen), ...this.title(kind), ...yes, ...((took || yes.length > 0) && exit === undefined && state === "ok" ? [] : [word]), ...(took ? [make("span", "call-word", took)] : []));
  }

  private title(kind: CallKind): HTMLElement[] {
    const { call } = this;
    const title = make("span", "call-title");
    if (kind === "command") {
      title.append(make("code", "", exact(commandOf(call)).split("\n").join(" ⏎ ")));
    } else if (kind === "change" && changeCounts(call).length > 0) {
      const verb = call.done ? (call.ok ? "Wrote" : "Did not write") : "Changes";
      title.append(`${verb} `, ...changeCounts(call).flatMap(({ path, added, removed }, index) => [...(index ? [", "] : []), this.fileName(path), " ", counted(added, removed)]));
    } else if (/job_boolean_(true|false)$/.test(call.tool)) {
      title.textContent = plain(`Answered ${call.tool.endsWith("true") ? "yes" : "no"}: ${reasonOf(call)}`);
    } else if (call.kind === "fetch" && (!call.title || call.title === call.tool)) {
      title.append(call.done ? (call.ok ? "Fetched " : "Could not fetch ") : "Fetches ", make("code", "", exact(subjectOf(call))));
    } else {
      title.textContent = plain((call.done && call.ok && call.past) || call.title || call.tool);
    }
    return [title];
  }

  /** A click on it shows the change beside the conversation; one beside it opens the change here, with a button to go there by keys. */
  private fileName(path: string): HTMLElement {
    const [name, { wholeChange }] = [make("code", "", relative(path, this.acts.cwd())), this.acts];
    if (!wholeChange || !this.call.ok) return name;
    name.className = "file-link";
    name.title = "Show it in the changes";
    name.addEventListener("click", (event) => {
      event.preventDefault();
      wholeChange(path);
    });
    return name;
  }

  /** A command shows its last lines without a click, and a failed call shows the reason. */
  private showTail(): void {
    const { call } = this;
    const said = kindOf(call) === "command" ? tailOf(plain((call.output ?? "").slice(-TAIL_CHARS))) : "";
    const text = said || (stateOf(call) === "bad" ? tailOf(plain(call.error?.message ?? "")) : "");
    this.tail.classList.toggle("bad", said === "" && text !== "");
    const hidden = text === "" || this.details?.open === true;
    if (this.tail.hidden !== hidden) this.tail.hidden = hidden;
    if (!hidden && this.tail.textContent !== text) this.tail.textContent = text;
  }

  private showPlan(): void {
    const steps = planOf(this.call);
    const plan = make("section", "plan");
    const done = steps.filter(({ state }) => state === "done").length;
    plan.append(make("h2", "", `Plan, ${done} of ${steps.length} done`));
    const list = make("ol");
    list.append(
      ...steps.map(({ text, state }) => {
        const item = make("li", state);
        item.append(make("span", "call-state " + (state === "done" ? "ok" : state === "work" ? "running" : ""), state === "done" ? "✓" : state === "work" ? "…" : ""), make("span", "", plain(text)));
        return item;
      }),
    );
    plan.append(list);
    this.row?.replaceChildren(plan);
  }

  private showPictures(): void {
    const pictures = (this.call.content ?? []).filter(({ type, data }) => type === "image" && typeof data === "string");
    if (pictures.length === 0 || this.row?.querySelector(".pictures")) return;
    const list = make("div", "pictures");
    const name = plain(this.call.title || this.call.tool);
    list.append(...pictures.flatMap(({ data, mimeType }) => (/^image\/(png|jpeg|gif|webp)$/.test(String(mimeType)) ? [withCaption(picture(String(data), String(mimeType), name), name, String(data))] : [])));
    this.details?.after(list);
  }

  private showHelper(): void {
    this.helper ??= this.acts.helper?.(this.call.id);
    if (!this.helper || this.helper.isConnected) return;
    this.row?.append(this.helper);
    this.row?.classList.add("has-helper"); // its line replaces the call's
  }

  private showCard(): void {
    const waiting = waitingApproval(this.call);
    const answered = this.call.approvals?.filter(({ answered }) => answered) ?? [];
    if (answered.length !== this.answered) {
      this.answered = answered.length;
      this.row?.querySelector("p.verdict")?.remove();
      const last = answered.at(-1);
      // A yes is in the call's own line, unless it is remembered or has a note.
      if (last && (!last.allowed || last.reason || last.grant)) {
        const line = cards().verdict(last, this.call, this.acts);
        line.classList.add("verdict");
        this.row?.append(line);
      }
    }
    if (waiting?.id === this.asked) return;
    this.asked = waiting?.id;
    this.card?.remove();
    this.card = waiting && cards().approvalCard(waiting, this.call, this.acts);
    // The card contains the text of the line. A result that waits for approval is in the body of the line.
    if (this.details) this.details.hidden = this.card !== undefined && waiting?.result !== true;
    if (this.card) this.details?.after(this.card);
  }

  private fillBody(): void {
    if (!this.details) return;
    this.showTail();
    if (!this.details.open) return;
    const { call } = this;
    const pieces: HTMLElement[] = [];
    if (call.detail) pieces.push(make("p", "soft", plain(call.detail)));
    if (call.rule) pieces.push(make("p", "soft", `${call.denied ? "Denied" : "Allowed"} by a rule: ${call.rule}`));
    if (call.input) pieces.push(section(`Input of ${call.tool}`, box(pretty(call.input))));
    pieces.push(...changesOf(call).map(({ path, diff }) => this.change(path, diff)));
    if (!call.done) pieces.push(...terminalsOf(call).map((id) => link(terminalAddress(id), "Watch it in its terminal")));
    if (call.output) pieces.push(this.output(call.output));
    if (call.blob) pieces.push(link(blobAddress(call.blob), "The whole output"));
    if (call.error) pieces.push(make("p", "bad", plain(call.error.message)));
    if (pieces.length === 0) pieces.push(make("p", "soft", "Nothing yet."));
    const before = this.details.querySelector(".output .box");
    const place = before && { top: before.scrollTop, end: atEnd(before) };
    this.details.lastElementChild?.replaceChildren(...pieces);
    const now = this.details.querySelector(".output .box");
    // What still comes is followed, unless its reader has gone up.
    if (now) now.scrollTop = place && !place.end ? place.top : call.done && !place ? 0 : now.scrollHeight;
  }

  private output(text: string): HTMLElement {
    const found = section("Output", box(plain(this.call.done ? text : text.slice(-LIVE_CHARS))));
    const tools = make("div", "output-tools");
    tools.append(copyButton(() => this.call.output ?? "", "Copy the output"));
    if (this.acts.terminal && kindOf(this.call) === "command") tools.append(makeButton("quiet", "Open a terminal here", () => this.acts.terminal?.()));
    found.append(tools);
    found.classList.add("output");
    return found;
  }

  private change(path: string, diff: string): HTMLElement {
    const found = section("Change", diffView(exact(diff), undefined, path));
    const tools = make("div", "output-tools");
    if (this.acts.wholeChange) tools.append(makeButton("quiet", "Show it in the changes", () => this.acts.wholeChange?.(path)));
    found.append(tools);
    return found;
  }
}

const atEnd = ({ scrollTop, scrollHeight, clientHeight }: Element) => scrollHeight - scrollTop - clientHeight < 24;

/** What it is, once it is done; before that, and where it went wrong, how it goes. */
function signOf(kind: CallKind, state: CallState): HTMLElement {
  const sign = make("span", `call-sign ${state}`);
  sign.append(icon(STATE_ICONS[state] ?? ICONS[kind], state === "running" ? "spin" : ""));
  return sign;
}

/** An unanswered call was not run, but not denied either. */
function wordOf(call: CallPart, state: CallState): string {
  return state === "refused" && call.approvals?.at(-1)?.by === "timeout" ? "not done" : WORDS[state];
}

/** Reads and searches that follow each other are one line. */
export class LookRow implements Row {
  readonly key: string;
  readonly calls: CallPart[];
  private details: HTMLDetailsElement | undefined;
  private card: HTMLElement | undefined;
  private asked: string | undefined;

  constructor(
    first: CallPart,
    private readonly acts: Acts,
  ) {
    this.key = first.id;
    this.calls = [first];
  }

  build(): HTMLElement {
    const row = make("article", "row");
    this.details = make("details", "call look");
    this.details.append(make("summary"), make("ul", "call-body looks"));
    this.details.addEventListener("toggle", () => this.fill());
    row.append(this.details);
    this.asked = this.card = undefined;
    this.update();
    return row;
  }

  forget(): void {
    this.details = this.card = undefined;
  }

  update(): void {
    const summary = this.details?.querySelector("summary");
    if (!summary) return;
    const running = this.calls.some(({ done }) => !done);
    const failed = this.calls.filter((call) => call.done && !call.ok).length;
    const state: CallState = running ? "running" : failed === this.calls.length ? "bad" : "ok";
    const title = make("span", "call-title");
    if (this.calls.length === 1) title.append(running ? "Looks at " : "Looked at ", ...lookedAt(this.calls[0] as CallPart));
    else title.append(make("b", "", running ? "Looks around" : "Looked around"), `: ${lookWords(this.calls)}`);
    summary.replaceChildren(signOf("look", state), title, make("span", "call-word", failed ? `${failed} failed` : tookOf(this.calls) || WORDS[state]));
    this.fill();
    this.showCard();
  }

  /** A call that only reads may need approval, too: for example a file outside the folder. */
  private showCard(): void {
    const call = this.calls.find((each) => waitingApproval(each));
    const waiting = call && waitingApproval(call);
    if (waiting?.id === this.asked) return;
    this.asked = waiting?.id;
    this.card?.remove();
    this.card = call && waiting && cards().approvalCard(waiting, call, this.acts);
    if (this.card) this.details?.after(this.card);
  }

  private fill(): void {
    if (!this.details?.open) return;
    this.details.lastElementChild?.replaceChildren(
      ...this.calls.map((call) => {
        const item = make("li");
        const more = make("details");
        const summary = make("summary");
        const state = stateOf(call);
        summary.append(...lookedAt(call), ...(state === "ok" ? [] : [` (${WORDS[state]})`]));
        more.append(summary, box(plain(call.output || call.error?.message || "Nothing.")));
        item.append(more);
        return item;
      }),
    );
  }
}

const lookedAt = (call: CallPart) => [make("code", "", exact(subjectOf(call))), linesRead(call)];

/** How long they took; nothing where a person was asked, since that is not the call's own time. */
function tookOf(calls: CallPart[]): string {
  return calls.some(({ approvals }) => approvals?.length) ? "" : duration(calls.reduce((sum, { took = 0 }) => sum + took, 0));
}

/** Where the agent runs it; they go when it is done with them. */
const terminalsOf = (call: CallPart): string[] =>
  (call.content ?? []).flatMap(({ type, terminal }) => (type === "terminal" && typeof terminal === "string" ? [terminal] : []));

function section(title: string, content: HTMLElement): HTMLElement {
  const found = make("section");
  found.append(make("p", "label", title), content);
  return found;
}

function link(href: string, text: string): HTMLElement {
  const anchor = make("a", "", text);
  anchor.href = href;
  return anchor;
}
