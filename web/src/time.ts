/** Times, durations, tokens and cost, in one form on every page: 38 s, 4 min, 9:58, Sun, 3 Nov; never "0.0 s". */

import { plural } from "./texts/plural";

const pad = (number: number) => String(number).padStart(2, "0");

/** A running clock: 0:38, 12:05, 1:02:03. */
export function elapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

/** How long something waits or took. Empty below 0.05 s. */
export function span(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 0.05) return "";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`;
}

/** How long something took; never empty. */
export const tookOf = (milliseconds: number): string => span(milliseconds) || "under 1 s";

export const startOfDay = (time: number) => new Date(time).setHours(0, 0, 0, 0);

export type Day = "today" | "yesterday" | "older";

export function dayOf(time: number, now: number): Day {
  const today = startOfDay(now);
  if (time >= today) return "today";
  return time >= startOfDay(today - 1) ? "yesterday" : "older";
}

export const clock = (time: number) => new Date(time).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });

/** When something was: minutes ago, the time of today, the weekday of this week, else the date. */
export function when(time: number, now: number): string {
  const minutes = (now - time) / 60_000;
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  if (dayOf(time, now) === "today") return clock(time);
  const date = new Date(time);
  if (startOfDay(now) - startOfDay(time) < 6.5 * 86_400_000) return date.toLocaleDateString([], { weekday: "short" });
  const year = date.getFullYear() === new Date(now).getFullYear() ? {} : ({ year: "numeric" } as const);
  return date.toLocaleDateString([], { day: "numeric", month: "short", ...year });
}

/** The same in a sentence: "5 min ago". */
export function ago(time: number, now = Date.now()): string {
  const minutes = Math.floor((now - time) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return new Date(time).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

export function tokens(count: number): string {
  if (count < 1000) return plural(count, "token");
  return count < 999_500 ? `${Math.round(count / 1000)} k tokens` : `${(count / 1e6).toFixed(1)} M tokens`;
}

/** A plain number of tokens, as tables show it. */
export function count(number: number): string {
  if (number < 10_000) return String(number);
  return number < 999_500 ? `${Math.round(number / 1e3)} k` : `${(number / 1e6).toFixed(1)} M`;
}

export const dollars = (amount: number): string => (amount < 0.01 ? "under $0.01" : `$${amount.toFixed(2)}`);

/** An agent that reports no price is not free. */
export function cost(amount: number | undefined, used = true): string {
  if (!amount) return used ? "cost unknown" : "";
  return dollars(amount);
}
