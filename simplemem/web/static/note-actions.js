"use strict";
// One click ticks a task where it is in the text. Without the script, the list of tasks has a button for each.
{
  const update = () => {
    const form = document.getElementById("tasks");
    if (!form || "ready" in form.dataset) return;
    form.dataset.ready = "";
    for (const item of document.querySelectorAll(".text li.task[data-line]")) makeBoxClickable(form, item);
  };
  new MutationObserver(update).observe(document.body, { childList: true }); // a change of the note replaces `main`
  update();
}

function makeBoxClickable(form, item) {
  const box = item.querySelector("input[type=checkbox]");
  const submit = form.querySelector(`button[value="${CSS.escape(item.dataset.line)}"]`);
  if (!box || !submit) return;
  const button = document.createElement("button");
  button.className = "task-box";
  button.type = "button";
  button.textContent = box.checked ? "☑" : "☐";
  button.ariaLabel = submit.ariaLabel;
  button.addEventListener("click", () => submit.click());
  box.replaceWith(button);
}
