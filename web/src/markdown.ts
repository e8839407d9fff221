/**
 * Agent text becomes HTML only here.
 *
 * The attack: an agent (or a page it read) writes markup that runs as us, loads something from elsewhere to carry data
 * out, or links to our own API, where a plain click changes state. So markup in the text is shown as text, images
 * become links, links lead to other sites only, and the result passes DOMPurify with a short list of what may stay.
 */

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { outsideAddress } from "./addresses";

export { outsideAddress };

const PATTERNS = [
  /^#{1,6}\s+\S/m, // heading
  /\*\*[^*\n]+\*\*|__[^_\n]+__/, // bold
  /(^|[^*\w])\*[^*\s][^*\n]*\*(?!\*)|(^|[^_\w])_[^_\s][^_\n]*_(?!\w)/m, // italic
  /(^|[^!])\[[^\]\n]+\]\([^)\n]+\)/m, // link
  /^\s*[-*+]\s+\S/m, // bullets
  /^\s*\d+[.)]\s+\S/m, // numbers
  /^\s*>\s?\S/m, // quote
  /^\s*(```|~~~)/m, // fenced code
  /(^|[^`])`[^`\n]+`(?!`)/m, // inline code
  /^\s*\|?.*\|.*\n\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)+\|?\s*$/m, // table
  /^\s*(-{3,}|\*{3,}|_{3,})\s*$/m, // rule
  /!\[[^\]\n]*\]\([^)\n]+\)/, // image
];

/** Two signs are enough: one alone is too often an accident (`a * b * c`, a list in a plain answer). */
export function looksLikeMarkdown(text: string): boolean {
  let signs = 0;
  for (const pattern of PATTERNS) if (pattern.test(text) && ++signs === 2) return true;
  return false;
}

function escape(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** Tags people really write in markdown, without attributes; everything else is text. */
const HARMLESS = /&lt;(\/?(?:br|kbd|sub|sup|details|summary))\s*\/?&gt;/gi;

function link(href: string, inner: string): string {
  const address = outsideAddress(href);
  if (!address) return inner;
  return `<a href="${escape(address)}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text).replace(HARMLESS, "<$1>"),
    image: ({ href, text }: Tokens.Image) => `${link(href, escape(text || href))} <span class="no-picture">(picture not loaded)</span>`,
    link({ href, tokens }: Tokens.Link) {
      return link(href, this.parser.parseInline(tokens));
    },
    // A scrolling box has to be reachable by keyboard.
    code: ({ text, lang }: Tokens.Code) => `<pre tabindex="0"><code${lang ? ` class="language-${escape(lang.split(/\s/)[0] ?? "")}"` : ""}>${escape(text)}\n</code></pre>\n`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

const PURE = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li ol p pre s span strong sub".split(" "),
    ..."summary sup table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["href", "target", "rel", "class", "align", "start", "tabindex"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // The rule above is for addresses; these carry none.
  ADD_URI_SAFE_ATTR: ["target", "rel", "align", "start", "tabindex"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

export function toHtml(text: string): string {
  return DOMPurify.sanitize(marked.parse(text, { async: false }), PURE);
}
