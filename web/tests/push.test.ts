/** Push to this browser: what the settings offer, what the host stores, and what a logout ends. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { endPush, keyBytes, pushRow } from "../src/app/push";
import { button, choose, textOf } from "./dom";
import { V1Host } from "./v1Host";

const KEY = "BAEC_-8"; // bytes 4, 1, 2, 255, 239
const NEEDED = ["approval", "question", "budget"];

/** The push service of a browser: one subscription, made for a key. */
class Service {
  had: { key: string } | undefined;
  readonly log: string[] = [];
  readonly manager = {
    getSubscription: async () => this.had && this.subscription(this.had.key),
    subscribe: async ({ applicationServerKey }: { applicationServerKey: Uint8Array }) => {
      this.had = { key: btoa(String.fromCharCode(...applicationServerKey)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "") };
      this.log.push(`subscribed ${this.had.key}`);
      return this.subscription(this.had.key);
    },
  };

  private subscription(key: string) {
    return {
      options: { applicationServerKey: keyBytes(key).buffer },
      unsubscribe: async () => {
        this.log.push(`unsubscribed ${key}`);
        this.had = undefined;
      },
      toJSON: () => ({ endpoint: "https://push.example/1", keys: { p256dh: "P", auth: "A" } }),
    };
  }
}

let service: Service;
let permission: NotificationPermission;

beforeEach(() => {
  service = new Service();
  permission = "granted";
  localStorage.clear();
  vi.stubGlobal("PushManager", class {});
  vi.stubGlobal("Notification", { requestPermission: async () => permission });
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("navigator", { serviceWorker: { ready: Promise.resolve({ pushManager: service.manager }) }, userAgent: "Mozilla/5.0 (X11; Linux x86_64) Test" });
});
afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

async function open(answers: ConstructorParameters<typeof V1Host>[0]): Promise<V1Host> {
  const host = new V1Host(answers);
  document.body.replaceChildren(await pushRow());
  return host;
}

const status = () => textOf("[role=status]");

test("the key of the host as the browser needs it", () => expect([...keyBytes(KEY)]).toEqual([4, 1, 2, 255, 239]));

describe("where push is not possible", () => {
  test.each([
    ["no PushManager", () => Reflect.deleteProperty(window, "PushManager")],
    ["an address without https", () => vi.stubGlobal("isSecureContext", false)],
    ["no service worker", () => vi.stubGlobal("navigator", {})],
  ])("%s: the reason is shown, and the host is not asked", async (_name, without) => {
    without();
    const host = await open({});
    expect(textOf("p")).toMatch(/^This browser gets no notices while no page is open: push needs https/);
    expect([host.calls, document.querySelector("button")]).toEqual([[], null]);
  });

  test("the host has no key: the command that adds it is shown", async () => {
    await open({ "GET /push": { key: "", subscriptions: [] } });
    expect(textOf("p")).toBe("The host cannot push to browsers: install portico[push] there and restart it.");
  });
});

describe("turning it on", () => {
  const off = { "GET /push": { key: KEY, subscriptions: [] }, "POST /push": { push: "p1" } };

  test("subscribes for the host's key and stores what is wanted", async () => {
    const host = await open(off);
    expect([status(), document.querySelector("select")!.value]).toEqual(["", "needed"]);
    host.answers["GET /push"] = { key: KEY, subscriptions: [{ push: "p1", kinds: NEEDED }] };
    button("Turn on push").click();
    await vi.waitFor(() => expect(status()).toBe("This browser gets notices, even when no page is open."));
    expect(service.log).toEqual([`subscribed ${KEY}`]);
    const { zone, ...body } = host.bodies.get("POST /push") as Record<string, unknown>;
    expect(body).toEqual({ endpoint: "https://push.example/1", p256dh: "P", auth: "A", device: "X11", kinds: NEEDED });
    expect([typeof zone, localStorage.getItem("portico.push"), button("Turn off push").disabled]).toEqual(["string", "p1", false]);
  });

  test.each([
    ["failed", ["approval", "question", "budget", "job_failed", "automation_failed", "turn_failed"]],
    ["all", []],
  ])("%s", async (value, kinds) => {
    const host = await open(off);
    choose(document.querySelector("select")!, value);
    button("Turn on push").click();
    await vi.waitFor(() => expect(host.bodies.get("POST /push")).toMatchObject({ kinds }));
  });

  test("a subscription for another host is replaced", async () => {
    service.had = { key: "AAAA" };
    await open(off);
    button("Turn on push").click();
    await vi.waitFor(() => expect(service.log).toEqual(["unsubscribed AAAA", `subscribed ${KEY}`]));
  });

  test("the browser does not allow it: that is shown, and it can be tried again", async () => {
    permission = "denied";
    const host = await open(off);
    button("Turn on push").click();
    await vi.waitFor(() => expect(status()).toMatch(/^The browser does not allow notifications/));
    expect([host.calls.includes("POST /push"), button("Turn on push").disabled, localStorage.getItem("portico.push")]).toEqual([false, false, null]);
  });

  test("the host refuses it: its text is shown, and nothing is stored", async () => {
    await open({ ...off, "POST /push": 400 });
    button("Turn on push").click();
    await vi.waitFor(() => expect(status()).toBe("refused with 400"));
    expect(localStorage.getItem("portico.push")).toBeNull();
  });
});

describe("this browser is subscribed", () => {
  const on = { "GET /push": { key: KEY, subscriptions: [{ push: "p1", kinds: [] }, { push: "other", kinds: NEEDED }] }, "POST /push": { push: "p2" }, "DELETE /push/p1": {} };

  beforeEach(() => {
    localStorage.setItem("portico.push", "p1");
    service.had = { key: KEY };
  });

  test("its own choice is shown, not that of another device", async () => {
    await open(on);
    expect([document.querySelector("select")!.value, status()]).toEqual(["all", "This browser gets notices, even when no page is open."]);
  });

  test("another choice is stored immediately", async () => {
    const host = await open(on);
    choose(document.querySelector("select")!, "needed");
    await vi.waitFor(() => expect(localStorage.getItem("portico.push")).toBe("p2"));
    expect(host.bodies.get("POST /push")).toMatchObject({ kinds: NEEDED });
  });

  test("turning it off ends it in the browser and at the host", async () => {
    const host = await open(on);
    button("Turn off push").click();
    await vi.waitFor(() => expect(host.calls).toContain("DELETE /push/p1"));
    expect([service.log, localStorage.getItem("portico.push")]).toEqual([[`unsubscribed ${KEY}`], null]);
  });

  test("a logout ends it, also when the host does not answer", async () => {
    new V1Host({}).down = true;
    await endPush();
    expect([service.had, localStorage.getItem("portico.push")]).toEqual([undefined, null]);
  });

  test("a logout of a browser without push asks for nothing", async () => {
    localStorage.clear();
    const host = new V1Host({});
    await endPush();
    expect([host.calls, service.log]).toEqual([[], []]);
  });
});
