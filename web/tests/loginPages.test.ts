/** The pages before a login: by a token, by a provider, and by the code of a pairing. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { textOf } from "./dom";

beforeEach(() => vi.resetModules());
afterEach(() => {
  vi.unstubAllGlobals();
  window.history.replaceState(null, "", "/");
});

const value = (id: string) => (document.getElementById(id) as HTMLInputElement).value;
const hidden = (id: string) => document.getElementById(id)!.hidden;

describe("login", () => {
  async function open(address: string, ways: object | Error = { oidc: null }): Promise<void> {
    document.body.innerHTML = '<p id="login-error"></p><p id="login-link" hidden></p><p id="login-provider" hidden><a id="login-oidc"></a></p><form><input id="login-token"><input id="login-next"></form>';
    vi.stubGlobal("fetch", async () => {
      if (ways instanceof Error) throw ways;
      return Response.json(ways);
    });
    window.history.replaceState(null, "", address);
    await import("../src/login");
    await vi.waitFor(() => undefined);
  }

  test("the error is shown only after a failed login", async () => {
    await open("/login");
    expect(hidden("login-error")).toBe(true);
    vi.resetModules();
    await open("/login?error=1");
    expect(hidden("login-error")).toBe(false);
  });

  test("a link of another site fills in the token, sends nothing, and the token leaves the address", async () => {
    await open("/login?tkn=secret");
    expect([value("login-token"), hidden("login-link"), window.location.href.includes("secret")]).toEqual(["secret", false, false]);
  });

  test.each([
    ["/app/s/s1", "/app/s/s1"],
    ["/", "/"],
    ["//evil.example/x", ""],
    ["/\\evil.example", ""],
    ["https://evil.example/", ""],
    ["javascript:alert(1)", ""],
    ["app", ""],
  ])("after the login the page %j is opened as %j", async (next, wanted) => {
    await open(`/login?${new URLSearchParams({ next })}`);
    expect(value("login-next")).toBe(wanted);
  });

  test("a provider is offered by its name, and the page to return to goes with it", async () => {
    await open("/login?next=/app/inbox", { oidc: "Example" });
    await vi.waitFor(() => expect(textOf("#login-oidc")).toBe("Sign in with Example"));
    expect([hidden("login-provider"), (document.getElementById("login-oidc") as HTMLAnchorElement).getAttribute("href")]).toEqual([false, "./login/oidc?next=%2Fapp%2Finbox"]);
  });

  test("a provider that cannot be used states why, and offers no link", async () => {
    await open("/login", { oidc: "Example", problem: "The library for OpenID Connect is missing: install portico[oidc]." });
    await vi.waitFor(() => expect(hidden("login-provider")).toBe(false));
    expect([textOf("#login-provider"), document.querySelector("#login-oidc")]).toEqual(["The library for OpenID Connect is missing: install portico[oidc].", null]);
  });

  test.each([
    ["no provider", { oidc: null }],
    ["no answer", new TypeError("Failed to fetch")],
  ])("%s: the form works alone", async (_name, ways) => {
    await open("/login", ways);
    expect(hidden("login-provider")).toBe(true);
  });
});

describe("pairing", () => {
  async function open(address: string, agent = "", authority = false): Promise<typeof import("../src/pair")> {
    document.body.innerHTML = '<p id="pair-error"></p><p id="pair-authority" hidden></p><input id="pair-code"><input id="pair-device">';
    vi.stubGlobal("navigator", { userAgent: agent });
    vi.stubGlobal("fetch", async () => ({ ok: authority }));
    window.history.replaceState(null, "", address);
    return import("../src/pair");
  }

  test("a scanned code is filled in, leaves the address, and the name of the device is next", async () => {
    await open("/pair#abcd-efgh", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0)");
    expect([value("pair-code"), value("pair-device"), window.location.hash, document.activeElement?.id]).toEqual(["ABCD-EFGH", "iPhone", "", "pair-device"]);
  });

  test.each(["", "#abc", "#<b>x</b>", "#abcd-efgh-ijkl", "#12345678"])("%j is no code: the field is empty and has the focus", async (hash) => {
    await open(`/pair${hash}`);
    expect([value("pair-code"), document.activeElement?.id]).toEqual(["", "pair-code"]);
  });

  test("a code that was refused shows the error", async () => {
    await open("/pair?error=1");
    expect(hidden("pair-error")).toBe(false);
    vi.resetModules();
    await open("/pair");
    expect(hidden("pair-error")).toBe(true);
  });

  test.each([true, false])("the certificate is offered only by a host with its own authority: %s", async (authority) => {
    await open("/pair", "", authority);
    await vi.waitFor(() => expect(hidden("pair-authority")).toBe(!authority));
  });

  test("devices by their browsers", async () => {
    const { nameOf } = await open("/pair");
    const agents = ["(iPad; CPU OS 17)", "(Linux; Android 15; Pixel)", "(Macintosh; Intel Mac OS X)", "(Windows NT 10.0)", "(X11; Linux x86_64)", "curl/8"];
    expect(agents.map(nameOf)).toEqual(["iPad", "Android", "Mac", "Windows", "Linux", ""]);
  });
});
