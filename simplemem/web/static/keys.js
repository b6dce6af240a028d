"use strict";
// For scripts that listen to single keys: returns whether a key is typed into a field, or is part of a command of the browser.
function isForOthers(event) {
  const isTyping = event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  return isTyping || event.ctrlKey || event.metaKey || event.altKey;
}
