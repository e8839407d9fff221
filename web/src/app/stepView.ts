/** One step of a job: the conversation of its task's sessions, and its checks with their output. */

import { Conversation } from "../conversation/conversation";
import { plain } from "../conversation/pieces";
import { Stream } from "../conversation/stream";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { channelAddress, sessionAddress, v1 } from "../v1";
import { nothing, render } from "../render";
import type { JobRecord, Run, StepNode, StepResult } from "./jobModel";
import { resultView } from "./jobResult";
import { facts, type StepDecision } from "./reasons";
import { clock } from "../time";

interface TaskSession {
  id: string;
  model: string;
  driving: boolean;
}

export class StepView {
  readonly element = make("div", "step-view");
  private readonly head = make("div", "step-head");
  private readonly sessions = make("select", "pick");
  private readonly view = make("div", "step-conversation");
  private readonly checks = make("section", "plan step-checks");
  private readonly trouble = make("p", "bad");
  private readonly result = make("div", "step-result");
  private readonly conversation: Conversation;
  private readonly scope = new Scope((text) => (this.trouble.textContent = text));
  /** Of the session that is shown. */
  private session: Scope | undefined;
  private found: TaskSession[] = [];
  private decisions: StepDecision[] = [];
  private shown = "";
  private cwd = "";
  private agent = "";
  private chosen = false;

  constructor(
    step: StepNode,
    readonly run: Run,
    round: string,
    private readonly nameOf: (agent: string) => string,
  ) {
    this.checks.hidden = true;
    this.checks.tabIndex = 0; // it scrolls where there is little room
    this.checks.setAttribute("aria-label", "Checks and decisions of this step");
    const title = make("h2", "", [step.name, step.model, round].filter(Boolean).join(" · "));
    this.sessions.setAttribute("aria-label", "Which session of this step");
    this.sessions.hidden = true;
    this.sessions.addEventListener("change", () => {
      this.chosen = true;
      this.open(this.sessions.value);
    });
    this.head.append(title, this.sessions);
    this.view.id = "transcript";
    this.view.tabIndex = 0;
    this.view.setAttribute("role", "log");
    this.view.setAttribute("aria-label", `Conversation of ${step.name}`);
    this.trouble.setAttribute("role", "alert");
    const end = makeButton("", "", () => undefined);
    end.id = "to-end";
    end.hidden = true;
    this.conversation = new Conversation(this.view, end, {
      attempt: (work) => this.scope.attempt(work),
      cwd: () => this.cwd,
      agent: () => this.agent,
      fork: (turn) => void this.scope.attempt(async () => window.location.assign(sessionAddress((await v1.fork(this.shown, turn)).id))),
      resume: () => void this.scope.attempt(() => v1.resume(this.shown)),
      files: () => window.location.assign(`${sessionAddress(this.shown)}/changes`),
    });
    this.element.append(this.head, this.trouble, this.result, this.view, end, this.checks);
    this.element.classList.add("no-session");
    this.follow();
  }

  private follow(): void {
    let pos = 0;
    const following = this.scope.follow({
      address: () => channelAddress(`task/${this.run.task}`, pos),
      message: (data) => {
        const record = JSON.parse(data) as JobRecord;
        if (record.pos <= pos) return;
        pos = record.pos;
        this.take(record);
        // No event follows, and a browser has few connections.
        if (record.event.type === "task.ended") following.close();
      },
    });
  }

  private take({ time, event }: JobRecord): void {
    if (event.type === "task.session.started") {
      this.found.push({ id: event.session, model: event.model, driving: event.driving === true });
      this.renderSessions();
    } else if (event.type === "task.decided") {
      const { reason: text, passed: ok, exit_code: exit, evidence } = event;
      if (!text.startsWith("[SESSION STARTED]")) this.decisions.push({ time, text, ok: typeof ok === "boolean" ? ok : undefined, ...(typeof exit === "number" ? { exit } : {}), ...(evidence ? { why: evidence } : {}) });
      this.renderChecks();
    } else if (event.type === "task.ended") {
      if (event.error) this.decisions.push({ time, text: event.error, ok: false });
      this.renderChecks();
    }
  }

  /** What the step gave, where it is not in a conversation. */
  showResult(result: StepResult | undefined): void {
    render(result && !this.found.some(({ driving }) => !driving) ? resultView(result) : nothing, this.result);
  }

  private renderSessions(): void {
    this.element.classList.remove("no-session");
    this.sessions.replaceChildren(...this.found.map(({ id, model, driving }, index) => new Option(`${driving ? "Checks" : `Attempt ${this.found.slice(0, index + 1).filter((each) => !each.driving).length}`} · ${model}`, id)));
    this.sessions.hidden = this.found.length < 2;
    const last = this.found.at(-1);
    if (last && !this.chosen) this.open(last.id);
    this.sessions.value = this.shown;
  }

  private open(id: string): void {
    if (id === this.shown) return;
    this.shown = id;
    this.session?.end();
    this.session = this.scope.child();
    new Stream(this.session, id, {
      opened: (state) => {
        this.cwd = state.cwd;
        this.agent = this.nameOf(state.agent);
        this.conversation.open(state);
      },
      moved: (state, events) => this.conversation.move(state, events),
      gone: () => this.view.replaceChildren(make("p", "soft pad", "This session was deleted.")),
    });
  }

  private renderChecks(): void {
    this.checks.hidden = this.decisions.length === 0;
    const list = make("ol");
    list.append(
      ...facts(this.decisions).map(({ time, text, ok, exit, why }) => {
        const item = make("li", ok === true ? "passed" : ok === false ? "failed" : "");
        const sign = make("span", `call-state ${ok === true ? "ok" : ok === false ? "bad" : ""}`, ok === true ? "✓" : ok === false ? "✗" : "·");
        sign.setAttribute("aria-hidden", "true");
        const word = make("span", "vh", ok === true ? "Passed:" : ok === false ? "Failed:" : "");
        const evidence = make("span", "evidence", plain(text));
        if (why) evidence.append(make("q", "why", plain(why)));
        item.append(sign, word, evidence, ...(exit === undefined ? [] : [make("span", `call-word ${exit ? "bad" : ""}`, `exit ${exit}`)]), make("time", "soft", clock(time)));
        return item;
      }),
    );
    this.checks.replaceChildren(make("h3", "", "Checks and decisions of this step"), list);
  }

  press(key: "y" | "n"): boolean {
    return this.conversation.press(key);
  }

  choose(number: string): boolean {
    return this.conversation.choose(number);
  }

  leave(): void {
    this.scope.end();
  }
}
