"use strict";
// Comments by keyboard: Ctrl-Enter or Cmd-Enter sends one, and Escape leaves it with its text.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.matches?.(".comment-form textarea") || event.isComposing) return;

  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    field.form.requestSubmit();
  } else if (event.key === "Escape") {
    event.preventDefault();
    leave(field);
  }
});

function leave(field) {
  const item = field.closest("[data-item]");
  const box = field.closest(".comment-box");
  field.blur();
  if (box) box.hidden = true;
  item?.focus({ preventScroll: true });
}
