/** A thin map at the right edge of a long conversation: a mark for each message of a person, to jump to. By keyboard: Alt+Up and Alt+Down. */

import { plain } from "../conversation/pieces";
import type { SessionState, Turn } from "../conversation/state";
import { make } from "../page";

/** A conversation this short is seen at a glance. */
const FEWEST = 4;
/** As many as can be distinguished; of more, some are left out evenly. */
const MOST = 120;

export class MessageMap {
  readonly element = make("div", "message-map");
  private shown = "";

  constructor(private readonly go: (turn: Turn) => void) {
    this.element.setAttribute("aria-hidden", "true"); // a second way for pointers, beside the keys
  }

  show(state: SessionState): void {
    const turns = state.turns ?? [];
    const shown = `${turns.length}/${turns.at(-1)?.id ?? ""}`;
    if (shown === this.shown) return;
    this.shown = shown;
    this.element.hidden = turns.length < FEWEST;
    if (this.element.hidden) return this.element.replaceChildren();
    const sizes = turns.map(({ parts }) => 1 + (parts?.length ?? 0));
    const whole = sizes.reduce((sum, size) => sum + size, 0);
    const every = Math.ceil(turns.length / MOST);
    let before = 0;
    this.element.replaceChildren(
      ...turns.flatMap((turn, index) => {
        const at = before / whole;
        before += sizes[index] ?? 1;
        return index % every === 0 ? [this.mark(turn, at)] : [];
      }),
    );
  }

  private mark(turn: Turn, at: number): HTMLElement {
    const mark = make("i");
    mark.style.top = `${(100 * at).toFixed(2)}%`;
    mark.title = plain(turn.message.text).slice(0, 80);
    mark.addEventListener("click", () => this.go(turn));
    return mark;
  }
}
