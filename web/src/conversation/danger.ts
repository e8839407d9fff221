/** What makes an approval dangerous. It only decides how a card looks: what may run is the host's to decide. */

import type { ChangedFile } from "../v1";
import type { Approval } from "./state";
import { plural } from "../texts/plural";

const COMMANDS: [pattern: RegExp, reason: string][] = [
  [/(^|[\s;&|(`])(rm|rmdir|unlink|shred|truncate)\s/, "Deletes files"],
  [/\bfind\b.*\s-(delete|exec)\b/, "May delete or run for every file it finds"],
  [/(^|[\s;&|(`])(sudo|doas|su)\s/, "Runs as another user"],
  [/\bgit\s+push\b.*(--force|-f\b|\+)/, "Overwrites a branch on the server"],
  [/\bgit\s+(reset\s+--hard|clean\b|checkout\s+--)/, "Throws away changes that are not committed"],
  [/\b(curl|wget|ssh|scp|rsync|nc)\s/, "Uses the network"],
  [/\b(mkfs|dd|chmod\s+-R|chown\s+-R)\b/, "Changes the disk or many files"],
  [/\.(env|pem|key)\b|id_rsa|\bcredentials\b/, "Touches secrets"],
  [/\|\s*(ba|z|da)?sh\b/, "Runs what another program prints"],
];

/** The reasons, in words; none: an everyday step. */
export function dangers(approval: Approval, cwd: string, kind = ""): string[] {
  const found = approval.command ? COMMANDS.flatMap(([pattern, reason]) => (pattern.test(approval.command ?? "") ? [reason] : [])) : [];
  const path = approval.path ?? "";
  if (kind === "fetch") found.push("Uses the network");
  if (path && approval.kind !== "read" && outside(path, cwd)) found.push("Outside the project folder");
  if (path && /(^|\/)(\.env|[^/]*\.(pem|key))$/.test(path)) found.push("Touches secrets");
  return found;
}

export function outside(path: string, cwd: string): boolean {
  return path.startsWith("/") && cwd !== "" && (!path.startsWith(`${cwd}/`) || path.split("/").includes(".."));
}

const DELETES = /(?:^|[\s;&|(`])(?:rm|rmdir|unlink|shred|truncate)\s+([^;&|`]*)/g;
const THROWS_AWAY = /\bgit\s+(?:reset\s+--hard|clean\b|checkout\s+--)/;

/**
 * What a command would delete that git cannot restore, in words: files that it names or whose folder it names.
 * Empty where nothing is known to be lost.
 */
export function lostBy(command: string, files: readonly ChangedFile[]): string {
  const named = [...command.matchAll(DELETES)].flatMap(([, rest = ""]) => rest.split(/\s+/)).filter((word) => word && !word.startsWith("-"));
  const paths = named.map((word) => word.replace(/^["']|["']$/g, "").replace(/^\.\//, "").replace(/\/?\*?$/, ""));
  const under = (path: string) => paths.some((each) => each === "" || each === "." || path === each || path.startsWith(`${each}/`));
  const lost = files.filter(({ path, status }) => status !== "deleted" && (THROWS_AWAY.test(command) || under(path)));
  const fresh = lost.filter(({ status }) => status === "added").length;
  const changed = lost.length - fresh;
  const count = (number: number) => plural(number, "file");
  const words = [fresh ? `${count(fresh)} not in git` : "", changed ? `${count(changed)} with changes that are not committed` : ""].filter(Boolean);
  return words.length > 0 ? `Lost for good: ${words.join(", ")}.` : "";
}
