"use strict";
// Loads the parts of a long note, one after another as the reader gets to them. Without this script,
// "Next part" is a link.
{
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) loadPart(target);
      }
    },
    { rootMargin: "1200px" },
  );

  // Replaces the link to the next part by that part.
  async function loadPart(place) {
    watcher.unobserve(place);

    const address = new URL(place.querySelector("a").href);
    address.searchParams.set("only", "text");
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;

    const part = document.createElement("template");
    part.innerHTML = await answer.text(); // the server has escaped the text of the note
    part.content.querySelector("[data-part=previous]")?.remove();
    place.replaceWith(part.content);
    watchNextPart();
  }

  function watchNextPart() {
    for (const place of document.querySelectorAll("[data-part=next]")) watcher.observe(place);
  }

  // When the note changes, live.js replaces all of it, and it ends with such a link again.
  new MutationObserver(watchNextPart).observe(document.body, { childList: true });
  watchNextPart();
}
