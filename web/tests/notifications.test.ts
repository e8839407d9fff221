import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { notificationButton, notify } from "../src/notifications";

const shown: { title: string; body: string }[] = [];
let answer: NotificationPermission = "granted";

class FakeNotification extends EventTarget {
  static permission: NotificationPermission = "default";
  static requestPermission = async () => (FakeNotification.permission = answer);
  constructor(title: string, { body = "" }: NotificationOptions) {
    super();
    shown.push({ title, body });
  }
}

const hide = (hidden: boolean) => vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
const pressed = (button: HTMLElement) => button.getAttribute("aria-pressed");

beforeEach(() => {
  shown.length = 0;
  answer = "granted";
  FakeNotification.permission = "default";
  localStorage.clear();
  vi.stubGlobal("Notification", FakeNotification);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test("nobody is told who did not ask, or who looks at the page", async () => {
  const button = document.createElement("button");
  notificationButton(button);
  hide(true);
  notify("a", "not asked for", "s");
  button.click();
  await vi.waitFor(() => expect(pressed(button)).toBe("true"));
  notify("b", "done", "s");
  hide(false);
  notify("c", "looks at it", "s");
  button.click();
  await vi.waitFor(() => expect(pressed(button)).toBe("false"));
  hide(true);
  notify("d", "switched off", "s");
  expect(shown).toEqual([{ title: "b", body: "done" }]);
});

test("a browser that refuses is no silent failure", async () => {
  answer = "denied";
  const alert = vi.fn();
  vi.stubGlobal("alert", alert);
  const button = document.createElement("button");
  notificationButton(button);
  button.click();
  await vi.waitFor(() => expect(alert).toHaveBeenCalledOnce());
  expect(pressed(button)).toBe("false");
});
