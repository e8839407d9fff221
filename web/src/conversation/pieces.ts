/** What rows and cards share: agent text as plain text, and what they may ask of the session. */

import { EscapeFilter } from "../escapes";
import { make, makeButton } from "../page";
import { html, nothing, type TemplateResult } from "../render";
import type { Turn } from "./state";
import { plural } from "../texts/plural";

/** What cards may ask of the session. */
export interface CardActions {
  /** The session's folder. */
  cwd(): string;
  /** What people call the agent that asks, where that is known. */
  agent?(): string;
  /** Shows a change as a whole, beside the conversation. */
  wholeChange?(path: string): void;
  /** Sends something, and shows the error when that failed. `allows`: it answers the card, with a yes or not; a yes is remembered for `scope`. */
  attempt(work: () => Promise<unknown>, allows?: boolean, scope?: string): Promise<boolean>;
}

/** What rows may ask of the session. */
export interface Actions extends CardActions {
  fork(turn: string): void;
  resume(): void;
  /** Shows the files that a turn changed. */
  files(turn: string): void;
  /** Opens a shell in the session's folder. */
  terminal?(): void;
  /** Takes a message up again, from before its turn. */
  resend?(turn: Turn): void;
  /** Sends the message of the last turn again, in place of that turn. */
  again?(turn: Turn): void;
  /** The address of a turn. */
  link?(turn: string): string;
  /** The conversation of the helper that this call started, if it started one. */
  helper?(call: string): HTMLElement | undefined;
}

export const plain = (text: string) => new EscapeFilter().push(text);

/** Characters that show nothing or turn the reading direction. */
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * What the user is about to allow, complete.
 *
 * The attack: a command carries an escape or a direction mark, so that it reads harmless and runs otherwise.
 */
export function exact(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(UNSEEN, (found) => {
    const code = found.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\u{${code.toString(16)}}`;
  });
}

/** A path inside the session's folder without that folder; any other as it is, and so is one that climbs. */
export function relative(path: string, cwd: string): string {
  const inside = path.startsWith(`${cwd}/`) && !path.split("/").includes("..");
  return exact(inside ? path.slice(cwd.length + 1) : path);
}

/** JSON for people: a line per field, longer values indented below their name, so that no value can pose as a field. */
export function pretty(input: string): string {
  let value: unknown;
  try {
    value = JSON.parse(input);
  } catch {
    return exact(input); // it still comes in
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) return exact(JSON.stringify(value, null, 2));
  return Object.entries(value)
    .map(([name, each]) => {
      const text = exact(typeof each === "string" ? each : JSON.stringify(each, null, 2));
      return text.includes("\n") ? `${exact(name)}:\n${text.replace(/^/gm, "  ")}` : `${exact(name)}: ${text}`;
    })
    .join("\n");
}

/** How many lines came and went; none of a kind is not worth a word. */
export function counted(added: number, removed: number): HTMLElement {
  const found = make("span", "pm");
  if (added || !removed) found.append(make("span", "good", `+${added}`));
  if (added && removed) found.append(" ");
  if (removed) found.append(make("span", "bad", `−${removed}`));
  return found;
}

/** The same in a template. */
export const countsOf = (added: number, removed: number): TemplateResult =>
  html`<span class="pm">${added || !removed ? html`<span class="good">+${added}</span>` : nothing}${added && removed ? " " : nothing}${removed ? html`<span class="bad">−${removed}</span>` : nothing}</span>`;

export function box(text: string): HTMLElement {
  const pre = make("pre", "box", text);
  pre.tabIndex = 0;
  return pre;
}

export function picture(data: string, type: string, label: string): HTMLElement {
  const image = make("img", "picture");
  image.src = `data:${type};base64,${data}`;
  image.alt = label;
  const button = makeButton("picture-button", "", () => button.classList.toggle("large"));
  button.setAttribute("aria-label", `${label}: larger or smaller`);
  button.append(image);
  return button;
}

/** With its name and size below it. */
export function withCaption(picture: HTMLElement, name: string, data: string): HTMLElement {
  const figure = make("figure");
  figure.append(picture, make("figcaption", "", `${name} · ${sizeWords(data)}`));
  return figure;
}

/** How large something is that comes as Base64. */
export const sizeWords = (data: string) => size(Math.floor((data.length * 3) / 4) - (/=*$/.exec(data)?.[0].length ?? 0));

export function size(bytes: number): string {
  if (bytes < 1024) return plural(bytes, "byte");
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

export async function base64(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
