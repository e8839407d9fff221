/** A helper that an agent sent out: one line with what it does now, and its own conversation when it is opened. */

import { Conversation } from "../conversation/conversation";
import { Stream } from "../conversation/stream";
import { make, makeButton } from "../page";
import type { Feed } from "./feed";
import { sessionAddress } from "../v1";

export class Helper {
  readonly element = make("details", "helper");
  private readonly summary = make("summary");
  private stream: Stream | undefined;
  private readonly unwatch: () => void;

  constructor(
    private readonly id: string,
    private readonly feed: Feed,
  ) {
    this.element.append(this.summary);
    this.element.addEventListener("toggle", () => this.open());
    this.unwatch = feed.watch(() => this.show());
    this.show();
  }

  private show(): void {
    const row = this.feed.rows.get(this.id);
    if (!row) return;
    const doing = row.activity || (row.session.status === "failed" ? "failed" : "done");
    const text = `${row.session.title || "A helper"} helps: ${doing}`;
    if (this.summary.textContent !== text) this.summary.textContent = text;
    this.summary.classList.toggle("working", row.session.status === "running");
  }

  private open(): void {
    if (!this.element.open || this.stream) return;
    const view = make("div", "helper-view");
    view.tabIndex = 0;
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", "Conversation of the helper");
    const end = makeButton("", "↓", () => undefined);
    end.hidden = true;
    const link = make("a", "", "Open it as a session");
    link.href = sessionAddress(this.id);
    const conversation = new Conversation(view, end, {
      attempt: async (work) => work().then(() => true, () => false),
      cwd: () => this.feed.rows.get(this.id)?.session.cwd ?? "",
      fork: () => undefined,
      resume: () => undefined,
      files: () => undefined,
    });
    this.element.append(view, link);
    this.stream = new Stream(this.id, { opened: (state) => conversation.open(state), moved: (state, events) => conversation.move(state, events), gone: () => view.replaceChildren("It is gone.") });
    void this.stream.open();
  }

  leave(): void {
    this.unwatch();
    this.stream?.stop();
  }
}
