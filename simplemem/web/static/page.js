"use strict";
// What all pages share. All of the page works without it.
for (const link of document.querySelectorAll("nav a")) {
  const isResults = new URLSearchParams(location.search).has("q"); // which are no review
  if (link.pathname === location.pathname && !isResults) link.ariaCurrent = "page";
}
