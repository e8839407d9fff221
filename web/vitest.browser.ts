import { defineConfig } from "vitest/config";

/** Needs a Chromium and the built pages. Three files at a time: each has hosts and a browser to itself, and all mostly wait. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    environment: "node",
    include: ["browser/**/*.test.ts"],
    setupFiles: ["browser/chromium.ts"],
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
