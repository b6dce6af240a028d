"use strict";
// Draws the notes around a note once the section "Graph" comes into view. They are laid out at once,
// without motion, and a click opens one. Without this script, the section is a link to the graph.
{
  const MAX_LABEL_LENGTH = 16; // characters; a longer one does not fit beside a note at the edge
  const FIRST_DISTANCE = 60; // from the note in the centre, before the layout

  let drawing = null; // the element with the canvas
  let view = null; // made when the drawing comes into view
  let names = [];
  let loading = new AbortController();

  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      watcher.disconnect();
      load();
    },
    { rootMargin: "100px" },
  );

  // Fetches the drawing's script and its notes. What cannot be drawn is hidden; its link stays.
  async function load() {
    loading.abort();
    loading = new AbortController();
    const { signal } = loading;
    try {
      const [graph] = await Promise.all([readGraph(signal), import(drawing.dataset.view)]);
      const positions = await layOut(graph);
      if (!signal.aborted) show(graph, positions);
    } catch (error) {
      if (signal.aborted) return; // the note has changed
      drawing.hidden = true;
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async function readGraph(signal) {
    const { note } = document.querySelector("main").dataset;
    const query = new URLSearchParams({ note, depth: 1 });
    const answer = await fetch(`${document.documentElement.dataset.root}/graph/data?${query}`, { signal });
    if (!answer.ok) throw new TypeError(`the graph cannot be read: ${answer.status}`);
    return answer.json();
  }

  // Returns where the notes are in the end.
  function layOut(graph) {
    const layout = new Worker(drawing.dataset.layout);
    layout.postMessage({
      forces: drawing.dataset.forces,
      positions: firstPositions(graph.names.length),
      links: Uint32Array.from(graph.links),
      isStill: true,
    });
    return new Promise((resolve) => {
      layout.onmessage = ({ data }) => {
        layout.terminate();
        resolve(data.positions);
      };
    });
  }

  // The first note is in the centre, and the others are on a circle around it.
  function firstPositions(count) {
    const positions = new Float32Array(2 * count);
    for (let note = 1; note < count; note++) {
      const angle = (2 * Math.PI * note) / (count - 1);
      positions[2 * note] = FIRST_DISTANCE * Math.cos(angle);
      positions[2 * note + 1] = FIRST_DISTANCE * Math.sin(angle);
    }
    return positions;
  }

  function show(graph, positions) {
    names = graph.names;
    drawing.hidden = names.length === 1; // for example if only excluded notes are linked
    view ??= makeView();
    view.show({
      labels: names.map((name, note) => shorten(graph.titles[note] || lastPart(name))),
      links: Uint32Array.from(graph.links),
      similar: [],
      groups: names.map(() => 0),
      positions,
      centre: 0,
    });
  }

  function makeView() {
    const made = new window.GraphView(drawing.querySelector("canvas"), {
      onSelect: open,
      onOpen: open,
      onHold: () => {},
      onRelease: () => {},
      coveredHeight: () => 0,
      needsCtrlToZoom: true,
    });
    window.graphView = made; // for the tests
    return made;
  }

  // Opens a note, unless it is the open one, which is the first, or -1 for a click beside all notes.
  function open(note) {
    if (note > 0) location.assign(noteUrl(names[note]));
  }

  function lastPart(name) {
    return name.slice(name.lastIndexOf("/") + 1);
  }

  function shorten(label) {
    return label.length > MAX_LABEL_LENGTH ? `${label.slice(0, MAX_LABEL_LENGTH - 1)}…` : label;
  }

  // A note is marked in the drawing while its link in a list has the keyboard or the mouse.
  function markLinked({ target }) {
    const link = target.closest("a[data-note]");
    view?.hover(names.indexOf(link?.dataset.note));
  }

  // A change of the note replaces all that is shown of it. Its drawing is put back and drawn again.
  function prepare() {
    const place = document.querySelector(".local-graph");
    if (!place || place === drawing) return;
    if (view) {
      place.replaceWith(drawing);
      load();
    } else {
      drawing = place;
      drawing.hidden = false;
      watcher.disconnect();
      watcher.observe(drawing);
    }
  }

  document.addEventListener("focusin", markLinked);
  document.addEventListener("pointerover", markLinked);
  new MutationObserver(prepare).observe(document.body, { childList: true });
  prepare();
}
