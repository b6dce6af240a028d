"use strict";
// Changes as they happen: a message at the edge of the page, and lists and the open note up to date.
// Other scripts listen to the event "notes-changed" of the document; `detail.names` are the notes.
{
  const { root: vault, liveConnection } = document.documentElement.dataset;
  const openNote = document.querySelector("main").dataset.note;
  const toast = document.getElementById("news");
  const MAX_NAMES = 3;
  const TOAST_MS = 8000;
  const { announcesChanges } = document.querySelector("main").dataset; // the page says it itself

  // --- the connection

  // Browsers without shared workers keep a stream per visible tab.
  function follow() {
    if (!("SharedWorker" in window)) return followWhileVisible();
    const { port } = new SharedWorker(liveConnection, { name: vault });
    port.addEventListener("message", ({ data }) => receive(data.type, data.data));
    port.start();
    addEventListener("pagehide", () => port.postMessage("leave"));
    addEventListener("pageshow", (event) => event.persisted && location.reload());
  }

  function followWhileVisible() {
    let changes = null;
    const update = () => {
      changes?.close();
      changes = document.hidden ? null : new EventSource(`${vault}/api/v1/changes`);
      for (const type of ["changed", "missed"]) {
        changes?.addEventListener(type, (event) => receive(type, JSON.parse(event.data)));
      }
    };
    document.addEventListener("visibilitychange", update);
    addEventListener("pagehide", () => changes?.close());
    update();
  }

  function receive(type, data) {
    if (type === "changed") {
      if (announcesChanges === undefined) showToast(data.names, data.more);
      announce(data.names);
    } else if (type === "missed") {
      announce([]);
    }
  }

  function announce(names) {
    document.dispatchEvent(new CustomEvent("notes-changed", { detail: { names } }));
  }

  // --- the message

  function showToast(names, more) {
    const text = document.createElement("span");
    text.append("Changed: ");
    for (const [position, name] of names.slice(0, MAX_NAMES).entries()) {
      if (position > 0) text.append(", ");
      text.append(linkTo(name));
    }
    const others = names.length + more - Math.min(MAX_NAMES, names.length);
    if (others > 0) text.append(` and ${others} more`);

    const close = document.createElement("button");
    close.className = "close";
    close.textContent = "×";
    close.ariaLabel = "Close this message";
    close.addEventListener("click", hideToast);
    toast.replaceChildren(text, close);
    toast.hidden = false;
    hideSoon();
  }

  // While a person points at the message or is in it, it stays.
  let hiding = 0;
  function hideSoon() {
    clearTimeout(hiding);
    hiding = setTimeout(() => (toast.matches(":hover, :focus-within") ? hideSoon() : hideToast()), TOAST_MS);
  }

  function hideToast() {
    toast.hidden = true;
    toast.replaceChildren();
  }

  function linkTo(name) {
    const link = document.createElement("a");
    link.href = noteUrl(name);
    link.textContent = name;
    return link;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !toast.hidden) hideToast();
  });

  // --- what is on the page

  // The parts with `data-live` are taken from a fresh copy of this page. A part in which somebody
  // works stays as it is. So does a part other than the note whose details are open.
  async function refresh() {
    const parts = [...document.querySelectorAll("[data-live]")].filter((part) => !isInUse(part));
    if (parts.length === 0) return;

    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const copy = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (copy && !isInUse(part)) replacePart(part, document.adoptNode(copy));
    }
  }

  // The keyboard stays on the link or summary on which it was, and the page where it is scrolled to.
  function replacePart(part, copy) {
    const top = window.scrollY;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const details = nameDetails(part);
    const copiedDetails = nameDetails(copy);
    for (const [name, { open }] of details) {
      if (copiedDetails.has(name)) copiedDetails.get(name).open = open;
    }
    part.replaceWith(copy);

    if (focused?.matches("summary")) {
      const [name] = [...details].find(([, element]) => element === focused.parentElement);
      copiedDetails.get(name)?.querySelector("summary").focus({ preventScroll: true });
    } else if (focused?.hasAttribute("href")) {
      const address = focused.getAttribute("href");
      const link = [...copy.querySelectorAll("a")].find((other) => other.getAttribute("href") === address);
      link?.focus({ preventScroll: true });
    }
    scrollTo({ top, behavior: "instant" });
  }

  // Returns the details of a part by their summary, and by their place among those with the same.
  function nameDetails(part) {
    const counts = new Map();
    const named = new Map();
    for (const details of part.querySelectorAll("details:has(> summary)")) {
      const summary = details.querySelector("summary").textContent.trim();
      const count = counts.get(summary) ?? 0;
      counts.set(summary, count + 1);
      named.set(`${count} ${summary}`, details);
    }
    return named;
  }

  function isInUse(part) {
    const details = part.dataset.live === "note" ? "details[open]:has(form)" : "details[open]";
    return part.querySelector(`${details}, input:focus, textarea:focus, [contenteditable]:focus`) !== null;
  }

  let refreshTimer = 0;
  document.addEventListener("notes-changed", ({ detail: { names } }) => {
    const isElsewhere = openNote !== undefined && names.length > 0 && !names.includes(openNote);
    if (isElsewhere) return;
    clearTimeout(refreshTimer);
    refreshTimer = setTimeout(refresh, 200);
  });

  follow();
}
