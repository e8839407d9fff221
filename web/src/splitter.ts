/** The bar between two parts of a page: dragged, or moved with the arrow keys. */

import { page } from "./scope";

export interface Split {
  bar: HTMLElement;
  /** The part whose size changes; it lies after the bar. */
  part: HTMLElement;
  axis: "width" | "height";
  /** What lies before the bar, where more than that shares the window with the part. */
  other?: HTMLElement;
  /** Neither side gets smaller than this. */
  least: number;
}

const STEP = 24;

export function split({ bar, part, axis, least, other }: Split): void {
  const current = () => part.getBoundingClientRect()[axis];
  const whole = () => (axis === "width" ? window.innerWidth : window.innerHeight);
  const room = () => (other ? current() + other.getBoundingClientRect()[axis] : whole());
  const resize = (size: number) => {
    const fits = Math.round(Math.max(least, Math.min(size, room() - least)));
    part.style[axis] = `${fits}px`;
    bar.setAttribute("aria-valuenow", String(fits));
  };
  bar.tabIndex = 0;
  bar.setAttribute("role", "separator");
  bar.setAttribute("aria-label", "Resize");
  bar.setAttribute("aria-orientation", axis === "width" ? "vertical" : "horizontal");
  bar.setAttribute("aria-valuemin", String(least));
  bar.setAttribute("aria-valuenow", String(Math.round(current())));

  bar.addEventListener("pointerdown", (down) => {
    down.preventDefault();
    bar.setPointerCapture(down.pointerId);
    const place = (event: PointerEvent) => (axis === "width" ? event.clientX : event.clientY);
    const size = current();
    const move = (event: PointerEvent) => resize(size + place(down) - place(event));
    bar.addEventListener("pointermove", move);
    const done = () => bar.removeEventListener("pointermove", move);
    bar.addEventListener("pointerup", done, { once: true });
    bar.addEventListener("pointercancel", done, { once: true });
  });

  const [grow, shrink] = axis === "width" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  bar.addEventListener("keydown", (event) => {
    if (event.key !== grow && event.key !== shrink) return;
    event.preventDefault();
    resize(current() + (event.key === grow ? STEP : -STEP));
  });
  // A smaller window must not push the other side out of it.
  page.on(window, "resize", () => part.style[axis] && resize(current()));
}
