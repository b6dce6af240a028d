"use strict";
// For scripts that listen to single keys. A function of all scripts of the page, because they are no modules.

// Returns whether a key is typed into a field, or is part of a command of the browser.
function isTypingOrBrowserCommand(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  return Boolean(event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]"));
}
