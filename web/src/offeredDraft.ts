/**
 * A draft that a program offers (`POST /message` with `mode: "draft"`, `PUT /v1/sessions/ID/draft`): it is shown in the input
 * until a person sends it, here or elsewhere.
 */

import { v1 } from "./v1";

export class OfferedDraft {
  private offered = "";

  constructor(
    private readonly sessionId: string,
    private readonly area: HTMLTextAreaElement,
    private readonly put: (text: string) => void,
  ) {}

  /** Shows the host's draft; text that was typed here is not lost. */
  offer(text: string): void {
    if (text === this.offered) return;
    const before = this.offered;
    this.offered = text;
    const written = this.area.value;
    if (written === before || written === "") this.put(text);
    else if (text && !written.includes(text)) this.put(`${written}\n${text}`);
  }

  /** A person has sent it (or something in its place): it goes from all other inputs too. */
  sent(): void {
    if (!this.offered) return;
    this.offered = "";
    v1.draft(this.sessionId, "").catch(() => undefined); // the message itself has gone through; the next one takes it along
  }
}
