/** Where people write: text, files and pictures, model and mode; the draft is kept on the host. */

import { explain } from "../api";
import { dangers } from "../conversation/danger";
import { active, type Approval, type CallPart, offeredDraft, type SessionState, statusOf, waitingApproval, waits } from "../conversation/state";
import { hasKeys, make, makeButton } from "../page";
import { ask, v1 } from "../v1";
import { icon } from "../icons";
import { MessageBox, post } from "./messageBox";
import { preferences, remember, remembered } from "./preferences";
import { lineOf } from "./word";
import { COMPOSER } from "../texts/composer";

type Attempt = (work: () => Promise<unknown>) => Promise<boolean>;

const DRAFT_MS = 800;

export class Composer extends MessageBox {
  private readonly steer = makeButton("", COMPOSER.sendNow, () => void this.send("steer"));
  /** What is written while a card is open is an answer to it. */
  private readonly denying = makeButton("btn small", COMPOSER.denyWithThisNote, () => void this.answer(false));
  private readonly allowing = makeButton("btn small", COMPOSER.allowWithThisNote, () => void this.answer(true));
  private readonly copy = make("span", "own-copy");
  private readonly sandbox = makeButton("sandbox-choice", "", () => void this.chooseSandbox());
  private readonly runs = make("p", "runs");
  /** A turn runs. */
  private busy = false;
  private saving: ReturnType<typeof setTimeout> | undefined;
  private saved = "";
  /** Text from the host that was not edited here. */
  private taken = "";
  private state: SessionState | undefined;
  private loadedFor = "";
  /** The text was written in this browser; the host may not have it yet. */
  private restored = false;

  constructor(
    private readonly id: string,
    private readonly attempt: Attempt,
    report: (text: string) => void,
  ) {
    super(report);
    this.element.id = "composer";
    this.area.id = "message";
    this.area.setAttribute("aria-label", COMPOSER.message);
    this.button.id = "send";
    this.button.setAttribute("aria-label", COMPOSER.send);
    this.steer.id = "steer";
    this.steer.title = "Ctrl+Enter";
    this.runs.id = "runs";
    this.runs.setAttribute("role", "status");
    this.tools.before(this.runs);
    this.addTools();
    this.area.addEventListener("input", () => this.typed());
    // Written while the host was out of reach, or just before a reload.
    const left = remembered(this.draftKey) ?? "";
    this.put(left);
    this.restored = left !== "";
  }

  private get draftKey(): string {
    return `draft.${this.id}`;
  }

  private addTools(): void {
    this.model.addEventListener("change", () => void this.attempt(() => v1.change(this.id, { model: this.model.value })));
    this.mode.addEventListener("change", () => void this.attempt(() => v1.change(this.id, { config: { approvals: this.mode.value } })));
    this.denying.id = "deny-with-note";
    this.allowing.id = "allow-and-add";
    this.copy.append(icon("branch"), make("span", "", COMPOSER.separateCopy));
    this.sandbox.id = "sandbox";
    this.sandbox.setAttribute("aria-haspopup", "menu");
    this.sandbox.append(icon("shield"), make("span"));
    this.tools.append(this.sandbox, this.copy, make("span", "spring"), this.denying, this.allowing, this.steer, this.button);
  }

  private async chooseSandbox(): Promise<void> {
    const { openSandboxMenu } = await import("./sandboxPick");
    await openSandboxMenu(this.id, this.sandbox, this.attempt);
  }

  private get asking(): CallPart | undefined {
    const turn = this.state && active(this.state);
    return turn?.parts?.find((part): part is CallPart => part.part === "call" && waitingApproval(part) !== undefined);
  }

  private get waiting(): Approval | undefined {
    return this.asking && waitingApproval(this.asking);
  }

  /** It has the focus and is empty. */
  get untouched(): boolean {
    return document.activeElement === this.area && this.area.value === "";
  }

  /** What can be done with words, once there are some. */
  protected changed(): void {
    const [approval, written, line] = [this.waiting, this.area.value.trim() !== "", this.line];
    this.showSend(line !== "");
    this.steer.hidden = !this.busy || line !== "" || !(written || this.attached.length > 0);
    this.denying.hidden = !approval || !written;
    this.steer.hidden ||= !this.denying.hidden; // words answer the card, or wait
    // What is dangerous is allowed on its card, in two steps, or not at all.
    this.allowing.hidden = this.denying.hidden || dangers(approval as Approval, this.state?.cwd ?? "", this.asking?.kind).length > 0;
  }

  /** The command line in the field, if commands can be run. */
  private get line(): string {
    return this.suggestions?.runs === false ? "" : lineOf(this.area.value);
  }

  private showSend(runs: boolean): void {
    const [name, title] = runs ? [COMPOSER.run, COMPOSER.runsInTheFolder] : this.busy ? [COMPOSER.queue, COMPOSER.sentWhenTheAgent] : [COMPOSER.send, COMPOSER.send];
    this.button.setAttribute("aria-label", name);
    this.button.title = title;
    const text = runs ? COMPOSER.runsInTheFolderText : "";
    if (this.runs.textContent !== text) this.runs.textContent = text;
  }

  /** With a denial the text is the reason; with an approval it is sent to the agent. */
  private async answer(allow: boolean): Promise<void> {
    const [approval, text] = [this.waiting, this.area.value.trim()];
    const option = approval?.options.find((each) => each.allow === allow);
    if (!approval || !option) return;
    const body = { option: option.id, ...(allow ? {} : { reason: text }) };
    if (!(await this.attempt(() => v1.approve(approval.id, body)))) return;
    if (allow) return void (await this.send("steer"));
    this.put("");
    await this.save();
  }

