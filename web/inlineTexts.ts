/** Writes texts of `src/texts` to where they are used: their names would cost 2 KB of the first load. Texts with values stay functions. */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import ts from "typescript";
import type { Plugin } from "vite";

interface Text {
  name: string;
  key: string;
  text: string;
  /** Where the property is in the module, with its comma. */
  from: number;
  to: number;
}

/** The texts of a module that have no values in them. */
export function plainTexts(code: string): Text[] {
  const found: Text[] = [];
  for (const statement of ts.createSourceFile("texts.ts", code, ts.ScriptTarget.Latest).statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      const texts = initializer && ts.isAsExpression(initializer) ? initializer.expression : undefined;
      if (!ts.isIdentifier(name) || !texts || !ts.isObjectLiteralExpression(texts)) continue;
      for (const { name: key, pos, end, ...each } of texts.properties.filter(ts.isPropertyAssignment)) {
        if (ts.isIdentifier(key) && ts.isStringLiteral(each.initializer)) found.push({ name: name.text, key: key.text, text: each.initializer.text, from: pos, to: code[end] === "," ? end + 1 : end });
      }
    }
  }
  return found;
}

/** Whether a module uses the texts only as `NAME.key`: then those that are written to their places need not be kept. */
export function onlyByKey(code: string, name: string): boolean {
  const imports = code.match(new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from "[^"]*/texts/\\w+";$`, "m"));
  return !imports || (!imports[0].includes(`${name} as `) && !new RegExp(`(?<![\\w.$])${name}\\b(?!\\.\\w)`).test(code.replace(imports[0], "")));
}

/** The module with the plain texts of the modules that it imports. */
export function withTexts(code: string, read: (path: string) => string): string {
  let written = code;
  for (const [, names = "", path = ""] of code.matchAll(/^import \{([^}]+)\} from "(\.[^"]*\/texts\/\w+)";$/gm)) {
    const imported = names.split(",").map((each) => each.trim());
    for (const { name, key, text } of plainTexts(read(`${path}.ts`)).filter((each) => imported.includes(each.name))) {
      written = written.replace(new RegExp(`(?<![\\w.$])${name}\\.${key}\\b`, "g"), () => JSON.stringify(text));
    }
  }
  return written;
}

/** A module of texts without those that are written to their places. `inlined`: whether all users of a name use it by key. */
export function withoutInlined(code: string, inlined: (name: string) => boolean): string {
  const gone = plainTexts(code).filter(({ name }) => inlined(name));
  return gone.reduceRight((left, { from, to }) => left.slice(0, from) + left.slice(to), code);
}

export function inlineTexts(): Plugin {
  let modules: string[] = [];
  return {
    name: "inline-texts",
    apply: "build",
    enforce: "pre",
    buildStart() {
      const source = resolve(import.meta.dirname, "src");
      modules = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts") && !name.startsWith("texts/")).map((name) => readFileSync(join(source, name), "utf8"));
    },
    transform(code, id) {
      if (!/\/src\/.*\.ts$/.test(id)) return undefined;
      if (id.includes("/src/texts/")) return { code: withoutInlined(code, (name) => modules.every((each) => onlyByKey(each, name))), map: null };
      return { code: withTexts(code, (path) => readFileSync(resolve(dirname(id), path), "utf8")), map: null };
    },
  };
}
