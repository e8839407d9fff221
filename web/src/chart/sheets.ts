/** A chart on paper: on one page as long as its letters stay readable, else on several, cut between works. */

import { make } from "../page";
import { page } from "../scope";
import type { Box, FlowChart } from "./flowChart";
import { SHEETS } from "../texts/chart";

interface Paper {
  width: number;
  height: number;
}

/** What A4 and Letter both have room for inside margins of 10 mm, below the head of the page; 96 pixels are an inch. */
const PORTRAIT: Paper = { width: 718, height: 880 };
const LANDSCAPE: Paper = { width: 979, height: 620 };
/** Names are 14 px high in a chart: at the last of these they have 7 points on paper. */
const SCALES = [1, 0.9, 0.8, 0.7];
/** Between a cut and the work behind it. */
const AIR = 12;

export interface Sheets {
  landscape: boolean;
  scale: number;
  all: Box[];
}

type Span = [from: number, to: number];

/** As few sheets as can be read; and among those the largest letters. */
export function sheetsOf(chart: Pick<FlowChart, "area" | "boxes">): Sheets {
  const ways = [PORTRAIT, LANDSCAPE].flatMap((paper) => SCALES.map((scale) => ({ landscape: paper === LANDSCAPE, scale, all: tile(chart, paper, scale) })));
  return ways.reduce((best, way) => (way.all.length < best.all.length ? way : best));
}

function tile({ area, boxes }: Pick<FlowChart, "area" | "boxes">, paper: Paper, scale: number): Box[] {
  const columns = cut([area.x, area.x + area.width], paper.width / scale, boxes.map(({ x, width }): Span => [x, x + width]));
  const rows = cut([area.y, area.y + area.height], paper.height / scale, boxes.map(({ y, height }): Span => [y, y + height]));
  const all = rows.flatMap(([top, bottom]) => columns.map(([left, right]) => ({ x: left, y: top, width: right - left, height: bottom - top })));
  return all.filter((sheet) => boxes.some((box) => meet(sheet, box)));
}

/** Cuts a length into pieces of at most `most`, about equally long; where that is possible not through anything. */
export function cut([from, to]: Span, most: number, spans: Span[]): Span[] {
  const free = spans.map(([start]) => start - AIR).filter((place) => !spans.some(([start, end]) => start < place && place < end));
  const pieces: Span[] = [];
  let start = from;
  while (to - start > most) {
    const even = start + (to - start) / Math.ceil((to - start) / most);
    // A piece of less than half a page is worse than a name in two pieces.
    const places = free.filter((place) => place > start + most / 2 && place <= start + most);
    const end = places.reduce((best, place) => (Math.abs(place - even) < Math.abs(best - even) ? place : best), places[0] ?? start + most);
    pieces.push([start, end]);
    start = end;
  }
  return [...pieces, [start, to]];
}

function meet(one: Box, other: Box): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
}

/** While the page is printed, sheets replace the chart. */
export function printable(container: HTMLElement, chart: FlowChart): void {
  const sheets = make("div", "print-sheets");
  page.on(window, "beforeprint", () => {
    const { landscape, scale, all } = sheetsOf(chart);
    document.body.classList.toggle("landscape", landscape);
    sheets.replaceChildren(...all.map((sheet, at) => sheetOf(chart, sheet, scale, all.length > 1 ? SHEETS.sheet(at + 1, all.length) : "")));
    // First, so that the head of an arrow is found in a sheet and not in the chart that is hidden.
    container.prepend(sheets);
  });
  page.on(window, "afterprint", () => {
    sheets.replaceChildren();
    sheets.remove();
    document.body.classList.remove("landscape");
  });
}

function sheetOf(chart: FlowChart, { x, y, width, height }: Box, scale: number, caption: string): HTMLElement {
  const svg = chart.svg.cloneNode(true) as SVGSVGElement;
  svg.style.transform = "";
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  svg.setAttribute("width", String(width * scale));
  svg.setAttribute("height", String(height * scale));
  const sheet = make("figure", "print-sheet");
  sheet.append(svg, make("figcaption", "", caption));
  return sheet;
}
