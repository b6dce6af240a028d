// The scene: the graph as it was laid out, where one looks at it from, and how it is painted.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("graph").textContent);
const { nodes, types, relations } = data;
const edges = data.edges.map(([s, t, type, link, said]) => ({ s: nodes[s], t: nodes[t], type, link: !!link, said: said || "" }));
const canvas = $("scene");
const context = canvas.getContext("2d", { alpha: false });

nodes.forEach((node, at) => { node.at = at; node.edges = []; node.width = 0; });
for (const edge of edges) {
  edge.s.edges.push(edge);
  if (edge.t !== edge.s) edge.t.edges.push(edge);
}
const byImportance = [...nodes].sort((a, b) => b.edges.length - a.edges.length || a.at - b.at);

const view = { x: 0, y: 0, k: 1, width: 0, height: 0, ratio: 1 };
const shown = { hidden: new Set(), found: null, chosen: null, over: null };
let ink = {};
let still = null; // while a node is dragged: everything that does not move, painted once
let moving = null; // the nodes that do
let due = false;
let copy = null; // the last whole painting of a large graph, and from where it was seen
let again = 0;
const isLarge = nodes.length + edges.length > 2500;
const copyCanvas = document.createElement("canvas");
const COPY_LASTS = 250; // milliseconds for which a moved copy stands in for the scene

const toScreenX = (x) => (x - view.x) * view.k + view.width / 2;
const toScreenY = (y) => (y - view.y) * view.k + view.height / 2;
const toSceneX = (x) => (x - view.width / 2) / view.k + view.x;
const toSceneY = (y) => (y - view.height / 2) / view.k + view.y;
const isShown = (node) => !shown.hidden.has(node.type);
const sizeOf = (node) => Math.max(1.2, node.r * Math.min(1.6, Math.max(view.k, Math.sqrt(view.k) * 0.45)));

function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "ink", "soft", "edge", "lit"]) ink[name] = style.getPropertyValue("--" + name).trim();
}

function repaint(onlyMoved) {
  if (!onlyMoved) copy = null;
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; paint(); });
}

function measure() {
  view.ratio = Math.min(window.devicePixelRatio || 1, 2);
  view.width = window.innerWidth;
  view.height = window.innerHeight;
  canvas.width = Math.round(view.width * view.ratio);
  canvas.height = Math.round(view.height * view.ratio);
  still = null;
  repaint();
}

