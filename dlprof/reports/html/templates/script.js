"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);

  // Sorting: a button in every heading of a table of cases.
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v || cell.textContent.trim();
    const value = Number(text);
    return text !== "" && Number.isFinite(value) ? value : text;
  };
  // Numbers come before words both ways: "-" is no large number.
  const compare = (a, b, up) =>
    typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
  const sort = (table, heading) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = all("tbody tr", table).map((row) => [key(row, heading.cellIndex), row]);
    rows.sort((a, b) => compare(a[0], b[0], up));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const table of all("table.cases")) {
    for (const heading of all("thead th", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // Filtering: every word must stand in the row or in the name of its pair.
  const pairs = all("details.pair").map((fold) => ({
    fold,
    open: fold.open,
    name: fold.querySelector("summary").textContent.toLowerCase(),
    rows: all("tbody tr", fold),
  }));
  const filter = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, of = 0;
    for (const pair of pairs) {
      let here = 0;
      for (const row of pair.rows) {
        const content = words.length ? pair.name + " " + row.textContent.toLowerCase() : "";
        row.hidden = !words.every((word) => content.includes(word));
        here += row.hidden ? 0 : 1;
      }
      pair.fold.hidden = here === 0;
      pair.fold.open = words.length ? here > 0 : pair.open;
      shown += here;
      of += pair.rows.length;
    }
    one("matches").textContent = words.length ? `${shown} of ${of} cases` : "";
  };
  const field = one("filter");
  if (field) {
    field.closest("[hidden]").hidden = false;
    field.addEventListener("input", () => filter(field.value));
  }

  // A link to a case unfolds what hides it.
  const reveal = () => {
    const target = one(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden && field) { field.value = ""; filter(""); }
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // Copying a command.
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { return false; }
  };
  for (const button of all("button.copier")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      const done = await copied(code.textContent);
      if (!done) getSelection().selectAllChildren(code);
      button.textContent = done ? "Copied" : "Selected: press Ctrl-C";
    });
  }

  // Saving the session as it was written.
  const unpack = async () => {
    const plain = one("data");
    if (plain) return new Blob([plain.textContent], { type: "application/json" });
    const packed = atob(one("packed").href.split(",", 2)[1]);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).blob();
  };
  const button = one("save");
  if (one("data") || typeof DecompressionStream === "function") button.hidden = false;
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await unpack());
    link.download = "dlprof-session.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
})();
