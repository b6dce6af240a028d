"use strict";
// Keeps the capture page and the static files that it uses, so that it opens without a connection. It keeps nothing
// else: its scope is the capture page, and it answers no other request from its cache.
const CACHE = "capture";
const page = self.registration.scope;

self.addEventListener("install", (event) => {
  event.waitUntil(keepPage().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && pathname === new URL(page).pathname) event.respondWith(answerPage(event));
  else if (pathname.includes("/static/")) event.respondWith(answerFile(request));
});

// Stores the page and its files. Does nothing if the server shows another page, such as the one to sign in.
async function keepPage() {
  const answer = await fetch(page, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;

  const html = await answer.clone().text();
  const files = [...html.matchAll(/(?:href|src)="([^"]*\/static\/[^"]*)"/g)].map((match) => new URL(match[1], page).href);
  const cache = await caches.open(CACHE);
  await cache.addAll(files);
  await cache.put(page, answer);

  const current = new Set([page, ...files]);
  for (const request of await cache.keys()) if (!current.has(request.url)) await cache.delete(request);
}

// The kept page opens at once, also on a slow connection, and is then renewed for the next time.
async function answerPage(event) {
  const kept = await caches.match(page);
  if (!kept) return fetch(event.request);
  event.waitUntil(keepPage().catch(() => undefined));
  return kept;
}

async function answerFile(request) {
  return (await caches.match(request)) ?? fetch(request);
}