function fit() {
  const seen = nodes.filter(isShown);
  if (!seen.length) return repaint();
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (const { x, y } of seen) {
    left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  const beside = view.width > 640 ? 270 : 0; // the list of types covers this much, and a note that is open
  const covered = view.width > 900 && !$("panel").hidden ? $("panel").offsetWidth : 0;
  view.k = Math.min(2, (view.width - beside - covered - 190) / (right - left + 1), (view.height - 80) / (bottom - top + 1));
  view.k = Math.max(view.k, 0.005);
  view.x = (left + right) / 2 - (beside / 2 - covered / 2 - 50) / view.k; // and names stand to the right
  view.y = (top + bottom) / 2;
  repaint();
}

function lookAt(node) {
  view.k = Math.max(view.k, 0.9);
  view.x = node.x;
  view.y = node.y;
  repaint();
}

function zoom(by, x = view.width / 2, y = view.height / 2) {
  const [sx, sy] = [toSceneX(x), toSceneY(y)];
  view.k = Math.min(8, Math.max(0.005, view.k * by));
  view.x = sx - (x - view.width / 2) / view.k;
  view.y = sy - (y - view.height / 2) / view.k;
  repaint(true);
}

// What stands out: the chosen node and those around it, else what was found.
function lit() {
  if (shown.chosen) {
    const around = new Set([shown.chosen]);
    for (const edge of shown.chosen.edges) { around.add(edge.s); around.add(edge.t); }
    return around;
  }
  return shown.found;
}

function paint() {
  if (!moving) { paintWhole(); return; }
  if (!still) {
    still = document.createElement("canvas");
    still.width = canvas.width;
    still.height = canvas.height;
    paintAll(still.getContext("2d", { alpha: false }), moving);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(still, 0, 0);
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  const tied = new Set();
  for (const node of moving) for (const edge of node.edges) tied.add(edge);
  paintEdges(context, [...tied].filter((edge) => isShown(edge.s) && isShown(edge.t)), ink.edge, 0.9);
  paintNodes(context, [...moving].filter(isShown), 1);
  paintNames(context, [...moving].filter(isShown), null);
  paintOver();
}

// A large graph that is moved or zoomed is shown as the copy of what was painted, moved; and painted anew now and then.
function paintWhole() {
  const same = copy && copy.x === view.x && copy.y === view.y && copy.k === view.k;
  if (copy && (same || performance.now() - copy.when < COPY_LASTS)) {
    const by = view.k / copy.k;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = ink.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const x = ((copy.x - view.x) * view.k + (view.width / 2) * (1 - by)) * view.ratio;
    const y = ((copy.y - view.y) * view.k + (view.height / 2) * (1 - by)) * view.ratio;
    context.drawImage(copyCanvas, x, y, canvas.width * by, canvas.height * by);
    clearTimeout(again);
    if (!same) again = setTimeout(() => repaint(), 90);
  } else {
    paintAll(context, null);
    if (isLarge) keepCopy();
  }
  paintOver();
}

function keepCopy() {
  if (copyCanvas.width !== canvas.width) copyCanvas.width = canvas.width;
  if (copyCanvas.height !== canvas.height) copyCanvas.height = canvas.height;
  copyCanvas.getContext("2d", { alpha: false }).drawImage(canvas, 0, 0);
  copy = { x: view.x, y: view.y, k: view.k, when: performance.now() };
}

// What the mouse points at, on top of everything: pointing alone paints nothing else anew.
function paintOver() {
  if (!shown.over || !isShown(shown.over)) return;
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  paintRing(context, shown.over);
  paintNames(context, [shown.over], null);
}

function paintAll(to, without) {
  to.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  to.fillStyle = ink.ground;
  to.fillRect(0, 0, view.width, view.height);
  const stands = (node) => isShown(node) && !(without && without.has(node));
  const out = lit();
  const all = edges.filter((edge) => stands(edge.s) && stands(edge.t) && isNear(edge));
  const seen = nodes.filter((node) => stands(node) && isOnScreen(node));
  if (!out) {
    paintEdges(to, all, ink.edge, all.length > 3000 ? 0.35 : 0.6);
    paintNodes(to, seen, 1);
    paintNames(to, byImportance.filter((node) => stands(node) && isOnScreen(node)), null);
    return;
  }
  const bright = shown.chosen
    ? all.filter((edge) => edge.s === shown.chosen || edge.t === shown.chosen)
    : all.filter((edge) => out.has(edge.s) && out.has(edge.t));
  const dim = new Set(bright);
  paintEdges(to, all.filter((edge) => !dim.has(edge)), ink.edge, 0.12);
  paintNodes(to, seen.filter((node) => !out.has(node)), 0.3);
  paintEdges(to, bright, shown.chosen ? ink.lit : ink.edge, 0.85);
  paintNodes(to, seen.filter((node) => out.has(node)), 1);
  if (shown.chosen && view.k > 0.35 && bright.length < 60) paintTypes(to, bright);
  paintNames(to, byImportance.filter((node) => out.has(node) && stands(node) && isOnScreen(node)), shown.chosen);
}

function isOnScreen(node) {
  const x = toScreenX(node.x), y = toScreenY(node.y);
  return x > -30 && y > -30 && x < view.width + 30 && y < view.height + 30;
}

function isNear(edge) {
  const x1 = toScreenX(edge.s.x), x2 = toScreenX(edge.t.x), y1 = toScreenY(edge.s.y), y2 = toScreenY(edge.t.y);
  return !(Math.max(x1, x2) < 0 || Math.max(y1, y2) < 0 || Math.min(x1, x2) > view.width || Math.min(y1, y2) > view.height);
}

// Short strokes: one long path of thousands of lines takes many times as long to paint.
function paintEdges(to, some, colour, alpha) {
  to.strokeStyle = to.fillStyle = colour;
  to.globalAlpha = alpha;
  to.lineWidth = 1;
  for (let from = 0; from < some.length; from += 64) {
    to.beginPath();
    for (const { s, t } of some.slice(from, from + 64)) {
      to.moveTo(toScreenX(s.x), toScreenY(s.y));
      to.lineTo(toScreenX(t.x), toScreenY(t.y));
    }
    to.stroke();
  }
  if (view.k > 0.5 && some.length < 1500) {
    for (let from = 0; from < some.length; from += 64) {
      to.beginPath();
      for (const edge of some.slice(from, from + 64)) paintHead(to, edge);
      to.fill();
    }
  }
  to.globalAlpha = 1;
}

function paintHead(to, { s, t, link }) {
  const x1 = toScreenX(s.x), y1 = toScreenY(s.y), x2 = toScreenX(t.x), y2 = toScreenY(t.y);
  const length = Math.hypot(x2 - x1, y2 - y1), gap = sizeOf(t) + 1;
  if (length < gap + 8) return;
  const dx = (x2 - x1) / length, dy = (y2 - y1) / length, size = link ? 4 : 6;
  const x = x2 - dx * gap, y = y2 - dy * gap;
  to.moveTo(x, y);
  to.lineTo(x - dx * size - dy * size * 0.5, y - dy * size + dx * size * 0.5);
  to.lineTo(x - dx * size + dy * size * 0.5, y - dy * size - dx * size * 0.5);
}

function paintNodes(to, some, alpha) {
  const byType = new Map();
  for (const node of some) {
    if (!byType.has(node.type)) byType.set(node.type, []);
    byType.get(node.type).push(node);
  }
  to.globalAlpha = alpha;
  for (const [type, group] of byType) {
    to.fillStyle = to.strokeStyle = types[type].colour;
    for (const node of group) {
      const x = toScreenX(node.x), y = toScreenY(node.y), r = sizeOf(node);
      if (r < 2) { to.fillRect(x - r, y - r, 2 * r, 2 * r); continue; }
      to.beginPath();
      to.arc(x, y, r, 0, 2 * Math.PI);
      if (node.kind === "missing") { to.lineWidth = 1; to.stroke(); } else to.fill();
    }
  }
  to.globalAlpha = 1;
  if (shown.chosen && some.includes(shown.chosen)) paintRing(to, shown.chosen);
}

function paintRing(to, node) {
  to.strokeStyle = ink.lit;
  to.lineWidth = 2;
  to.beginPath();
  to.arc(toScreenX(node.x), toScreenY(node.y), sizeOf(node) + 2.5, 0, 2 * Math.PI);
  to.stroke();
}

// Names, the most important first, each only where nothing stands yet.
function paintNames(to, some, always) {
  to.font = "12px system-ui, sans-serif";
  to.textBaseline = "middle";
  to.lineJoin = "round";
  to.lineWidth = 3;
  const taken = new Set();
  const most = shown.chosen || view.k > 0.6 ? 160 : 70;
  let painted = 0;
  const first = always && isShown(always) ? [always] : [];
  for (const node of [...first, ...some]) {
    if (painted >= most) break;
    if (node.width === 0) {
      node.name = node.label.length > 42 ? node.label.slice(0, 41) + "…" : node.label || "(no name)";
      node.width = to.measureText(node.name).width;
    }
    const x = toScreenX(node.x) + sizeOf(node) + 4, y = toScreenY(node.y);
    const cells = [];
    for (let column = Math.floor(x / 12); column <= Math.floor((x + node.width) / 12); column++) {
      cells.push(column * 4096 + Math.floor(y / 14), column * 4096 + Math.floor((y + 7) / 14));
    }
    if (!first.includes(node) && cells.some((cell) => taken.has(cell))) continue;
    for (const cell of cells) taken.add(cell);
    to.strokeStyle = ink.ground;
    to.strokeText(node.name, x, y);
    to.fillStyle = ink.ink;
    to.fillText(node.name, x, y);
    painted++;
  }
}

function paintTypes(to, some) {
  to.font = "11px system-ui, sans-serif";
  to.textAlign = "center";
  to.textBaseline = "middle";
  to.lineJoin = "round";
  to.lineWidth = 3;
  for (const edge of some) {
    if (edge.link) continue;
    const x = (toScreenX(edge.s.x) + toScreenX(edge.t.x)) / 2, y = (toScreenY(edge.s.y) + toScreenY(edge.t.y)) / 2;
    const said = relations[edge.type].length > 32 ? relations[edge.type].slice(0, 31) + "…" : relations[edge.type];
    const room = Math.hypot(toScreenX(edge.s.x) - toScreenX(edge.t.x), toScreenY(edge.s.y) - toScreenY(edge.t.y));
    if (room < 70) continue; // the panel says it
    to.strokeStyle = ink.ground;
    to.strokeText(said, x, y);
    to.fillStyle = ink.lit;
    to.fillText(said, x, y);
  }
  to.textAlign = "left";
}
