"use strict";
// The inbox by keyboard, and items replaced in place. All of the inbox works without it.
{
  const vault = document.documentElement.dataset.root;
  const main = document.getElementById("main");
  const status = document.getElementById("review-status");
  const batch = document.getElementById("batch");
  const keys = document.getElementById("keys");
  let current = null;

  const items = () => [...main.querySelectorAll("[data-item]")];
  const boxOf = (item) => item.querySelector("input[type=checkbox]");
  const selected = () => items().filter((item) => boxOf(item)?.checked);

  // --- what is fetched for an item: its rendered change when it is visible, details when it is opened

  const loading = new WeakMap(); // what is being fetched or was fetched, by its place

  function load(place, address) {
    if (!place || !address) return;
    if (!loading.has(place)) loading.set(place, fetchPart(place, address));
    return loading.get(place);
  }

  async function fetchPart(place, address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.ok) place.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
    else loading.delete(place);
  }

  const loadChange = (item) => load(item.querySelector("[data-change]"), item.querySelector("[data-change]")?.dataset.change);
  const loadDetails = (item) => load(item.querySelector("[data-details]"), item.querySelector("[data-details]")?.dataset.details);

  // Details take a search, so those of visible items are fetched one after the other.
  let turn = Promise.resolve();
  function loadInTurn(item) {
    turn = turn.then(() => loadDetails(item)).catch(() => {}); // the server does not answer
  }

  const visible = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        visible.unobserve(target);
        loadChange(target);
        loadInTurn(target);
      }
    },
    { rootMargin: "200px" },
  );

  // --- the current item

  function choose(item, { focus = true } = {}) {
    if (!item) return;
    current?.classList.remove("current");
    current = item;
    item.classList.add("current");
    if (focus) {
      item.focus({ preventScroll: true });
      item.scrollIntoView({ block: "nearest" });
    }
    loadChange(item);
    loadInTurn(item);
  }

  function step(distance) {
    const all = items();
    const position = all.indexOf(current);
    const next = position < 0 ? 0 : position + distance;
    choose(all[Math.max(0, Math.min(all.length - 1, next))]);
  }

  // The next item that is still open, from the current one on; if there is none, one before it.
  function chooseNextOpen(place) {
    const all = items();
    const isOpen = (item) => item.dataset.open === "1";
    choose(all.slice(place).find(isOpen) ?? all.slice(0, place).findLast(isOpen) ?? all[Math.min(place, all.length - 1)]);
  }

  // --- forms

  async function send(form, submitter) {
    const fields = new URLSearchParams(new FormData(form, submitter));
    fields.set("part", "1");
    const answer = await fetch(form.getAttribute("action"), { method: "POST", headers: { Accept: "text/html" }, body: fields });
    if (answer.status === 401) return location.reload();
    const box = document.createElement("div");
    box.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
    if (!answer.ok) return showMessage(box.querySelector("h1, .error")?.textContent ?? "The action failed.");
    update(box, fields.get("action"));
  }

  function update(box, action) {
    const place = Math.max(0, items().indexOf(current));
    const wasCurrent = current?.id;
    for (const fresh of [...box.querySelectorAll("[data-item]")]) {
      const old = document.getElementById(fresh.id);
      if (!old) continue;
      old.replaceWith(fresh);
      watch(fresh);
      if (fresh.id === wasCurrent) current = fresh;
    }
    document.getElementById("left").replaceWith(box.querySelector("#left"));
    showMessage(box.querySelector("[data-message]").textContent);
    showSelection();
    if (action === "comment" || box.querySelector(".problem")) choose(document.getElementById(wasCurrent));
    else chooseNextOpen(place);
  }

  function showMessage(text) {
    status.textContent = text;
    status.hidden = text === "";
  }

  function showSelection() {
    if (!batch) return;
    const count = selected().length;
    batch.hidden = count === 0;
    document.getElementById("selected-count").textContent = count === 1 ? "1 change is selected:" : `${count} changes are selected:`;
  }

  main.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-review]")) return;
    event.preventDefault();
    send(event.target, event.submitter);
  });

  main.addEventListener("change", (event) => {
    if (event.target.matches("[data-item] input[type=checkbox]")) showSelection();
  });

  main.addEventListener("focusin", (event) => {
    const item = event.target.closest("[data-item]");
    if (item && item !== current) choose(item, { focus: false });
  });

  main.addEventListener("click", (event) => {
    const link = event.target.closest("a.comment");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    comment(link.closest("[data-item]"));
  });

  async function comment(item) {
    choose(item);
    const place = item.querySelector("[data-details]");
    await load(place, place.dataset.details);
    const box = place.querySelector(".comment-box");
    if (!box) return;
    box.hidden = false;
    box.querySelector("textarea").focus();
  }

  // A button of the selected items if there are some, else of the current one.
  function press(...actions) {
    const form = selected().length > 0 ? batch : current?.querySelector(".actions");
    for (const action of actions) {
      const button = form?.querySelector(`button[value=${action}]`);
      if (button) return button.click();
    }
  }

  const COMMANDS = {
    j: () => step(1),
    k: () => step(-1),
    x: () => current && boxOf(current)?.click(),
    K: () => press("keep", "reopen"),
    U: () => press("undo", "redo"),
    E: () => current?.querySelector("a.edit")?.click(),
    c: () => current && comment(current),
    o: () => current?.querySelector("a.title")?.click(),
    "?": () => keys.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (isTyping || keys.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const command = COMMANDS[event.key];
    if (!command) return;
    event.preventDefault();
    command();
  });

  // --- changes that arrive meanwhile are announced, and not put between what a person reads

  let waiting = 0;
  document.addEventListener("notes-changed", () => {
    clearTimeout(waiting);
    waiting = setTimeout(showNews, 300);
  });

  async function showNews() {
    const answer = await fetch(`${vault}/review/news${location.search}`, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const box = document.createElement("div");
    box.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
    const count = box.querySelector("#left");
    const shown = new Set(items().flatMap((item) => (boxOf(item)?.value ?? item.id).split(" ")));
    const isNew = count.dataset.newest !== "" && !shown.has(count.dataset.newest);
    document.getElementById("left").replaceWith(count);
    document.getElementById("review-news").hidden = !isNew;
  }

  function watch(item) {
    visible.observe(item);
  }

  const button = document.getElementById("show-keys");
  button.hidden = false;
  button.addEventListener("click", () => keys.showModal());
  batch?.classList.add("over");
  showSelection();
  for (const item of items()) watch(item);
  choose(items().find((item) => `#${item.id}` === location.hash) ?? items()[0], { focus: false });
}
