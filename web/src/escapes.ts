/** Terminal escapes mean nothing outside a terminal and can hide text, so they are taken out, also when cut in two by streaming. */

// CSI (colours, cursor), OSC and other strings up to their end (titles, links), and the remaining two-character ones.
const WHOLE = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]/g;
const BEGUN = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$|\r$/;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** A begun escape longer than this is no escape; it would hold text back for ever. */
const LONGEST = 4096;

export class EscapeFilter {
  private begun = "";

  push(text: string): string {
    if (!this.begun && !/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(text)) return text;
    const whole = (this.begun + text).replace(WHOLE, "");
    const cut = whole.search(BEGUN);
    const waits = cut >= 0 && whole.length - cut <= LONGEST;
    this.begun = waits ? whole.slice(cut) : "";
    return (waits ? whole.slice(0, cut) : whole).replace(/\r\n?/g, "\n").replace(CONTROL, "");
  }
}
