"use strict";
// Search as one types, the keyboard, and word of changes. All of the page works without it.
const root = document.documentElement.dataset.root;
const field = document.querySelector("input[type=search]");
const results = document.getElementById("results");
const news = document.getElementById("news");

async function part(path, into) {
  const answer = await fetch(root + path, { headers: { Accept: "text/html" } });
  if (answer.status === 401) return location.reload();
  if (answer.ok) into.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
}

let asked = 0;
field?.addEventListener("input", () => {
  if (!results) return;
  const mine = ++asked;
  setTimeout(async () => {
    if (mine !== asked) return; // more was typed
    const query = field.value.trim();
    history.replaceState(null, "", query ? `${root}/?q=${encodeURIComponent(query)}` : `${root}/`);
    const box = document.createElement("section");
    await part(`/search?q=${encodeURIComponent(query)}`, box);
    if (mine === asked) results.replaceChildren(...box.childNodes);
  }, 80);
});

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
    field.select();
    return event.preventDefault();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !field) return;
  const typing = event.target.matches?.("input, textarea");
  if (event.key === "/" && !typing) field.focus();
  else if (event.key === "Escape" && typing) field.blur();
  else if (event.key === "ArrowDown" && (typing || results)) move(1);
  else if (event.key === "ArrowUp" && results && !typing) move(-1);
  else return;
  event.preventDefault();
});

for (const link of document.querySelectorAll("nav a")) if (link.pathname === location.pathname) link.ariaCurrent = "page";

if (field) {
  const changes = new EventSource(`${root}/api/v1/changes`);
  changes.addEventListener("changed", (event) => {
    const { names, more } = JSON.parse(event.data);
    news.replaceChildren("Changed: ");
    for (const [at, name] of names.slice(0, 3).entries()) {
      const link = document.createElement("a");
      link.href = `${root}/note/${name.split("/").map(encodeURIComponent).join("/")}`;
      link.textContent = name;
      news.append(at ? ", " : "", link);
    }
    const left = names.length + more - Math.min(3, names.length);
    if (left) news.append(` and ${left} more`);
    news.hidden = false;
    const latest = document.getElementById("latest");
    const fresh = document.createElement("div");
    if (latest) part("/latest", fresh).then(() => latest.replaceWith(...fresh.childNodes));
  });
  addEventListener("pagehide", () => changes.close());
}
