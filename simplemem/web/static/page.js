"use strict";
// What all pages share. All of the page works without it.
for (const link of document.querySelectorAll("nav a")) {
  const isResults = new URLSearchParams(location.search).has("q"); // which are no review
  if (link.pathname === location.pathname && !isResults) link.ariaCurrent = "page";
}

// The address of the page of a note. A name may have half a character, which no address can express.
function noteUrl(name) {
  const path = name.toWellFormed().split("/").map(encodeURIComponent).join("/");
  return `${document.documentElement.dataset.root}/note/${path}`;
}
