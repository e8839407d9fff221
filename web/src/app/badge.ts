/** How many things wait, on the icon of the tab and of the installed app. */

import { root } from "../root";

let shown = 0;

export function badge(count: number): void {
  if (count === shown) return;
  shown = count;
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (link) link.href = count === 0 ? `${root}/favicon.svg` : `data:image/svg+xml,${encodeURIComponent(drawn(count))}`;
  const app = navigator as Navigator & { setAppBadge?(count: number): Promise<void>; clearAppBadge?(): Promise<void> };
  // Not every browser has it, and some refuse it outside of an installed app.
  (count ? app.setAppBadge?.(count) : app.clearAppBadge?.())?.catch(() => undefined);
}

const drawn = (count: number) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2456c4"/><path d="M7 27V15a9 9 0 0 1 18 0v12" fill="none" stroke="#fff" stroke-width="3"/><circle cx="22" cy="10" r="10" fill="#b87808"/><text x="22" y="15" font-family="sans-serif" font-size="${count > 9 ? 11 : 14}" font-weight="700" fill="#fff" text-anchor="middle">${count > 99 ? "99" : count}</text></svg>`;
