/** A new session begins in the box that it goes on in: files, model with its price, mode and own copy are there from the first message. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { BoardStore } from "../src/app/boardStore";
import type { Shell } from "../src/app/shell";
import { firstModel, NewSession } from "../src/app/start";
import { V1Host } from "./v1Host";

describe("the model that is chosen before anybody chooses", () => {
  const models = (...prices: (number | undefined)[]) => prices.map((multiplier, index) => ({ id: `m${index}`, name: `M${index}`, ...(multiplier === undefined ? {} : { multiplier }) }));
  test.each<[prices: (number | undefined)[], last: string | undefined, wanted: string]>([
    [[], undefined, ""],
    [[10], undefined, "m0"],
    [[1, 10, 0], undefined, "m0"],
    [[10, 1, 0], undefined, "m1"],
    [[10, 10, 3], undefined, "m2"],
    [[3, 3], undefined, "m0"],
    [[undefined, undefined], undefined, "m0"],
    [[undefined, 0], undefined, "m1"],
    [[10, 1], "m0", "m0"],
    [[10, 1], "gone", "m1"],
  ])("of prices %j, last used %s: %s", (prices, last, wanted) => expect(firstModel(models(...prices), last)).toBe(wanted));
});

const AGENTS = [
  { id: "absent", name: "Absent", missing: "It is not installed: npm install -g absent" },
  { id: "demo", name: "Demo", models: [{ id: "d", name: "D" }] },
  { id: "codex", name: "Codex", models: [{ id: "big", name: "Big", multiplier: 10 }, { id: "small", name: "Small", multiplier: 0 }] },
];
const ROW = { session: { id: "s1", agent: "codex", cwd: "/w/api", modified: 5 } };
const CHOICE = (mode: string) => ({ mode, modes: [{ id: "off", name: "No sandbox", description: "All." }, { id: "project", name: "Project", description: "The folder." }, { id: "strict", name: "Strict", description: "The model." }] });
let host: V1Host;
let gone: object[];
const find = <T extends Element = HTMLInputElement>(selector: string) => document.querySelector<T>(selector)!;

async function open(): Promise<void> {
  const shell = { board: { rows: new Map([["s1", ROW]]) } as unknown as BoardStore, go: (place: object) => void gone.push(place) } as unknown as Shell;
  document.body.replaceChildren(new NewSession(shell).element);
  await vi.waitFor(() => expect(find("#agents input:checked")).toBeTruthy());
}

beforeEach(() => {
  localStorage.clear();
  gone = [];
  host = new V1Host({
    "GET /agents": { agents: AGENTS, default: "codex" },
    "GET ": { workspaces: ["/w"] },
    "GET /sandbox?cwd=/w/api&agent=codex": CHOICE("off"),
    "GET /sandbox?cwd=/w&agent=codex": CHOICE("strict"),
    "POST /sessions": { id: "s9" },
    "POST /sessions/s9/messages": { turn: "t1" },
  });
});
afterEach(() => vi.unstubAllGlobals());

test("the host's usual agent is chosen, and never its dearest model; prices stand beside the names", async () => {
  await open();
  expect(find("#agents input:checked").value).toBe("codex");
  expect([...find<HTMLSelectElement>("#model").options].map((each) => each.text)).toEqual(["Codex · Big (×10)", "Codex · Small (free)"]);
  expect(find<HTMLSelectElement>("#model").value).toBe("small");
  expect(find("#folder").value).toBe("/w/api");
});

test("the first message takes files along; mode and own copy go with the session", async () => {
  await open();
  const bytes = new TextEncoder().encode("hello");
  const files = [Object.assign(new File([bytes], "a.txt", { type: "text/plain" }), { arrayBuffer: async () => bytes.buffer })]; // jsdom's has none
  Object.defineProperty(find(".composer-box input[type=file]"), "files", { value: files });
  find(".composer-box input[type=file]").dispatchEvent(new Event("change"));
  await vi.waitFor(() => expect(find(".attached-item").textContent).toBe("a.txt · 5 bytes"));
  find<HTMLTextAreaElement>(".composer-box textarea").value = "Read it";
  find(".composer-box #own-copy").checked = true;
  find<HTMLSelectElement>(".composer-box #mode").value = "deny";
  find<HTMLButtonElement>(".composer-box #start").click();
  await vi.waitFor(() => expect(gone).toEqual([{ at: "session", id: "s9" }]));
  expect(host.bodies.get("POST /sessions")).toEqual({ agent: "codex", model: "small", cwd: "/w/api", worktree: true, config: { approvals: "deny" } });
  expect(host.bodies.get("POST /sessions/s9/messages")).toEqual({ text: "Read it", busy: "queue", attachments: [{ type: "resource", label: "a.txt", contentType: "text/plain", data: "aGVsbG8=" }] });
});

test("what was written is there again after a look elsewhere; a message that is refused begins no second session", async () => {
  await open();
  const area = find<HTMLTextAreaElement>("#first");
  area.value = "Do it";
  area.dispatchEvent(new Event("input", { bubbles: true }));
  await open();
  expect(find<HTMLTextAreaElement>("#first").value).toBe("Do it");
  host.answers["POST /sessions/s9/messages"] = 503;
  find<HTMLButtonElement>("#start").click();
  await vi.waitFor(() => expect(find(".trouble").textContent).toContain("503"));
  host.answers["POST /sessions/s9/messages"] = { turn: "t1" };
  find<HTMLButtonElement>("#start").click();
  await vi.waitFor(() => expect(gone).toHaveLength(1));
  expect(host.calls.filter((each) => each === "POST /sessions")).toHaveLength(1);
  await open();
  expect(find<HTMLTextAreaElement>("#first").value).toBe("");
});

test("@ is offered by a session of the same folder, / by one of the same agent, and nothing where nobody knows", async () => {
  host.answers["GET /sessions/s1/suggestions?q=@li"] = { items: [{ text: "@limits.py" }] };
  Element.prototype.scrollIntoView = () => undefined; // jsdom has none
  await open();
  const write = (text: string) => {
    const area = find<HTMLTextAreaElement>("#first");
    area.value = text;
    area.setSelectionRange(text.length, text.length);
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  write("see @li");
  await vi.waitFor(() => expect(find("[role=option]").textContent).toBe("@limits.py"));
  find("#folder").value = "/elsewhere";
  write("see @lim");
  await vi.waitFor(() => expect(find<HTMLElement>(".suggestions").hidden).toBe(true));
  expect(host.calls.filter((each) => each.includes("suggestions"))).toHaveLength(1);
});

test("an agent that lacks something says what, with its command and another check", async () => {
  await open();
  find<HTMLInputElement>('#agents input[value="absent"]').click();
  expect(find(".missing code").textContent).toBe("npm install -g absent");
  expect(find<HTMLButtonElement>("#start").disabled).toBe(true);
  host.answers["POST /agents/absent/check"] = { status: "ready" };
  host.answers["GET /agents"] = { agents: AGENTS.map(({ missing: _, ...agent }) => agent), default: "codex" };
  [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Check again")!.click();
  await vi.waitFor(() => expect(find<HTMLButtonElement>("#start").disabled).toBe(false));
  expect(find("#agents input:checked").value).toBe("absent");
});

describe("the sandbox", () => {
  const pick = () => find<HTMLSelectElement>("#sandbox");
  const start = async () => {
    find<HTMLTextAreaElement>("#first").value = "go";
    find<HTMLButtonElement>("#start").click();
    await vi.waitFor(() => expect(gone.length).toBe(1));
    return (host.bodies.get("POST /sessions") as { config?: object }).config;
  };

  test("is the choice of the host for the folder, and is sent only if it was changed", async () => {
    await open();
    await vi.waitFor(() => expect(pick().hidden).toBe(false));
    expect([...pick().options].map((each) => each.text)).toEqual(["No sandbox", "Sandbox: project", "Sandbox: strict"]);
    expect([pick().value, await start()]).toEqual(["off", undefined]);
  });

  test("is sent with the session when it was changed", async () => {
    await open();
    await vi.waitFor(() => expect(pick().hidden).toBe(false));
    pick().value = "project";
    pick().dispatchEvent(new Event("change"));
    expect([pick().title, await start()]).toEqual(["The folder. The choice is remembered for this folder.", { sandbox: "project" }]);
  });

  test("follows the folder", async () => {
    await open();
    find("#folder").value = "/w";
    find("#folder").dispatchEvent(new Event("input"));
    await vi.waitFor(() => expect(pick().value).toBe("strict"));
    expect(await start()).toBeUndefined();
  });

  test("is not offered where the host cannot answer, and explains what is missing where it cannot work", async () => {
    delete host.answers["GET /sandbox?cwd=/w/api&agent=codex"];
    await open();
    await vi.waitFor(() => expect(host.calls).toContain("GET /sandbox?cwd=/w/api&agent=codex"));
    expect(pick().hidden).toBe(true);
    host.answers["GET /sandbox?cwd=/w/api&agent=codex"] = { mode: "off", modes: [{ id: "off", name: "No sandbox", description: "All." }], problem: "Install bubblewrap." };
    await open();
    await vi.waitFor(() => expect(pick().title).toBe("All. Install bubblewrap."));
    expect(pick().disabled).toBe(true);
  });
});
