/* The offline shell: the page itself and its hashed files are kept, what the host says never is. And what is pushed. */

const CACHE = "portico-shell-1";
/** Where the host begins: a proxy may offer it below a base path. */
const ROOT = new URL(self.registration.scope).pathname.replace(/\/$/, "");
const SHELL = `${ROOT}/app`;
const KEPT = /^\/(assets\/|app\.js$|app.*\.css$|favicon\.svg$|icon-\d+\.png$|app\.webmanifest$)/;

self.addEventListener("install", (event) => {
  event.waitUntil(self.skipWaiting());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

/** The host first: a kept copy is only for when it is out of reach. */
async function answer(request, key) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok && !response.redirected) await cache.put(key, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(key);
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (!url.pathname.startsWith(ROOT)) return;
  const path = url.pathname.slice(ROOT.length);
  if (request.mode === "navigate" && /^\/app(\/|$)/.test(path)) event.respondWith(answer(request, SHELL));
  else if (KEPT.test(path)) event.respondWith(answer(request, url.pathname));
});

/** The host says that something waits or has ended, and where; what it is, the page shows after the login. */
self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data?.json() ?? {};
  } catch {
    // Not of our host: the browser wants something to be shown all the same.
  }
  const path = /^\/app(\/|$)/.test(told.path) ? told.path : "/app/inbox";
  const options = { body: told.text || "Something waits for you.", tag: told.tag || "portico", icon: `${ROOT}/icon-192.png`, data: { path } };
  event.waitUntil(self.registration.showNotification("Portico", options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(`${ROOT}${event.notification.data?.path ?? "/app/inbox"}`));
});

/** In a page of the workbench that is there already, or else in a new one. */
async function open(path) {
  const pages = await self.clients.matchAll({ type: "window" });
  const page = pages.find(({ url }) => new URL(url).pathname.startsWith(SHELL));
  if (!page) return self.clients.openWindow(path);
  await page.focus().catch(() => undefined);
  return page.navigate(path);
}
