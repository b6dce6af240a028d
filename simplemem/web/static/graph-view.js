// Draws a graph on a canvas, and moves and zooms it by mouse, touch and keyboard. It knows notes as
// numbers only; graph.js and note-graph.js say what they are called and what becomes of a choice. Sets
// `window.GraphView`: an import would have an address that does not change with the content.

const LINKS_PER_PATH = 400; // a longer path takes much more time to draw per link
const SLOW_FRAME_MS = 27; // a longer frame has links left out of the next ones while the drawing moves
const FAST_FRAME_MS = 18;
const STILL_MS = 150; // after this time without a frame, the drawing rests
const MAX_UNHURRIED = 1500; // notes that are drawn as circles even while they move
const MAX_LINK_STEP = 40;
const MIN_SCALE = 0.02;
const MAX_SCALE = 8;
const MAX_LABELS = 60;
const MAX_LABEL_LENGTH = 36; // characters
const TAP_DISTANCE = 6; // pixels that a pointer may move in a click
const CATCH_DISTANCE = 14; // pixels from a circle at which a click still means it
const ARROW_STEP = 60;
const EASING = 0.3; // the share of the way to its new place that a note moves per frame
const ARRIVED_DISTANCE = 0.3; // pixels from its new place at which a note counts as there
const FIT_MARGIN = 48; // pixels around all notes
const MAX_FIT_SCALE = 1.6; // few notes would become too large
// Labels take cells of a grid. Measuring each text would take longer than estimating its width.
const CELL_WIDTH = 16;
const CELL_HEIGHT = 14;
const LETTER_WIDTH = 0.55; // of the size of the font, on average

