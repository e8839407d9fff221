/** Web push for this browser: a notice when something waits or has ended, also when no page is open. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { ask } from "../v1";
import { PUSH } from "../texts/settings";

const ID = "portico.push";
const KINDS: [value: string, text: string, kinds: string[]][] = [
  ["needed", PUSH.whenIAmNeeded, ["approval", "question", "budget"]],
  ["failed", PUSH.alsoFailures, ["approval", "question", "budget", "job_failed", "automation_failed", "turn_failed"]],
  ["all", PUSH.alsoWhenSomethingIsDone, []],
];

const possible = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window && window.isSecureContext;

/** The host's key as the browser wants it. */
export function keyBytes(key: string): Uint8Array<ArrayBuffer> {
  const text = atob(key.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

const device = () => /\(([^;)]+)/.exec(navigator.userAgent)?.[1]?.slice(0, 80) ?? "";

async function subscribe(key: string, kinds: string[]): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser does not allow notifications of this page. Its settings for this address can change that.");
  const { pushManager } = await navigator.serviceWorker.ready;
  const applicationServerKey = keyBytes(key);
  const had = await pushManager.getSubscription();
  // A subscription for the key of another host cannot be used by this one.
  if (had && encoded(had.options.applicationServerKey) !== key) await had.unsubscribe();
  const { endpoint, keys } = (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })).toJSON();
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const { push } = await ask("POST /push", {}, { body: { endpoint: endpoint ?? "", p256dh: keys?.["p256dh"] ?? "", auth: keys?.["auth"] ?? "", device: device(), kinds, zone } });
  localStorage.setItem(ID, push);
}

function encoded(key: ArrayBuffer | null): string {
  const text = String.fromCharCode(...new Uint8Array(key ?? new ArrayBuffer(0)));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

async function unsubscribe(push: string): Promise<void> {
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe();
  localStorage.removeItem(ID);
  await ask("DELETE /push/{push}", { push });
}

/** At logout: nothing of this login is to appear on this device. */
export async function endPush(): Promise<void> {
  const push = localStorage.getItem(ID);
  if (push && possible()) await unsubscribe(push).catch(() => undefined);
}

/** A row of the settings: whether this browser gets push notices, and for what. */
export async function pushRow(): Promise<HTMLElement> {
  const box = make("div", "stack");
  if (!possible()) {
    box.append(make("p", "soft", PUSH.thisBrowserGetsNoNotices));
    return box;
  }
  const known = await ask("GET /push");
  if (!known.key) {
    box.append(make("p", "soft", PUSH.theHostCannotPush));
    return box;
  }
  const own = known.subscriptions.find(({ push }) => push === localStorage.getItem(ID));
  const label = make("label", "", PUSH.pushToThisBrowser);
  const field = make("select");
  field.id = "push-kinds";
  label.htmlFor = field.id;
  field.append(...KINDS.map(([value, text]) => new Option(text, value)));
  field.value = KINDS.find(([, , kinds]) => kinds.join() === (own?.kinds ?? []).join())?.[0] ?? "needed";
  if (!own) field.value = "needed";
  const status = make("p", "soft", own ? PUSH.thisBrowserGetsNoticesEven : "");
  status.setAttribute("role", "status");
  const act = async (work: () => Promise<void>) => {
    button.disabled = field.disabled = true;
    status.textContent = PUSH.askingTheBrowser;
    try {
      await work();
      box.replaceWith(await pushRow());
    } catch (error) {
      status.textContent = explain(error);
      button.disabled = field.disabled = false;
    }
  };
  const chosen = () => KINDS.find(([value]) => value === field.value)?.[2] ?? [];
  const button = makeButton("", own ? PUSH.turnOffPush : PUSH.turnOnPush, () => void act(() => (own ? unsubscribe(own.push) : subscribe(known.key, chosen()))));
  button.id = "push-button";
  if (own) field.addEventListener("change", () => void act(() => subscribe(known.key, chosen())));
  const row = make("div", "row-field");
  row.append(label, field);
  box.append(row, button, status);
  return box;
}
