/** The message box: what Enter does, what is attached, and which models are offered. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Attachment, MessageBox, post } from "../src/app/messageBox";
import { setPreference } from "../src/app/preferences";
import type { Agent } from "../src/v1";
import { button, textsOf } from "./dom";
import { V1Host } from "./v1Host";

class Box extends MessageBox {
  readonly sent: string[] = [];
  changes = 0;

  protected submit(busy: "queue" | "steer"): void {
    this.sent.push(busy);
  }
  protected changed(): void {
    this.changes += 1;
  }
  protected suggestedBy(): string {
    return "";
  }
  models(agent: Agent | undefined, model: string): HTMLSelectElement {
    this.fillModels(agent, model);
    return this.model;
  }
  get attachments(): Attachment[] {
    return this.attached;
  }
  write(text: string): void {
    this.put(text);
  }
}

let box: Box;
let reports: string[];
let keys: boolean;

beforeEach(() => {
  localStorage.clear();
  keys = true;
  vi.stubGlobal("matchMedia", (query: string) => ({ matches: keys && query.includes("fine"), addEventListener: () => undefined }));
  reports = [];
  box = new Box((text) => reports.push(text));
  document.body.replaceChildren(box.element);
});
afterEach(() => {
  setPreference("enterSends", true);
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

const press = (key: string, more: KeyboardEventInit = {}) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  box.area.dispatchEvent(event);
  return event.defaultPrevented;
};

describe("Enter", () => {
  test.each<[string, { keys?: boolean; enterSends?: boolean }, KeyboardEventInit, string[]]>([
    ["sends", {}, {}, ["queue"]],
    ["with Shift is a line", {}, { shiftKey: true }, []],
    ["with Ctrl is sent now", {}, { ctrlKey: true }, ["steer"]],
    ["with Cmd is sent now", {}, { metaKey: true }, ["steer"]],
    ["is a line where that is preferred", { enterSends: false }, {}, []],
    ["with Ctrl sends also there", { enterSends: false }, { ctrlKey: true }, ["steer"]],
    ["is a line on a phone", { keys: false }, {}, []],
    ["with Ctrl sends also on a phone with a keyboard", { keys: false }, { ctrlKey: true }, ["steer"]],
    ["that ends the writing of a character does nothing", {}, { isComposing: true }, []],
  ])("%s", (_name, where, event, sent) => {
    keys = where.keys ?? true;
    setPreference("enterSends", where.enterSends ?? true);
    expect(press("Enter", event)).toBe(sent.length > 0);
    expect(box.sent).toEqual(sent);
  });

  test("other keys are text", () => {
    expect([press("a"), press("Tab"), press("Escape"), box.sent]).toEqual([false, false, false, []]);
  });

  test("the button sends, and the page is not left", () => {
    const event = new Event("submit", { bubbles: true, cancelable: true });
    box.element.dispatchEvent(event);
    expect([event.defaultPrevented, box.sent]).toEqual([true, ["queue"]]);
  });
});

describe("attachments", () => {
  const chips = () => textsOf(".attached-item");
  /** jsdom cannot read files. */
  const file = (name: string, text: string, type = "text/plain") => Object.assign(new File([text], name, { type }), { arrayBuffer: async () => new TextEncoder().encode(text).buffer });
  const drop = (type: string, files: File[]) => {
    const event = Object.assign(new Event(type, { bubbles: true, cancelable: true }), type === "paste" ? { clipboardData: { files } } : { dataTransfer: { files } });
    (type === "paste" ? box.area : box.element.querySelector(".composer-box")!).dispatchEvent(event);
    return event.defaultPrevented;
  };

  test.each(["paste", "drop"])("by %s", async (type) => {
    expect(drop(type, [file("notes.txt", "hi")])).toBe(true);
    await vi.waitFor(() => expect(chips()).toEqual([expect.stringContaining("notes.txt")]));
    expect(box.attachments).toEqual([{ type: "resource", label: "notes.txt", contentType: "text/plain", data: btoa("hi") }]);
  });

  test("pasted text stays text", () => {
    expect(drop("paste", [])).toBe(false);
    expect(chips()).toEqual([]);
  });

  test("the box shows that it takes what is dragged over it", () => {
    const frame = box.element.querySelector(".composer-box")!;
    drop("dragover", []);
    expect(frame.classList.contains("dropping")).toBe(true);
    drop("dragleave", []);
    expect(frame.classList.contains("dropping")).toBe(false);
    drop("dragover", []);
    drop("drop", []);
    expect(frame.classList.contains("dropping")).toBe(false);
  });

  test("a file without a name or a type has a label and is bytes", async () => {
    drop("paste", [file("", "x", "")]);
    await vi.waitFor(() => expect(box.attachments).toEqual([{ type: "resource", label: "picture", contentType: "application/octet-stream", data: btoa("x") }]));
  });

  test("one that is too large is named with its size; the others are attached", async () => {
    const large = file("film.mp4", "");
    Object.defineProperty(large, "size", { value: 7 * 1024 * 1024 });
    drop("drop", [large, file("a.txt", "a")]);
    await vi.waitFor(() => expect(chips()).toHaveLength(1));
    expect(reports).toEqual(["film.mp4 has 7 MB; a message takes 4 MB. Put it into the folder and name it with @."]);
  });

  test("each is removed by its own button, and the row is hidden without any", async () => {
    drop("drop", [file("a.txt", "a"), file("b.txt", "b")]);
    await vi.waitFor(() => expect(chips()).toHaveLength(2));
    button("Remove a.txt").click();
    expect(box.attachments.map(({ label }) => label)).toEqual(["b.txt"]);
    const before = box.changes;
    button("Remove b.txt").click();
    expect([chips(), box.element.querySelector<HTMLElement>(".attached")!.hidden, box.changes > before]).toEqual([[], true, true]);
  });

  test("a session is sent with its conversation as of now, a file as it is", async () => {
    const reference = { type: "chat", resource: "s2", modelRepresentation: "User: hi" };
    const host = new V1Host({ "GET /sessions/s2/reference": reference, "POST /sessions/s1/messages": {} });
    const resource: Attachment = { type: "resource", label: "a.txt", contentType: "text/plain", data: btoa("a") };
    await post("s1", "see these", "steer", [{ type: "chat", label: "Session: two", resource: "s2" }, resource]);
    expect(host.bodies.get("POST /sessions/s1/messages")).toEqual({ text: "see these", busy: "steer", attachments: [reference, resource] });
  });

  test("a session that is gone is an error, and nothing is sent", async () => {
    const host = new V1Host({ "POST /sessions/s1/messages": {} });
    await expect(post("s1", "see it", "queue", [{ type: "chat", label: "two", resource: "s2" }])).rejects.toThrow("refused with 404");
    expect(host.calls).not.toContain("POST /sessions/s1/messages");
  });
});

