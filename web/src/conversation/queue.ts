/** The messages that wait on the host, to be changed, moved, steered or taken back by anybody. */

import { make, makeButton } from "../page";
import { v1 } from "../v1";
import { type Acts, plain } from "./pieces";
import { active, type Pending, type SessionState } from "./state";

export class QueueView {
  private shown = "";
  private editing: string | undefined;
  private dragged: number | undefined;

  constructor(
    private readonly view: HTMLElement,
    private readonly acts: Acts,
  ) {}

  show(state: SessionState): void {
    const queue = state.queue ?? [];
    const now = JSON.stringify([queue, state.held, active(state)?.id, this.editing]);
    if (now === this.shown) return;
    this.shown = now;
    // A message that is being edited here stays open while the others move.
    const draft = this.view.querySelector<HTMLTextAreaElement>("textarea")?.value;
    this.view.hidden = queue.length === 0;
    const head = make("header");
    head.append(make("h2", "", state.held ? "Held after an interruption" : "Goes next"));
    if (state.held) head.append(makeButton("primary", "Continue", () => void this.acts.attempt(() => v1.releaseQueue(state.id))));
    const list = make("ol");
    list.append(...queue.map((pending, index) => this.item(state, pending, index, draft)));
    this.view.replaceChildren(head, list);
  }

  private item(state: SessionState, pending: Pending, index: number, draft: string | undefined): HTMLElement {
    const item = make("li");
    const attempt = (work: () => Promise<unknown>) => void this.acts.attempt(work);
    if (this.editing === pending.id) {
      item.append(...this.editor(state, pending, draft ?? pending.message.text));
      return item;
    }
    const queue = state.queue ?? [];
    const move = (by: number) => {
      const order = queue.map(({ id }) => id);
      order.splice(index + by, 0, ...order.splice(index, 1));
      attempt(() => v1.orderQueue(state.id, order));
    };
    this.draggable(item, state, index);
    const buttons = make("div", "queue-buttons");
    const add = (text: string, name: string, click: () => void) => {
      const button = makeButton("quiet", text, click);
      button.setAttribute("aria-label", `${name}: ${pending.message.text.slice(0, 40)}`);
      button.title = name;
      buttons.append(button);
    };
    if (active(state)) add("Send now", "Send now", () => attempt(() => steer(state.id, pending.id)));
    if (index > 0) add("↑", "Move up", () => move(-1));
    if (index < queue.length - 1) add("↓", "Move down", () => move(1));
    add("Edit", "Edit", () => {
      this.editing = pending.id;
      this.show(state);
      this.view.querySelector("textarea")?.focus();
    });
    add("✕", "Remove", () => attempt(() => v1.removePending(state.id, pending.id)));
    item.append(make("span", "queue-text", plain(pending.message.text)), buttons);
    return item;
  }

  /** Dragged onto another one it takes that one's place; the arrows do the same without a mouse. */
  private draggable(item: HTMLElement, state: SessionState, index: number): void {
    item.draggable = true;
    item.addEventListener("dragstart", (event) => {
      this.dragged = index;
      event.dataTransfer?.setData("text/plain", String(index));
    });
    item.addEventListener("dragover", (event) => {
      if (this.dragged === undefined) return;
      event.preventDefault();
      item.classList.add("over");
    });
    item.addEventListener("dragleave", () => item.classList.remove("over"));
    item.addEventListener("drop", (event) => {
      event.preventDefault();
      item.classList.remove("over");
      const from = this.dragged;
      this.dragged = undefined;
      if (from === undefined || from === index) return;
      const order = (state.queue ?? []).map(({ id }) => id);
      order.splice(index, 0, ...order.splice(from, 1));
      void this.acts.attempt(() => v1.orderQueue(state.id, order));
    });
  }

  private editor(state: SessionState, pending: Pending, text: string): HTMLElement[] {
    const area = make("textarea");
    area.value = text;
    area.setAttribute("aria-label", "Waiting message");
    const done = () => {
      this.editing = undefined;
      this.show(state);
    };
    const save = async () => {
      if (await this.acts.attempt(() => v1.editPending(state.id, pending.id, area.value))) done();
    };
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
      if (event.key === "Escape") done();
    });
    const buttons = make("div", "queue-buttons");
    buttons.append(makeButton("primary", "Save", () => void save()), makeButton("", "Cancel", done));
    return [area, buttons];
  }
}

async function steer(session: string, pending: string): Promise<void> {
  const { steered } = await v1.steerPending(session, pending);
  if (!steered) throw new Error("This agent takes no message while it works; it stays in the queue.");
}
