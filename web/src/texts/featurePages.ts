/** Texts around the pages of features. */

export const FEATURE_PAGES = {
  noFunction: "Its module has no default function.",
  failed: (title: string, reason: string) => `The page ${title} cannot be shown: ${reason}`,
} as const;
