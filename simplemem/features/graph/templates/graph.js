"use strict";
// Texts are put in as text, never as markup.
const $ = (id) => document.getElementById(id);
const { nodes, links } = JSON.parse($("graph").textContent);
const colours = "#3b82c4 #e08a1e #3fa35b #c94f7c #8a63c9 #b5a12a #2aa5a0 #d2543c #6f8f3a #a36b4f #5b6fd6 #c77fc0".split(" ");
const counts = new Map(), byId = new Map(nodes.map((node) => [node.id, node]));
for (const node of nodes) node.type = node.group || node.type;
for (const { type } of nodes) counts.set(type, (counts.get(type) || 0) + 1);
const types = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
const colourOf = (type) => (type && colours[types.indexOf(type)]) || "#8b95a1"; // rarer types, and what is only a name
const edges = links.map((link) => ({ ...link, s: byId.get(link.source), t: byId.get(link.target) }));
nodes.forEach((node, at) => {
  const turn = at * 2.39996, far = 30 * Math.sqrt(at); // the same graph is laid out alike
  Object.assign(node, { at, edges: [], x: far * Math.cos(turn), y: far * Math.sin(turn), fx: 0, fy: 0, colour: colourOf(node.type) });
});
for (const edge of edges) { edge.s.edges.push(edge); if (edge.t !== edge.s) edge.t.edges.push(edge); }
for (const node of nodes) node.r = Math.min(14, 4 + 1.5 * Math.sqrt(node.edges.length));
const byImportance = [...nodes].sort((a, b) => b.edges.length - a.edges.length || a.at - b.at);
const view = { x: 0, y: 0, k: 1, own: false }; // own: somebody moved it
let chosen = null, found = null, heat = 1, turn = 0, due = false, dragged = 0;

// A force-directed layout as in ForceAtlas2: nodes repel each other by their numbers of links, links attract, and
// gravity keeps unlinked nodes near. Of more than 250 nodes, a share repels in each round.
const REPULSION = 260, GRAVITY = 0.25;
function settle() {
  const stride = Math.ceil(nodes.length / 250);
  turn += 1;
  for (const node of nodes) {
    const weight = node.edges.length + 1;
    node.fx = -GRAVITY * weight * node.x; node.fy = -GRAVITY * weight * node.y;
    for (let k = (node.at + turn) % stride; k < nodes.length; k += stride) {
      const other = nodes[k], dx = node.x - other.x, dy = node.y - other.y;
      const push = (REPULSION * stride * weight * (other.edges.length + 1)) / (dx * dx + dy * dy + 1);
      node.fx += push * dx; node.fy += push * dy;
    }
  }
  for (const { s, t } of edges) {
    const pull = 0.6;
    const dx = (t.x - s.x) * pull, dy = (t.y - s.y) * pull;
    s.fx += dx; s.fy += dy; t.fx -= dx; t.fy -= dy;
  }
  for (const node of nodes) {
    const length = Math.hypot(node.fx, node.fy) || 1, step = Math.min(length, 40 * heat) / length;
    node.x += node.fx * step; node.y += node.fy * step;
  }
  heat *= 0.985;
}

const toX = (x) => (x - view.x) * view.k + innerWidth / 2, toY = (y) => (y - view.y) * view.k + innerHeight / 2;
const sizeOf = (node) => Math.max(1.5, node.r * Math.min(1.5, Math.sqrt(view.k)));
function repaint() { if (!due) { due = true; requestAnimationFrame(paint); } }
function paint() {
  due = false;
  if (heat > 0.01 && nodes.length) { settle(); if (!view.own) fit(); repaint(); }
  const ratio = Math.min(devicePixelRatio || 1, 2), { color, backgroundColor } = getComputedStyle(document.body);
  canvas.width = innerWidth * ratio; canvas.height = innerHeight * ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const lit = chosen ? new Set([chosen, ...chosen.edges.flatMap((edge) => [edge.s, edge.t])]) : found;
  const isLit = (node) => !lit || lit.has(node);
  for (const bright of [false, true]) {
    context.globalAlpha = bright ? 0.8 : 0.25;
    context.strokeStyle = chosen && bright ? "#e0604a" : "#8995a1";
    context.beginPath();
    for (const { s, t } of edges) {
      if (bright !== (chosen ? s === chosen || t === chosen : isLit(s) && isLit(t))) continue;
      const way = Math.atan2(t.y - s.y, t.x - s.x);
      const tipX = toX(t.x) - Math.cos(way) * sizeOf(t), tipY = toY(t.y) - Math.sin(way) * sizeOf(t);
      context.moveTo(toX(s.x), toY(s.y)); context.lineTo(tipX, tipY); context.lineTo(tipX + 6 * Math.cos(way + 2.7), tipY + 6 * Math.sin(way + 2.7));
    }
    context.stroke();
  }
  for (const node of nodes) {
    context.globalAlpha = isLit(node) ? 1 : 0.2;
    context.fillStyle = context.strokeStyle = node.colour;
    context.beginPath(); context.arc(toX(node.x), toY(node.y), sizeOf(node), 0, 7);
    if (node.kind === "missing") context.stroke(); else context.fill();
  }
  context.globalAlpha = 1;
  context.font = "12px system-ui, sans-serif"; context.textBaseline = "middle"; context.lineWidth = 3;
  context.strokeStyle = backgroundColor; context.fillStyle = color;
  const taken = []; // a label is left out where another one is
  for (const node of [...(chosen ? [chosen] : []), ...byImportance.filter(isLit).slice(0, 160)]) {
    const said = (node.label || "(no name)").slice(0, 42), x = toX(node.x) + sizeOf(node) + 4, y = toY(node.y), end = x + 7 * said.length;
    if (taken.some((other) => Math.abs(other.y - y) < 14 && x < other.end && other.x < end)) continue;
    taken.push({ x, y, end });
    context.strokeText(said, x, y); context.fillText(said, x, y);
  }
}
function fit() { // the middle of the layout stays where it is
  const far = (of) => nodes.reduce((most, node) => Math.max(most, Math.abs(of(node))), 1) * 2;
  view.k = Math.max(0.005, Math.min(2, (innerWidth - 500) / far((node) => node.x), (innerHeight - 80) / far((node) => node.y)));
  view.x = -105 / view.k; view.y = 0;
}

