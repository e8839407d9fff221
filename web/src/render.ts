/**
 * Rendering with lit-html: a second render changes only what changed, so focus, a press between down and up, and a selection
 * stay. A view that renders more than once uses a template, and no `replaceChildren`.
 *
 * The content security policy blocks style attributes: bind `.style=${text}`, which sets the same through the CSSOM.
 */

import { html, nothing, render, type TemplateResult } from "lit-html";
import { type Icon, SHAPES } from "./icons";

export { html, nothing, render, type TemplateResult };

/** What a template can show. */
export type Content = TemplateResult | string | Node | typeof nothing;

export const iconOf = (name: Icon, look = ""): TemplateResult => html`<svg viewBox="0 0 16 16" aria-hidden="true" class=${look || nothing} .innerHTML=${SHAPES[name]}></svg>`;
