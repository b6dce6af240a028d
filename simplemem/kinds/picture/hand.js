// The hand: pointers, the wheel and keys. A node is dragged with the leaves that hang on it alone.

const pointers = new Map();
let held = null; // {node, x, y, moved} of the pointer that went down, or the ground
let pinched = 0;

function nodeAt(x, y) {
  let best = null, nearest = Infinity;
  for (const node of nodes) {
    if (!isShown(node)) continue;
    const away = Math.hypot(toScreenX(node.x) - x, toScreenY(node.y) - y) - sizeOf(node);
    if (away < 5 && away < nearest) { best = node; nearest = away; }
  }
  return best;
}

function leavesOf(node) {
  const leaves = [node];
  for (const edge of node.edges) {
    const other = edge.s === node ? edge.t : edge.s;
    if (other !== node && other.edges.every((each) => each.s === node || each.t === node)) leaves.push(other);
  }
  return leaves;
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event);
  if (pointers.size === 2) { held = null; letGo(); pinched = spread(); return; }
  const node = event.button === 0 ? nodeAt(event.clientX, event.clientY) : null;
  held = { node, x: event.clientX, y: event.clientY, moved: false };
});

canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) { hover(nodeAt(event.clientX, event.clientY)); return; }
  pointers.set(event.pointerId, event);
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()], now = spread();
    if (pinched > 0) zoom(now / pinched, (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
    pinched = now;
    return;
  }
  if (!held) return;
  if (!held.moved && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
  if (!held.moved) {
    held.moved = true;
    canvas.classList.add("held");
    if (held.node) { moving = new Set(leavesOf(held.node)); still = null; }
  }
  const dx = (event.clientX - before.clientX) / view.k, dy = (event.clientY - before.clientY) / view.k;
  if (held.node) for (const node of moving) { node.x += dx; node.y += dy; }
  else { view.x -= dx; view.y -= dy; }
  repaint(!held.node);
});

function pointerUp(event) {
  pointers.delete(event.pointerId);
  pinched = 0;
  if (held && !held.moved && event.type === "pointerup") choose(held.node);
  held = null;
  letGo();
}
canvas.addEventListener("pointerup", pointerUp);
canvas.addEventListener("pointercancel", pointerUp);

function letGo() {
  canvas.classList.remove("held");
  moving = still = null;
  repaint();
}

function spread() {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
}

function hover(node) {
  if (node === shown.over) return;
  shown.over = node;
  canvas.classList.toggle("over", !!node);
  repaint(true);
}
canvas.addEventListener("pointerleave", () => hover(null));

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  still = null;
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX, event.clientY);
}, { passive: false });
canvas.addEventListener("dblclick", (event) => zoom(1.7, event.clientX, event.clientY));

const keys = {
  ArrowLeft: () => { view.x -= 80 / view.k; repaint(true); },
  ArrowRight: () => { view.x += 80 / view.k; repaint(true); },
  ArrowUp: () => { view.y -= 80 / view.k; repaint(true); },
  ArrowDown: () => { view.y += 80 / view.k; repaint(true); },
  "+": () => zoom(1.3),
  "=": () => zoom(1.3),
  "-": () => zoom(1 / 1.3),
  0: fit,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { event.preventDefault(); escape(); return; } // a search field would empty itself, unheard
  if (event.target === $("query")) return;
  if (event.key === "/") { event.preventDefault(); $("query").focus(); $("query").select(); return; }
  if (Object.hasOwn(keys, event.key) && !$("panel").contains(event.target)) { event.preventDefault(); keys[event.key](); }
});
