"use strict";
// Follows changes as they happen: shows a message at the edge of the page, and keeps lists and the
// open note up to date. Other scripts listen to the event "notes-changed" of the document:
// `detail.names` are the notes, or [] if any may have changed.
{
  const MAX_NAMES = 3; // in the message
  const TOAST_MS = 8000;
  const REFRESH_DELAY_MS = 200; // several changes in a row are one refresh

  const { root: vault, liveConnection } = document.documentElement.dataset;
  const main = document.querySelector("main");
  const openNote = main.dataset.note; // undefined on a page that is not of a note
  const hasOwnMessages = "announcesChanges" in main.dataset; // such a page needs no toast
  const toast = document.getElementById("news");

  // --- the connection

  // All tabs of a vault share one stream of changes, in a worker (live-connection.js). In browsers
  // without shared workers, each visible tab has its own.
  function follow() {
    if (!("SharedWorker" in window)) {
      followWhileVisible();
      return;
    }

    const { port } = new SharedWorker(liveConnection, { name: vault });
    port.addEventListener("message", ({ data }) => receive(data.type, data.data));
    port.start();
    addEventListener("pagehide", () => port.postMessage("leave"));
    // A page that the browser kept after "leave" has missed changes.
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });
  }

  function followWhileVisible() {
    let changes = null;
    const update = () => {
      changes?.close();
      changes = null;
      if (document.hidden) return;

      changes = new EventSource(`${vault}/api/v1/changes`);
      for (const type of ["changed", "missed"]) {
        changes.addEventListener(type, (event) => receive(type, JSON.parse(event.data)));
      }
    };
    document.addEventListener("visibilitychange", update);
    addEventListener("pagehide", () => changes?.close());
    update();
  }

  // "missed" means that the server no longer has the changes since the last message.
  function receive(type, data) {
    if (type === "changed") {
      if (!hasOwnMessages) showToast(data.names, data.more);
      announce(data.names);
    } else if (type === "missed") {
      announce([]);
    }
  }

  function announce(names) {
    document.dispatchEvent(new CustomEvent("notes-changed", { detail: { names } }));
  }

  // --- the message

  // `more` is the number of changed notes without a name in `names`.
  function showToast(names, more) {
    toast.replaceChildren(toastText(names, more), closeButton());
    toast.hidden = false;
    hideToastLater();
  }

  function toastText(names, more) {
    const text = document.createElement("span");
    text.append("Changed: ");

    const shownNames = names.slice(0, MAX_NAMES);
    for (const [position, name] of shownNames.entries()) {
      if (position > 0) text.append(", ");
      text.append(linkTo(name));
    }

    const otherCount = names.length - shownNames.length + more;
    if (otherCount > 0) text.append(` and ${otherCount} more`);
    return text;
  }

  function closeButton() {
    const button = document.createElement("button");
    button.className = "close";
    button.textContent = "×";
    button.ariaLabel = "Close this message";
    button.addEventListener("click", hideToast);
    return button;
  }

  // The message stays while it has the pointer or the focus.
  let toastTimer = 0;
  function hideToastLater() {
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => {
      const isInUse = toast.matches(":hover, :focus-within");
      if (isInUse) hideToastLater();
      else hideToast();
    }, TOAST_MS);
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

  // Replaces the parts with `data-live` by those of a fresh copy of this page. A part that is in use
  // stays as it is.
  async function refresh() {
    const parts = [...document.querySelectorAll("[data-live]")].filter((part) => !isInUse(part));
    if (parts.length === 0) return;

    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;

    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) {
      const copy = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      // The fetch took time, in which the reader may have begun to use the part.
      if (copy && !isInUse(part)) replacePart(part, document.adoptNode(copy));
    }
  }

  // Replaces a part by its copy. Open details, the focus and the scroll position stay.
  function replacePart(part, copy) {
    const top = window.scrollY;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;

    copyOpenDetails(part, copy);
    part.replaceWith(copy);
    if (focused !== null) {
      const counterpart = findCounterpart(focused, part, copy);
      counterpart?.focus({ preventScroll: true });
    }

    scrollTo({ top, behavior: "instant" });
  }

  function copyOpenDetails(part, copy) {
    const copiedDetails = nameDetails(copy);
    for (const [name, { open }] of nameDetails(part)) {
      if (copiedDetails.has(name)) copiedDetails.get(name).open = open;
    }
  }

  // Returns the element of a copy that corresponds to a summary or a link of a part, if there is one.
  function findCounterpart(element, part, copy) {
    if (element.matches("summary")) {
      const [name] = [...nameDetails(part)].find(([, details]) => details === element.parentElement);
      return nameDetails(copy).get(name)?.querySelector("summary");
    }
    if (element.hasAttribute("href")) {
      const address = element.getAttribute("href");
      const links = [...copy.querySelectorAll("a")];
      return links.find((link) => link.getAttribute("href") === address);
    }
    return undefined;
  }

  // Returns a map of the details of a part. The name of each is its summary, after the number of
  // details before it that have the same summary.
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

  // Returns whether somebody types in a part, or has opened details in it. Of the note, only details
  // with a form count, because those of its text are opened again in the copy.
  function isInUse(part) {
    const details = part.dataset.live === "note" ? "details[open]:has(form)" : "details[open]";
    return part.querySelector(`${details}, input:focus, textarea:focus, [contenteditable]:focus`) !== null;
  }

  let refreshTimer = 0;
  document.addEventListener("notes-changed", ({ detail: { names } }) => {
    const isElsewhere = openNote !== undefined && names.length > 0 && !names.includes(openNote);
    if (isElsewhere) return;

    clearTimeout(refreshTimer);
    refreshTimer = setTimeout(refresh, REFRESH_DELAY_MS);
  });

  follow();
}
