"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Without this script every fold is open.
  const folds = all("details");
  folds.forEach((fold) => (fold.open = false));
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    target.closest("details").open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  // A link to the problem that the address names already: there is no hashchange.
  all('a[href^="#"]').forEach((link) => link.addEventListener("click", () => setTimeout(reveal)));

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folds.filter((fold) => !fold.open);
    opened.forEach((fold) => (fold.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((fold) => (fold.open = false)));

  for (const button of all(".copied > button")) {
    const code = button.previousElementSibling.firstElementChild;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }

  // A long table gets a filter: every word must stand in the row.
  for (const table of all("table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 30) continue;
    const field = Object.assign(document.createElement("input"), { type: "search" });
    const label = Object.assign(document.createElement("label"), { className: "filter" });
    label.append("Filter ", field);
    table.parentElement.before(label);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }
})();
