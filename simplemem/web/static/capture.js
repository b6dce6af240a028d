"use strict";
// Stores each capture in the browser before it is sent, and sends it until the server has confirmed it. The server
// adds a capture once, however often it is sent, because each has an id.
{
  const form = document.getElementById("capture");
  const field = form.elements.text;
  const status = document.getElementById("capture-status");
  const list = document.getElementById("waiting");
  const base = document.documentElement.dataset.root;
  const opened = openDatabase(); // a promise
  const RETRY_MS = 30_000;
  let state = "sent"; // the result of the last attempt to send: sent, offline, signed out or busy
  let edited = null; // a refused capture that is in the field again, and kept until its new text is stored

  function openDatabase() {
    return new Promise((resolve, reject) => {
      const request = indexedDB.open(`captures:${base}`, 1);
      request.addEventListener("upgradeneeded", () => request.result.createObjectStore("waiting", { keyPath: "id" }));
      request.addEventListener("success", () => resolve(request.result));
      request.addEventListener("error", () => reject(request.error));
    });
  }

  // Makes one request to the store of waiting captures, and returns its result once it is on the disk.
  async function ask(mode, makeRequest) {
    const database = await opened;
    return new Promise((resolve, reject) => {
      const transaction = database.transaction("waiting", mode, { durability: "strict" });
      const request = makeRequest(transaction.objectStore("waiting"));
      transaction.addEventListener("complete", () => resolve(request.result));
      transaction.addEventListener("abort", () => reject(transaction.error));
    });
  }

  // Returns the captures that the server has not confirmed, the oldest first.
  async function listWaiting() {
    const captures = await ask("readonly", (store) => store.getAll());
    return captures.sort((one, other) => one.order - other.order);
  }

  const keep = (capture) => ask("readwrite", (store) => store.put(capture));
  const remove = (capture) => ask("readwrite", (store) => store.delete(capture.id));

  function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  // Returns the time of this device's clock, without its time zone.
  function localTime(now) {
    const local = new Date(now.getTime() - now.getTimezoneOffset() * 60_000);
    return local.toISOString().slice(0, 19);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    const now = new Date();
    try {
      await keep({ id: newId(), text, made: localTime(now), order: now.getTime(), problem: "" });
      if (edited) await remove(edited);
      edited = null;
    } catch {
      form.submit(); // this browser stores nothing: send it as a form
      return;
    }
    field.value = "";
    field.focus();
    await sendAll();
  });

  // Only one tab sends at a time.
  function sendAll() {
    return navigator.locks ? navigator.locks.request(`captures:${base}`, sendWaiting) : sendWaiting();
  }

  async function sendWaiting() {
    const captures = await listWaiting();
    for (const capture of captures) {
      if (capture.id === edited?.id) continue;
      const goesOn = await send(capture);
      if (!goesOn) break;
    }
    await showWaiting(captures.length > 0);
  }

  // Returns whether to go on with the next capture. One that the server refuses does not keep back the others.
  async function send(capture) {
    const { id, text, made } = capture;
    let answer;
    try {
      answer = await fetch(`${base}/capture`, {
        method: "POST",
        headers: { Accept: "application/json" },
        body: new URLSearchParams({ id, text, made }),
      });
    } catch {
      state = "offline";
      return false;
    }
    if (answer.ok) {
      state = "sent";
      await remove(capture);
      return true;
    }
    if (answer.status === 401) {
      state = "signed out";
      return false;
    }
    if (answer.status >= 500 || answer.status === 429) {
      state = "busy";
      return false;
    }
    const { message, detail } = await answer.json().catch(() => ({}));
    await keep({ ...capture, problem: message ?? detail ?? `the server answers ${answer.status}` });
    return true;
  }

  async function showWaiting(hasSent) {
    const captures = await listWaiting();
    list.replaceChildren(...captures.map(createRow));
    if (!captures.length) {
      if (hasSent) status.textContent = "Saved.";
    } else if (state === "signed out") showSignIn();
    else if (state === "busy") status.textContent = "The server cannot take it now. It is kept here, and sent later.";
    else if (state === "offline") status.textContent = "Kept on this device. It is sent when there is a connection.";
    else status.textContent = "Some could not be saved.";
  }

  function showSignIn() {
    const link = document.createElement("a");
    link.href = `${base}/captured`; // the service worker does not keep this page, so it asks for the token
    link.textContent = "Sign in to send it";
    status.replaceChildren("Kept on this device. ", link);
  }

  // Returns the row of a capture. Only one that was refused can be edited: any other may be on its way.
  function createRow(capture) {
    const item = document.createElement("li");
    const text = document.createElement("span");
    text.textContent = capture.text;
    const progress = document.createElement("small");
    progress.textContent = capture.problem ? `Not saved: ${capture.problem}` : "Waiting";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Edit";
    button.addEventListener("click", () => {
      edited = capture;
      field.value = capture.text;
      field.focus();
    });
    item.append(text, progress);
    if (capture.problem) item.append(button);
    return item;
  }

  // Puts a text that another app shares with the installed page into the field.
  function takeSharedText() {
    const shared = new URLSearchParams(location.search);
    const parts = ["title", "text", "url"].map((name) => shared.get(name)).filter(Boolean);
    if (!parts.length) return;
    field.value = [field.value, ...parts].filter(Boolean).join("\n");
    history.replaceState(null, "", location.pathname);
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && (event.key === "Enter" || event.key === "s")) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  addEventListener("online", sendAll);
  document.addEventListener("visibilitychange", () => document.hidden || sendAll());
  setInterval(() => state !== "sent" && sendAll(), RETRY_MS);

  takeSharedText();
  sendAll();
  navigator.serviceWorker?.register(`${base}/static/capture-worker.js`, { scope: `${base}/capture` });
}
