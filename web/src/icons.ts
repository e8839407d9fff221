/** The icons: drawn by us, 16 by 16, in the color of the text around them. A text or an accessible name is always next to them. */

export const SHAPES = {
  plus: '<path d="M8 3v10M3 8h10"/>',
  search: '<circle cx="7" cy="7" r="4.2"/><path d="m10.2 10.2 3.3 3.3"/>',
  inbox: '<path d="M2 9.5 4 3.5h8l2 6v3H2zM2 9.5h3.5c0 1.4 1 2 2.5 2s2.5-.6 2.5-2H14"/>',
  jobs: '<rect x="5.5" y="1.8" width="5" height="3.6" rx="1"/><rect x="1.5" y="10.6" width="5" height="3.6" rx="1"/><rect x="9.5" y="10.6" width="5" height="3.6" rx="1"/><path d="M8 5.4V8M4 10.600V8h8v2.6"/>',
  usage: '<path d="M2.5 13.500h11M4.5 11V7.500M8 11V3M11.5 11V5.5"/>',
  chats: '<path d="M2 3h12v8H7l-3 2.600V11H2z"/>',
  panel: '<rect x="2" y="2.5" width="12" height="11" rx="2"/><path d="M10 2.500v11"/>',
  more: '<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2.4"/>',
  next: '<path d="m6 4 4 4-4 4"/>',
  down: '<path d="m4 6 4 4 4-4"/>',
  back: '<path d="m10 3-5 5 5 5"/>',
  check: '<path d="m3.5 8.5 3 3 6-7"/>',
  close: '<path d="m4 4 8 8M12 4l-8 8"/>',
  need: '<circle cx="8" cy="8" r="6.2"/><path d="M8 4.800v3.800M8 11.200h.01"/>',
  ask: '<circle cx="8" cy="8" r="6.2"/><path d="M6.3 6.300c.1-2.3 3.5-2 3.4 0C9.6 7.600 8 7.600 8 9M8 11.400h.01"/>',
  work: '<circle cx="8" cy="8" r="5.8" opacity=".25"/><path d="M8 2.200A5.8 5.8 0 0 1 13.8 8"/>',
  todo: '<circle cx="8" cy="8" r="5.8" stroke-dasharray="1.5 2.4"/>',
  done: '<circle cx="8" cy="8" r="6.2"/><path d="m5.3 8.3 1.9 1.900 3.5-4"/>',
  failed: '<circle cx="8" cy="8" r="6.2"/><path d="m5.9 5.900 4.2 4.200M10.1 5.900l-4.2 4.2"/>',
  interrupted: '<circle cx="8" cy="8" r="6.2" stroke-dasharray="2.6 2.270"/><path d="M6.5 6v4M9.5 6v4"/>',
  file: '<path d="M4 1.800h5l3 3v9.400H4zM9 1.800v3h3"/>',
  terminal: '<rect x="1.8" y="2.8" width="12.4" height="10.4" rx="2"/><path d="m4.5 6 2 2-2 2M8.5 10H11"/>',
  send: '<path d="M8 13V3.500M4 7.200l4-4 4 4"/>',
  stop: '<rect x="4" y="4" width="8" height="8" rx="1.5"/>',
  branch: '<circle cx="4.5" cy="3.5" r="1.7"/><circle cx="4.5" cy="12.5" r="1.7"/><circle cx="11.5" cy="5" r="1.7"/><path d="M4.5 5.200v5.600M11.5 6.700c0 2.600-7 1.300-7 4.1"/>',
  folder: '<path d="M1.8 4a1 1 0 0 1 1-1h3.400l1.5 1.700h5.500a1 1 0 0 1 1 1v6.300a1 1 0 0 1-1 1H2.800a1 1 0 0 1-1-1z"/>',
  shield: '<path d="M8 1.800 13 3.600v4c0 3.200-2 5.400-5 6.600-3-1.200-5-3.400-5-6.600v-4z"/>',
  edit: '<path d="M3 13l.7-3L11 2.700l2.3 2.300L6 12.300z"/>',
  note: '<path d="M2.5 3h11v7.500H8L5 13v-2.500H2.500z"/>',
  think: '<path d="M6 12h4M6.500 14h3M8 2a4.200 4.200 0 0 0-2.400 7.600v.9h4.800v-.9A4.200 4.200 0 0 0 8 2z"/>',
  theme: '<path d="M13 9.600A5.600 5.600 0 0 1 6.400 3 5.600 5.600 0 1 0 13 9.600z"/>',
  settings: '<circle cx="8" cy="8" r="2.2"/><path d="M8 1.800v2M8 12.200v2M1.800 8h2M12.200 8h2M3.600 3.600 5 5M11 11l1.400 1.400M12.400 3.600 11 5M5 11l-1.400 1.4"/>',
  arch: '<path d="M2.500 14V7.500a5.500 5.500 0 0 1 11 0V14M6 14V8.200a2 2 0 0 1 4 0V14M1.500 14h13"/>',
  clock: '<circle cx="8" cy="8" r="6.2"/><path d="M8 4.500V8l2.500 1.5"/>',
  pin: '<path d="M6 2h4l-.5 4.500 2.500 2.500v1H4V9l2.500-2.500zM8 10v4"/>',
  unpin: '<path d="M6 2h4l-.5 4.500 2.500 2.500v1H4V9l2.500-2.500zM8 10v4M2.500 2.500l11 11"/>',
  archive: '<path d="M2 3h12v3H2zM3 6v7.500h10V6M6.500 9h3"/>',
  unarchive: '<path d="M2 3h12v3H2zM3 6v7.500h10V6M8 12V8.200M6 10l2-2 2 2"/>',
  resume: '<path d="M5 3v10l8-5z"/>',
} as const;

export type Icon = keyof typeof SHAPES;

export function icon(name: Icon, className = ""): SVGSVGElement {
  const found = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  found.setAttribute("viewBox", "0 0 16 16");
  found.setAttribute("aria-hidden", "true");
  if (className) found.setAttribute("class", className);
  found.innerHTML = SHAPES[name];
  return found;
}
