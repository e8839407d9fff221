/** Adds this device: the code comes in the fragment, which is not sent to any server, and is removed from the address. */

import { byId } from "./page";

const code = decodeURIComponent(window.location.hash.slice(1));
if (/^[A-Za-z]{4}-?[A-Za-z]{4}$/.test(code)) byId("pair-code", HTMLInputElement).value = code.toUpperCase();
const failed = new URLSearchParams(window.location.search).has("error");
byId("pair-error").hidden = !failed;
window.history.replaceState(null, "", window.location.pathname);

const device = byId("pair-device", HTMLInputElement);
device.value = nameOf(navigator.userAgent);
(byId("pair-code", HTMLInputElement).value ? device : byId("pair-code")).focus();

// Only a host that was started with --lan has its own authority.
void fetch("./pair/authority.crt", { method: "HEAD" }).then(({ ok }) => (byId("pair-authority").hidden = !ok), () => undefined);

/** What the device is called until its owner types something better. */
export function nameOf(agent: string): string {
  for (const name of ["iPhone", "iPad", "Android", "Macintosh", "Windows", "Linux"]) if (agent.includes(name)) return name === "Macintosh" ? "Mac" : name;
  return "";
}
