/** The border between two columns: dragged, moved with the arrow keys, set back with a double click, remembered. */

import { make } from "../page";
import { page } from "../scope";
import { remember, remembered, sizeClass } from "./preferences";

export interface Grip {
  name: string;
  property: string;
  label: string;
  first: number;
  least: number;
  most: number;
  /** What the other columns need of the window's width. */
  others(): number;
  /** 1: pulling right makes it wider. */
  towards: 1 | -1;
}

const STEP = 16;

/** `column`: the column that is resized; the grip is at its edge. */
export function grip(column: HTMLElement, { name, property, label, first, least, most, others, towards }: Grip): void {
  const root = document.documentElement;
  const element = make("div", `grip ${towards === 1 ? "right" : "left"}`);
  element.id = `grip-${name}`;
  column.append(element);
  const key = () => `width.${name}.${sizeClass()}`;
  element.tabIndex = 0;
  element.setAttribute("role", "separator");
  element.setAttribute("aria-orientation", "vertical");
  element.setAttribute("aria-label", label);
  element.setAttribute("aria-valuemin", String(least));
  element.setAttribute("aria-valuemax", String(most));
  const set = (width: number | undefined) => {
    if (width === undefined) root.style.removeProperty(property);
    else root.style.setProperty(property, `${Math.round(Math.max(least, Math.min(width, most, window.innerWidth - others())))}px`);
    element.setAttribute("aria-valuenow", String(Math.round(now())));
  };
  const now = () => column.getBoundingClientRect().width || first;
  const load = () => set(Number(remembered(key())) || undefined);
  const save = (value: number | undefined) => {
    set(value);
    remember(key(), value === undefined ? undefined : String(Math.round(now())));
  };
  load();
  page.on(window, "resize", load);
  element.addEventListener("dblclick", () => save(undefined));
  element.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (!by) return;
    event.preventDefault();
    save(now() + by * towards);
  });
  element.addEventListener("pointerdown", (event) => {
    const [from, before] = [event.clientX, now()];
    element.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent) => set(before + (moved.clientX - from) * towards);
    const end = (last: PointerEvent) => {
      element.removeEventListener("pointermove", move);
      if (last.clientX !== from) save(before + (last.clientX - from) * towards);
    };
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", end, { once: true });
    event.preventDefault();
  });
}
