/** The plan of a workflow before it runs: what it uses, its steps, and its chart. */

import { FlowChart } from "../chart/flowChart";
import type { ChartGraph } from "../chart/graph";
import { Zoom } from "../chart/zoom";
import { make } from "../page";
import { html, nothing, type TemplateResult } from "../render";
import type { PlannedJob, PlannedStep } from "../rest";
import { PLAN as TEXTS, START_JOB } from "../texts/startJob";

/** The chart of a graph; drawn again only when the graph has changed. */
export class ChartBox {
  readonly element = make("div", "chart-box");
  private drawn = "";

  constructor() {
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", START_JOB.chart);
  }

  render(graph: ChartGraph | undefined, name: string): void {
    this.element.hidden = !graph;
    const wanted = graph ? JSON.stringify([name, graph]) : "";
    if (!graph || wanted === this.drawn || !this.element.isConnected) return;
    this.drawn = wanted;
    new Zoom(this.element, new FlowChart(graph, name));
  }
}

export function planView(plan: PlannedJob): TemplateResult {
  const facts: [name: string, text: string][] = [
    [TEXTS.folder, plan.branch ? TEXTS.branch(plan.branch) : TEXTS.shared],
    [TEXTS.agents, Object.entries(plan.agents).map(([name, steps]) => TEXTS.agent(name, steps)).join(", ") || TEXTS.noAgent],
    [TEXTS.budget, Object.entries(plan.budget).map(([name, value]) => (name === "dollars" ? `$${value}` : `${value} ${name}`)).join(", ") || TEXTS.noBudget],
    [TEXTS.asks, plan.asks.join(", ") || TEXTS.never],
    ...(plan.secrets.length ? [[TEXTS.secrets, plan.secrets.join(", ")] as [string, string]] : []),
    ...(plan.timeout === null ? [] : [[TEXTS.timeout, TEXTS.seconds(plan.timeout)] as [string, string]]),
  ];
  return html`<dl class="plan-facts">${facts.map(([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>`)}</dl><ol class="plan-steps">${lines(plan.steps)}</ol>`;
}

/** Steps below titles for the control flow around them; a title that the step before has, too, is not repeated. */
function lines(steps: PlannedStep[]): TemplateResult[] {
  let before: string[] = [];
  return steps.flatMap((step) => {
    const inside = step.inside ?? [];
    let same = 0;
    while (same < inside.length && same < before.length && inside[same] === before[same]) same++;
    before = inside;
    const titles = inside.slice(same).map((text, index) => html`<li class="plan-group" .style=${indent(same + index)}>${text}</li>`);
    return [...titles, html`<li class="plan-step" .style=${indent(inside.length)}>${stepLine(step)}</li>`];
  });
}

const indent = (depth: number) => `--depth: ${Math.min(depth, 6)}`;

function stepLine({ kind, name, id, text = "", agent, asks, checks = 0, secrets = [], sandbox }: PlannedStep): TemplateResult {
  const words = text.replace(/\s+/g, " ").trim();
  const title = name || id;
  const notes = [agent ?? "", checks ? TEXTS.checks(checks) : "", asks ? TEXTS.asksYou : "", secrets.length ? TEXTS.withSecrets(secrets.join(", ")) : "", typeof sandbox === "string" && sandbox ? TEXTS.sandbox(sandbox) : ""].filter(Boolean);
  return html`<span class="plan-kind">${kind}</span><span class="plan-text"><b>${title}</b>${words && words !== title ? html` <span class="plan-words">${words}</span>` : nothing}${notes.length ? html`<small class="soft">${notes.join(" · ")}</small>` : nothing}</span>`;
}
