import type { Plugin } from "vite";

/**
 * Built pages link their stylesheets by relative names (`index.css`), as the pages of the portal always did. The
 * sources write `./index.css`: Vite takes a bare name for a source of its own and not for a public file.
 */
export function relativeStyles(): Plugin {
  // The workbench has addresses of its own below /app, where a relative name would lead elsewhere: the host completes them.
  const handler = (html: string, { filename }: { filename: string }) => (filename.endsWith("app.html") ? html : html.replace(/(<link rel="stylesheet"[^>]* href=")\.?\/(?!\/)/g, "$1"));
  return { name: "relative-styles", transformIndexHtml: { order: "post", handler } };
}
