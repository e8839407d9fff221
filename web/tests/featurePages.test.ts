/** Pages of features (src/app/featurePages.ts): added from the host's list, and shown with what ends when the user leaves. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FeaturePageContext, FeatureView, loadFeaturePages } from "../src/app/featurePages";
import { addressOf, linked, rowOf } from "../src/app/places";
import { placeOf } from "../src/app/router";
import type { ViewContext } from "../src/app/view";
import { Net } from "./net";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const tick = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const page = (name: string, more: object = {}) => ({ name, title: `Page ${name}`, icon: "pin", module: `pages/${name}/${name}.js`, ...more });

function opened(module: object | Error | Promise<object>, rest: string[] = []) {
  const [listeners, gone] = [new Set<() => void>(), [] as unknown[]];
  const context = { board: { subscribe: (run: () => void) => (listeners.add(run), () => listeners.delete(run)) }, go: (place: unknown) => gone.push(place), titled: () => undefined } as unknown as ViewContext;
  const load = async () => {
    if (module instanceof Error) throw module;
    return module;
  };
  const view = new FeatureView(page("plans"), context, { at: "page", name: "plans", rest }, load);
  document.body.replaceChildren(view.element);
  return { view, listeners, gone, text: () => view.element.querySelector("[role=alert]")?.textContent ?? "" };
}

describe("the list of the host", () => {
  test("each page gets a link, an address and an icon; an unknown icon is a note", async () => {
    new Net({ "GET /pages": { pages: [page("first"), page("second", { icon: "no-such-icon" })] } });
    const added = vi.fn();
    await Promise.all([loadFeaturePages(added), tick()]);
    const links = linked("side").filter(({ name }) => ["first", "second"].includes(name));
    expect(links.map((each) => [addressOf(each).replace(/^\./, ""), each.row.title, each.row.icon])).toEqual([
      ["/app/first", "Page first", "pin"],
      ["/app/second", "Page second", "note"],
    ]);
    expect([added.mock.calls.length, rowOf(placeOf("/app/first/x"))?.title]).toEqual([1, "Page first"]);
  });

  test.each<["offline" | number]>([["offline"], [502]])("%s: the page starts without them, and they are added when the host answers", async (failure) => {
    const net = new Net({ "GET /pages": { pages: [page(`after-${failure}`)] } });
    net.failing = [failure];
    const added = vi.fn();
    await Promise.all([loadFeaturePages(added), tick()]);
    expect(added).not.toHaveBeenCalled();
    await tick(600);
    expect([added.mock.calls.length, rowOf(placeOf(`/app/after-${failure}`))?.title]).toEqual([1, `Page after-${failure}`]);
  });

  test("a token that may not read them: asked once, and nothing is added", async () => {
    const net = new Net({});
    const added = vi.fn();
    await Promise.all([loadFeaturePages(added), tick(60_000)]);
    expect([net.calls, added.mock.calls.length]).toEqual([["GET /pages"], 0]);
  });
});

describe("the page", () => {
  test("renders below its title, follows changes, and goes to addresses of the workbench", async () => {
    let given: FeaturePageContext | undefined;
    const run = vi.fn();
    const { view, listeners, gone } = opened({ default: (context: FeaturePageContext) => ((given = context), context.onChange(run), context.render(context.html`<b>${context.rest.join()}</b>`, context.element)) }, ["a", "b"]);
    await tick();
    expect([view.element.querySelector("h1")?.textContent, view.element.querySelector(".wide b")?.textContent]).toEqual(["Page plans", "a,b"]);
    for (const each of listeners) each();
    given?.go("/app/s/s1");
    expect([run.mock.calls.length, gone]).toEqual([1, [{ at: "session", id: "s1" }]]);
    given?.report("No room.");
    expect([view.element.querySelector("[role=alert]")?.textContent, view.element.querySelector(".wide b")?.textContent]).toEqual(["No room.", "a,b"]);
    view.leave();
    expect([listeners.size, given?.scope.ended]).toEqual([0, true]);
  });

  test.each<[string, object | Error, string]>([
    ["no module", new TypeError("Failed to fetch dynamically imported module"), "The page Page plans cannot be shown: Failed to fetch dynamically imported module"],
    ["no function", { show: 1 }, "The page Page plans cannot be shown: Its module has no default function."],
    ["a function that throws", { default: () => { throw new Error("no ink"); } }, "The page Page plans cannot be shown: no ink"],
    ["a function that fails later", { default: () => Promise.reject(new Error("no paper")) }, "The page Page plans cannot be shown: no paper"],
  ])("%s: the reason is shown", async (_, module, text) => {
    const shown = opened(module);
    await tick();
    expect(shown.text()).toBe(text);
  });

  test("left while its module is loaded: it never runs", async () => {
    const run = vi.fn();
    let arrive: (module: object) => void = () => undefined;
    const { view, text } = opened(new Promise<object>((done) => (arrive = done)));
    view.leave();
    arrive({ default: run });
    await tick();
    expect([run.mock.calls.length, text()]).toEqual([0, ""]);
  });
});
