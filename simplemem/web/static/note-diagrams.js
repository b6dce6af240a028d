"use strict";
// Draws the Mermaid diagrams of a note when they come near the viewport, each in a frame that can do
// nothing but draw (diagram-frame.js). Without this script, and if a diagram cannot be drawn, the
// page shows its source.
{
  const MAX_SOURCE = 50_000; // characters; mermaid refuses more
  const MAX_HEIGHT = 6_000; // pixels; the frame scrolls beyond
  const MAX_REASON = 200; // characters
  const sources = new WeakMap(); // the element of the source for each frame

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) startFrame(target);
      }
    },
    { rootMargin: "600px" },
  );

  function startFrame(source) {
    watcher.unobserve(source);
    if (source.textContent.length > MAX_SOURCE) {
      const limit = MAX_SOURCE.toLocaleString("en");
      showReason(source, `its source is longer than ${limit} characters`);
      return;
    }

    const frame = document.createElement("iframe");
    frame.className = "diagram";
    frame.title = "Diagram";
    frame.setAttribute("sandbox", "allow-scripts");
    frame.src = document.querySelector("main").dataset.diagramFrame;
    sources.set(frame, source);
    source.before(frame);
  }

  function findFrame(frameWindow) {
    const frames = [...document.querySelectorAll("iframe.diagram")];
    return frames.find((frame) => frame.contentWindow === frameWindow);
  }

  // A frame says that it is ready, then the height of its drawing or why there is none.
  addEventListener("message", ({ source: sender, data }) => {
    const frame = findFrame(sender);
    if (!frame || typeof data !== "object" || data === null) return;

    const source = sources.get(frame);
    if (data.isReady === true) {
      sender.postMessage({ source: source.textContent }, "*"); // the frame has no origin to name
    } else if (Number.isFinite(data.height)) {
      frame.height = Math.min(Math.max(data.height, 1), MAX_HEIGHT);
      foldSource(source, frame);
    } else if (typeof data.problem === "string") {
      frame.remove();
      const [firstLine] = data.problem.split("\n");
      showReason(source, firstLine.slice(0, MAX_REASON));
    }
  });

  // Puts the source of a drawn diagram into closed details: it stays available, also to screen
  // readers. A frame sends its height again with each change of its width.
  function foldSource(source, frame) {
    if (frame.classList.contains("drawn")) return;

    frame.classList.add("drawn");
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Source of the diagram";
    source.before(details);
    details.append(summary, source);
  }

  function showReason(source, reason) {
    const message = document.createElement("p");
    message.className = "problem";
    message.textContent = `The diagram is not drawn: ${reason}`;
    source.before(message);
  }

  // Watches the sources that are new on the page.
  function watchSources() {
    for (const source of document.querySelectorAll("pre.diagram:not([data-watched])")) {
      source.dataset.watched = "";
      watcher.observe(source);
    }
  }

  // Parts of a long note follow later, and a change of the note replaces its text.
  new MutationObserver(watchSources).observe(document.body, { childList: true, subtree: true });
  watchSources();
}
