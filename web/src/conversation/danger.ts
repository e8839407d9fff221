/** What makes an approval dangerous. It only decides how a card looks: what may run is the host's to decide. */

import type { Approval } from "./state";

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
export function dangers(approval: Approval, cwd: string): string[] {
  const found = approval.command ? COMMANDS.flatMap(([pattern, reason]) => (pattern.test(approval.command ?? "") ? [reason] : [])) : [];
  const path = approval.path ?? "";
  if (path && approval.kind !== "read" && outside(path, cwd)) found.push("Outside the project folder");
  if (path && /(^|\/)(\.env|[^/]*\.(pem|key))$/.test(path)) found.push("Touches secrets");
  return found;
}

export function outside(path: string, cwd: string): boolean {
  return path.startsWith("/") && cwd !== "" && (!path.startsWith(`${cwd}/`) || path.split("/").includes(".."));
}
