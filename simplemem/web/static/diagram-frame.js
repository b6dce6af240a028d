"use strict";
// Draws one diagram in a frame of its own, which has no access to the page, its cookies or the
// network. note-diagrams.js sends the source, and gets the height of the drawing or why there is none.
{
  const place = document.getElementById("diagram-place");
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  // What a note cannot change by a directive in its source.
  const FIXED = ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "theme", "darkMode", "themeCSS", "dompurifyConfig", "layout"];
  let source = null;

  async function draw() {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      layout: "dagre", // the only one that is built in
      suppressErrorRendering: true,
      theme: darkness.matches ? "dark" : "default",
      secure: FIXED,
    });
    try {
      const { svg } = await mermaid.render("diagram", source);
      place.innerHTML = svg; // the policy of this frame lets nothing in it run or be fetched
      tellHeight();
    } catch (error) {
      tell({ problem: String(error.message ?? error) });
    }
  }

  function tellHeight() {
    if (place.firstChild) tell({ height: Math.ceil(place.getBoundingClientRect().height) });
  }

  function tell(message) {
    parent.postMessage(message, "*"); // the page's origin is unknown here; the messages say nothing
  }

  addEventListener("message", (event) => {
    if (event.source !== parent || source !== null || typeof event.data?.source !== "string") return;
    source = event.data.source;
    darkness.addEventListener("change", draw);
    new ResizeObserver(tellHeight).observe(place);
    draw();
  });
  tell({ isReady: true });
}
