/**
 * The key of this login. A browser sends its cookie to every server on the machine, on any port; what a page keeps in its
 * storage stays with its own port. So the host wants both, and a cookie alone opens nothing.
 *
 * The login hands the key over in the fragment of its address, which no server gets to see.
 */

import { root } from "./root";

/** Hosts behind one proxy share an origin, and differ in their path. */
const NAME = `portico.key${new URL(`${root}/`, window.location.href).pathname.replace(/\/$/, "")}`;

const given = /^#key=([0-9a-f]{64})$/.exec(window.location.hash);
if (given?.[1]) {
  window.localStorage.setItem(NAME, given[1]);
  window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
}

const key = () => window.localStorage.getItem(NAME) ?? "";

/** For requests. */
export const keyHeader = (): Record<string, string> => (key() ? { "X-Portico-Key": key() } : {});

/** For what can have no headers: streams, sockets and links. */
export function keyed(address: string): string {
  return key() ? `${address}${address.includes("?") ? "&" : "?"}key=${key()}` : address;
}
