"use strict";
// A web worker that computes where the notes of a graph are. It gets three kinds of messages:
//   {forces, positions, links, isStill}  begin: positions and links are flat arrays of x, y and of
//                                        pairs of notes; isStill asks for the last positions only
//   {hold: note, x, y}                   a person drags a note
//   {release: note}                      and lets it go
// It answers with the flat array of positions again and again until the layout has settled.

const SECONDS_BETWEEN_ANSWERS = 0.03;
const TICKS_OF_LARGE_GRAPH = 120;
const MAX_SMALL = 500; // notes of a graph whose circles must not overlap

let simulation = null;
let notes = [];
let isRunning = false;
let isStill = false;

self.onmessage = ({ data }) => {
  if (data.positions) begin(data);
  else if ("hold" in data) hold(notes[data.hold], data.x, data.y);
  else if ("release" in data) release(notes[data.release]);
};

function begin(data) {
  importScripts(data.forces);
  isStill = data.isStill;
  notes = [];
  for (let at = 0; at < data.positions.length; at += 2) {
    notes.push({ x: data.positions[at], y: data.positions[at + 1] });
  }
  const links = [];
  for (let at = 0; at < data.links.length; at += 2) {
    links.push({ source: data.links[at], target: data.links[at + 1] });
  }
  simulation = makeSimulation(links);
  run();
}

// In a large graph, far notes count less exactly, which makes each step several times cheaper.
function makeSimulation(links) {
  const { forces } = self;
  const isSmall = notes.length <= MAX_SMALL;
  const repulsion = forces.forceManyBody().strength(isSmall ? -120 : -40);
  if (!isSmall) repulsion.theta(1.3);

  const made = forces.forceSimulation(notes).stop()
    .force("links", forces.forceLink(links).distance(isSmall ? 60 : 40))
    .force("repulsion", repulsion)
    .force("x", forces.forceX().strength(0.05))
    .force("y", forces.forceY().strength(0.05));
  if (isSmall) made.force("circles", forces.forceCollide(9));
  else made.alphaDecay(1 - Math.pow(0.001, 1 / TICKS_OF_LARGE_GRAPH));
  return made;
}

// Computes for some milliseconds at a time, so that messages of the page are read in between.
function run() {
  isRunning = true;
  const end = performance.now() + SECONDS_BETWEEN_ANSWERS * 1000;
  do simulation.tick();
  while (performance.now() < end && simulation.alpha() > simulation.alphaMin());

  isRunning = simulation.alpha() > simulation.alphaMin();
  if (!isRunning || !isStill) sendPositions();
  if (isRunning) setTimeout(run, 0);
}

function sendPositions() {
  const positions = new Float32Array(notes.length * 2);
  for (const [at, note] of notes.entries()) {
    positions[2 * at] = note.x;
    positions[2 * at + 1] = note.y;
  }
  self.postMessage({ positions, isSettled: !isRunning }, [positions.buffer]);
}

function hold(note, x, y) {
  note.fx = x;
  note.fy = y;
  if (isStill) return;
  simulation.alpha(Math.max(simulation.alpha(), 0.2));
  if (!isRunning) run();
}

function release(note) {
  note.fx = null;
  note.fy = null;
}
