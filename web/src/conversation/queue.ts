/** The messages that wait on the host. Every client can change, move, steer or remove them. */

import { repeat } from "lit-html/directives/repeat.js";
import { html, nothing, render, type TemplateResult } from "../render";
import { QUEUE } from "../texts/queue";
import { v1 } from "../v1";
import { type Actions, plain } from "./pieces";
import { active, type Pending, type SessionState } from "./state";

export class QueueView {
  /** The message that is edited here: it stays open while the others move. */
  private editing: string | undefined;
  private dragged: number | undefined;
  private state: SessionState | undefined;

  constructor(
    private readonly view: HTMLElement,
    private readonly acts: Actions,
  ) {}

  update(state: SessionState): void {
    this.state = state;
    this.render();
  }

  private render(): void {
    const { state } = this;
    if (!state) return;
    const queue = state.queue ?? [];
    this.view.hidden = queue.length === 0;
    const release = () => void this.acts.attempt(() => v1.releaseQueue(state.id));
    render(
      html`<header><h2>${state.held ? QUEUE.held : QUEUE.next}</h2>${state.held ? html`<button type="button" class="primary" @click=${release}>${QUEUE.continue}</button>` : nothing}</header>
        <ol>${repeat(queue, ({ id }) => id, (pending, index) => (this.editing === pending.id ? this.editor(state, pending) : this.item(state, pending, index)))}</ol>`,
      this.view,
    );
  }

  private item(state: SessionState, pending: Pending, index: number): TemplateResult {
    const queue = state.queue ?? [];
    const attempt = (work: () => Promise<unknown>) => void this.acts.attempt(work);
    const move = (from: number, to: number) => {
      const order = queue.map(({ id }) => id);
      order.splice(to, 0, ...order.splice(from, 1));
      attempt(() => v1.orderQueue(state.id, order));
    };
    const button = (text: string, name: string, click: () => void) => html`<button type="button" class="quiet" aria-label=${QUEUE.about(name, pending.message.text)} title=${name} @click=${click}>${text}</button>`;
    const edit = () => {
      this.editing = pending.id;
      this.render();
      this.view.querySelector("textarea")?.focus();
    };
    return html`<li draggable="true" @dragstart=${(event: DragEvent) => this.drag(event, index)} @dragover=${(event: DragEvent) => this.dragOver(event)} @dragleave=${leave} @drop=${(event: DragEvent) => this.drop(event, index, move)}
      ><span class="queue-text">${plain(pending.message.text)}</span
      ><div class="queue-buttons">${active(state) ? button(QUEUE.sendNow, QUEUE.sendNow, () => attempt(() => steer(state.id, pending.id))) : nothing}${index > 0 ? button("↑", QUEUE.up, () => move(index, index - 1)) : nothing}${
        index < queue.length - 1 ? button("↓", QUEUE.down, () => move(index, index + 1)) : nothing
      }${button(QUEUE.edit, QUEUE.edit, edit)}${button("✕", QUEUE.remove, () => attempt(() => v1.removePending(state.id, pending.id)))}</div></li>`;
  }

  // A message that is dropped onto another one takes its place; the arrows do the same without a mouse.

  private drag(event: DragEvent, index: number): void {
    this.dragged = index;
    event.dataTransfer?.setData("text/plain", String(index));
  }

  private dragOver(event: DragEvent): void {
    if (this.dragged === undefined) return;
    event.preventDefault();
    (event.currentTarget as HTMLElement).classList.add("over");
  }

  private drop(event: DragEvent, index: number, move: (from: number, to: number) => void): void {
    event.preventDefault();
    leave(event);
    const from = this.dragged;
    this.dragged = undefined;
    if (from !== undefined && from !== index) move(from, index);
  }

  private editor(state: SessionState, pending: Pending): TemplateResult {
    const done = () => {
      this.editing = undefined;
      this.render();
    };
    const save = async () => {
      const text = this.view.querySelector("textarea")?.value ?? "";
      if (await this.acts.attempt(() => v1.editPending(state.id, pending.id, text))) done();
    };
    const key = (event: KeyboardEvent) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
      if (event.key === "Escape") done();
    };
    return html`<li><textarea aria-label=${QUEUE.message} .defaultValue=${pending.message.text} @keydown=${key}></textarea><div class="queue-buttons"><button type="button" class="primary" @click=${() => void save()}>${QUEUE.save}</button><button type="button" @click=${done}>${QUEUE.cancel}</button></div></li>`;
  }
}

const leave = (event: Event) => (event.currentTarget as HTMLElement).classList.remove("over");

async function steer(session: string, pending: string): Promise<void> {
  const { steered } = await v1.steerPending(session, pending);
  if (!steered) throw new Error(QUEUE.notNow);
}
