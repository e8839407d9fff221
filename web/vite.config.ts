import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { bar } from "./bar";
import { compressed } from "./compression";
import { inlineTexts } from "./inlineTexts";
import { relativeStyles } from "./styles";

const pages = ["index", "jobs", "jobTracking", "login", "pair", "test", "app", "agents", "jobHistory", "terminal"];
/** Modules other people's pages import by name, so they are entries of their own and keep their exports. */
const modules = ["messageBlock", "sessionResponse"];

const here = (path: string) => resolve(import.meta.dirname, path);
const inputs = {
  ...Object.fromEntries(pages.map((name) => [name, here(`${name}.html`)])),
  ...Object.fromEntries(modules.map((name) => [name, here(`src/${name}.ts`)])),
};

export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses everywhere: a proxy may offer the pages below a base path.
  base: "./",
  build: {
    outDir: here("../src/portico/doors/pages"),
    emptyOutDir: true,
    target: "es2022",
    // The polyfill would be one more request for browsers nobody uses any more.
    modulePreload: { polyfill: false },
    // A data: address would need a hole in the content security policy.
    assetsInlineLimit: 0,
    rollupOptions: {
      input: inputs,
      preserveEntrySignatures: "strict",
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
        // What changes seldom gets a hashed name of its own, so that browsers keep it.
        manualChunks: { markdown: ["marked", "dompurify"] },
      },
    },
  },
  plugins: [inlineTexts(), bar(), relativeStyles(), compressed()],
  server: { proxy: { "/api": "http://127.0.0.1:8888", "/v1": { target: "http://127.0.0.1:8888", ws: true }, "/login": "http://127.0.0.1:8888" } },
  // The files of a worker share modules and the document, which loads jsdom once: a quarter of the time. Tests restore what they change.
  test: { environment: "jsdom", pool: "vmThreads", testTimeout: 60_000, include: ["tests/**/*.test.ts"], setupFiles: ["tests/fresh.ts"], environmentOptions: { jsdom: { url: "http://127.0.0.1:8888/" } } },
});