  private typed(): void {
    this.taken = "";
    remember(this.draftKey, this.area.value);
    this.changed();
    this.saveLater();
  }

  protected suggestedBy(): string {
    return this.id;
  }

  protected submit(busy: "queue" | "steer"): void {
    void this.send(this.busy ? busy : "queue");
  }

  render(state: SessionState, lost = false): void {
    this.state = state;
    const busy = active(state) !== undefined;
    this.busy = busy;
    this.area.disabled = this.button.disabled = !takesMessages(state);
    this.area.placeholder = hint(state, lost);
    const chosen = String(state.config?.["approvals"] ?? "ask");
    if (document.activeElement !== this.mode) this.mode.value = chosen;
    const sandbox = String(state.config?.["sandbox"] ?? "");
    this.sandbox.lastElementChild!.textContent = sandbox && sandbox !== "off" ? COMPOSER.sandbox(sandbox) : COMPOSER.sandboxText;
    this.copy.hidden = !state.worktree;
    this.copy.title = state.worktree?.branch ? COMPOSER.itWorksInASeparate(state.worktree.branch) : "";
    this.changed();
    if (this.restored) this.saveLater();
    this.restored = false;
    this.takeDraft(String(state.kept?.["draft"]?.["text"] ?? ""), offeredDraft(state) !== "");
    void this.loadModels(state);
  }

  /**
   * A draft of another device is shown here unless the user is typing; it also disappears with that device's draft. What a
   * program offers is never lost: it is appended to the text in the field.
   */
  private takeDraft(text: string, offered: boolean): void {
    if (text === this.saved) return;
    const [before, written] = [this.saved, this.area.value];
    this.saved = text;
    const writing = document.activeElement === this.area && written !== "" && written !== this.taken;
    if (written === before && (offered || !writing)) {
      this.taken = text;
      this.put(text);
      remember(this.draftKey, undefined); // the host has it, also where a save of less is still under way
    } else if (offered) {
      this.put(joined(written, text, before));
      remember(this.draftKey, this.area.value);
      this.saveLater();
    }
  }

  private async loadModels(state: SessionState): Promise<void> {
    if (this.loadedFor === `${state.agent}/${state.model}`) return;
    this.loadedFor = `${state.agent}/${state.model}`;
    try {
      this.fillModels((await v1.agents()).find(({ id }) => id === state.agent), state.model);
    } catch (error) {
      this.loadedFor = "";
      this.report(explain(error));
    }
  }

  focus(): void {
    this.area.focus();
  }

  /** Appends text to the field. */
  add(text: string): void {
    this.put([this.area.value, text].filter(Boolean).join("\n\n"));
    this.saveLater();
    this.focus();
  }

  private async send(busy: "queue" | "steer"): Promise<void> {
    if (this.line) return this.run(this.line);
    const [text, attached] = [this.area.value, this.attached];
    if ((!text.trim() && attached.length === 0) || this.button.disabled) return;
    // Clears the field immediately, so that nothing is sent twice; restored if the host refuses it.
    this.put("");
    this.attached = [];
    this.showAttached();
    if (await this.attempt(() => post(this.id, text, busy, attached))) return void this.save();
    this.put(text + this.area.value);
    this.attached = [...attached, ...this.attached];
    this.showAttached();
  }

  /** A shell line is not a message: the agent does not get it, and attachments stay for the next message. */
  private async run(line: string): Promise<void> {
    const text = this.area.value;
    this.put("");
    if (await this.attempt(() => ask("POST /commands", {}, { body: { command: "command.run", arguments: { session: this.id, line } } }))) return void this.save();
    this.put(text + this.area.value);
  }

  private saveLater(): void {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => void this.save(), DRAFT_MS);
  }

  async save(): Promise<void> {
    clearTimeout(this.saving);
    const text = this.area.value;
    if (this.state && !takesMessages(this.state)) return;
    if (text === this.saved) return remember(this.draftKey, undefined);
    this.saved = text;
    try {
      await v1.draft(this.id, text, true);
    } catch (error) {
      // Out of reach: the draft stays here and is sent with the next change. Read-only users see no error.
      if (error instanceof TypeError) return void (this.saved = "\0");
    }
    if (this.area.value === text) remember(this.draftKey, undefined);
  }
}

/** The host has put the offer behind what it knew; here it comes behind what has been typed since. */
export function joined(written: string, text: string, before: string): string {
  const offer = before && text.startsWith(`${before}\n`) ? text.slice(before.length + 1) : text;
  if (written.includes(offer)) return written;
  return written ? `${written}\n${offer}` : offer;
}

/** A closed one is reopened first; to a sub-agent only the agent talks that has started it. */
function takesMessages(state: SessionState): boolean {
  return state.closed !== true && state.origin?.kind !== "agent";
}

function asksQuestion(state: SessionState): boolean {
  return active(state)?.parts?.find(waits)?.part === "question";
}

function hint(state: SessionState, lost: boolean): string {
  if (lost) return COMPOSER.notConnectedWhatYouWrite;
  if (state.origin?.kind === "agent") return COMPOSER.onlyTheAgent;
  if (state.closed) return COMPOSER.thisSessionIsClosedReopen;
  const status = statusOf(state);
  const keys = hasKeys() && preferences().enterSends;
  if (status === "waiting") return asksQuestion(state) ? COMPOSER.answerAboveOrWriteHere : hasKeys() ? COMPOSER.sayWhatToChange : COMPOSER.sayWhatToChangeText;
  if (status === "running") return keys ? COMPOSER.sentWhenTheAgentText : COMPOSER.sentWhenTheAgent;
  return hasKeys() ? COMPOSER.messageTheAgentFile : COMPOSER.messageTheAgent;
}
