import { defineConfig } from "vitest/config";

/** Needs a Chromium and the built pages. Two files at a time: each has hosts to itself, and both mostly wait. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    environment: "node",
    include: ["browser/**/*.test.ts"],
    setupFiles: ["browser/afterwards.ts"],
    maxWorkers: 2,
    isolate: false, // one Chromium and one playwright for each of the two processes
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 2, // a busy machine; the report names what passed only then, and why it failed before
  },
});
