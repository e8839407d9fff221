/** What the places of automations share: their frame, and the secret that one hands to the other. */

import { make } from "../page";
import { icon } from "../icons";
import { pathOf } from "./router";
import { AUTOMATION } from "../texts/automations";

export function headOf(title: string, about: string): HTMLElement {
  const text = make("div", "head-text");
  text.append(make("h1", "", title), make("p", "", about));
  return text;
}

export function frame(element: HTMLElement, text: HTMLElement, acts: HTMLElement[], body: HTMLElement, back = false): void {
  const head = make("header", "head");
  if (back) {
    const button = make("a", "icon shown-back");
    button.href = pathOf({ at: "automations" });
    button.append(icon("back"));
    button.setAttribute("aria-label", AUTOMATION.all);
    head.append(button);
  }
  head.append(text, ...acts);
  const scroll = make("div", "scroll");
  scroll.append(body);
  element.append(head, scroll);
}

let made: { id: string; secret: string } | undefined;

/** The form hands a new hook's secret over; it is shown once and kept nowhere. */
export function keepSecret(id: string, secret: string): void {
  made = { id, secret };
}

export function takeSecret(id: string): string {
  const secret = made?.id === id ? made.secret : "";
  made = undefined;
  return secret;
}
