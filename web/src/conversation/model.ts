/** Another model for the same conversation. */

import { make } from "../page";
import { dialog } from "../shortcuts";
import { v1 } from "../v1";
import type { SessionState } from "./state";
import { price } from "./words";

export async function chooseModel(state: SessionState, attempt: (work: () => Promise<unknown>) => Promise<boolean>): Promise<void> {
  const agent = (await v1.agents()).find(({ id }) => id === state.agent);
  const models = agent?.models ?? [];
  const box = dialog("Model");
  box.addEventListener("close", () => box.remove());
  if (models.length < 2) {
    box.append(make("p", "soft", models.length ? `${agent?.name ?? state.agent} has this one model.` : `${agent?.name ?? state.agent} tells of no models.`));
    return box.showModal();
  }
  const form = make("form", "stack");
  const choice = make("select");
  choice.setAttribute("aria-label", "Model");
  choice.append(...models.map(({ id, name, multiplier }) => new Option(price(multiplier) ? `${name} (${price(multiplier)})` : name, id)));
  choice.value = state.model;
  form.append(choice, make("p", "soft", "It answers from the next message on, and knows what was said before."), make("button", "primary", "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.close();
    if (choice.value !== state.model) void attempt(() => v1.change(state.id, { model: choice.value }));
  });
  box.append(form);
  box.showModal();
  choice.focus();
}
