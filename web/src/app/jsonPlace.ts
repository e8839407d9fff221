/** Where one writes in a JSON text, and what the schema offers there: the keys of an object, the values of a choice. */

export interface JsonPlace {
  /** Keys and indexes from the root to the container around the caret. */
  path: (string | number)[];
  /** `key`: a name of that object is being written; `value`: the value of `key`. */
  at: "key" | "value";
  key?: string;
  /** The existing text, without its quotes, and its start. */
  word: string;
  from: number;
  /** Keys that the object has already. */
  taken: string[];
}

interface Frame {
  object: boolean;
  key: string | undefined;
  index: number;
  expecting: "key" | "colon" | "value" | "comma";
  keys: string[];
}

export function placeIn(text: string, caret: number): JsonPlace | undefined {
  const stack: Frame[] = [];
  let at = 0;
  const value = () => {
    const frame = stack.at(-1);
    if (frame) frame.expecting = "comma";
  };
  while (at < caret) {
    const sign = text.charAt(at);
    const frame = stack.at(-1);
    if (sign === '"') {
      let end = at + 1;
      while (end < text.length && text.charAt(end) !== '"' && text.charAt(end) !== "\n") end += text.charAt(end) === "\\" ? 2 : 1;
      const key = frame?.object === true && frame.expecting === "key";
      if (caret <= end) return frame && placed(stack, key, text.slice(at + 1, caret), at);
      if (key && frame) {
        frame.key = text.slice(at + 1, end);
        frame.keys.push(frame.key);
        frame.expecting = "colon";
      } else value();
      at = end;
    } else if (sign === "{" || sign === "[") {
      stack.push({ object: sign === "{", key: undefined, index: 0, expecting: sign === "{" ? "key" : "value", keys: [] });
    } else if (sign === "}" || sign === "]") {
      stack.pop();
      value();
    } else if (sign === ":" && frame) frame.expecting = "value";
    else if (sign === "," && frame) {
      frame.expecting = frame.object ? "key" : "value";
      frame.index++;
    }
    at++;
  }
  const frame = stack.at(-1);
  if (!frame || (frame.expecting !== "key" && frame.expecting !== "value")) return undefined;
  return placed(stack, frame.object && frame.expecting === "key", "", caret);
}

function placed(stack: Frame[], key: boolean, word: string, from: number): JsonPlace {
  const path = stack.slice(0, -1).flatMap((frame): (string | number)[] => (frame.object ? (frame.key === undefined ? [] : [frame.key]) : [frame.index]));
  const last = stack.at(-1);
  const inner = last && !last.object ? [...path] : path;
  return { path: inner, at: key ? "key" : "value", ...(last?.key !== undefined && !key ? { key: last.key } : {}), word, from, taken: last?.keys ?? [] };
}

type Schema = Record<string, unknown>;

/** The schemas that the value at this path may have. */
export function schemasAt(root: Schema, path: (string | number)[]): Schema[] {
  let found = open(root, root);
  for (const step of path) found = found.flatMap((schema) => inside(root, schema, step));
  return found;
}

function open(root: Schema, schema: unknown): Schema[] {
  if (!schema || typeof schema !== "object") return [];
  const one = schema as Schema;
  if (typeof one["$ref"] === "string") return open(root, (root["$defs"] as Schema | undefined)?.[one["$ref"].split("/").at(-1) ?? ""]);
  const several = (one["anyOf"] ?? one["oneOf"]) as unknown[] | undefined;
  return several ? several.flatMap((each) => open(root, each)) : [one];
}

function inside(root: Schema, schema: Schema, step: string | number): Schema[] {
  if (typeof step === "number") {
    const tuple = schema["prefixItems"] as unknown[] | undefined;
    return open(root, tuple?.[step] ?? schema["items"]);
  }
  const own = (schema["properties"] as Schema | undefined)?.[step];
  return open(root, own ?? schema["additionalProperties"]);
}

export interface Offer {
  text: string;
  about: string;
}

export function offersAt(root: Schema, place: JsonPlace): Offer[] {
  const schemas = schemasAt(root, place.path);
  if (place.at === "key") {
    const found = new Map<string, string>();
    for (const schema of schemas)
      for (const [name, own] of Object.entries((schema["properties"] as Record<string, Schema> | undefined) ?? {})) found.set(name, String(own["description"] ?? found.get(name) ?? ""));
    return [...found].filter(([name]) => !place.taken.includes(name) && name.startsWith(place.word)).map(([text, about]) => ({ text, about }));
  }
  const values = (place.key === undefined ? schemas : schemas.flatMap((schema) => inside(root, schema, place.key as string))).flatMap((schema) => (schema["enum"] as unknown[] | undefined) ?? ("const" in schema ? [schema["const"]] : []));
  return [...new Set(values)].filter((each): each is string => typeof each === "string" && each.startsWith(place.word)).map((text) => ({ text, about: "" }));
}
