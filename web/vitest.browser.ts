import { defineConfig } from "vitest/config";

/** Needs a Chromium and the built pages. Two files at a time: each has hosts and a browser to itself, and both mostly wait. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    environment: "node",
    include: ["browser/**/*.test.ts"],
    setupFiles: ["browser/chromium.ts"],
    maxWorkers: 2,
    isolate: false, // the files share nothing that one changes, and playwright takes half a second to load
    testTimeout: 120_000,
    hookTimeout: 120_000,
    retry: 2, // a busy machine; the report names what passed only then, and why it failed before
  },
});
