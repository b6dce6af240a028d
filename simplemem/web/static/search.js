"use strict";
// Search while a person types: in the palette, which Ctrl-K opens on every page, and on the page of
// results. Without the script, the field of the header leads to the page of results.
{
  const vault = document.documentElement.dataset.root;
  const field = document.querySelector("header input[type=search]");
  const form = field?.form;
  const results = document.getElementById("results");
  const WAIT_MS = 60; // after a letter, because the next one often follows

  // Fetches a part of the page, and calls `show` with its HTML. A new request cancels the one before.
  class LatestPart {
    constructor(show) {
      this.show = show;
      this.controller = new AbortController();
    }

    request(path) {
      this.cancel();
      this.timer = setTimeout(() => this.fetch(path), WAIT_MS);
    }

    cancel() {
      clearTimeout(this.timer);
      this.controller.abort();
    }

    async fetch(path) {
      this.controller = new AbortController();
      const { signal } = this.controller;
      try {
        const answer = await fetch(vault + path, { headers: { Accept: "text/html" }, signal });
        if (answer.status === 401) return location.reload();
        if (!answer.ok) return;
        const html = await answer.text();
        if (!signal.aborted) this.show(html);
      } catch (error) {
        // More was typed, or the server cannot be reached.
        if (!signal.aborted && !(error instanceof TypeError)) throw error;
      }
    }
  }

  // --- the page of results

  // The server has made the HTML, and escapes all that notes contain.
  const resultsPart = new LatestPart((html) => (results.innerHTML = html));

  function updateResults() {
    const filled = [...new FormData(form)].filter(([name, value]) => value || name === "q");
    const query = new URLSearchParams(filled).toString();
    history.replaceState(null, "", `${vault}/?${query}`);
    resultsPart.request(`/search?${query}&part=1`);
  }

  // Moves the focus to the hit before or after the chosen one.
  function moveInResults(step) {
    const hits = [...results.querySelectorAll(".hits > li")];
    const current = hits.findIndex((hit) => hit.classList.contains("chosen"));
    const next = hits[Math.max(0, Math.min(hits.length - 1, current + step))];
    hits[current]?.classList.remove("chosen");
    next?.classList.add("chosen");
    next?.querySelector("a").focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest" });
  }

  // --- the palette

  const palette = document.createElement("dialog");
  palette.id = "palette";
  palette.setAttribute("aria-label", "Search");
  palette.innerHTML = `
    <input type="text" role="combobox" aria-label="Search notes" aria-controls="palette-list" aria-expanded="false"
      aria-autocomplete="list" autocomplete="off" placeholder="Search by name or text">
    <div id="palette-list" role="listbox" aria-label="Notes"></div>
    <p class="keys"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span> <span><kbd>Enter</kbd> open</span>
      <span><kbd>Ctrl</kbd> <kbd>Enter</kbd> all results</span> <span><kbd>Esc</kbd> close</span></p>`;
  const input = palette.querySelector("input");
  const list = palette.querySelector("[role=listbox]");
  const palettePart = new LatestPart((html) => {
    list.innerHTML = html;
    for (const [number, option] of [...list.children].entries()) option.id = `palette-option-${number}`;
    input.setAttribute("aria-expanded", String(list.children.length > 0));
    choose(-1);
  });
  let chosen = -1; // the number of an option, or -1 for none

  function openPalette(text = "") {
    if (palette.open) return input.select();
    input.value = text;
    palette.showModal(); // keeps the focus inside, and returns it when it closes
    input.focus();
    fillPalette();
  }

  function fillPalette() {
    const query = input.value.trim();
    if (query) return palettePart.request(`/palette/search?q=${encodeURIComponent(query)}`);
    palettePart.cancel();
    palettePart.show("");
  }

  // Marks an option. The focus stays in the field, so that a person can go on typing.
  function choose(number) {
    const options = [...list.children];
    options[chosen]?.setAttribute("aria-selected", "false");
    chosen = Math.max(-1, Math.min(options.length - 1, number));
    const option = options[chosen];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function showAllResults() {
    location.assign(`${vault}/?q=${encodeURIComponent(input.value.trim())}`);
  }

  // Without a choice, Enter opens the first note.
  function openChosen() {
    const option = list.children[Math.max(0, chosen)];
    if (option) option.click();
    else if (input.value.trim()) showAllResults();
  }

  function onPaletteKey(event) {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(Math.max(0, chosen - 1));
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) showAllResults();
    else if (event.key === "Enter") openChosen();
    else return;
    event.preventDefault();
  }

  // --- events

  function onPageKey(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      return openPalette(results ? field.value : "");
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const isTyping = event.target.matches?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      openPalette();
    } else if (results && (event.target === field || results.contains(event.target))) {
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      moveInResults(steps[event.key]);
    }
  }

  function start() {
    document.body.append(palette);
    palette.addEventListener("click", (event) => event.target === palette && palette.close());
    palette.addEventListener("keydown", onPaletteKey);
    palette.addEventListener("close", () => palettePart.cancel());
    input.addEventListener("input", fillPalette);
    document.addEventListener("keydown", onPageKey);

    if (!results) {
      // What a person types into the header appears in the palette.
      field.addEventListener("input", () => {
        const typed = field.value;
        field.value = "";
        openPalette(typed);
      });
      return;
    }
    field.addEventListener("input", updateResults);
    document.getElementById("search-filters").addEventListener("change", updateResults);
    document.getElementById("search-filters").addEventListener("input", updateResults);
  }

  if (field) start();
}
