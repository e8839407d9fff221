import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { type Plugin, transformWithEsbuild } from "vite";

const WORTH_IT = /\.(html|js|css|svg|webmanifest)$/;

/** Makes stylesheets small, and writes `.gz` and `.br` beside every text file, so the server never spends time on it. */
export function compressed(): Plugin {
  let folder = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    async closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!WORTH_IT.test(name)) continue;
        const path = join(folder, name);
        if (name.endsWith(".css")) writeFileSync(path, (await transformWithEsbuild(readFileSync(path, "utf8"), path, { loader: "css", minify: true, target: "es2022" })).code);
        const content = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }));
      }
    },
  };
}
