/** A thin map at the right edge of a long conversation: a mark for each message of a person, to jump to. By keyboard: Alt+Up and Alt+Down. */

import { plain } from "../conversation/pieces";
import type { SessionState, Turn } from "../conversation/state";
import { make } from "../page";
import { html, render, type TemplateResult } from "../render";

/** A conversation this short is seen at a glance. */
const FEWEST = 4;
/** As many as can be distinguished; of more, some are left out evenly. */
const MOST = 120;

export class MessageMap {
  readonly element = make("div", "message-map");

  constructor(private readonly go: (turn: Turn) => void) {
    this.element.setAttribute("aria-hidden", "true"); // a second way for pointers, beside the keys
  }

  render(state: SessionState): void {
    const turns = state.turns ?? [];
    this.element.hidden = turns.length < FEWEST;
    render(this.element.hidden ? [] : this.marks(turns), this.element);
  }

  private marks(turns: Turn[]): TemplateResult[] {
    const sizes = turns.map(({ parts }) => 1 + (parts?.length ?? 0));
    const whole = sizes.reduce((sum, size) => sum + size, 0);
    const every = Math.ceil(turns.length / MOST);
    let before = 0;
    return turns.flatMap((turn, index) => {
      const top = `top: ${((100 * before) / whole).toFixed(2)}%`;
      before += sizes[index] ?? 1;
      return index % every === 0 ? [html`<i .style=${top} title=${plain(turn.message.text).slice(0, 80)} @click=${() => this.go(turn)}></i>`] : [];
    });
  }
}
