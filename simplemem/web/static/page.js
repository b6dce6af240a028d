"use strict";
// Search as one types, the keyboard, and word of changes. All of the page works without it.
const root = document.documentElement.dataset.root;
const field = document.querySelector("input[type=search]");
const homeResults = document.getElementById("results");
const results = homeResults ?? (field && addPalette());

// On a page other than the home page, the results of what one types are below the header.
function addPalette() {
  const palette = document.createElement("section");
  palette.id = "palette";
  palette.setAttribute("aria-label", "Search results");
  palette.hidden = true;
  document.querySelector("header").append(palette);
  return palette;
}

async function part(path, into, signal) {
  const answer = await fetch(root + path, { headers: { Accept: "text/html" }, signal });
  if (answer.status === 401) return location.reload();
  if (answer.ok) into.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
  return answer.ok;
}

// One search is under way at most: more letters end the one before.
let search = new AbortController();
let typing = 0;
field?.addEventListener("input", () => {
  clearTimeout(typing);
  search.abort();
  typing = setTimeout(showResults, 80);
});

async function showResults() {
  const query = field.value.trim();
  if (homeResults) history.replaceState(null, "", query ? `${root}/?q=${encodeURIComponent(query)}` : `${root}/`);
  else if (!query) return closePalette();
  search = new AbortController();
  const { signal } = search;
  const box = document.createElement("section");
  try {
    if (!(await part(`/search?q=${encodeURIComponent(query)}`, box, signal))) return;
  } catch (error) {
    if (signal.aborted || error instanceof TypeError) return; // more was typed, or the server is not there
    throw error;
  }
  if (signal.aborted) return;
  results.replaceChildren(...box.childNodes);
  results.hidden = false;
}

function closePalette() {
  if (!homeResults && results) results.hidden = true;
}

function move(step) {
  const hits = [...document.querySelectorAll(".hits > li, #latest > li")];
  const at = hits.findIndex((hit) => hit.classList.contains("chosen"));
  const next = hits[Math.max(0, Math.min(hits.length - 1, at + step))];
  hits[at]?.classList.remove("chosen");
  next?.classList.add("chosen");
  next?.querySelector("a").focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && field) {
    field.focus();
    field.select();
    return event.preventDefault();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !field) return;
  const isTyping = event.target.matches?.("input, textarea");
  const hasHits = homeResults || (results && !results.hidden);
  if (event.key === "/" && !isTyping) field.focus();
  else if (event.key === "Escape" && (isTyping || hasHits)) {
    closePalette();
    field.blur();
  } else if (event.key === "ArrowDown" && hasHits) move(1);
  else if (event.key === "ArrowUp" && hasHits && !isTyping) move(-1);
  else return;
  event.preventDefault();
});

for (const link of document.querySelectorAll("nav a")) if (link.pathname === location.pathname) link.ariaCurrent = "page";

