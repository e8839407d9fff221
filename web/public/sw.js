/* The offline shell: the page itself and its hashed files are kept, what the host says never is. */

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
