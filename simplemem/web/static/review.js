"use strict";
// The inbox by keyboard, and items replaced in place. All of the inbox works without it.
{
  const vault = document.documentElement.dataset.root;
  const main = document.getElementById("main");
  const status = document.getElementById("review-status");
  const batch = document.getElementById("batch");
  const keysDialog = document.getElementById("keys");
  const olderLink = main.querySelector("a[rel=next]"); // to the next page of the inbox
  const clearButton = document.getElementById("clear-selection");
  let current = null;

  const items = () => [...main.querySelectorAll("[data-item]")];
  const versionsOf = (item) => item.dataset.versions.split(" ");
  const checkboxOf = (item) => item.querySelector("input[type=checkbox]");
  const selected = () => items().filter((item) => checkboxOf(item)?.checked);

  // --- what is fetched for an item: its rendered change when it is visible, details when it is opened

  const loading = new WeakMap(); // what is being fetched or was fetched, by its place

  function load(place, address) {
    if (!place || !address) return;
    if (!loading.has(place)) loading.set(place, fetchPart(place, address));
    return loading.get(place);
  }

  async function fetchPart(place, address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) {
      loading.delete(place); // the next call tries again
      return;
    }
    place.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
  }

  const loadChange = (item) => load(item.querySelector("[data-change]"), item.querySelector("[data-change]")?.dataset.change);
  const loadDetails = (item) => load(item.querySelector("[data-details]"), item.querySelector("[data-details]")?.dataset.details);

  // Details take a search, so what is not needed at once is fetched one after the other.
  let lastRequest = Promise.resolve();
  function loadInTurn(load, item) {
    lastRequest = lastRequest.then(() => load(item)).catch(() => {}); // the server does not answer
  }

  const visible = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        visible.unobserve(target);
        loadChange(target);
        loadInTurn(loadDetails, target);
      }
    },
    { rootMargin: "200px" },
  );

  // --- the current item

  function choose(item, { focus = true, remember = true } = {}) {
    if (!item) return;
    current?.classList.remove("current");
    current = item;
    item.classList.add("current");
    if (focus) {
      item.focus({ preventScroll: true });
      // A smooth movement would be late: parts that arrive meanwhile change the height of the page.
      item.scrollIntoView({ block: "start", behavior: "instant" });
    }
    loadChange(item);
    loadInTurn(loadDetails, item);
    if (remember) {
      clearTimeout(placeTimer);
      placeTimer = setTimeout(rememberPlace, PLACE_DELAY);
    }
  }

  function step(distance) {
    const all = items();
    const position = all.indexOf(current);
    const isAtLink = olderLink !== null && document.activeElement === olderLink;
    if (position < 0) {
      choose(all[0]);
    } else if (isAtLink && distance < 0) {
      choose(current);
    } else if (olderLink !== null && distance > 0 && position === all.length - 1) {
      olderLink.focus();
    } else {
      choose(all[Math.max(0, Math.min(all.length - 1, position + distance))]);
    }
  }

  // Chooses the first item from a position on that is still open; if there is none, the nearest open one before.
  function chooseNextOpen(position) {
    const all = items();
    const isOpen = (item) => item.dataset.open === "1";
    const next = all.slice(position).find(isOpen);
    const previous = all.slice(0, position).findLast(isOpen);
    choose(next ?? previous ?? all[Math.min(position, all.length - 1)]);
  }

  // --- the place to which a person comes back

  const PLACE_DELAY = 200; // milliseconds, because browsers limit how often an address is replaced
  let placeTimer = 0;

  // Puts the current item into the address. What is listed after it, and then what is listed before it, takes its
  // place if it has gone.
  function rememberPlace() {
    clearTimeout(placeTimer);
    placeTimer = 0;
    const all = items();
    const position = all.indexOf(current);
    if (position < 0) return;
    const places = [...all.slice(position), ...all.slice(0, position).reverse()];
    history.replaceState({ places: places.map((item) => item.id) }, "", `#${current.id}`);
    history.scrollRestoration = "manual"; // the same distance from the top may be at another item later
  }

  // Returns the item to which the address or the history leads, or undefined.
  function findPlace() {
    const all = items();
    const places = history.state?.places ?? [location.hash.slice(1)];
    const id = places.find((place) => all.some((item) => item.id === place));
    return all.find((item) => item.id === id);
  }

  // What is fetched for the items above moves an item down. So it is held until the person does something.
  function holdPlace(item) {
    const observer = new ResizeObserver(() => item.scrollIntoView({ block: "start", behavior: "instant" }));
    observer.observe(main);
    const release = () => observer.disconnect();
    for (const action of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(action, release, { once: true });
  }

  // A link may lead away before the timer ends.
  document.addEventListener("click", (event) => {
    if (placeTimer && event.target.closest("a")) rememberPlace();
  });

  // The browser shows the page as it was left.
  addEventListener("pageshow", (event) => {
    if (event.persisted && history.state?.places) choose(current);
  });

  // --- forms

  async function send(form, submitter) {
    const fields = new URLSearchParams(new FormData(form, submitter));
    fields.set("part", "1");
    const request = { method: "POST", headers: { Accept: "text/html" }, body: fields };
    const answer = await fetch(form.getAttribute("action"), request).catch(() => null);
    if (!answer) return showMessage("The server cannot be reached. Load the page again.");
    if (answer.status === 401) return location.reload();
    const result = parseHtml(await answer.text());
    if (!answer.ok) return showMessage(result.querySelector("h1, .error")?.textContent ?? "The action failed.");
    showResult(result, fields.get("action"));
  }

  // The server makes the HTML, and escapes all that notes say.
  function parseHtml(html) {
    const container = document.createElement("div");
    container.innerHTML = html;
    return container;
  }

  // Shows the new state of the items that an action concerned, and moves on to what is still to be reviewed.
  function showResult(result, action) {
    const position = Math.max(0, items().indexOf(current));
    const staysHere = action === "comment" || result.querySelector(".problem");
    replaceItems(result);
    updateSessions();
    for (const id of ["left", "progress"]) document.getElementById(id).replaceWith(result.querySelector(`#${id}`));
    showMessage(result.querySelector("[data-message]").textContent);
    showSelection();

    if (staysHere) choose(current);
    else chooseNextOpen(position);
  }

  // An action may divide an item, if only some of its steps were undone, and may join items of one note.
  function replaceItems(result) {
    const newItems = [...result.querySelectorAll("[data-item]")];
    for (const oldItem of items()) {
      const versions = versionsOf(oldItem);
      const successors = newItems.filter((newItem) => versionsOf(newItem).some((version) => versions.includes(version)));
      if (successors.length === 0) continue;
      if (oldItem === current) current = successors.find((item) => item.dataset.open === "1") ?? successors[0];
      if (successors.length === 1) keepChange(oldItem, successors[0]);
      oldItem.replaceWith(...successors.filter((item) => !main.contains(item)));
      for (const item of successors) visible.observe(item);
    }
  }

  // What is decided is no longer kept or undone with the rest of its session.
  function updateSessions() {
    for (const group of main.querySelectorAll(".group")) {
      const groupItems = [...group.querySelectorAll("[data-item]")];
      const decided = groupItems.filter((item) => item.dataset.open !== "1").flatMap(versionsOf);
      const open = groupItems.filter((item) => item.dataset.open === "1").flatMap(versionsOf);
      for (const field of group.querySelectorAll(".group-head input[name=versions]")) {
        const others = field.value.split(" ").filter((version) => version && !decided.includes(version));
        field.value = [...new Set([...others, ...open])].join(" ");
      }
      for (const part of group.querySelectorAll(".group-head > form, .group-head > details")) {
        part.hidden = part.querySelector("input[name=versions]").value === "";
      }
    }
  }

  // What the change did to the note stays the same. If it were fetched again, the page would move.
  function keepChange(oldItem, newItem) {
    const change = oldItem.querySelector("[data-change]");
    const isSame = oldItem.dataset.versions === newItem.dataset.versions;
    if (isSame && loading.has(change)) newItem.querySelector("[data-change]").replaceWith(change);
  }

  function showMessage(text) {
    status.textContent = text;
    status.hidden = text === "";
    measureBars(); // now, because the next item is to be below the bar, which may have another line
  }

  function showSelection() {
    if (!batch) return;
    const count = selected().length;
    batch.hidden = count === 0;
    document.getElementById("selected-count").textContent = count === 1 ? "1 change is selected:" : `${count} changes are selected:`;
  }

  // All that are left to review, and no others.
  function selectAll() {
    for (const item of items()) {
      if (checkboxOf(item)) checkboxOf(item).checked = item.dataset.open === "1";
    }
    showSelection();
  }

  function clearSelection() {
    for (const item of selected()) checkboxOf(item).checked = false;
    showSelection();
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
    openCommentForm(link.closest("[data-item]"));
  });

  // The form is a part of the details of an item.
  async function openCommentForm(item) {
    choose(item);
    await loadDetails(item);
    const commentBox = item.querySelector(".comment-box");
    if (!commentBox) return; // the details cannot be fetched, or the token may only read
    commentBox.hidden = false;
    commentBox.querySelector("textarea").focus();
  }

  // Presses the first of these buttons that there is, for the selected items if there are some, else for the current one.
  function press(...actions) {
    const form = selected().length > 0 ? batch : current?.querySelector(".actions");
    for (const action of actions) {
      const button = form?.querySelector(`button[value=${action}]`);
      if (button) return button.click();
    }
  }

  async function toggleSimilarNotes(item) {
    await loadDetails(item);
    const similar = item.querySelector("details.similar");
    if (!similar) return;
    similar.open = !similar.open;
    if (similar.open) similar.querySelector("summary").focus();
    else item.focus({ preventScroll: true });
  }

  const COMMANDS_FOR_PAGE = new Map([
    ["j", () => step(1)],
    ["k", () => step(-1)],
    ["a", selectAll],
    ["?", () => keysDialog.showModal()],
  ]);

  const COMMANDS_FOR_ITEM = new Map([
    ["x", () => checkboxOf(current)?.click()],
    ["K", () => press("keep", "reopen")],
    ["U", () => press("undo", "redo")],
    ["E", () => current.querySelector("a.edit")?.click()],
    ["c", () => openCommentForm(current)],
    ["s", () => toggleSimilarNotes(current)],
    ["o", () => current.querySelector("a.note")?.click()],
    ["Enter", () => current.querySelector("a.title")?.click()],
  ]);

  // A person may have scrolled away, and does not know then which item a key is about.
  function isOutOfView(item) {
    const { top, bottom } = item.getBoundingClientRect();
    return bottom < bar.getBoundingClientRect().bottom || top > innerHeight;
  }

  function runForItem(key) {
    const isForSelection = (key === "K" || key === "U") && selected().length > 0;
    if (isForSelection) COMMANDS_FOR_ITEM.get(key)();
    else if (!current) return;
    else if (isOutOfView(current)) choose(current);
    else COMMANDS_FOR_ITEM.get(key)();
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (isTypingOrBrowserCommand(event)) return;
    if (keysDialog.open) {
      if (key === "?") keysDialog.close();
      return;
    }
    const isOnItem = target === current || target === document.body;
    if (key === "Enter" && !isOnItem) return; // a link, a button or a box
    if (key === "Escape" && selected().length > 0) {
      event.preventDefault();
      clearSelection();
    } else if (COMMANDS_FOR_PAGE.has(key)) {
      event.preventDefault();
      COMMANDS_FOR_PAGE.get(key)();
    } else if (COMMANDS_FOR_ITEM.has(key)) {
      event.preventDefault();
      // A key that is held down would go on with the next item, unseen.
      if (!event.repeat) runForItem(key);
    }
  });

  // --- changes that arrive meanwhile are announced, and not put between what a person reads

  let newsTimer = 0;
  document.addEventListener("notes-changed", () => {
    clearTimeout(newsTimer);
    newsTimer = setTimeout(showNews, 300);
  });

  async function showNews() {
    const answer = await fetch(`${vault}/review/news${location.search}`, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const count = parseHtml(await answer.text()).querySelector("#left");
    const shown = new Set(items().flatMap(versionsOf));
    const isNew = count.dataset.newest !== "" && !shown.has(count.dataset.newest);
    document.getElementById("left").replaceWith(count);
    document.getElementById("review-news").hidden = !isNew;
  }

  // What stays at the top of the window, below which the top of the current item belongs.
  const header = document.querySelector("body > header");
  const bar = main.querySelector(".top");
  function measureBars() {
    const { style } = document.documentElement;
    style.setProperty("--header-height", `${header.offsetHeight}px`);
    style.setProperty("--top-height", `${bar.offsetHeight}px`);
  }
  measureBars();
  const heights = new ResizeObserver(measureBars);
  heights.observe(header);
  heights.observe(bar);

  const keysButton = document.getElementById("show-keys");
  keysButton.hidden = false;
  keysButton.addEventListener("click", () => keysDialog.showModal());
  clearButton?.addEventListener("click", clearSelection);
  if (clearButton) clearButton.hidden = false;
  batch?.classList.add("over");
  showSelection();
  for (const item of items()) {
    visible.observe(item);
    loadInTurn(loadChange, item); // soon, so that the page does not grow while a person scrolls
  }
  const place = findPlace();
  const firstOpen = items().find((item) => item.dataset.open === "1");
  if (place) {
    choose(place);
    holdPlace(place);
  } else {
    choose(firstOpen ?? items()[0], { focus: false, remember: false });
  }
}
