/** Shows on the page that the host cannot be reached, as long as any connection fails. */

import { make } from "./page";
import { CONNECTION } from "./texts/failure";

const troubled = new Set<object>();
let banner: HTMLElement | undefined;

export function reportConnection(loop: object, up: boolean): void {
  if (up) troubled.delete(loop);
  else troubled.add(loop);
  if (troubled.size > 0 && !banner?.isConnected) banner = addBanner();
  if (banner) banner.hidden = troubled.size === 0;
}

function addBanner(): HTMLElement {
  const element = make("div", "connection-lost", CONNECTION.connectionLostTryingAgain);
  element.setAttribute("role", "status");
  document.body.append(element);
  return element;
}
