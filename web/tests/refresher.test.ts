import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Refresher } from "../src/app/refresher";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Questions that are answered when the test says so. */
function questions(): { ask: () => Promise<boolean>; answer: (answered?: boolean) => Promise<void>; asked: () => number } {
  const open: ((answered: boolean) => void)[] = [];
  let asked = 0;
  return {
    ask: () => {
      asked += 1;
      return new Promise((resolve) => void open.push(resolve));
    },
    answer: async (answered = true) => {
      open.shift()?.(answered);
      await vi.advanceTimersByTimeAsync(0);
    },
    asked: () => asked,
  };
}

it("asks once for changes that come together, and about one that comes meanwhile when the answer is there", async () => {
  const { ask, answer, asked } = questions();
  const refresher = new Refresher(ask);
  refresher.changed();
  refresher.changed();
  await vi.advanceTimersByTimeAsync(50);
  expect(asked()).toBe(1);
  refresher.changed();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked(), "no second question beside the first").toBe(1);
  await answer();
  await vi.advanceTimersByTimeAsync(50);
  expect(asked()).toBe(2);
  await answer();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked(), "nothing has changed since").toBe(2);
});

it("asks again when a question failed, though nothing changes any more", async () => {
  const { ask, answer, asked } = questions();
  new Refresher(ask).changed();
  await vi.advanceTimersByTimeAsync(50);
  await answer(false);
  await vi.advanceTimersByTimeAsync(999);
  expect(asked()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked()).toBe(2);
  await answer();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked()).toBe(2);
});

it("asks nothing after its end, also not what was about to be asked or had failed", async () => {
  const { ask, answer, asked } = questions();
  const about = new Refresher(ask);
  about.changed();
  about.stop();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked()).toBe(0);
  const failing = new Refresher(ask);
  failing.changed();
  await vi.advanceTimersByTimeAsync(50);
  failing.stop();
  await answer(false);
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked()).toBe(1);
});
