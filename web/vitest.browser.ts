import { defineConfig } from "vitest/config";

/** Needs a Chromium and the built pages. Files run one after the other: each has a host and a browser to itself. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    environment: "node",
    include: ["browser/**/*.test.ts"],
    setupFiles: ["browser/chromium.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
