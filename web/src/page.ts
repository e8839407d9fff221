/** Small things every page needs from its own document. */

import { PAGE } from "./texts/failure";

type Kind<T> = new () => T;

/** The element the page's HTML promises; a missing one is a mistake in the page, so it throws. */
export function byId<T extends HTMLElement = HTMLElement>(id: string, kind: Kind<T> = HTMLElement as Kind<T>): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${kind.name} with the id "${id}".`);
  return found;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

export function makeButton(className: string, text: string, click: () => void): HTMLButtonElement {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", click);
  return button;
}

export function trackingAddress(jobName: string, jobId?: string): string {
  const query = new URLSearchParams({ jobName });
  if (jobId !== undefined) query.set("jobId", jobId);
  return `./jobTracking.html?${query}`;
}

/** A new tab, or this one where the browser forbids new ones: what was asked for is shown either way. */
export function openTab(address: string): void {
  if (window.open(address, "_blank") === null) window.location.assign(address);
}

/** Ends the page for good: the tab closes if the browser allows it, else a text asks the user to close it. */
export function endPage(text: string): void {
  window.close();
  setTimeout(() => document.body.replaceChildren(make("p", "page-ended", text)), 200);
}

/** Asks before the host is stopped, because it can only be started again on its machine. */
export function confirmStop(): boolean {
  return window.confirm(PAGE.confirmStop);
}

/** A phone has no Ctrl key to hint at. */
export function hasKeys(): boolean {
  return window.matchMedia?.("(pointer: fine)").matches ?? true;
}

/** Letters grow on very large screens; what has a size in pixels grows with them. */
export function letterScale(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}
