"use strict";
// While a check is running, the page shows its progress. Without the script, it reloads itself.
{
  const INTERVAL = 700; // milliseconds

  async function update() {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok) return location.reload();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const checkup = fresh.getElementById("checkup");
    document.getElementById("checkup").replaceWith(document.adoptNode(checkup));
    if (checkup.dataset.phase === "running") setTimeout(update, INTERVAL);
  }

  if (document.getElementById("checkup").dataset.phase === "running") setTimeout(update, INTERVAL);
}
