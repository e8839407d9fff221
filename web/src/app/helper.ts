/** A helper that an agent sent out: one line with what it does now, and its own conversation when it is opened. */

import { explain } from "../api";
import { Conversation } from "../conversation/conversation";
import { Stream } from "../conversation/stream";
import { duration } from "../conversation/words";
import { make, makeButton } from "../page";
import type { Scope } from "../scope";
import type { BoardStore } from "./boardStore";
import { html, iconOf, render } from "../render";
import { elapsed } from "../time";
import { sessionAddress } from "../v1";
import { HELPER } from "../texts/helper";

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

export class Helper {
  readonly element = make("details", "helper");
  private readonly summary = make("summary");
  conversation: Conversation | undefined;
  private stream: Stream | undefined;

  /** `name`: what its agent calls it, if known. `scope`: a part of the session's view, paused and ended with it. */
  constructor(
    private readonly id: string,
    private readonly name: string,
    private readonly board: BoardStore,
    private readonly scope: Scope,
  ) {
    this.element.append(this.summary);
    this.element.addEventListener("toggle", () => this.open());
    scope.every(1000, () => this.render());
    scope.onEnd(board.subscribe(() => this.render()));
    this.render();
  }

  private render(): void {
    const row = this.board.rows.get(this.id);
    if (!row) return;
    const { status, title } = row.session;
    const working = status === "running" || status === "waiting";
    const name = this.name || title || HELPER.aHelper;
    const did = status === "failed" ? "failed" : title === name ? "" : title;
    const text = working ? HELPER.helps(lower(row.activity ?? "")) : HELPER.helped(did ?? "");
    const clock = working && row.since ? elapsed(Date.now() - row.since) : duration((row.session.moved ?? 0) - row.session.created);
    if (status === "waiting") this.element.open = true; // what it asks is seen without a click
    const look = status === "waiting" ? "waiting" : working ? "running" : status === "failed" ? "bad" : "";
    const sign = status === "waiting" ? iconOf("need") : working ? iconOf("work", "spin") : iconOf(status === "failed" ? "failed" : "jobs");
    render(html`<span class=${`call-sign ${look}`}>${sign}</span><span class="call-title"><b>${name}</b>${text}</span><span class="call-word">${clock}</span>`, this.summary);
  }

  /** It asks something. */
  get waits(): boolean {
    return this.board.rows.get(this.id)?.session.status === "waiting";
  }

  private open(): void {
    if (!this.element.open || this.stream) return;
    const view = make("div", "helper-view");
    view.tabIndex = 0;
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", HELPER.conversationOfTheHelper);
    const end = makeButton("", "↓", () => undefined);
    end.hidden = true;
    const trouble = make("p", "trouble");
    trouble.setAttribute("role", "alert");
    trouble.hidden = true;
    const link = make("a", "", HELPER.openItAsASession);
    link.href = sessionAddress(this.id);
    const conversation = (this.conversation = new Conversation(view, end, {
      attempt: (work) =>
        work().then(
          () => (trouble.hidden = true),
          (error: unknown) => {
            trouble.textContent = explain(error);
            trouble.hidden = false;
            return false;
          },
        ),
      cwd: () => this.board.rows.get(this.id)?.session.cwd ?? "",
      agent: () => this.name,
      fork: () => undefined,
      resume: () => undefined,
      files: () => undefined,
    }));
    this.element.append(trouble, view, link);
    this.stream = new Stream(this.scope, this.id, { opened: (state) => conversation.open(state), moved: (state, events) => conversation.move(state, events), gone: () => view.replaceChildren(HELPER.itIsGone) });
  }
}
