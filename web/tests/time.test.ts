/** Durations, tokens and cost have one form on every page. */

import { bytes } from "../src/bytes";
import { expect, test } from "vitest";
import { duration, words } from "../src/conversation/words";
import { plural } from "../src/texts/plural";
import { cost, count, dollars, span, tokens, tookOf } from "../src/time";

/** The bug: 80 s was "80 s" in a conversation and "1 min" on the page of a job. */
test.each([
  [0, ""],
  [49, ""],
  [50, "0.1 s"],
  [9_940, "9.9 s"],
  [9_950, "10 s"],
  [59_400, "59 s"],
  [65_000, "1 min"],
  [80_000, "1 min"],
  [90_000, "2 min"],
  [59 * 60_000, "59 min"],
  [90 * 60_000, "2 h"],
  [47 * 3_600_000, "47 h"],
  [72 * 3_600_000, "3 days"],
])("%i ms are %j everywhere", (milliseconds, text) => {
  expect([span(milliseconds), duration(milliseconds)]).toEqual([text, text]);
  expect(tookOf(milliseconds)).toBe(text || "under 1 s");
});

test.each([
  [0.004, "under $0.01"],
  [0.01, "$0.01"],
  [1.2, "$1.20"],
])("%d dollars are %j everywhere", (amount, text) => {
  expect([dollars(amount), cost(amount)]).toEqual([text, text]);
  expect(words({ input: 1, output: 1, cost: amount })).toContain(text);
});

test("an unknown cost is not zero", () => expect([cost(undefined), cost(0), cost(0, false)]).toEqual(["cost unknown", "cost unknown", ""]));

test("tokens: with their noun in sentences, plain in tables", () => {
  expect([tokens(1), tokens(999), tokens(41_000), tokens(1_200_000)]).toEqual(["1 token", "999 tokens", "41 k tokens", "1.2 M tokens"]);
  expect([count(0), count(9_999), count(41_000), count(1_200_000)]).toEqual(["0", "9999", "41 k", "1.2 M"]);
});

test.each([
  [0, "step", undefined, "0 steps"],
  [1, "step", undefined, "1 step"],
  [2, "step", undefined, "2 steps"],
  [1, "item needs", "items need", "1 item needs"],
  [3, "item needs", "items need", "3 items need"],
])("%i of %s", (number, one, many, text) => expect(plural(number, one, many)).toBe(text));

test("bytes", () => expect([bytes(0), bytes(999), bytes(1000), bytes(3_200_000), bytes(5e12)]).toEqual(["0 B", "999 B", "1.0 kB", "3.2 MB", "5000.0 GB"]));
