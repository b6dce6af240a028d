"use strict";
// A shared worker: one stream of changes for all tabs of a vault. A browser opens at most six
// connections to a server over HTTP/1.1, so a stream per tab would make the seventh tab hang.
// The worker's name is the path of the vault.
const ports = new Set();
let changes = null;

function connect() {
  changes = new EventSource(`${self.name}/api/v1/changes`);
  for (const type of ["changed", "missed"]) {
    changes.addEventListener(type, (event) => broadcast({ type, data: JSON.parse(event.data) }));
  }
  changes.addEventListener("open", () => broadcast({ type: "open" }));
  changes.addEventListener("error", () => broadcast({ type: "lost" }));
}

function broadcast(message) {
  for (const port of ports) port.postMessage(message);
}

self.addEventListener("connect", ({ ports: [port] }) => {
  ports.add(port);
  port.addEventListener("message", ({ data }) => {
    if (data === "leave") leave(port);
  });
  port.start();
  // A stream that the server refused, for example because the sign-in expired, is closed for good.
  if (!changes || changes.readyState === EventSource.CLOSED) connect();
});

function leave(port) {
  ports.delete(port);
  if (ports.size > 0) return;
  changes.close();
  changes = null;
}
