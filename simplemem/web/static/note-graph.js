"use strict";
// Draws the notes around a note once the section "Graph" comes into view. The drawing does not move,
// and a click opens a note. Without this script, the section is a link to the graph.
// A note is a number here: its position in `names`. The open note is 0.
{
  const MAX_LABEL_LENGTH = 16; // characters; a longer one does not fit beside a note at the edge
  const FIRST_DISTANCE = 60; // from the note in the centre, before the layout

  let drawing = null; // the element with the canvas
  let view = null; // made when the drawing comes into view
  let names = []; // of the notes in the drawing
  let loading = new AbortController(); // stops a loading that a newer one replaces

  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      watcher.disconnect();
      load();
    },
    { rootMargin: "100px" },
  );

  // Fetches the script that draws, and the notes. If one of them cannot be fetched, the drawing is
  // hidden, and the link to the graph stays.
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
      const isFailedFetch = error instanceof TypeError;
      if (!isFailedFetch) throw error;
    }
  }

  async function readGraph(signal) {
    const { root } = document.documentElement.dataset;
    const { note } = document.querySelector("main").dataset;
    const query = new URLSearchParams({ note, depth: 1 });
    const answer = await fetch(`${root}/graph/data?${query}`, { signal });
    // The same type as that of a fetch without an answer.
    if (!answer.ok) throw new TypeError(`the graph cannot be read: ${answer.status}`);
    return answer.json();
  }

  // Returns the positions of the notes when the layout has come to rest: x and y of each in turn.
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
    const labels = names.map((name, note) => shorten(graph.titles[note] || lastPart(name)));

    drawing.hidden = names.length === 1; // for example if only excluded notes are linked
    view ??= makeView();
    view.show({
      labels,
      links: Uint32Array.from(graph.links),
      similar: [],
      groups: names.map(() => 0),
      positions,
      centre: 0,
    });
  }

  function makeView() {
    const graphView = new window.GraphView(drawing.querySelector("canvas"), {
      onSelect: open,
      onOpen: open,
      onHold: () => {},
      onRelease: () => {},
      coveredHeight: () => 0,
      needsCtrlToZoom: true,
    });
    window.graphView = graphView; // for the tests
    return graphView;
  }

  // Opens the page of a note. `note` is -1 for a click beside all notes.
  function open(note) {
    const isOtherNote = note > 0;
    if (isOtherNote) location.assign(noteUrl(names[note]));
  }

  function lastPart(name) {
    return name.slice(name.lastIndexOf("/") + 1);
  }

  function shorten(label) {
    if (label.length <= MAX_LABEL_LENGTH) return label;
    return `${label.slice(0, MAX_LABEL_LENGTH - 1)}…`;
  }

  // Marks a note in the drawing while its link in a list has the focus or the pointer. For any other
  // element there is no such name, and -1 removes the mark.
  function markLinked({ target }) {
    const link = target.closest("a[data-note]");
    view?.hover(names.indexOf(link?.dataset.note));
  }

  // When the note changes, live.js replaces all of it, and so the place of the drawing is new. A
  // drawing with a view is put back there and drawn again. Else the new place becomes the drawing.
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
