/**
 * The places of the workbench. A new page is a file with its view and a row here: its address, link, key and title follow from it.
 *
 * Sessions are not in the table: the frame keeps several of them open.
 */

import { addPath, type Place, pathOf } from "./router";
import type { Link, Listed, PlaceRow } from "./view";
import { PLACE_NAMES } from "../texts/places";

type Table = { [Name in Exclude<Place["at"], "home" | "session" | "page" | "unknown">]: PlaceRow<Name> };

const BUILT_IN: Table = {
  inbox: { title: PLACE_NAMES.inbox, icon: "inbox", key: "i", links: ["side", "bar"], counts: true, view: async (context, { id }) => new (await import("./inbox")).Inbox(context, id) },
  jobs: { title: PLACE_NAMES.jobs, icon: "jobs", key: "g j", links: ["side", "bar"], view: async (context) => new (await import("./jobsView")).JobsView(context) },
  job: { title: PLACE_NAMES.job, icon: "jobs", styles: ["chart", "app-jobs"], view: async (context, { id, step }) => new (await import("./job")).JobView(id, step, context) },
  automations: { title: PLACE_NAMES.automations, icon: "clock", key: "g a", links: ["side", "more"], styles: ["app-jobs"], view: async (context, place) => (await import("./automations")).automationsView(place, context) },
  usage: { title: PLACE_NAMES.usage, icon: "usage", key: "g u", links: ["side", "more"], view: async (context) => new (await import("./usage")).UsageView(context) },
  settings: { title: PLACE_NAMES.settings, icon: "settings", key: "g ,", view: async (context, { section }) => new (await import("./settings")).SettingsView(section, context) },
  more: { title: PLACE_NAMES.more, icon: "more", links: ["bar"], view: async (context) => new (await import("./settings")).SettingsView("more", context, linked("more")) },
  new: { title: PLACE_NAMES.newSession, icon: "plus", key: "c", styles: ["chart", "app-jobs"], view: async (context, { what }) => (what === "job" ? new (await import("./startJob")).StartJob(context) : new (await import("./start")).NewSession(context)) },
};

/** Pages beyond the built-in ones, by the first part of their path below /app. */
const PAGES: Record<string, PlaceRow<"page">> = {};

export function addPage(name: string, row: PlaceRow<"page">): void {
  if (name in BUILT_IN || name in PAGES) throw new Error(`There is a page named ${name}. Choose another name.`);
  PAGES[name] = row;
  addPath(name);
}

const FIRST: Partial<Record<string, Place>> = { settings: { at: "settings", section: "look" }, new: { at: "new", what: "session" } };

/** Of one kind of link, in the order of the table. */
export function linked(link: Link): Listed[] {
  return listed().filter(({ row }) => row.links?.includes(link));
}

export function listed(): Listed[] {
  const own = Object.entries(BUILT_IN).filter(([name]) => name !== "job").map(([name, row]) => ({ name, row: row as PlaceRow, place: FIRST[name] ?? ({ at: name } as Place) }));
  return [...own, ...added()];
}

/** Pages beyond the built-in ones. */
export const added = (): Listed[] => Object.entries(PAGES).map(([name, row]) => ({ name, row: row as PlaceRow, place: { at: "page", name, rest: [] } }));

/** The row of a place; undefined: there is no such page. */
export function rowOf(place: Place): PlaceRow | undefined {
  const row = place.at === "page" ? PAGES[place.name] : BUILT_IN[place.at as keyof Table];
  return row as PlaceRow | undefined;
}

/** The same place, with any selection in it: a link to it is current. */
export const isAt = (place: Place, { name }: Listed): boolean => (place.at === "page" ? place.name : place.at) === name;

export const addressOf = ({ place }: Listed): string => pathOf(place);
