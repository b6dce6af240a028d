"use strict";
// The parts of a long note, one after another as the reader gets to them. Without this script,
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

  // The next part takes the place of the link to it.
  async function loadPart(place) {
    watcher.unobserve(place);
    const address = new URL(place.querySelector("a").href);
    address.searchParams.set("only", "text");
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;

    const part = document.createElement("template");
    part.innerHTML = await answer.text(); // made by the server, where all that notes say is escaped
    part.content.querySelector("[data-part=previous]")?.remove();
    place.replaceWith(part.content);
    prepare();
  }

  function prepare() {
    for (const place of document.querySelectorAll("[data-part=next]")) watcher.observe(place);
  }

  // A change of the note replaces the whole of it.
  new MutationObserver(prepare).observe(document.body, { childList: true });
  prepare();
}
