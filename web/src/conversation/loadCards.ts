/** The code of the cards. It is loaded together with the state of a session, so that the list does not wait for it. */

type Cards = typeof import("./cards");

let loaded: Cards | undefined;

/** Await it before the first row of a conversation is built. */
export async function loadCards(): Promise<void> {
  loaded ??= await import("./cards");
}

export function cards(): Cards {
  if (!loaded) throw new Error("The code of the cards is not loaded: await loadCards() first.");
  return loaded;
}
