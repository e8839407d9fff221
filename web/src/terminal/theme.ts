/** The colours of a terminal by day and by night; each readable on its ground. */

import type { ITheme } from "@xterm/xterm";

const DAY: ITheme = {
  background: "#ffffff",
  foreground: "#1b2029",
  cursor: "#2657bd",
  cursorAccent: "#ffffff",
  selectionBackground: "#c9d9f8",
  black: "#1b2029",
  red: "#b0241c",
  green: "#17713c",
  yellow: "#7a5200",
  blue: "#2657bd",
  magenta: "#8a2f9c",
  cyan: "#0e6a78",
  white: "#566072",
  brightBlack: "#566072",
  brightRed: "#c8322a",
  brightGreen: "#1a7f44",
  brightYellow: "#8a5f00",
  brightBlue: "#3567d6",
  brightMagenta: "#9c3cb0",
  brightCyan: "#127887",
  brightWhite: "#1b2029",
};

const NIGHT: ITheme = {
  background: "#1a1e25",
  foreground: "#e4e8ee",
  cursor: "#8db3ff",
  cursorAccent: "#0c1830",
  selectionBackground: "#33456b",
  black: "#495364",
  red: "#ff9a92",
  green: "#6fd196",
  yellow: "#e8bd62",
  blue: "#8db3ff",
  magenta: "#e0a3ee",
  cyan: "#79d3e0",
  white: "#d5dae2",
  brightBlack: "#9fa9b8",
  brightRed: "#ffb3ad",
  brightGreen: "#93e0b0",
  brightYellow: "#f2d083",
  brightBlue: "#adc8ff",
  brightMagenta: "#ecc0f5",
  brightCyan: "#9be3ed",
  brightWhite: "#ffffff",
};

export const themeOf = (dark: boolean): ITheme => (dark ? NIGHT : DAY);
