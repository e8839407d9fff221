/** Blocks of code in an answer: a button that copies, and colors when the page is idle. */

import { coloured, languageOf } from "../highlight";
import { make, makeButton } from "../page";
import { CODE } from "../texts/conversation";

const later: (work: () => void) => void = typeof requestIdleCallback === "function" ? (work) => requestIdleCallback(() => work(), { timeout: 1000 }) : (work) => setTimeout(work);

/** `finished`: the text grows no more, so colours are worth their time. */
export function decorateCode(body: HTMLElement, finished: boolean): void {
  for (const pre of body.querySelectorAll("pre")) {
    const code = pre.querySelector("code");
    if (!code || pre.querySelector(".code-tools")) continue;
    const name = /language-([\w+#-]+)/.exec(code.className)?.[1] ?? "";
    pre.append(codeTools(pre, code, name));
    const language = name && languageOf(name);
    if (finished && language) later(() => void colour(code, language));
    if (finished && name === "mermaid") later(() => void drawDiagram(pre, code));
  }
}

/** Buttons that copy the code and wrap long lines. */
function codeTools(pre: HTMLElement, code: HTMLElement, language: string): HTMLElement {
  const tools = make("span", "code-tools");
  if (language) pre.dataset["language"] = language;
  const wrap = makeButton("quiet copy", CODE.wrap, () => wrap.setAttribute("aria-pressed", String(pre.classList.toggle("wrapped"))));
  wrap.setAttribute("aria-label", CODE.wrapLongLines);
  wrap.setAttribute("aria-pressed", "false");
  tools.append(wrap, copyButton(() => code.textContent ?? ""));
  return tools;
}

/** A flow chart is drawn above its text, which can still be read and copied. */
async function drawDiagram(pre: HTMLElement, code: HTMLElement): Promise<void> {
  try {
    const { drawMermaid, parseMermaid } = await import("../chart/mermaid");
    const graph = parseMermaid(code.textContent ?? "");
    if (!graph || !pre.isConnected || pre.parentElement?.matches(".diagram-source")) return;
    const figure = make("figure", "diagram");
    figure.tabIndex = 0;
    figure.append(drawMermaid(graph));
    const source = make("details", "diagram-source");
    pre.replaceWith(figure, source);
    source.append(make("summary", "soft", CODE.textOfTheDiagram), pre);
  } catch {
    // The host is out of reach: the text is shown.
  }
}

async function colour(code: HTMLElement, language: string): Promise<void> {
  try {
    const html = await coloured(code.textContent ?? "", language);
    if (html !== undefined && code.isConnected) code.innerHTML = html;
  } catch {
    // The host is out of reach: plain code is code, too.
  }
}

export function copyButton(text: () => string, name: string = CODE.copy): HTMLButtonElement {
  const button = makeButton("copy quiet", name, () => void copy());
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = CODE.copied;
    } catch {
      button.textContent = CODE.notAllowedHere; // plain HTTP from another machine
    }
    setTimeout(() => (button.textContent = name), 1500);
  };
  return button;
}
