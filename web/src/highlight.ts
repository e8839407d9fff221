/** Colours for code: loaded when the first block of code is seen, and never for what is too long to be read. */

import type { HLJSApi, LanguageFn } from "highlight.js";

const MOST = 30_000;

const LANGUAGES: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  go: () => import("highlight.js/lib/languages/go"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  ini: () => import("highlight.js/lib/languages/ini"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const NAMES: Record<string, string> = {
  ...{ sh: "bash", shell: "bash", zsh: "bash", console: "bash", h: "c", cc: "cpp", hpp: "cpp", "c++": "cpp", js: "javascript", mjs: "javascript", jsx: "javascript" },
  ...{ ts: "typescript", tsx: "typescript", py: "python", python3: "python", rs: "rust", golang: "go", yml: "yaml", html: "xml", svg: "xml", vue: "xml", toml: "ini", cfg: "ini", md: "markdown", jsonc: "json", patch: "diff" },
};

let core: Promise<HLJSApi> | undefined;
const known = new Set<string>();

export function languageOf(name: string): string | undefined {
  const short = name.toLowerCase();
  const found = NAMES[short] ?? short;
  return found in LANGUAGES ? found : undefined;
}

export const languageOfFile = (path: string) => languageOf(path.split(".").at(-1) ?? "");

/** The text as HTML with colours, or nothing for what has none. Only the library's own `span`s are in it: it escapes the text. */
export async function coloured(text: string, language: string): Promise<string | undefined> {
  if (text.length > MOST) return undefined;
  core ??= import("highlight.js/lib/core").then(({ default: found }) => found);
  const highlighter = await core;
  if (!known.has(language)) {
    const load = LANGUAGES[language];
    if (!load) return undefined;
    highlighter.registerLanguage(language, (await load()).default);
    known.add(language);
  }
  return highlighter.highlight(text, { language, ignoreIllegals: true }).value;
}
