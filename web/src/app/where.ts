/** Where something new runs: the places and labels of several hosts. A host that is alone offers nothing. */

import { make } from "../page";
import type { Member } from "../rest";
import { ask } from "../v1";
import { WHERE } from "../texts/start";

/** The host that runs a session, where there are several. */
export async function hostOf(session: string): Promise<Member | undefined> {
  return (await ask("GET /hosts", {}, { query: { session } })).hosts[0];
}

export interface Where {
  place?: string;
  label?: string;
}

/** What there is to choose from; empty where there is no choice. */
export async function whereChoices(signal?: AbortSignal): Promise<{ places: string[]; labels: string[] }> {
  const { hosts } = await ask("GET /hosts", {}, { signal });
  const sorted = (all: string[]) => [...new Set(all)].sort();
  const places = sorted(hosts.filter(({ state }) => state === "up").map(({ place }) => place));
  return { places: places.length > 1 ? places : [], labels: sorted(hosts.flatMap(({ labels = [] }) => labels)) };
}

/** The fields before `next`, and their values; nothing where there is no choice. */
export async function offerWhere(next: Element, look = "", signal?: AbortSignal): Promise<() => Where> {
  const { places, labels } = await whereChoices(signal).catch(() => ({ places: [], labels: [] }));
  const fields = [select(next, look, "place", WHERE.place, WHERE.whereItsFolder, places), select(next, look, "label", WHERE.onlyAtAHost, WHERE.anyHost, labels)];
  return () => Object.fromEntries(fields.filter((field) => field?.value).map((field) => [field?.name, field?.value]));
}

function select(next: Element, look: string, name: string, title: string, none: string, options: string[]): HTMLSelectElement | undefined {
  if (options.length === 0) return undefined;
  const field = make("select");
  field.name = field.id = name;
  field.append(new Option(none, ""), ...options.map((each) => new Option(each, each)));
  const label = make("label", look, title);
  label.append(field);
  next.before(label);
  return field;
}