window.GraphView = class GraphView {
  static GROUP_COUNT = 8; // colours --group-0 to --group-7 of graph.css, and --soft for the rest

  // `onSelect(note)` is called for a click, with -1 for a click beside all notes, and `onOpen(note)`
  // for a double click. `onHold(note, x, y)` and `onRelease(note)` are called while one is dragged.
  // `coveredHeight()` returns how many pixels at the bottom something else covers. With
  // `needsCtrlToZoom`, the wheel alone scrolls the page.
  constructor(canvas, { onSelect, onOpen, onHold, onRelease, coveredHeight, needsCtrlToZoom = false }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.callbacks = { onSelect, onOpen, onHold, onRelease };
    this.coveredHeight = coveredHeight;
    this.needsCtrlToZoom = needsCtrlToZoom;
    this.isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.camera = { x: 0, y: 0, scale: 1 }; // the point in the middle, and pixels per unit
    this.linkStep = 1; // one link of so many is drawn while the drawing moves
    this.pointers = new Map();
    this.clear();
    this.readColours();
    this.listen();
  }

  clear() {
    this.count = 0;
    this.links = [];
    this.positions = new Float32Array(0); // x and y of each note in turn
    this.targets = null; // the positions that the notes move to
    this.hovered = -1; // as the next ones, a note, or -1 for none
    this.selected = -1;
    this.held = -1;
    this.matches = null;
  }

  // `links` and `similar` are flat arrays of pairs of notes, `groups` has the colour of each note.
  show({ labels, links, similar, groups, positions, centre }) {
    this.clear();
    this.count = labels.length;
    this.labels = labels.map(shorten);
    this.links = links;
    this.similar = similar;
    this.centre = centre;
    this.positions = positions;
    this.neighbours = neighboursOf(this.count, links, similar);
    this.radii = this.neighbours.map((others, note) => radiusOf(others.length, note === centre));
    this.byImportance = orderByImportance(this.neighbours, centre);
    this.setGroups(groups);
    this.isViewChosen = false; // whether a person has chosen the part of the plane that is visible
    this.fit();
  }

  setGroups(groups) {
    this.notesOfGroups = Array.from({ length: GraphView.GROUP_COUNT + 1 }, () => []);
    for (const [note, group] of groups.entries()) this.notesOfGroups[group].push(note);
    this.redraw();
  }

  // New positions of all notes. The notes move there in the next frames, or at once.
  moveTo(positions) {
    if (this.isStill) {
      this.positions = positions;
      this.targets = null;
    } else this.targets = positions;
    if (!this.isViewChosen) this.fit();
    this.redraw();
  }

  select(note) {
    this.selected = note;
    this.redraw();
  }

  hover(note) {
    if (note === this.hovered) return;
    this.hovered = note;
    this.canvas.classList.toggle("over", note >= 0);
    this.redraw();
  }

  // The notes that a person searches for, as a set; null for none.
  mark(matches) {
    this.matches = matches;
    this.redraw();
  }

  // --- camera

  centreOn(note) {
    this.isViewChosen = true;
    this.camera.x = this.positions[2 * note];
    this.camera.y = this.positions[2 * note + 1];
    this.camera.scale = Math.max(this.camera.scale, 1);
    this.redraw();
  }

  // Shows the part of the plane in which all notes are visible.
  fit() {
    if (!this.count) return;
    this.fitCamera();
    this.redraw();
  }

  // Sets the camera so that all notes are visible, without asking for another frame.
  fitCamera() {
    const box = boundsOf(this.targets ?? this.positions);
    const { width, height } = this.size();
    const covered = this.coveredHeight();
    const freeWidth = Math.max(1, width - 2 * FIT_MARGIN);
    const freeHeight = Math.max(1, height - covered - 2 * FIT_MARGIN);
    const scaleAcross = freeWidth / Math.max(1, box.right - box.left);
    const scaleDown = freeHeight / Math.max(1, box.bottom - box.top);
    this.camera.scale = clamp(Math.min(scaleAcross, scaleDown), MIN_SCALE, MAX_FIT_SCALE);
    this.camera.x = (box.left + box.right) / 2;
    this.camera.y = (box.top + box.bottom) / 2 + covered / 2 / this.camera.scale;
  }

  showAll() {
    this.isViewChosen = false;
    this.fit();
  }

  // Zooms so that the point of the canvas at x and y stays where it is.
  zoom(factor, x = this.size().width / 2, y = this.size().height / 2) {
    this.isViewChosen = true;
    const before = this.toPlane(x, y);
    this.camera.scale = clamp(this.camera.scale * factor, MIN_SCALE, MAX_SCALE);
    const after = this.toPlane(x, y);
    this.pan(before.x - after.x, before.y - after.y);
  }

  pan(x, y) {
    this.isViewChosen = true;
    this.camera.x += x;
    this.camera.y += y;
    this.redraw();
  }

  size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  // Returns the point of the plane that is shown at a point of the canvas.
  toPlane(x, y) {
    const { width, height } = this.size();
    const { camera } = this;
    return { x: camera.x + (x - width / 2) / camera.scale, y: camera.y + (y - height / 2) / camera.scale };
  }

  // Returns the note at a point of the canvas, or close to it; -1 for none.
  noteAt(x, y) {
    const point = this.toPlane(x, y);
    let nearest = -1;
    let leastDistance = CATCH_DISTANCE;
    for (let note = 0; note < this.count; note++) {
      const across = this.positions[2 * note] - point.x;
      const down = this.positions[2 * note + 1] - point.y;
      const distance = Math.hypot(across, down) * this.camera.scale - this.radiusOnScreen(note);
      if (distance < leastDistance) {
        leastDistance = distance;
        nearest = note;
      }
    }
    return nearest;
  }

  // Circles grow more slowly than distances, so that a zoomed drawing gets room.
  radiusOnScreen(note) {
    return this.radii[note] * Math.sqrt(this.camera.scale);
  }

  // --- drawing

  // Draws the graph in the next frame, once however often it is called before.
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const now = performance.now();
    const sinceLast = now - (this.lastDraw ?? 0);
    const isEasing = this.ease();
    const isMoving = isEasing || sinceLast < STILL_MS;
    if (isMoving) this.adapt(sinceLast);
    this.fitCanvas();
    this.project();
    const focus = this.hovered >= 0 ? this.hovered : this.selected;
    const step = isMoving ? this.linkStep : 1;
    this.isHurried = isMoving && this.count > MAX_UNHURRIED;

    this.context.globalAlpha = focus >= 0 || this.matches ? 0.3 : 0.75;
    this.drawLinks(this.links, this.colours.line, step);
    this.drawLinks(this.similar, this.colours.soft, step, [4, 4]);
    this.context.globalAlpha = 1;
    if (focus >= 0) this.drawLinksOf(focus);
    this.drawNotes(focus);
    this.drawLabels(focus);

    this.lastDraw = now;
    if (this.count) this.firstDrawing ??= now;
    if (isEasing) this.redraw();
    else if (step > 1 || this.isHurried) this.redrawInFull();
  }

  // Draws circles, and the links that were left out, once the drawing rests.
  redrawInFull() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.redraw(), STILL_MS + 20);
  }

  // Leaves out more links if frames take long, and fewer if they do not. `milliseconds` is the time
  // since the frame before, because the browser paints after the script has ended.
  adapt(milliseconds) {
    if (milliseconds > SLOW_FRAME_MS) this.linkStep = Math.min(MAX_LINK_STEP, Math.ceil(this.linkStep * 1.5));
    else if (milliseconds < FAST_FRAME_MS) this.linkStep = Math.max(1, this.linkStep - 1);
  }

  // Moves the notes towards their new places. Returns whether they are still on the way.
  ease() {
    const { positions, targets } = this;
    if (!targets) return false;
    let farthest = 0;
    for (let index = 0; index < positions.length; index++) {
      const distance = targets[index] - positions[index];
      positions[index] += distance * EASING;
      farthest = Math.max(farthest, Math.abs(distance));
    }
    if (!this.isViewChosen) this.fitCamera();
    if (farthest * this.camera.scale > ARRIVED_DISTANCE) return true;
    this.targets = null;
    return false;
  }

  // The bitmap of the canvas has the size at which it is shown.
  fitCanvas() {
    const { width, height } = this.size();
    const ratio = Math.min(devicePixelRatio, 2);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
  }

  // Computes where each note is on the canvas.
  project() {
    const { width, height } = this.size();
    const { x, y, scale } = this.camera;
    if (this.screen?.length !== this.positions.length) this.screen = new Float32Array(this.positions.length);
    for (let index = 0; index < this.positions.length; index += 2) {
      this.screen[index] = (this.positions[index] - x) * scale + width / 2;
      this.screen[index + 1] = (this.positions[index + 1] - y) * scale + height / 2;
    }
  }

  // Draws every `step`-th of some links. Links that do not cross the canvas are left out.
  drawLinks(links, colour, step, dashes = []) {
    const { context, screen } = this;
    const { width, height } = this.size();
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(dashes);
    context.beginPath();
    let linksInPath = 0;
    for (let index = 0; index < links.length; index += 2 * step) {
      const x1 = screen[2 * links[index]];
      const y1 = screen[2 * links[index] + 1];
      const x2 = screen[2 * links[index + 1]];
      const y2 = screen[2 * links[index + 1] + 1];
      const isLeftOrRight = (x1 < 0 && x2 < 0) || (x1 > width && x2 > width);
      const isAboveOrBelow = (y1 < 0 && y2 < 0) || (y1 > height && y2 > height);
      if (isLeftOrRight || isAboveOrBelow) continue;
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      linksInPath += 1;
      if (linksInPath === LINKS_PER_PATH) {
        context.stroke();
        context.beginPath();
        linksInPath = 0;
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  drawLinksOf(note) {
    const { context, screen } = this;
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const other of this.neighbours[note]) {
      context.moveTo(screen[2 * note], screen[2 * note + 1]);
      context.lineTo(screen[2 * other], screen[2 * other + 1]);
    }
    context.stroke();
  }

  // Draws all notes. If there is a note in focus or a search, only what belongs to it is opaque.
  drawNotes(focus) {
    const emphasized = focus >= 0 ? new Set([focus, ...this.neighbours[focus]]) : this.matches;
    if (emphasized) this.context.globalAlpha = 0.35;
    this.drawGroups(null);
    this.context.globalAlpha = 1;
    if (emphasized) this.drawGroups(emphasized);
    for (const note of [this.centre, this.selected]) if (note >= 0) this.drawRing(note);
  }

  // Draws notes in the colours of their groups: those of a set, or all of them for null.
  drawGroups(only) {
    for (const [group, notes] of this.notesOfGroups.entries()) {
      const drawn = only ? notes.filter((note) => only.has(note)) : notes;
      this.drawCircles(drawn, this.colours.groups[group]);
    }
  }

  // Draws notes of one colour. A circle of a few pixels looks like a square, which is drawn several
  // times faster; while many notes move, all of them are squares.
  drawCircles(notes, colour) {
    const { context, screen } = this;
    const { width, height } = this.size();
    const maxSquare = this.isHurried ? Infinity : 1.5;
    context.fillStyle = colour;
    for (const note of notes) {
      const x = screen[2 * note];
      const y = screen[2 * note + 1];
      const radius = this.radiusOnScreen(note);
      if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue;
      if (radius <= maxSquare) {
        const side = Math.max(1, Math.round(1.8 * radius));
        context.fillRect(Math.round(x - side / 2), Math.round(y - side / 2), side, side);
      } else {
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
  }

  drawRing(note) {
    const { context, screen } = this;
    context.strokeStyle = this.colours.ink;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(screen[2 * note], screen[2 * note + 1], this.radiusOnScreen(note) + 3, 0, 2 * Math.PI);
    context.stroke();
  }

  // Writes the names of the notes in focus, then of the most linked ones as far as there is room.
  drawLabels(focus) {
    const { context } = this;
    const { width, height } = this.size();
    const fontSize = 0.75 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    context.font = `${fontSize}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.lineWidth = 3;
    context.lineJoin = "round";

    const takenCells = new Set();
    let labelsLeft = MAX_LABELS;
    for (const note of this.notesToLabel(focus)) {
      const label = this.labels[note];
      const x = this.screen[2 * note];
      const y = this.screen[2 * note + 1] + this.radiusOnScreen(note) + 3;
      if (x < 0 || y < 0 || x > width || y > height) continue;
      if (!takeCells(takenCells, x, y, label.length * LETTER_WIDTH * fontSize)) continue;
      this.drawLabel(label, x, y);
      labelsLeft -= 1;
      if (!labelsLeft) return;
    }
  }

  // The outline in the colour of the page separates the text from the links below it.
  drawLabel(label, x, y) {
    const { context } = this;
    context.strokeStyle = this.colours.paper;
    context.strokeText(label, x, y);
    context.fillStyle = this.colours.ink;
    context.fillText(label, x, y);
  }

  // Returns the notes whose names are written if there is room, the most important first.
  notesToLabel(focus) {
    const first = [this.hovered, this.selected].filter((note) => note >= 0);
    if (this.matches) return [...first, ...[...this.matches].slice(0, MAX_LABELS)];
    if (focus >= 0) return [...first, ...this.neighbours[focus].slice(0, MAX_LABELS)];
    return this.byImportance.slice(0, this.camera.scale > 0.8 ? this.count : MAX_LABELS / 2);
  }

  // A canvas does not know the variables of a style sheet: an element resolves them.
  readColours() {
    const probe = document.createElement("span");
    probe.hidden = true;
    this.canvas.after(probe);
    const read = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const groups = Array.from({ length: GraphView.GROUP_COUNT }, (_, number) => read(`--group-${number}`));
    this.colours = {
      ink: read("--ink"),
      soft: read("--soft"),
      paper: read("--paper"),
      accent: read("--accent"),
      line: read("--link-line"),
      groups: [...groups, read("--soft")],
    };
    probe.remove();
  }

  // --- mouse, touch and keyboard

  listen() {
    const { canvas } = this;
    new ResizeObserver(() => (this.isViewChosen ? this.redraw() : this.fit())).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      this.redraw();
    });
    canvas.addEventListener("pointerdown", (event) => this.onPointerDown(event));
    canvas.addEventListener("pointermove", (event) => this.onPointerMove(event));
    canvas.addEventListener("pointerup", (event) => this.onPointerUp(event));
    canvas.addEventListener("pointercancel", (event) => this.endPointer(event));
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("dblclick", (event) => {
      const note = this.noteAt(event.offsetX, event.offsetY);
      if (note >= 0) this.callbacks.onOpen(note);
    });
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  onPointerDown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const point = { x: event.offsetX, y: event.offsetY };
    this.pointers.set(event.pointerId, { ...point, startX: point.x, startY: point.y });
    this.isTap = this.pointers.size === 1;
    this.held = this.isTap ? this.noteAt(point.x, point.y) : -1;
  }

  onPointerMove(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === "mouse") this.hover(this.noteAt(event.offsetX, event.offsetY));
      return;
    }
    const before = { x: pointer.x, y: pointer.y };
    pointer.x = event.offsetX;
    pointer.y = event.offsetY;
    const distance = Math.hypot(pointer.x - pointer.startX, pointer.y - pointer.startY);
    if (distance > TAP_DISTANCE) this.isTap = false;
    if (this.isTap) return;
    if (this.pointers.size === 2) this.pinch(event.pointerId, before);
    else if (this.held >= 0) this.dragNote(pointer);
    else this.pan((before.x - pointer.x) / this.camera.scale, (before.y - pointer.y) / this.camera.scale);
  }

  // Two fingers zoom by their distance, around the finger that rests.
  pinch(movedId, before) {
    const moved = this.pointers.get(movedId);
    const [otherId] = [...this.pointers.keys()].filter((id) => id !== movedId);
    const other = this.pointers.get(otherId);
    const oldDistance = Math.hypot(before.x - other.x, before.y - other.y);
    const newDistance = Math.hypot(moved.x - other.x, moved.y - other.y);
    if (oldDistance > 0) this.zoom(newDistance / oldDistance, other.x, other.y);
  }

  dragNote(pointer) {
    const point = this.toPlane(pointer.x, pointer.y);
    for (const positions of [this.positions, this.targets]) {
      if (!positions) continue;
      positions[2 * this.held] = point.x;
      positions[2 * this.held + 1] = point.y;
    }
    this.isViewChosen = true;
    this.callbacks.onHold(this.held, point.x, point.y);
    this.redraw();
  }

  onPointerUp(event) {
    const wasTap = this.isTap && this.pointers.has(event.pointerId);
    const { held } = this;
    this.endPointer(event);
    if (!wasTap) return;
    if (held >= 0 && (event.ctrlKey || event.metaKey)) this.callbacks.onOpen(held);
    else this.callbacks.onSelect(held);
  }

  endPointer(event) {
    this.pointers.delete(event.pointerId);
    if (this.held >= 0 && !this.isTap) this.callbacks.onRelease(this.held);
    this.held = -1;
    this.redraw();
  }

  onWheel(event) {
    if (this.needsCtrlToZoom && !event.ctrlKey) return;
    event.preventDefault();
    // Browsers report a pinch on a touchpad as small steps of the wheel with Ctrl.
    const speed = event.ctrlKey ? 0.01 : 0.0015;
    this.zoom(Math.exp(-event.deltaY * speed), event.offsetX, event.offsetY);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = ARROW_STEP / this.camera.scale;
    const actions = {
      ArrowLeft: () => this.pan(-step, 0),
      ArrowRight: () => this.pan(step, 0),
      ArrowUp: () => this.pan(0, -step),
      ArrowDown: () => this.pan(0, step),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.showAll(),
      Escape: () => this.callbacks.onSelect(-1),
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
};

// --- figures of a graph

// Returns for each note the others that it has links with, in any direction.
function neighboursOf(count, ...linkLists) {
  const neighbours = Array.from({ length: count }, () => []);
  for (const links of linkLists) {
    for (let index = 0; index < links.length; index += 2) {
      neighbours[links[index]].push(links[index + 1]);
      neighbours[links[index + 1]].push(links[index]);
    }
  }
  return neighbours;
}

// Returns the notes, the centre first, then those with the most links.
function orderByImportance(neighbours, centre) {
  const notes = neighbours.map((_, note) => note);
  const importance = (note) => (note === centre ? Infinity : neighbours[note].length);
  return notes.sort((a, b) => importance(b) - importance(a) || a - b);
}

function radiusOf(linkCount, isCentre) {
  const radius = Math.min(14, 3.5 + 1.1 * Math.sqrt(linkCount));
  return isCentre ? Math.max(8, radius) : radius;
}

// Returns the smallest box that contains all positions.
function boundsOf(positions) {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (let index = 0; index < positions.length; index += 2) {
    box.left = Math.min(box.left, positions[index]);
    box.right = Math.max(box.right, positions[index]);
    box.top = Math.min(box.top, positions[index + 1]);
    box.bottom = Math.max(box.bottom, positions[index + 1]);
  }
  return box;
}

// Takes the cells of a grid that a label covers. Returns whether all of them were free.
function takeCells(taken, x, y, width) {
  const row = Math.floor(y / CELL_HEIGHT);
  const firstColumn = Math.floor((x - width / 2) / CELL_WIDTH);
  const lastColumn = Math.floor((x + width / 2) / CELL_WIDTH);
  const cells = [];
  for (let column = firstColumn; column <= lastColumn; column++) {
    cells.push(`${column},${row}`, `${column},${row + 1}`);
  }
  if (cells.some((cell) => taken.has(cell))) return false;
  for (const cell of cells) taken.add(cell);
  return true;
}

function shorten(label) {
  return label.length > MAX_LABEL_LENGTH ? `${label.slice(0, MAX_LABEL_LENGTH - 1)}…` : label;
}

function clamp(value, least, most) {
  return Math.min(most, Math.max(least, value));
}
