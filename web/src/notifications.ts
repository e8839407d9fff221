/** Notifications of the browser, if the user enabled them: something is done or needs a person while the page is hidden. */

import { NOTIFICATIONS } from "./texts/portal";

const KEY = "portico.notifications";

const possible = () => "Notification" in window;
const wanted = () => possible() && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";

/** `tag`: a later notification takes the place of an earlier one with the same. `open`: where a click on it leads. */
export function notify(title: string, body: string, tag: string, open?: () => void): void {
  if (!wanted() || !document.hidden) return;
  const shown = new Notification(title, { body, tag });
  shown.addEventListener("click", () => {
    window.focus();
    shown.close();
    open?.();
  });
}

/** A button that switches them on, which asks the browser once, and off again. */
export function notificationButton(button: HTMLButtonElement): void {
  const render = () => {
    button.setAttribute("aria-pressed", String(wanted()));
    button.textContent = wanted() ? NOTIFICATIONS.notificationsAre : NOTIFICATIONS.notifyMe;
  };
  button.hidden = !possible();
  button.addEventListener("click", () => void toggle().then(render));
  render();
}

async function toggle(): Promise<void> {
  if (wanted()) localStorage.setItem(KEY, "off");
  else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEY, "on");
  else window.alert(NOTIFICATIONS.theBrowserDoesNotAllow);
}
