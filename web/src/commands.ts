/** Command lines in a hint, and how a person takes them along. */

import { make, makeButton } from "./page";
import { CLIPBOARD } from "./texts/clipboard";

/** Commands in hints: in back quotes, or after a colon and beginning with a program that we know. */
const QUOTED = /`([^`]+)`/g;
const NAMED = /: ((?:npm|pip|portico|copilot|ollama) [^`;,()]+?)(?=\.?(?:$|[;,(]|\. |\.$| or ))/g;

export function commandsOf(hint: string): string[] {
  return [...hint.matchAll(QUOTED), ...hint.matchAll(NAMED)].map(([, line]) => (line ?? "").trim()).filter((line, index, all) => line.includes(" ") && all.indexOf(line) === index);
}

/** A line to copy. */
export function commandView(line: string): HTMLElement {
  const view = make("div", "command");
  const button = makeButton("quiet", CLIPBOARD.copy, () => void copy());
  button.setAttribute("aria-label", CLIPBOARD.copyNamed(line));
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = CLIPBOARD.copied;
    } catch {
      // Not allowed here (plain HTTP from another machine): then it is at least selected.
      window.getSelection()?.selectAllChildren(code);
    }
  };
  const code = make("code", "", line);
  view.append(code, button);
  return view;
}