function made(name, ...parts) { const element = document.createElement(name); element.append(...parts); return element; }
function dotOf(type) { const dot = made("span", "● "); dot.style.color = colourOf(type); return dot; }
function buttonTo(node) {
  const button = made("button", node.label || "(no name)");
  button.addEventListener("click", () => { choose(node); view.x = node.x; view.y = node.y; view.k = Math.max(view.k, 0.9); view.own = true; });
  return button;
}
const textOf = (node) => (node.private ? "(This note is private: its text is not included in this page.)" : node.text || (node.observations || []).map((each) => "- " + each).join("\n"));
const tagsOf = (node) => (node.tags || []).map((tag) => "#" + tag).join(" ");
const said = (node) => (node.said ??= [node.label, node.type, node.path || "", tagsOf(node), textOf(node)].join("\n").toLowerCase());
function find() {
  const words = $("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length ? byImportance.filter((node) => words.every((word) => said(node).includes(word))) : [];
  found = words.length ? new Set(hits) : null;
  const rows = hits.slice(0, 40).map((node) => made("li", dotOf(node.type), buttonTo(node)));
  $("hits").replaceChildren(words.length ? made("li", `${hits.length} found`) : "", ...rows);
  choose(null);
}
function choose(node) {
  chosen = node;
  $("panel").hidden = !node;
  if (node) {
    $("name").textContent = node.label || "(no name)";
    $("facts").textContent = [node.type || "not written yet", node.path, tagsOf(node)].filter(Boolean).join(" · ");
    $("bonds").replaceChildren(...node.edges.slice(0, 200).map(({ s, t, type, attributes }) => {
      const more = attributes ? ` (${JSON.stringify(attributes)})` : "";
      return s === node ? made("li", `${type} → `, buttonTo(t), more) : made("li", "← ", buttonTo(s), ` ${type}${more}`);
    }));
    $("text").textContent = textOf(node);
  }
  repaint();
}

const canvas = $("scene"), context = canvas.getContext("2d");
canvas.addEventListener("pointerdown", ({ pointerId }) => { canvas.setPointerCapture(pointerId); dragged = 0; });
canvas.addEventListener("pointermove", ({ buttons, movementX: x, movementY: y }) => {
  if (!buttons) return;
  view.x -= x / view.k; view.y -= y / view.k; view.own = true; dragged += Math.hypot(x, y);
  repaint();
});
canvas.addEventListener("click", ({ clientX: x, clientY: y }) => {
  const isAt = (node) => Math.hypot(toX(node.x) - x, toY(node.y) - y) < sizeOf(node) + 5;
  if (dragged < 4) choose(byImportance.find(isAt) || null);
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const k = Math.min(8, Math.max(0.005, view.k * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015))));
  view.x += (event.clientX - innerWidth / 2) * (1 / view.k - 1 / k); view.y += (event.clientY - innerHeight / 2) * (1 / view.k - 1 / k);
  view.k = k; view.own = true;
  repaint();
}, { passive: false });
$("query").addEventListener("input", find);
addEventListener("resize", repaint);
for (const type of types) $("legend").append(made("div", dotOf(type), `${type || "not written yet"} · ${counts.get(type)}`));
repaint();
