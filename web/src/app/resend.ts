/** Edit and resend, or try again: the conversation returns to the state before a turn, here or in a copy. */

import { plain } from "../conversation/pieces";
import type { Turn } from "../conversation/state";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { v1 } from "../v1";
import type { OpenSession, SessionContext } from "./view";
import { RESEND } from "../texts/resend";

/** Puts the turn's message into the field, to be edited and sent. */
export function resend(view: OpenSession, frame: SessionContext, turn: Turn): void {
  rewind(view, frame, turn, RESEND.editAndResend, RESEND.editHere, {
    here: async () => view.composer.add(plain(turn.message.text)),
    copy: (id) => v1.draft(id, turn.message.text),
  });
}

/** Sends the turn's message again. */
export function tryAgain(view: OpenSession, frame: SessionContext, turn: Turn): void {
  const send = (id: string) => v1.sendAgain(id, turn.message.text, turn.message.attachments ?? []);
  rewind(view, frame, turn, RESEND.tryAgain, RESEND.replaceThisAnswer, { here: () => send(view.id), copy: send });
}

interface Then {
  here(): Promise<unknown>;
  copy(id: string): Promise<unknown>;
}

function rewind(view: OpenSession, frame: SessionContext, turn: Turn, title: string, hereText: string, then: Then): void {
  const turns = view.state?.turns ?? [];
  const at = turns.indexOf(turn);
  const before = turns[at - 1];
  const box = dialog(title);
  box.addEventListener("close", () => box.remove());
  const text = make("p", "", RESEND.removes(turns.length - at));
  const row = make("div", "answers");
  const copy = makeButton("primary", RESEND.continueInACopy, () => {
    box.close();
    if (!before) return frame.go({ at: "new", what: "session" });
    void view.attempt(async () => {
      const { id } = await v1.fork(view.id, before.id);
      frame.go({ at: "session", id });
      await then.copy(id);
    });
  });
  const here = makeButton("danger", hereText, () => {
    box.close();
    void view.attempt(async () => {
      await v1.truncate(view.id, before?.id);
      await then.here();
    });
  });
  row.append(copy, here);
  box.append(text, row);
  box.showModal();
}
