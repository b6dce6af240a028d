// The page of the graph: fetches the notes that were chosen, has them laid out by a worker, and
// connects the drawing with the list, the search, the legend and the card of a note.

const { GraphView } = window;
const MAX_LISTED = 200;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

const prefix = document.documentElement.dataset.root;
const choices = document.getElementById("graph-choices");
const drawing = document.querySelector(".drawing");
const canvas = drawing.querySelector("canvas");
const card = drawing.querySelector(".card");
const legend = drawing.querySelector(".legend");
const list = document.querySelector(".nodes ol");
const count = document.getElementById("graph-count");
const find = document.getElementById("graph-find");

let graph = null;
let layout = null;
let loading = new AbortController();

drawing.hidden = false;
find.closest("label").hidden = false;
choices.querySelector(".apply").hidden = true;

const view = new GraphView(canvas, {
  onSelect: select,
  onOpen: (note) => location.assign(noteUrl(graph.names[note])),
  onHold: (note, x, y) => layout?.postMessage({ hold: note, x, y }),
  onRelease: (note) => layout?.postMessage({ release: note }),
  coveredHeight: () => legend.offsetHeight,
});
window.graphView = view; // for bench/graph_page.py and the tests

// --- data

function query() {
  const fields = [...new FormData(choices)].filter(([, value]) => value);
  return new URLSearchParams(fields).toString();
}

async function load() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  drawing.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${prefix}/graph/data?${query()}`, { signal });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new TypeError(`the graph cannot be read: ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    if (signal.aborted) return; // another choice was made
    if (!(error instanceof TypeError)) throw error;
    count.textContent = "The graph cannot be read at the moment.";
  }
  drawing.removeAttribute("aria-busy");
}

function show(data) {
  graph = data;
  graph.labels = graph.names.map((name, note) => graph.titles[note] || lastPart(name));
  graph.centre = graph.distances.length ? 0 : -1;
  const groups = groupNotes();
  view.show({
    labels: graph.labels,
    links: Uint32Array.from(graph.links),
    similar: Uint32Array.from(graph.similar),
    groups,
    positions: firstPositions(groups),
    centre: graph.centre,
  });
  canvas.setAttribute("aria-label", `Graph of ${graph.names.length} notes`);
  select(-1);
  search();
  startLayout();
}

// Notes of one colour begin near each other: on a spiral around a point of their own.
function firstPositions(groups) {
  const positions = new Float32Array(groups.length * 2);
  const spread = 14 * Math.sqrt(groups.length);
  const sizes = new Map();
  for (const [note, group] of groups.entries()) {
    const inGroup = sizes.get(group) ?? 0;
    sizes.set(group, inGroup + 1);
    const angle = inGroup * GOLDEN_ANGLE;
    const distance = 12 * Math.sqrt(inGroup);
    const groupAngle = (group * 2 * Math.PI) / (GraphView.GROUP_COUNT + 1);
    positions[2 * note] = Math.cos(groupAngle) * spread + Math.cos(angle) * distance;
    positions[2 * note + 1] = Math.sin(groupAngle) * spread + Math.sin(angle) * distance;
  }
  return positions;
}

function startLayout() {
  layout?.terminate();
  layout = new Worker(drawing.dataset.layout);
  layout.onmessage = ({ data }) => {
    view.moveTo(data.positions);
    drawing.toggleAttribute("data-settled", data.isSettled);
  };
  layout.postMessage({
    forces: drawing.dataset.forces,
    positions: view.positions.slice(),
    links: Uint32Array.from([...graph.links, ...graph.similar]),
    isStill: view.isStill,
  });
}

// --- colours

// Shows the legend, and returns the number of the colour of each note. The most frequent values have colours of their own.
function groupNotes() {
  const valueOf = { folder: folderOf, type: typeOf, tag: firstTagOf }[choices.elements.colour.value];
  const values = graph.names.map((_, note) => valueOf(note));
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const isNamed = ([value]) => value !== "";
  const frequent = [...counts].filter(isNamed).sort((a, b) => b[1] - a[1]).slice(0, GraphView.GROUP_COUNT);
  const colours = new Map(frequent.map(([value], number) => [value, number]));
  const rest = graph.names.length - frequent.reduce((sum, [, size]) => sum + size, 0);
  showLegend(frequent, rest);
  return values.map((value) => colours.get(value) ?? GraphView.GROUP_COUNT);
}

