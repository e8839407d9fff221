/** Stylesheets that the first view does without come with the first place that needs them. */

import { make } from "../page";
import { root } from "../root";

const loaded = new Map<string, Promise<void>>();

/** Resolves when it applies: a chart measures its boxes, and nothing is shown without its look. */
export function style(name: "app-places" | "app-jobs" | "chart"): Promise<void> {
  const found = loaded.get(name) ?? load(name);
  loaded.set(name, found);
  return found;
}

function load(name: string): Promise<void> {
  return new Promise((done) => {
    const link = make("link");
    link.rel = "stylesheet";
    link.href = `${root}/${name}.css`;
    link.onload = link.onerror = () => done();
    document.head.append(link);
  });
}
