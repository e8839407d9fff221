/** A workflow has changed since its job ran: the differences, before it runs again. */

import { diffView } from "../conversation/diff";
import { make, makeButton } from "../page";
import type { Routes } from "../rest";
import { dialog } from "../shortcuts";
import { JOB } from "../texts/job";

type Plan = Routes["POST /jobs/{id}/retry/plan"]["answer"];

/** `start` gets the changed text; empty: as it ran. */
export function retryDialog({ text, differences, kept }: Plan, start: (workflow: string) => void): void {
  const box = dialog(JOB.retryChanged);
  box.classList.add("retry-changes");
  box.addEventListener("close", () => box.remove());
  const button = (look: string, words: string, workflow: string) =>
    makeButton(look, words, () => {
      box.close();
      start(workflow);
    });
  const foot = make("div", "answers");
  foot.append(button("primary", JOB.retryWithChanges, text), button("", JOB.retryAsItRan, ""));
  box.append(make("p", "", JOB.retryChangedAbout(kept.length)), diffView(differences), foot);
  box.showModal();
}
