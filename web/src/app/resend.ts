/** Edit and resend: the conversation goes back to before a turn, here or in a copy, and the turn's message into the field. */

import { plain } from "../conversation/pieces";
import type { Turn } from "../conversation/state";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { v1 } from "../v1";
import type { OpenSession, SessionContext } from "./view";
import { plural } from "../texts/plural";

export function resend(view: OpenSession, frame: SessionContext, turn: Turn): void {
  const turns = view.state?.turns ?? [];
  const at = turns.indexOf(turn);
  const before = turns[at - 1];
  const box = dialog("Edit and resend");
  box.addEventListener("close", () => box.remove());
  const later = turns.length - at;
  const text = make("p", "", `This removes everything after this message (${plural(later, "turn")}) from the session. Files are not touched. To keep it, continue in a copy.`);
  const row = make("div", "answers");
  const copy = makeButton("primary", "Continue in a copy", () => {
    box.close();
    if (!before) return frame.go({ at: "new", what: "session" });
    void view.attempt(async () => {
      const { id } = await v1.fork(view.id, before.id);
      frame.go({ at: "session", id });
      await v1.draft(id, turn.message.text);
    });
  });
  const here = makeButton("danger", "Edit here", () => {
    box.close();
    void view.attempt(async () => {
      await v1.truncate(view.id, before?.id);
      view.composer.add(plain(turn.message.text));
    });
  });
  row.append(copy, here);
  box.append(text, row);
  box.showModal();
}
