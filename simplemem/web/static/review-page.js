"use strict";
// On the page of one change, the keys of the inbox that concern one change.
{
  const main = document.getElementById("main");
  const SELECTORS_BY_KEY = new Map([
    ["K", ".actions button:is([value=keep], [value=reopen])"],
    ["U", ".actions button:is([value=undo], [value=redo])"],
    ["E", ".actions a.edit"],
    ["j", ".pages a[rel=next]"],
    ["k", ".pages a[rel=prev]"],
    ["o", "a.note"],
  ]);

  document.addEventListener("keydown", (event) => {
    // A key that is held down would go on with the next change, unseen.
    if (event.repeat || isTypingOrBrowserCommand(event)) return;
    if (event.key === "c") {
      event.preventDefault();
      main.querySelector(".comment-form textarea")?.focus();
    } else if (SELECTORS_BY_KEY.has(event.key)) {
      event.preventDefault();
      main.querySelector(SELECTORS_BY_KEY.get(event.key))?.click();
    }
  });

  document.getElementById("page-keys").hidden = false;
}
