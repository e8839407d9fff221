/** Where people write. What is not sent yet survives a reload. */

import { OfferedDraft } from "../offeredDraft";
import { byId, hasKeys } from "../page";
import { v1 } from "../v1";
import type { Acts } from "./pieces";
import { active, offeredDraft, type SessionState, statusOf } from "./state";

export class Composer {
  private readonly area = byId("message", HTMLTextAreaElement);
  private readonly button = byId("send", HTMLButtonElement);
  private readonly steer = byId("steer", HTMLButtonElement);
  private readonly draft: string;
  private readonly offered: OfferedDraft;

  constructor(
    private readonly id: string,
    private readonly acts: Acts,
  ) {
    this.draft = `portico.draft.${id}`;
    this.area.value = sessionStorage.getItem(this.draft) ?? "";
    this.offered = new OfferedDraft(id, this.area, (text) => this.put(text));
    this.area.addEventListener("input", () => {
      sessionStorage.setItem(this.draft, this.area.value);
      this.grow();
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void this.send(event.shiftKey && !this.steer.hidden ? "steer" : "queue");
    });
    this.steer.addEventListener("click", () => void this.send("steer"));
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send("queue");
    });
    this.grow();
  }

  show(state: SessionState): void {
    const busy = active(state) !== undefined;
    this.steer.hidden = !busy;
    this.button.textContent = busy ? "Queue" : "Send";
    this.area.disabled = this.button.disabled = state.closed === true;
    this.area.placeholder = hint(state);
    this.offered.offer(offeredDraft(state));
  }

  focus(): void {
    this.area.focus();
  }

  private async send(busy: "queue" | "steer"): Promise<void> {
    const text = this.area.value;
    if (!text.trim() || this.button.disabled) return;
    // Gone from the field at once, so that nothing is sent twice; back again if the host did not take it.
    this.put("");
    if (await this.acts.attempt(() => v1.send(this.id, text, busy))) this.offered.sent();
    else this.put(text + this.area.value);
  }

  private put(text: string): void {
    this.area.value = text;
    if (text) sessionStorage.setItem(this.draft, text);
    else sessionStorage.removeItem(this.draft);
    this.grow();
  }

  private grow(): void {
    this.area.style.height = "auto";
    this.area.style.height = `${this.area.scrollHeight + 2}px`;
  }
}

function hint(state: SessionState): string {
  if (state.closed) return "This session is closed; More, Reopen takes it up again.";
  const status = statusOf(state);
  if (status === "waiting") return "The agent waits for your answer above. What you write here is queued.";
  if (status === "running") return hasKeys() ? "The agent works. Ctrl+Enter queues; Ctrl+Shift+Enter steers it now." : "The agent works. Queue a message, or steer it now.";
  return hasKeys() ? "Write to the agent; Ctrl+Enter sends." : "Write to the agent";
}
