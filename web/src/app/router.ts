/** Addresses of the workbench: which place, which session, which file. */

import { root } from "../root";
import { page } from "../scope";

export type Place =
  | { at: "home" }
  /** With one of them open. */
  | { at: "inbox"; id?: string }
  | { at: "jobs" }
  | { at: "usage" }
  /** All of them, one by its id or name, or the form for it (without an id: for a new one). */
  | { at: "automations"; id?: string; form?: true }
  | { at: "more" }
  | { at: "new"; what: "session" | "job" }
  | { at: "session"; id: string; tab?: string; file?: string }
  | { at: "job"; id: string; step?: string }
  | { at: "settings"; section: string }
  /** A page that is not built in (places.ts), with the rest of its path. */
  | { at: "page"; name: string; rest: string[] }
  | { at: "unknown"; path: string };

/** The place with this name. */
export type PlaceOf<Name extends string> = Extract<Place, { at: Name }>;

const pages = new Set<string>();
const isPage = (name: string) => pages.has(name);

/** Its path leads to it from now on. */
export const addPath = (name: string): void => void pages.add(name);

export function placeOf(path: string): Place {
  const [, , first = "", second = "", ...rest] = below(path).split("/").map(decode);
  switch (first) {
    case "":
      return { at: "home" };
    case "inbox":
      return { at: "inbox", ...(second ? { id: second } : {}) };
    case "jobs":
    case "usage":
    case "more":
      return { at: first };
    case "automations":
      if (second === "new" && !rest[0]) return { at: "automations", form: true };
      return { at: "automations", ...(second ? { id: second } : {}), ...(second && rest[0] === "edit" ? { form: true } : {}) };
    case "new":
      return { at: "new", what: second === "job" ? "job" : "session" };
    case "settings":
      return { at: "settings", section: second || "look" };
    case "s":
      if (!second) return { at: "home" };
      return { at: "session", id: second, ...(rest[0] ? { tab: rest[0] } : {}), ...(rest.length > 1 ? { file: rest.slice(1).join("/") } : {}) };
    case "j":
      if (!second) return { at: "jobs" };
      return { at: "job", id: second, ...(rest[0] ? { step: rest[0] } : {}) };
    default:
      return isPage(first) ? { at: "page", name: first, rest: [second, ...rest].filter(Boolean) } : { at: "unknown", path };
  }
}

/** Without the base path. */
const below = (path: string) => (path.startsWith(root) ? path.slice(root.length) : path);

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function pathOf(place: Place): string {
  const part = encodeURIComponent;
  switch (place.at) {
    case "home":
      return `${root}/app`;
    case "session":
      return [`${root}/app/s`, part(place.id), ...(place.tab ? [part(place.tab)] : []), ...(place.tab && place.file ? place.file.split("/").map(part) : [])].join("/");
    case "job":
      return [`${root}/app/j`, part(place.id), ...(place.step ? [part(place.step)] : [])].join("/");
    case "automations":
      return [`${root}/app/automations`, ...(place.id ? [part(place.id)] : []), ...(place.form ? [place.id ? "edit" : "new"] : [])].join("/");
    case "inbox":
      return [`${root}/app/inbox`, ...(place.id ? [part(place.id)] : [])].join("/");
    case "settings":
      return `${root}/app/settings/${part(place.section)}`;
    case "new":
      return `${root}/app/new${place.what === "job" ? "/job" : ""}`;
    case "page":
      return [`${root}/app`, place.name, ...place.rest].map((each, index) => (index ? part(each) : each)).join("/");
    case "unknown":
      return place.path;
    default:
      return `${root}/app/${place.at}`;
  }
}

/** The hash that leads to the turn of a search hit and marks the text in it. */
export const hitHash = (hit: { turn?: string | null }, text: string): string => (hit.turn ? `#turn=${encodeURIComponent(hit.turn)}&find=${encodeURIComponent(text)}` : "");

/** The full address of a turn, to be opened in another browser. */
export const turnLink = (session: string, turn: string): string => `${window.location.origin}${pathOf({ at: "session", id: session })}#turn=${encodeURIComponent(turn)}`;

export class Router {
  constructor(private readonly show: (place: Place) => void) {
    page.on(window, "popstate", () => this.show(this.place));
    page.on(document, "click", (event) => {
      const anchor = (event.target as Element | null)?.closest?.("a");
      if (!anchor || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      const address = new URL(anchor.href, window.location.href);
      if (anchor.target || anchor.hasAttribute("download") || address.origin !== window.location.origin || !/^\/app(\/|$)/.test(below(address.pathname))) return;
      event.preventDefault();
      this.go(placeOf(address.pathname), false, address.hash);
    });
  }

  get place(): Place {
    return placeOf(window.location.pathname);
  }

  go(place: Place, replace = false, hash = ""): void {
    const path = pathOf(place) + hash;
    const query = place.at === "new" ? window.location.search : "";
    if (path !== window.location.pathname + window.location.hash) window.history[replace ? "replaceState" : "pushState"](null, "", path + (replace ? query : ""));
    this.show(place);
  }
}
