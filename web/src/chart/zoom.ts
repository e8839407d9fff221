/** Zooms a chart in its container: Ctrl+wheel, two fingers, or the buttons. */

import { letterScale, make, makeButton } from "../page";
import type { FlowChart } from "./flowChart";
import { ZOOM } from "../texts/chart";

const LEAST = 0.2;
const MOST = 3;
const STEP = 0.1;
/** Names are 14 px high, and less than 10 is hard to read: what does not fit in then has to be scrolled to. */
const READABLE = 0.7;

export class Zoom {
  private scale = 1;
  private readonly canvas = make("div", "chart-canvas");
  private readonly figure = make("output", "chart-zoom-figure");

  constructor(
    private readonly container: HTMLElement,
    private readonly chart: FlowChart,
    hint = "",
  ) {
    this.canvas.append(chart.svg);
    const controls = this.controls();
    if (hint) controls.append(make("p", "chart-hint", hint));
    container.replaceChildren(controls, this.canvas);
    this.set(1);
    // As a whole if it can be read so: on a phone even a small chart is wider than the screen.
    this.set(Math.min(letterScale(), Math.max(READABLE, this.room() / chart.area.width)));
    // Charts begin in the middle, which may be far to the right.
    container.scrollLeft = chart.start * this.scale - container.clientWidth / 2;
    container.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.pinch();
  }

  get value(): number {
    return this.scale;
  }

  set(scale: number): void {
    // Steps of 0.1 add up to 0.30000000000000004 otherwise.
    this.scale = Math.round(Math.min(MOST, Math.max(LEAST, scale)) * 100) / 100;
    this.chart.svg.style.transform = `scale(${this.scale})`;
    // A transform does not change the room an element takes, so its canvas does.
    this.canvas.style.width = `${this.chart.area.width * this.scale}px`;
    this.canvas.style.height = `${this.chart.area.height * this.scale}px`;
    this.figure.textContent = `${Math.round(this.scale * 100)}%`;
  }

  private room(): number {
    return this.container.clientWidth || Infinity;
  }

  private fit(): void {
    const below = this.container.clientHeight - this.canvas.offsetTop;
    this.set(Math.min(1, this.room() / this.chart.area.width, below / this.chart.area.height));
  }

  private controls(): HTMLElement {
    const controls = make("div", "chart-controls");
    const button = (text: string, name: string, click: () => void) => {
      const element = makeButton("chart-control", text, click);
      element.setAttribute("aria-label", name);
      element.title = name;
      return element;
    };
    controls.append(
      button("−", ZOOM.zoomOut, () => this.set(this.scale - STEP)),
      this.figure,
      button("+", ZOOM.zoomIn, () => this.set(this.scale + STEP)),
      button(ZOOM.fit, ZOOM.fitToWindow, () => this.fit()),
    );
    return controls;
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.set(this.scale + (event.deltaY < 0 ? STEP : -STEP));
  }

  private pinch(): void {
    let begun: { distance: number; scale: number } | undefined;
    const distance = ({ touches: [a, b] }: TouchEvent) => (a && b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0);
    this.container.addEventListener("touchstart", (event) => {
      begun = event.touches.length === 2 ? { distance: distance(event), scale: this.scale } : undefined;
    });
    const move = (event: TouchEvent) => {
      if (!begun || event.touches.length !== 2 || begun.distance === 0) return;
      event.preventDefault();
      this.set((begun.scale * distance(event)) / begun.distance);
    };
    this.container.addEventListener("touchmove", move, { passive: false });
    this.container.addEventListener("touchend", () => (begun = undefined));
  }
}
