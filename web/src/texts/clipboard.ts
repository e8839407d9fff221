/** Texts of the button that copies. */

export const CLIPBOARD = {
  copy: "Copy",
  copyNamed: (line: string) => `Copy ${line}`,
  copied: "Copied",
} as const;
