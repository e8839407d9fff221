/** Devices that were paired: the list, revoking one, and the code that adds one. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { devicesSection, drawn, openPairing } from "../src/app/devices";
import { button, stubDialogs, textOf, textsOf } from "./dom";
import { V1Host } from "./v1Host";

beforeEach(() => {
  stubDialogs();
  document.body.replaceChildren();
});
afterEach(() => {
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

const TOKENS = [
  { name: "device-1", device: "Ann's iPhone", scopes: ["read", "approve"], created: Date.now() - 120_000, used: Date.now() - 60_000 },
  { name: "device-2", device: "Tablet", scopes: ["read"], created: Date.now() - 120_000 },
  { name: "script", scopes: ["read"], created: 0 },
];
const rows = () => [...document.querySelectorAll("tr")].map((row) => textsOf("td", row)).filter((cells) => cells.length > 1);

async function open(answers: ConstructorParameters<typeof V1Host>[0], changed = () => undefined as void): Promise<V1Host> {
  const host = new V1Host(answers);
  document.body.replaceChildren(...(await devicesSection(changed)));
  return host;
}

describe("the list", () => {
  test("shows devices with what they may do and when they were used, and no other tokens", async () => {
    await open({ "GET /tokens": { tokens: TOKENS } });
    expect(rows().map((row) => row.slice(0, 4))).toEqual([
      ["Ann's iPhone", "read, approve", "2 min", "1 min"],
      ["Tablet", "read", "2 min", "not yet"],
    ]);
  });

  test("without devices, there is only the button that adds one", async () => {
    await open({ "GET /tokens": { tokens: [TOKENS[2]!] } });
    expect([textsOf("p").at(-1), rows(), textsOf("button")]).toEqual(["No devices yet.", [], ["Add a phone"]]);
  });

  test("Revoke asks first, ends the token by its name, and the list is read again", async () => {
    const changed = vi.fn();
    const host = await open({ "GET /tokens": { tokens: TOKENS }, "DELETE /tokens/device-1": {} }, changed);
    button("Revoke Ann's iPhone").click();
    expect([textOf("dialog h2"), host.calls]).toEqual(["Revoke Ann's iPhone?", ["GET /tokens"]]);
    button("Revoke", document.querySelector("dialog")!).click();
    await vi.waitFor(() => expect(changed).toHaveBeenCalledOnce());
    expect(host.calls).toContain("DELETE /tokens/device-1");
  });
});

describe("a code", () => {
  const CODE = { code: "ABCD-EFGH", url: "https://host.example/pair#ABCD-EFGH", qr: ["101", "010", "111"] };

  test("is shown with its picture and the address to open; the address has no code in it", async () => {
    new V1Host({ "POST /devices/pair": CODE });
    await openPairing();
    expect([textOf(".pair-code"), textOf("dialog .soft")]).toEqual(["ABCD-EFGH", "Scan the code with the phone, or open https://host.example/pair and type it. It is valid for five minutes and one device."]);
    expect(document.querySelector("dialog svg")?.getAttribute("aria-label")).toBe("QR code");
  });

  test("the list is read again when the dialog closes, and the code is gone", async () => {
    new V1Host({ "POST /devices/pair": CODE });
    const changed = vi.fn();
    await openPairing(changed);
    expect(changed).not.toHaveBeenCalled();
    document.querySelector("dialog")!.close();
    expect([changed.mock.calls.length, document.querySelector("dialog")]).toEqual([1, null]);
  });

  test("a host that refuses shows why", async () => {
    new V1Host({ "POST /devices/pair": 403 });
    await openPairing();
    expect([textOf("dialog .trouble"), document.querySelector("dialog svg")]).toEqual(["refused with 403", null]);
  });

  test.each([
    [["1"], "M0 0h1v1h-1z", "0 0 1 1"],
    [["10", "01"], "M0 0h1v1h-1zM1 1h1v1h-1z", "0 0 2 2"],
    [["000", "000", "000"], "", "0 0 3 3"],
  ])("%j is drawn as %j", (lines, path, box) => {
    const picture = drawn(lines);
    expect([picture.querySelector("path")?.getAttribute("d"), picture.getAttribute("viewBox")]).toEqual([path, box]);
  });
});
