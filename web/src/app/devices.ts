/** Paired devices: their list, and the code that adds one. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { ask } from "../v1";
import { confirm } from "./confirm";
import { row, tableOf, wrap } from "./table";
import { when } from "../time";

interface DeviceToken {
  name: string;
  scopes: string[];
  created: number;
  used?: number;
  device?: string;
}

/** The section of the settings; `changed` shows it again. */
export async function devicesSection(changed: () => void): Promise<Node[]> {
  const { tokens } = (await ask("GET /tokens")) as { tokens: DeviceToken[] };
  const devices = tokens.filter(({ device }) => device);
  const table = tableOf(["Device", "Permissions", "Added", "Last used", ""]);
  for (const { name, device = "", scopes, created, used } of devices) {
    const end = makeButton("danger", "Revoke…", () => confirm(`Revoke ${device}?`, "The device is logged out within a second. To use it again, add it again.", "Revoke", () => void ask("DELETE /tokens/{id}", { id: name }).then(changed)));
    end.setAttribute("aria-label", `Revoke ${device}`);
    row(table, device, scopes.join(", "), when(created, Date.now()), used ? when(used, Date.now()) : "not yet", end);
  }
  const add = makeButton("primary", "Add a phone", () => void openPairing(changed));
  return [make("h2", "", "Devices"), make("p", "soft", "Each device has a separate login that you can revoke here."), devices.length ? wrap(table) : make("p", "", "No devices yet."), add];
}

/** Shows a code for one device; the list is shown again when the dialog closes. */
export async function openPairing(changed: () => void = () => undefined): Promise<void> {
  const box = dialog("Add a phone");
  box.addEventListener("close", () => {
    box.remove();
    changed();
  });
  box.showModal();
  try {
    const { code, url, qr, note } = await ask("POST /devices/pair", {}, { body: {} });
    const page = url.split("#")[0] ?? url;
    box.append(drawn(qr), make("p", "pair-code", code), make("p", "soft", `Scan the code with the phone, or open ${page} and type it. It is valid for five minutes and one device.`));
    if (note) box.append(make("p", "soft", note));
  } catch (error) {
    box.append(make("p", "trouble", explain(error)));
  }
}

const SVG = "http://www.w3.org/2000/svg";

/** The QR code as a picture: dark on light in every theme, because cameras need it. */
export function drawn(rows: string[]): SVGSVGElement {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${rows.length} ${rows.length}`);
  picture.setAttribute("class", "qr");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "QR code");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", rows.flatMap((line, y) => [...line].flatMap((bit, x) => (bit === "1" ? [`M${x} ${y}h1v1h-1z`] : []))).join(""));
  picture.append(path);
  return picture;
}
