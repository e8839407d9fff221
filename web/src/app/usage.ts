/** Tokens and cost by day, agent, model, session, job, automation and person: a plot and a table. An unknown cost is not shown as 0. */

import { guard } from "lit-html/directives/guard.js";
import { root } from "../root";
import { who } from "../conversation/words";
import { make } from "../page";
import { type Content, html, nothing, render, type TemplateResult } from "../render";
import type * as rest from "../rest";
import { Scope } from "../scope";
import { USAGE } from "../texts/usage";
import { ask } from "../v1";
import type { View, ViewContext } from "./view";
import { cost, count, tokens } from "../time";

export type UsageRow = Omit<rest.UsageRow, "title"> & { title?: string };

export interface Sum {
  name: string;
  link?: string;
  turns: number;
  input: number;
  output: number;
  cached: number;
  cost: number;
  estimated: number;
  unpriced: number;
}

/** The list that estimates come from. */
type PriceList = Pick<rest.UsageAnswer, "prices" | "prices_date" | "priced_as">;

export type By = "day" | "agent" | "model" | "session" | "job" | "automation" | "person";

const keyOf: Record<By, (row: UsageRow, nameOf: (job: string) => string) => [name: string, link?: string] | undefined> = {
  day: ({ day }) => [day],
  agent: ({ agent }) => [agent],
  model: ({ model }) => [model || "unknown"],
  session: ({ session, title }) => [title || session, `${root}/app/s/${encodeURIComponent(session)}`],
  job: ({ by, job }, nameOf) => (job ? [nameOf(job), `${root}/app/j/${encodeURIComponent(job)}`] : by?.startsWith("task:") ? [USAGE.earlierTasks] : undefined),
  automation: ({ automation }) => (automation ? [automation, `${root}/app/automations/${encodeURIComponent(automation)}`] : undefined),
  // A person has a name; a token without a person is `token:NAME`.
  person: ({ person = "" }) => [person.startsWith("token:") ? who(person) : person || USAGE.host],
};

export function sums(rows: UsageRow[], by: By, nameOf = (job: string) => job): Sum[] {
  const found = new Map<string, Sum>();
  for (const row of rows) {
    const key = keyOf[by](row, nameOf);
    if (!key) continue;
    const id = by === "session" ? row.session : by === "job" ? (row.job ?? key[0]) : key[0];
    const sum = found.get(id) ?? { name: key[0], ...(key[1] ? { link: key[1] } : {}), turns: 0, input: 0, output: 0, cached: 0, cost: 0, estimated: 0, unpriced: 0 };
    for (const name of ["turns", "input", "output", "cached", "cost", "estimated", "unpriced"] as const) sum[name] += row[name] ?? 0;
    found.set(id, sum);
  }
  const all = [...found.values()];
  return by === "day" ? all.sort((one, other) => one.name.localeCompare(other.name)) : all.sort((one, other) => other.cost + other.estimated - one.cost - one.estimated || other.input + other.output - one.input - one.output);
}

/** "$1.20", "~$1.20" if a part is estimated from list prices, "at least" if a part is unknown, "unknown" if all of it is. */
export function costWords({ cost: reported, estimated, unpriced, input, output }: Sum): string {
  const dollars = reported + estimated;
  if (dollars > 0) return `${unpriced > 0 ? "at least " : ""}${estimated > 0 ? "~" : ""}${cost(dollars)}`;
  return input + output > 0 || unpriced > 0 ? "unknown" : "nothing";
}

const PERIODS = [7, 30, 90, 365];
const TABS: By[] = ["day", "agent", "model", "session", "job", "automation", "person"];
const MOST = 200;

export class UsageView implements View {
  readonly element = make("section", "place usage");
  readonly title: string = USAGE.title;
  private readonly scope = new Scope((text) => this.report(text));
  private readonly refresh = this.scope.latest((signal) => this.load(signal), ({ days, rows, list }) => this.render({ shown: days, rows, list, trouble: "" }));
  private days = 30;
  private by: By = "day";
  private shown = 0;
  private rows: UsageRow[] = [];
  private list: PriceList = {};
  private trouble = "";

  constructor(private readonly context: ViewContext) {
    this.render();
    this.refresh();
  }

  leave(): void {
    this.scope.end();
  }

  private async load(signal: AbortSignal): Promise<{ days: number; rows: UsageRow[]; list: PriceList }> {
    const { days } = this;
    const east = 840 - new Date().getTimezoneOffset();
    const { rows, ...list } = await ask("GET /usage", {}, { query: { days: String(days), east: String(east) }, signal });
    return { days, rows: rows ?? [], list };
  }

  private report(text: string): void {
    this.render({ trouble: text });
  }

  private choose(days: number): void {
    this.days = days;
    this.render();
    this.refresh();
  }

  private render(changed: Partial<{ shown: number; rows: UsageRow[]; list: PriceList; trouble: string; by: By }> = {}): void {
    Object.assign(this, changed);
    const period = (event: Event) => this.choose(Number((event.target as HTMLSelectElement).value));
    render(
      html`<header class="head">
          <div class="head-text"><h1>${USAGE.title}</h1><p>${USAGE.about}</p></div>
          <select class="pick" aria-label=${USAGE.period} @change=${period}>${PERIODS.map((days) => html`<option value=${days} ?selected=${days === this.days}>${USAGE.last(days)}</option>`)}</select>
        </header>
        <div class="scroll"><div class="wide">${this.content()}</div></div>`,
      this.element,
    );
  }

