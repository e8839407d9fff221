/** The result of a job or of a step, and the files that a job leaves. */

import { guard } from "lit-html/directives/guard.js";
import { until } from "lit-html/directives/until.js";
import { bytes } from "../bytes";
import { plain } from "../conversation/pieces";
import { html, nothing, type TemplateResult } from "../render";
import type { Artifact } from "../rest";
import { JOB } from "../texts/job";
import { blobAddress } from "../v1";
import type { StepResult } from "./jobModel";

const lastName = (path: string): string => path.split("/").at(-1) ?? path;

/** Nothing for a job without a result. */
export function jobResult(result: unknown, artifacts: Artifact[], branch: string): TemplateResult | typeof nothing {
  const empty = result === undefined || result === null || result === "";
  if (empty && artifacts.length === 0 && !branch) return nothing;
  return html`<section class="jcard job-result" aria-label=${JOB.result}>
    ${empty ? nothing : html`<h2>${JOB.result}</h2>${valueView(result)}`}
    ${branch ? html`<h2>${JOB.branchLeft}</h2><p><code>${branch}</code></p>` : nothing}
    ${artifacts.length ? html`<h2>${JOB.artifacts}</h2><ul class="artifacts">${artifacts.map(({ path, size, blob }) => html`<li><a href=${blobAddress(blob)} download=${lastName(path)}>${path}</a> <span class="soft">${bytes(size)}</span></li>`)}</ul>` : nothing}
  </section>`;
}

export function resultView({ output, reason, answer }: StepResult): TemplateResult {
  const empty = output === undefined || output === "";
  return html`${reason ? html`<p class="bad pre">${plain(reason)}</p>` : nothing}${answer ? html`<p class="pre">${answer}</p>` : nothing}<h3>${JOB.output}</h3>${empty ? html`<p class="soft">${JOB.noOutput}</p>` : valueView(output)}`;
}

/** Text as Markdown, an object as a list of its values, and all else as JSON. */
export function valueView(value: unknown): TemplateResult {
  if (typeof value === "string") return textView(value);
  if (value === null || typeof value !== "object") return html`<p class="result-text">${String(value)}</p>`;
  if (Array.isArray(value)) return value.every((each) => typeof each !== "object") && value.length <= 200 ? html`<ul class="result-list">${value.map((each) => html`<li>${String(each)}</li>`)}</ul>` : json(value);
  return html`<dl class="result-values">${Object.entries(value).map(([name, each]) => html`<div><dt>${name}</dt><dd>${valueView(each)}</dd></div>`)}</dl>`;
}

const json = (value: unknown): TemplateResult => html`<pre class="box" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;

function textView(text: string): TemplateResult {
  const shown = html`<div class="result-text pre">${plain(text)}</div>`;
  return html`${guard([text], () => until(formatted(text, shown), shown))}`;
}

async function formatted(text: string, otherwise: TemplateResult): Promise<TemplateResult> {
  try {
    const { looksLikeMarkdown, toHtml } = await import("../markdown");
    return looksLikeMarkdown(text) ? html`<div class="result-text markdown" .innerHTML=${toHtml(text)}></div>` : otherwise;
  } catch {
    return otherwise; // the host is out of reach
  }
}
