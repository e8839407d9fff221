/** Preferences of this device: stored in the browser, applied immediately. */

export interface Preferences {
  theme: "system" | "light" | "dark";
  contrast: "system" | "more";
  enterSends: boolean;
  letters: boolean;
  sideBySide: boolean | "auto";
}

const KEY = "portico.preferences";
const FIRST: Preferences = { theme: "system", contrast: "system", enterSends: true, letters: true, sideBySide: "auto" };

let kept: Preferences | undefined;

export function preferences(): Preferences {
  if (kept) return kept;
  try {
    kept = { ...FIRST, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Preferences>) };
  } catch {
    kept = { ...FIRST };
  }
  return kept;
}

export const prefer = <K extends keyof Preferences>(name: K): Preferences[K] => preferences()[name];

export function setPreference<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  preferences()[name] = value;
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences()));
  } catch {
    // Not allowed: it holds until the page is closed.
  }
  applyLook();
}

export function applyLook(): void {
  const root = document.documentElement;
  const { theme, contrast } = preferences();
  const dark = theme === "dark" || (theme === "system" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset["theme"] = dark ? "dark" : "light";
  if (contrast === "more" || window.matchMedia("(prefers-contrast: more)").matches) root.dataset["contrast"] = "more";
  else delete root.dataset["contrast"];
  document.querySelector('meta[name="theme-color"]')?.setAttribute("content", dark ? "#0f1115" : "#f5f6f8");
}

export function watchLook(): void {
  applyLook();
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) window.matchMedia(query).addEventListener("change", applyLook);
}

/** Widths, and whether the panel is open, belong to a kind of screen. */
export const sizeClass = () => (window.innerWidth >= 1800 ? "large" : window.innerWidth >= 1280 ? "middle" : "small");

/** Widths, tabs and folded groups: small things that are remembered as they are left. */
export function remembered(name: string): string | undefined {
  return localStorage.getItem(`portico.${name}`) ?? undefined;
}

export function remember(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(`portico.${name}`);
    else localStorage.setItem(`portico.${name}`, value);
  } catch {
    // Not allowed: forgotten with the page.
  }
}
