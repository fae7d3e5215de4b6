(function () {
  "use strict";
  const FILTER_FROM_ROWS = 8;

  function drawCharts() {
    if (!window.vegaEmbed) return;
    const refuse = () => Promise.reject(new Error("this page loads nothing"));
    const loader = { options: {}, load: refuse, sanitize: refuse, http: refuse, file: refuse };
    for (const place of document.querySelectorAll(".rk-chart")) {
      const spec = JSON.parse(document.getElementById(place.id + "-spec").textContent);
      const options = {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, loader: loader,
        defaultStyle: false, tooltip: { disableDefaultStyle: true },
      };
      window.vegaEmbed(place, spec, options).catch(function (error) {
        place.classList.add("rk-failed");
        place.textContent = "This chart could not be drawn (" + error.message + "); the table below holds its values.";
      });
    }
  }

  function keyOf(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const text = cell.textContent.trim();
    return text === "–" || cell.classList.contains("rk-missing") ? null : text.toLowerCase();
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sortBy(table, column) {
    const heading = table.tHead.rows[0].cells[column];
    const upward = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, place) => ({ row: row, place: place, key: keyOf(row, column) }));
    rows.sort(function (one, other) {
      if (one.key === null || other.key === null) {
        return (one.key === null) - (other.key === null) || one.place - other.place;
      }
      return (upward ? 1 : -1) * compare(one.key, other.key) || one.place - other.place;
    });
    body.append(...rows.map((item) => item.row));
  }

  function makeSortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "rk-sort";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sortBy(table, column));
      heading.replaceChildren(button);
    });
  }

  function makeFilterable(table) {
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < FILTER_FROM_ROWS) return;
    const box = document.createElement("div");
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("output");
    box.className = "rk-filter";
    label.textContent = "Filter";
    input.type = "search";
    input.setAttribute("aria-label", "Filter: " + table.caption.textContent);
    label.append(" ", input);
    box.append(label, count);
    table.parentElement.before(box);
    input.addEventListener("input", function () {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = words.length ? shown + " of " + rows.length + " rows" : "";
    });
  }

  for (const table of document.querySelectorAll(".rk-table table")) {
    makeFilterable(table);
    makeSortable(table);
  }
  drawCharts();
  window.addEventListener("beforeprint", function () {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
