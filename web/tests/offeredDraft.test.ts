import { expect, test, vi } from "vitest";
import { apply } from "../src/conversation/fold";
import { offeredDraft, type SessionState } from "../src/conversation/state";
import { OfferedDraft } from "../src/offeredDraft";

const areaWith = (value = "") => Object.assign(document.createElement("textarea"), { value });
const offered = (text: string) => ({ text, origin: { kind: "user" }, _meta: { "portico.offered": true } });

test.each([
  ["", ["please look"], "please look"],
  ["my own words", ["please look"], "my own words\nplease look"],
  ["please look", ["please look"], "please look"],
  ["", ["first", "second"], "second"],
  ["", ["first", ""], ""],
])("with %j in the input, %j leaves %j", (written, texts, left) => {
  const area = areaWith(written);
  const draft = new OfferedDraft("s", area, (text) => (area.value = text));
  for (const text of texts) draft.offer(text);
  expect(area.value).toBe(left);
});

test("what is sent leaves every other input too", async () => {
  const fetch = vi.fn(async () => Response.json({ text: "" }));
  vi.stubGlobal("fetch", fetch);
  const area = areaWith();
  const draft = new OfferedDraft("s", area, (text) => (area.value = text));
  draft.sent();
  expect(fetch).not.toHaveBeenCalled();
  draft.offer("please look");
  draft.sent();
  expect(fetch).toHaveBeenCalledWith("./v1/sessions/s/draft", expect.objectContaining({ method: "PUT", body: '{"text":""}' }));
  vi.unstubAllGlobals();
});

test("only what a program offers counts, not what somebody types in an editor", () => {
  const state: SessionState = { id: "s", agent: "", model: "", cwd: "", pos: 0 };
  const kept = (pos: number, value: object | null) => apply(state, { pos, time: 0, event: { type: "client.kept", key: "draft", value } });
  kept(1, offered("look"));
  expect(offeredDraft(state)).toBe("look");
  kept(2, { text: "look, I type" });
  expect(offeredDraft(state)).toBe("");
  kept(3, offered("again"));
  kept(4, null);
  expect(offeredDraft(state)).toBe("");
});
