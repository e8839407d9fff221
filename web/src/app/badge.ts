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
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2456c4"/><path d="M2.500 14V7.500a5.500 5.500 0 0 1 11 0V14M6 14V8.200a2 2 0 0 1 4 0V14M1.500 14h13" transform="translate(4.800 4.400) scale(1.400)" fill="none" stroke="#fff" stroke-width="1.800"/><circle cx="22" cy="10" r="10" fill="#b87808"/><text x="22" y="15" font-family="sans-serif" font-size="${count > 9 ? 11 : 14}" font-weight="700" fill="#fff" text-anchor="middle">${count > 99 ? "99" : count}</text></svg>`;
