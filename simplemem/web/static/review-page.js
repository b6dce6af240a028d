"use strict";
// The keys of the inbox on the page of one change.
{
  const main = document.getElementById("main");
  const TARGETS = {
    K: ".actions button:is([value=keep], [value=reopen])",
    U: ".actions button:is([value=undo], [value=redo])",
    E: ".actions a.edit",
    j: ".pages a[rel=next]",
    k: ".pages a[rel=prev]",
    o: "a.note",
  };

  document.addEventListener("keydown", (event) => {
    if (isForOthers(event)) return;
    if (event.key === "c") {
      event.preventDefault();
      main.querySelector(".comment-form textarea")?.focus();
    } else if (event.key in TARGETS) {
      event.preventDefault();
      main.querySelector(TARGETS[event.key])?.click();
    }
  });

  document.getElementById("page-keys").hidden = false;
}
