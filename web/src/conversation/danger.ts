/** What makes an approval dangerous. It only decides how a card looks: what may run is the host's to decide. */

import type { ChangedFile } from "../v1";
import type { Approval } from "./state";
import { plural } from "../texts/plural";
import { DANGER } from "../texts/conversation";

const COMMANDS: [pattern: RegExp, reason: string][] = [
  [/(^|[\s;&|(`])(rm|rmdir|unlink|shred|truncate)\s/, DANGER.deletesFiles],
  [/\bfind\b.*\s-(delete|exec)\b/, DANGER.mayDeleteOrRun],
  [/(^|[\s;&|(`])(sudo|doas|su)\s/, DANGER.runsAsAnotherUser],
  [/\bgit\s+push\b.*(--force|-f\b|\+)/, DANGER.overwritesABranch],
  [/\bgit\s+(reset\s+--hard|clean\b|checkout\s+--)/, DANGER.throwsAwayChangesThatAre],
  [/\b(curl|wget|ssh|scp|rsync|nc)\s/, DANGER.usesTheNetwork],
  [/\b(mkfs|dd|chmod\s+-R|chown\s+-R)\b/, DANGER.changesTheDiskOrMany],
  [/\.(env|pem|key)\b|id_rsa|\bcredentials\b/, DANGER.touchesSecrets],
  [/\|\s*(ba|z|da)?sh\b/, DANGER.runsWhatAnotherProgramPrints],
];

/** The reasons, in words; none: an everyday step. */
export function dangers(approval: Approval, cwd: string, kind = ""): string[] {
  const found = approval.command ? COMMANDS.flatMap(([pattern, reason]) => (pattern.test(approval.command ?? "") ? [reason] : [])) : [];
  const path = approval.path ?? "";
  if (kind === "fetch") found.push(DANGER.usesTheNetwork);
  if (path && approval.kind !== "read" && outside(path, cwd)) found.push(DANGER.outsideTheProjectFolder);
  if (path && /(^|\/)(\.env|[^/]*\.(pem|key))$/.test(path)) found.push(DANGER.touchesSecrets);
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
  const words = [fresh ? DANGER.notInGit(count(fresh)) : "", changed ? DANGER.withChangesThatAre(count(changed)) : ""].filter(Boolean);
  return words.length > 0 ? DANGER.lost(words) : "";
}
