/** A file without lines: how large it was and is, and of pictures what they show, side by side. */

import { base64, picture, size } from "../conversation/pieces";
import { make } from "../page";
import { BINARY } from "../texts/review";

type Side = "before" | "after";

/** One side of a file as the host has it; undefined: it is not there. */
export type ReadSide = (side: Side) => Promise<Blob | undefined>;

const PICTURES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };
const NAMES: Record<Side, string> = { before: BINARY.before, after: BINARY.after };

export async function binaryView(content: HTMLElement, path: string, read: ReadSide): Promise<void> {
  content.replaceChildren(make("p", "soft pad", BINARY.readingBothSides));
  const sides = await Promise.all((["before", "after"] as const).map(async (side) => sideView(side, path, await read(side))));
  const view = make("div", "sides pad");
  view.append(...sides);
  content.replaceChildren(view);
}

async function sideView(side: Side, path: string, blob: Blob | undefined): Promise<HTMLElement> {
  const view = make("figure");
  const type = PICTURES[path.split(".").at(-1)?.toLowerCase() ?? ""];
  view.append(make("figcaption", "soft", `${NAMES[side]}: ${blob ? size(blob.size) : "not there"}`));
  if (blob && type) view.append(picture(await base64(blob), type, `${path}, ${NAMES[side].toLowerCase()}`));
  return view;
}
