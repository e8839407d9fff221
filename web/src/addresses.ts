/** Which addresses in what agents write may be followed. */

/** Another site's address or a mail address, else nothing: a relative link would be a call of our own API. */
export function outsideAddress(href: string): string | undefined {
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return undefined;
  }
  if (url.protocol === "mailto:") return url.href;
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  return url.origin === window.location.origin ? undefined : url.href;
}
