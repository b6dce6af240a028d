"use strict";
// Draws one diagram in a frame of its own, which has no access to the page, its cookies or the
// network. note-diagrams.js sends the source. It receives the height of the drawing, or the reason
// why there is none.
{
  const place = document.getElementById("diagram-place");
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  // The settings that a directive in the source of a diagram cannot change.
  const FIXED_SETTINGS = [
    "secure",
    "securityLevel",
    "startOnLoad",
    "maxTextSize",
    "maxEdges",
    "suppressErrorRendering",
    "theme",
    "darkMode",
    "themeCSS",
    "dompurifyConfig",
    "layout",
  ];
  let source = null; // until the page sends it

  async function draw() {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      layout: "dagre", // the only one that is built in
      suppressErrorRendering: true,
      theme: darkness.matches ? "dark" : "default",
      secure: FIXED_SETTINGS,
    });
    try {
      const { svg } = await mermaid.render("diagram", source);
      place.innerHTML = svg; // the policy of this frame lets nothing in it run or be fetched
      sendHeight();
    } catch (error) {
      send({ problem: String(error.message ?? error) });
    }
  }

  function sendHeight() {
    if (!place.firstChild) return; // not drawn yet

    const { height } = place.getBoundingClientRect();
    send({ height: Math.ceil(height) });
  }

  // The page's origin is unknown here. Any may be allowed: only the server's pages embed this frame.
  function send(message) {
    parent.postMessage(message, "*");
  }

  // The first message of the page has the source. All others are ignored.
  addEventListener("message", (event) => {
    const isFromPage = event.source === parent;
    const isFirst = source === null;
    if (!isFromPage || !isFirst || typeof event.data?.source !== "string") return;

    source = event.data.source;
    darkness.addEventListener("change", draw);
    new ResizeObserver(sendHeight).observe(place);
    draw();
  });
  send({ isReady: true });
}
