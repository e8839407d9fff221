/** Texts of a helper, a session inside of another one. */

export const HELPER = {
  aHelper: "A helper",
  conversationOfTheHelper: "Conversation of the helper",
  openItAsASession: "Open it as a session",
  itIsGone: "It is gone.",
  helps: (activity: string) => ` helps: ${activity}`,
  helped: (did: string) => ` helped${did ? `: ${did}` : ""}`,
} as const;
