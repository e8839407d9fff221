import { defineConfig } from "vitest/config";

/** Needs a Chromium and the built pages, so it is not part of the quick tests. */
export default defineConfig({
  root: import.meta.dirname,
  test: { environment: "node", include: ["browser/**/*.test.ts"], fileParallelism: false, testTimeout: 40_000, hookTimeout: 40_000 },
});
