/** Values of settings as people read and write them. */

import type { SettingShown } from "../rest";
import { HOST_SETTINGS as TEXTS } from "../texts/settings";

export type Form = SettingShown["form"];

const isTable = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** A value in one line; empty text, lists and tables are "not set". */
export function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return TEXTS.empty;
  if (Array.isArray(value)) return value.length ? value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ") : TEXTS.empty;
  if (isTable(value)) return Object.keys(value).length ? Object.entries(value).map(([name, each]) => `${name}: ${isTable(each) ? JSON.stringify(each) : String(each)}`).join(", ") : TEXTS.empty;
  if (typeof value === "boolean") return value ? "on" : "off";
  return String(value);
}

/** A value as the text of its field. */
export function written(value: unknown, form: Form): string {
  if (form === "list") return Array.isArray(value) ? value.map(String).join("\n") : "";
  if (form === "table") return isTable(value) ? Object.entries(value).map(([name, each]) => `${name} = ${String(each)}`).join("\n") : "";
  return value === null || value === undefined ? "" : String(value);
}

/** The value of a field's text; throws an error for people. Empty numbers and tables remove the setting. */
export function parsed(text: string, form: Form): unknown {
  switch (form) {
    case "boolean":
      return text === "true";
    case "number":
      return text.trim() === "" ? null : number(text);
    case "list":
      return lines(text);
    case "table": {
      const found = Object.fromEntries(lines(text).map(pair));
      return Object.keys(found).length ? found : null;
    }
    default:
      return text.trim();
  }
}

const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function number(text: string): number {
  const found = Number(text.trim());
  if (!Number.isFinite(found)) throw new Error(TEXTS.badNumber);
  return found;
}

function pair(line: string): [string, number] {
  const [, name = "", value = ""] = /^(\w+)\s*[=:]\s*(-?\d+(?:\.\d+)?)$/.exec(line) ?? [];
  if (!name) throw new Error(TEXTS.badLine(line));
  return [name, Number(value)];
}
