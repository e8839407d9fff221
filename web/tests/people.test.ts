/** Who works here: nobody is removed and no token ended in one click, and the steps of jobs are no people. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Row } from "../src/app/entries";
import { showPeople, whose } from "../src/app/people";
import { V1Host } from "./v1Host";

let host: V1Host;
const body = document.createElement("div");

beforeEach(async () => {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    document.body.append(this); // jsdom shows none
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.remove();
  };
  host = new V1Host({
    "GET /people/me": { person: "ben", scopes: ["read"], admin: true, quotas: [], tokens: [{ name: "laptop", scopes: ["read"], created: 0 }] },
    "GET /people": { people: [{ name: "ann", scopes: ["read"], login: "", quotas: [] }] },
    "DELETE /people/ann": {},
    "DELETE /people/me/tokens/laptop": {},
  });
  document.body.replaceChildren(body);
  await showPeople(body);
});
afterEach(() => vi.unstubAllGlobals());

test.each([
  ["Remove ann: their tokens and logins end, their sessions stay", "Remove", "DELETE /people/ann"],
  ["Revoke laptop", "Revoke", "DELETE /people/me/tokens/laptop"],
])("%s asks first", async (name, action, request) => {
  document.querySelector<HTMLElement>(`[aria-label="${name}"]`)!.click();
  expect(host.calls).not.toContain(request);
  [...document.querySelectorAll<HTMLElement>("dialog button")].find(({ textContent }) => textContent === action)!.click();
  await vi.waitFor(() => expect(host.calls).toContain(request));
});

test.each<[Partial<Row["session"]>, string]>([
  [{ by: "token:owner" }, "owner"],
  [{ by: "task:task-12" }, ""],
  [{ by: "task:task-12", owner: "ann" }, "ann"],
  [{ owner: "ann" }, "ann"],
  [{}, "someone"],
])("%j is of %s", (session, name) => expect(whose(session as Row["session"])).toBe(name));
