import type { Plugin } from "vite";

/**
 * Built pages link their stylesheets by relative names (`index.css`), as the pages of the portal always did. The
 * sources write `./index.css`: Vite takes a bare name for a source of its own and not for a public file.
 */
export function relativeStyles(): Plugin {
  const handler = (html: string) => html.replace(/(<link rel="stylesheet"[^>]* href=")\.?\/(?!\/)/g, "$1");
  return { name: "relative-styles", transformIndexHtml: { order: "post", handler } };
}