  private content(): Content {
    if (this.trouble) return html`<p class="trouble" role="alert">${this.trouble}</p>`;
    if (this.shown !== this.days) return html`<p class="soft">${USAGE.loading}</p>`;
    if (this.rows.length === 0) return html`<p class="soft">${USAGE.empty}</p>`;
    const whole = sums(this.rows.map((row) => ({ ...row, day: "all" })), "day")[0];
    const room = this.element.querySelector(".wide")?.clientWidth ?? 0;
    const tab = (by: By) => html`<button type="button" aria-pressed=${String(by === this.by)} @click=${() => this.render({ by })}>${USAGE.by[by]}</button>`;
    return html`${whole ? numbers(whole) : nothing}${guard([this.rows], () => plot(sums(this.rows, "day"), this.days, room))}<div class="modes">${TABS.map(tab)}</div>${this.table()}${sourceWords(this.list) ? html`<p class="soft">${sourceWords(this.list)}</p>` : nothing}`;
  }

  private table(): TemplateResult {
    const found = sums(this.rows, this.by, (job) => this.context.board.jobs.get(job)?.name ?? job);
    if (this.by === "day") found.reverse();
    if (found.length === 0) return html`<p class="soft">${USAGE.none(this.by)}</p>`;
    const head = [USAGE.heading[this.by], ...USAGE.columns].map((name, index) => html`<th class=${index ? "num" : ""}>${name}</th>`);
    return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${USAGE.numbers}><table class="table"><caption class="vh">${USAGE.by[this.by]}</caption><tbody><tr>${head}</tr>${found.slice(0, MOST).map((sum) => this.row(sum))}</tbody></table></div>`;
  }

  private row(sum: Sum): TemplateResult {
    const name = this.by === "day" ? dayWords(sum.name) : this.by === "agent" ? this.context.board.agentName(sum.name) : sum.name;
    const counts = sum.input + sum.output > 0 ? [sum.input, sum.cached, sum.output].map(count) : Array<string>(3).fill(USAGE.unknown);
    return html`<tr><td>${sum.link ? html`<a href=${sum.link}>${name}</a>` : name}</td>${[String(sum.turns), ...counts, costWords(sum)].map((text) => html`<td class="num">${text}</td>`)}</tr>`;
  }
}

/** Which list, of which day, and its labels. */
export function sourceWords({ prices, prices_date: date, priced_as: as }: PriceList): string {
  if (!prices || !date) return "";
  const other = Object.entries(as ?? {}).map(([model, entry]) => USAGE.pricedAs(model, entry));
  return USAGE.source(prices, date, other);
}

function numbers(sum: Sum): TemplateResult {
  const all: [value: string, name: string][] = [
    [costWords(sum), USAGE.cost],
    [sum.input + sum.output ? tokens(sum.input + sum.output) : USAGE.unknown, USAGE.inAndOut],
    [String(sum.turns), USAGE.turns(sum.turns)],
    [sum.unpriced ? String(sum.unpriced) : "none", USAGE.unpriced],
  ];
  return html`<div class="numbers">${all.map(([value, name]) => html`<div class="number"><b>${value}</b><span>${name}</span></div>`)}</div>`;
}

const SVG = "http://www.w3.org/2000/svg";

function draw(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text) element.textContent = text;
  return element;
}

/** A bar for each day: dollars where they are known, else tokens; grey where a cost is unknown. */
function plot(days: Sum[], period: number, room: number): HTMLElement {
  const known = new Map(days.map((day) => [day.name, day]));
  const all = Array.from({ length: period }, (_, index) => localDay(Date.now() - (period - 1 - index) * 86_400_000));
  const priced = days.some(({ cost: told, estimated }) => told + estimated > 0);
  const value = (day: Sum | undefined) => (day ? (priced ? day.cost + day.estimated : day.input + day.output) : 0);
  const most = Math.max(...days.map(value), priced ? 0.01 : 1);
  // As wide as its place, so that its letters have the size of all others.
  const [width, height, foot] = [Math.max(280, room || 800), 160, 20];
  const step = width / all.length;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + foot}`, class: "plot", role: "img", "aria-label": USAGE.plot(priced) });
  svg.append(draw("line", { x1: 0, y1: height, x2: width, y2: height }));
  all.forEach((day, index) => {
    const sum = known.get(day);
    if (!sum) return;
    const high = Math.max(2, (value(sum) / most) * (height - 16));
    const bar = draw("rect", { class: `bar ${priced && sum.cost + sum.estimated === 0 ? "unknown" : ""}`, x: index * step + step * 0.15, y: height - high, width: Math.max(1, step * 0.7), height: high, rx: Math.min(3, step / 4) });
    bar.append(draw("title", {}, `${dayWords(day)}: ${costWords(sum)}, ${tokens(sum.input + sum.output)}`));
    svg.append(bar);
  });
  svg.append(draw("text", { x: 0, y: 12 }, priced ? cost(most) : tokens(most)), draw("text", { x: 0, y: height + 15 }, dayWords(all[0] ?? "")), draw("text", { x: width, y: height + 15, "text-anchor": "end" }, dayWords(all.at(-1) ?? "")));
  const box = make("div");
  box.append(svg);
  return box;
}

/** Formats "2026-11-03" as 3 Nov, with the year if it is another one. */
export function dayWords(day: string): string {
  const date = new Date(`${day}T12:00:00`);
  if (Number.isNaN(date.getTime())) return day;
  const year = date.getFullYear() === new Date().getFullYear() ? {} : ({ year: "numeric" } as const);
  return date.toLocaleDateString([], { day: "numeric", month: "short", ...year });
}

function localDay(time: number): string {
  const date = new Date(time);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
}