describe("models", () => {
  const agent = (models: { id: string; name: string; multiplier?: number }[]) => ({ id: "demo", name: "Demo", models }) as unknown as Agent;
  const names = (select: HTMLSelectElement) => [...select.options].map(({ text }) => text);

  test("are listed with their agent and their price", () => {
    const select = box.models(agent([{ id: "a", name: "Large", multiplier: 2 }, { id: "b", name: "Small", multiplier: 0 }, { id: "c", name: "Plain", multiplier: 1 }]), "b");
    expect([names(select), select.value, select.disabled]).toEqual([["Demo · Large (×2)", "Demo · Small (free)", "Demo · Plain"], "b", false]);
  });

  test("one that the agent does not list any more stays chosen", () => {
    const select = box.models(agent([{ id: "a", name: "Large" }]), "old");
    expect([names(select), select.value]).toEqual([["Demo · old", "Demo · Large"], "old"]);
  });

  test("a single one is shown and cannot be changed; without any, there is nothing to choose", () => {
    expect(box.models(agent([{ id: "a", name: "Large" }]), "a").disabled).toBe(true);
    expect([box.models(agent([]), "").hidden, box.models(undefined, "").hidden]).toEqual([true, true]);
  });
});

test("text that is put into the box reports a change", () => {
  box.write("half a thought");
  expect([box.area.value, box.changes]).toEqual(["half a thought", 1]);
});
