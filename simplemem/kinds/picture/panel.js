// What stands beside the scene: search, types, and the note that was chosen. Texts are put in as text, never as markup.

const panel = $("panel");
const MOST_HITS = 40, MOST_BONDS = 200;

function made(name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function buttonTo(node, text) {
  const button = made("button", text === undefined ? node.label || "(no name)" : text);
  button.addEventListener("click", () => { choose(node); lookAt(node); });
  return button;
}

function dot(type) {
  const mark = made("span", "", "dot");
  mark.style.background = types[type].colour;
  return mark;
}

// -- types

function fillLegend() {
  types.forEach((type, at) => {
    const button = made("button");
    button.append(dot(at), made("span", type.name || "not written yet"), made("span", String(type.count)));
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      if (!shown.hidden.delete(at)) shown.hidden.add(at);
      button.setAttribute("aria-pressed", String(!shown.hidden.has(at)));
      if (shown.chosen && !isShown(shown.chosen)) choose(null);
      find();
    });
    $("legend").append(button);
  });
}

// -- search

const haystack = (node) => {
  if (node.hay === undefined) {
    const tags = (node.tags || []).map((tag) => "#" + tag).join(" ");
    node.hay = [node.label, types[node.type].name, node.path || "", tags, node.text || ""].join("\n").toLowerCase();
  }
  return node.hay;
};

function find() {
  const words = $("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  $("hits").replaceChildren();
  if (!words.length) {
    shown.found = null;
    $("found").textContent = "";
    return repaint();
  }
  const hits = nodes.filter((node) => isShown(node) && words.every((word) => haystack(node).includes(word)));
  const inName = (node) => (words.every((word) => node.label.toLowerCase().includes(word)) ? 0 : 1);
  const ranked = hits.map((node) => [inName(node), -node.edges.length, node.at, node]);
  ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  for (const [, , , node] of ranked.slice(0, MOST_HITS)) {
    const item = made("li");
    const button = buttonTo(node);
    button.prepend(dot(node.type), " ");
    item.append(button);
    $("hits").append(item);
  }
  const more = hits.length > MOST_HITS ? `, the first ${MOST_HITS} listed` : "";
  $("found").textContent = hits.length ? `${hits.length} found${more}` : "Nothing found";
  shown.found = new Set(hits);
  repaint();
}

$("query").addEventListener("input", () => { if (shown.chosen) choose(null); find(); });
$("query").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !$("hits").firstChild) return;
  $("hits").querySelector("button").click();
  canvas.focus();
});

// -- the note that was chosen

function choose(node) {
  shown.chosen = node;
  panel.hidden = !node;
  if (node) fillPanel(node);
  repaint();
}

function fillPanel(node) {
  $("name").textContent = node.label || "(no name)";
  const kind = types[node.type].name || "not written yet: only its name is known";
  $("facts").replaceChildren(dot(node.type), ` ${kind}`);
  if (node.path) $("facts").append(made("br"), node.path);
  if (node.tags) $("facts").append(made("br"), node.tags.map((tag) => "#" + tag).join(" "));
  $("bonds").replaceChildren();
  for (const edge of node.edges.slice(0, MOST_BONDS)) {
    const item = made("li"), out = edge.s === node;
    item.append(made("span", out ? `${relations[edge.type]} → ` : "← ", "soft"), buttonTo(out ? edge.t : edge.s));
    if (!out) item.append(made("span", ` ${relations[edge.type]}`, "soft"));
    if (edge.said) item.append(made("span", ` (${edge.said})`, "soft"));
    $("bonds").append(item);
  }
  if (node.edges.length > MOST_BONDS) $("bonds").append(made("li", `and ${node.edges.length - MOST_BONDS} more`, "soft"));
  $("bonds").hidden = !node.edges.length;
  fillText(node.text || "");
  panel.scrollTop = 0;
}

let byName = null;

// The note that a link means, by path, name or title; only among what is drawn.
function meant(target) {
  if (!byName) {
    byName = new Map();
    const names = [(node) => node.path && node.path.replace(/\.md$/, ""), (node) => node.label,
      (node) => node.path && node.path.replace(/^.*\//, "").replace(/\.md$/, "")];
    for (const name of names) {
      for (const node of nodes) {
        const key = (name(node) || "").toLowerCase();
        if (key && !byName.has(key)) byName.set(key, node);
      }
    }
  }
  return byName.get(target.split("#")[0].trim().toLowerCase());
}

function fillText(text) {
  const place = $("text");
  place.replaceChildren();
  for (const line of text.split("\n")) {
    const heading = /^#{1,6} +(.*)/.exec(line);
    const shownLine = made("div", undefined, heading ? "head" : "");
    for (const part of (heading ? heading[1] : line).split(/(!?\[\[[^\[\]]+\]\]|%%.*?%%)/)) {
      const link = /^!?\[\[([^\[\]|]+)\\?(?:\|([^\[\]]*))?\]\]$/.exec(part);
      const node = link && meant(link[1].replace(/\\$/, ""));
      if (node) shownLine.append(buttonTo(node, link[2] || link[1].replace(/\\$/, "")));
      else if (part.startsWith("%%")) shownLine.append(made("span", part, "soft"));
      else shownLine.append(part);
    }
    if (!line) shownLine.append("\u00a0");
    place.append(shownLine);
  }
}

$("close").addEventListener("click", () => { choose(null); canvas.focus(); });

function escape() {
  if (shown.chosen) { choose(null); canvas.focus(); return; }
  if ($("query").value) { $("query").value = ""; find(); }
  canvas.focus();
}

// -- begin

$("title").textContent = data.title;
fillLegend();
readInk();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readInk(); repaint(); });
window.addEventListener("resize", measure);
measure();
fit();
