/** Blocks of code in an answer: a button that copies, and colors when the page is idle. */

import { coloured, languageOf } from "../highlight";
import { make, makeButton } from "../page";

const later: (work: () => void) => void = typeof requestIdleCallback === "function" ? (work) => requestIdleCallback(() => work(), { timeout: 1000 }) : (work) => setTimeout(work);

/** `finished`: the text grows no more, so colours are worth their time. */
export function dressCode(body: HTMLElement, finished: boolean): void {
  for (const pre of body.querySelectorAll("pre")) {
    const code = pre.querySelector("code");
    if (!code || pre.querySelector(".code-tools")) continue;
    pre.append(codeTools(pre, code));
    const name = /language-([\w+#-]+)/.exec(code.className)?.[1];
    const language = name && languageOf(name);
    if (finished && language) later(() => void colour(code, language));
  }
}

/** Buttons that copy the code and wrap long lines. */
function codeTools(pre: HTMLElement, code: HTMLElement): HTMLElement {
  const tools = make("span", "code-tools");
  const wrap = makeButton("quiet copy", "Wrap", () => wrap.setAttribute("aria-pressed", String(pre.classList.toggle("wrapped"))));
  wrap.setAttribute("aria-label", "Wrap long lines");
  wrap.setAttribute("aria-pressed", "false");
  tools.append(wrap, copyButton(() => code.textContent ?? ""));
  return tools;
}

async function colour(code: HTMLElement, language: string): Promise<void> {
  try {
    const html = await coloured(code.textContent ?? "", language);
    if (html !== undefined && code.isConnected) code.innerHTML = html;
  } catch {
    // The host is out of reach: plain code is code, too.
  }
}

export function copyButton(text: () => string, name = "Copy"): HTMLButtonElement {
  const button = makeButton("copy quiet", name, () => void copy());
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed here"; // plain HTTP from another machine
    }
    setTimeout(() => (button.textContent = name), 1500);
  };
  return button;
}
