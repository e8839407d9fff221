/** Tokens and cost by day, agent, model, session, job, automation and person: a plot and a table. What nobody told is unknown, not nothing. */

import { root } from "../root";
import { explain } from "../api";
import { make } from "../page";
import { call } from "../v1";
import type { Shell, View } from "./shell";
import { cost, tokens } from "./time";

export interface UsageRow {
  day: string;
  session: string;
  title?: string;
  agent: string;
  model: string;
  by?: string;
  /** The id of the job whose task began the session. */
  job?: string;
  /** The name of the automation that began it, or its job. */
  automation?: string;
  person?: string;
  turns?: number;
  input?: number;
  output?: number;
  cached?: number;
  cost?: number;
  /** By list prices, of turns whose cost no agent told. */
  estimated?: number;
  unpriced?: number;
}

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
interface PriceList {
  prices?: string;
  prices_date?: string;
  priced_as?: Record<string, string>;
}

export type By = "day" | "agent" | "model" | "session" | "job" | "automation" | "person";

const keyOf: Record<By, (row: UsageRow, nameOf: (job: string) => string) => [name: string, link?: string] | undefined> = {
  day: ({ day }) => [day],
  agent: ({ agent }) => [agent],
  model: ({ model }) => [model || "unknown"],
  session: ({ session, title }) => [title || session, `${root}/app/s/${encodeURIComponent(session)}`],
  job: ({ by, job }, nameOf) => (job ? [nameOf(job), `${root}/app/j/${encodeURIComponent(job)}`] : by?.startsWith("task:") ? ["tasks of earlier runs"] : undefined),
  automation: ({ automation }) => (automation ? [automation, `${root}/app/automations/${encodeURIComponent(automation)}`] : undefined),
  person: ({ person }) => [person || "the host itself"],
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

/** "$1.20", "~$1.20" where a part is estimated by list prices, "and more" where a part is unknown, "unknown" where all of it is. */
export function costWords({ cost: told, estimated, unpriced, input, output }: Sum): string {
  const dollars = told + estimated;
  if (dollars > 0) return `${estimated > 0 ? "~" : ""}${cost(dollars)}${unpriced > 0 ? " and more" : ""}`;
  return input + output > 0 || unpriced > 0 ? "unknown" : "nothing";
}

const PERIODS: [days: number, name: string][] = [
  [7, "7 days"],
  [30, "30 days"],
  [90, "90 days"],
  [365, "12 months"],
];
const TABS: [By, string][] = [
  ["day", "By day"],
  ["agent", "By agent"],
  ["model", "By model"],
  ["session", "By session"],
  ["job", "By job"],
  ["automation", "By automation"],
  ["person", "By person"],
];
const MOST = 200;

export class UsageView implements View {
  readonly element = make("section", "place usage");
  readonly title = "Usage";
  private readonly body = make("div", "wide");
  private readonly period = make("select", "pick");
  private rows: UsageRow[] = [];
  private list: PriceList = {};
  private by: By = "day";

  constructor(private readonly shell: Shell) {
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", "Usage"), make("p", "", "Tokens and cost. ~ is an estimate by list prices where the agent tells no cost."));
    this.period.setAttribute("aria-label", "Period");
    this.period.append(...PERIODS.map(([days, name]) => new Option(`Last ${name}`, String(days))));
    this.period.value = "30";
    this.period.addEventListener("change", () => void this.load());
    head.append(text, this.period);
    const scroll = make("div", "scroll");
    scroll.append(this.body);
    this.element.append(head, scroll);
    void this.load();
  }

  private async load(): Promise<void> {
    this.body.replaceChildren(make("p", "soft", "Counting…"));
    try {
      const east = 840 - new Date().getTimezoneOffset();
      const { rows, ...list } = await call<{ rows?: UsageRow[] } & PriceList>("GET", `/usage?${new URLSearchParams({ days: this.period.value, east: String(east) })}`);
      this.rows = rows ?? [];
      this.list = list;
      this.show();
    } catch (error) {
      this.body.replaceChildren(make("p", "trouble", explain(error)));
    }
  }

  private show(): void {
    if (this.rows.length === 0) return this.body.replaceChildren(make("p", "soft", "Nothing was used in this time."));
    const whole = sums(this.rows.map((row) => ({ ...row, day: "all" })), "day")[0];
    const tabs = make("div", "modes");
    tabs.append(
      ...TABS.map(([by, name]) => {
        const button = make("button", "", name);
        button.type = "button";
        button.setAttribute("aria-pressed", String(by === this.by));
        button.addEventListener("click", () => {
          this.by = by;
          this.show();
        });
        return button;
      }),
    );
    this.body.replaceChildren(...(whole ? [numbers(whole)] : []), plot(sums(this.rows, "day"), Number(this.period.value), this.body.clientWidth), tabs, this.table(), ...this.source());
  }

  private source(): HTMLElement[] {
    const words = sourceWords(this.list);
    return words ? [make("p", "soft", words)] : [];
  }

  private table(): HTMLElement {
    const found = sums(this.rows, this.by, (job) => this.shell.feed.jobs.get(job)?.name ?? job);
    if (this.by === "day") found.reverse();
    if (found.length === 0) return make("p", "soft", `No ${this.by} ran in this time.`);
    const scroll = make("div", "scroll-x");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Numbers");
    const table = make("table", "table");
    table.createCaption().className = "vh";
    if (table.caption) table.caption.textContent = TABS.find(([by]) => by === this.by)?.[1] ?? "";
    const head = make("tr");
    head.append(...["", "Turns", "Tokens in", "From the cache", "Tokens out", "Cost"].map((name, index) => make("th", index ? "num" : "", name || this.by.charAt(0).toUpperCase() + this.by.slice(1))));
    table.append(head);
    for (const sum of found.slice(0, MOST)) {
      const row = make("tr");
      const name = make("td");
      if (sum.link) {
        const link = make("a", "", sum.name);
        link.href = sum.link;
        name.append(link);
      } else name.textContent = this.by === "day" ? dayWords(sum.name) : this.by === "agent" ? this.shell.feed.agentName(sum.name) : sum.name;
      const told = sum.input + sum.output > 0;
      row.append(name, ...[String(sum.turns), told ? tokens(sum.input) : "unknown", told ? tokens(sum.cached) : "unknown", told ? tokens(sum.output) : "unknown", costWords(sum)].map((text) => make("td", "num", text)));
      table.append(row);
    }
    scroll.append(table);
    return scroll;
  }
}

/** Which list, of which day, and what stands for what in it. */
export function sourceWords({ prices, prices_date: date, priced_as: as }: PriceList): string {
  if (!prices || !date) return "";
  const other = Object.entries(as ?? {}).map(([model, entry]) => `${model} as ${entry}`);
  return `~ by the list prices of ${prices}, the newest of ${date}${other.length ? `; ${other.join(", ")}` : ""}.`;
}

function numbers(sum: Sum): HTMLElement {
  const list = make("div", "numbers");
  const add = (value: string, name: string) => {
    const box = make("div", "number");
    box.append(make("b", "", value), make("span", "", name));
    list.append(box);
  };
  add(costWords(sum), "cost");
  add(sum.input + sum.output ? tokens(sum.input + sum.output) : "unknown", "in and out");
  add(String(sum.turns), sum.turns === 1 ? "turn" : "turns");
  add(sum.unpriced ? String(sum.unpriced) : "none", "turns whose cost nobody told");
  return list;
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
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + foot}`, class: "plot", role: "img", "aria-label": `${priced ? "Dollars" : "Tokens"} by day; the table below has the numbers` });
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

/** "2026-11-03" as people say it: 3 Nov, with the year where it is another one. */
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