// The folder below the one that all shown notes are in.
function folderOf(note) {
  const shared = choices.elements.folder.value;
  const rest = shared ? graph.names[note].slice(shared.length + 1) : graph.names[note];
  const [folder] = rest.split("/");
  return folder === rest ? "" : `${folder}/`;
}

function typeOf(note) {
  return graph.types[graph.type_of[note]];
}

function firstTagOf(note) {
  const [tag] = graph.tags_of[note];
  return tag === undefined ? "" : `#${graph.tags[tag]}`;
}

function showLegend(frequent, rest) {
  const entries = frequent.map(([value, size], number) => legendEntry(`--group-${number}`, value, size));
  const label = frequent.length ? "others" : "notes";
  if (rest) entries.push(legendEntry("--soft", label, rest));
  legend.replaceChildren(...entries);
}

function legendEntry(colour, label, size) {
  const entry = document.createElement("li");
  const swatch = document.createElement("span");
  swatch.style.background = `var(${colour})`;
  entry.append(swatch, `${label} `, element("small", String(size)));
  return entry;
}

// --- the list, the search and the card

function search() {
  const text = find.value.trim().toLowerCase();
  const isMatch = (note) => `${graph.labels[note]}\n${graph.names[note]}`.toLowerCase().includes(text);
  const notes = graph.names.map((_, note) => note).filter(isMatch);
  view.mark(text ? new Set(notes) : null);
  list.replaceChildren(...notes.slice(0, MAX_LISTED).map(listEntry));
  let summary = `${notes.length} of ${text ? graph.names.length : graph.matching} notes`;
  if (notes.length > MAX_LISTED) summary += `; the list has the first ${MAX_LISTED}`;
  count.textContent = summary;
  return notes;
}

function listEntry(note) {
  const entry = document.createElement("li");
  const link = element("a", graph.labels[note]);
  link.href = noteUrl(graph.names[note]);
  link.title = graph.names[note];
  link.addEventListener("focus", () => view.hover(note));
  link.addEventListener("blur", () => view.hover(-1));
  link.addEventListener("pointerenter", () => view.hover(note));
  link.addEventListener("pointerleave", () => view.hover(-1));
  entry.append(link);
  const steps = graph.distances[note];
  if (steps) entry.append(" ", element("small", `${steps} step${steps === 1 ? "" : "s"}`));
  return entry;
}

function select(note) {
  view.select(note);
  card.hidden = note < 0;
  if (note < 0) return;
  const name = graph.names[note];
  const open = element("a", "Open");
  open.href = noteUrl(name);
  const around = element("a", "Its neighbours");
  around.href = `${prefix}/graph?note=${encodeURIComponent(name.toWellFormed())}&depth=2`;
  const close = element("button", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => select(-1));
  const tags = graph.tags_of[note].map((tag) => `#${graph.tags[tag]}`);
  const facts = [name, typeOf(note), ...tags].filter(Boolean).join(" · ");
  const links = view.neighbours[note].length;
  card.replaceChildren(
    element("strong", graph.labels[note]), close, element("small", facts),
    element("small", `${links} link${links === 1 ? "" : "s"} here`), open, " ", around,
  );
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function lastPart(name) {
  return name.slice(name.lastIndexOf("/") + 1);
}

// --- events

choices.addEventListener("change", (event) => {
  history.replaceState(null, "", `${prefix}/graph?${query()}`);
  if (event.target.name === "colour") view.setGroups(groupNotes());
  else load();
});
choices.addEventListener("submit", (event) => {
  event.preventDefault();
  load();
});
find.addEventListener("input", search);
find.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    find.value = "";
    search();
  }
  if (event.key !== "Enter") return;
  event.preventDefault();
  const [first] = search();
  if (first === undefined) return;
  view.centreOn(first);
  select(first);
});
for (const button of drawing.querySelectorAll("[data-zoom]")) {
  const factor = Number(button.dataset.zoom);
  button.addEventListener("click", () => (factor ? view.zoom(factor) : view.showAll()));
}
load();
