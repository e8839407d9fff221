/** Paired devices: their list, and the code that adds one. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { ask } from "../v1";
import { confirm } from "./confirm";
import { row, tableOf, wrap } from "./table";
import { when } from "../time";
import { DEVICES } from "../texts/settings";

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
  const table = tableOf([DEVICES.device, DEVICES.permissions, DEVICES.added, DEVICES.lastUsed, ""]);
  for (const { name, device = "", scopes, created, used } of devices) {
    const end = makeButton("danger", DEVICES.revoke, () => confirm(DEVICES.revokeQuestion(device), DEVICES.theDeviceIsLoggedOut, DEVICES.revokeText, () => void ask("DELETE /tokens/{id}", { id: name }).then(changed)));
    end.setAttribute("aria-label", DEVICES.revokeNamed(device));
    row(table, device, scopes.join(", "), when(created, Date.now()), used ? when(used, Date.now()) : "not yet", end);
  }
  const add = makeButton("primary", DEVICES.addAPhone, () => void openPairing(changed));
  return [make("h2", "", DEVICES.devices), make("p", "soft", DEVICES.eachDeviceHasASeparate), devices.length ? wrap(table) : make("p", "", DEVICES.noDevicesYet), add];
}

/** Shows a code for one device; the list is shown again when the dialog closes. */
export async function openPairing(changed: () => void = () => undefined): Promise<void> {
  const box = dialog(DEVICES.addAPhone);
  box.addEventListener("close", () => {
    box.remove();
    changed();
  });
  box.showModal();
  try {
    const { code, url, qr, note } = await ask("POST /devices/pair", {}, { body: {} });
    const page = url.split("#")[0] ?? url;
    box.append(drawn(qr), make("p", "pair-code", code), make("p", "soft", DEVICES.scanTheCode(page)));
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
  picture.setAttribute("aria-label", DEVICES.qrCode);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", rows.flatMap((line, y) => [...line].flatMap((bit, x) => (bit === "1" ? [`M${x} ${y}h1v1h-1z`] : []))).join(""));
  picture.append(path);
  return picture;
}
