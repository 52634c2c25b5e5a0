// Tables say once what all their rows share, have one line of headings where one is enough, and long ones
// open with their first rows.
(() => {
  const MOST = 16, FIRST = 10; // rows; FIRST as in book.css

  /** The cells of a table by row and column, a cell that spans several at each of them. */
  const grid = rows => {
    const cells = rows.map(() => []);
    rows.forEach((row, r) => {
      let c = 0;
      for (const cell of row.cells) {
        while (cells[r][c]) c++;
        for (let i = 0; i < cell.rowSpan; i++)
          for (let k = 0; k < cell.colSpan && r + i < rows.length; k++) cells[r + i][c + k] = cell;
        c += cell.colSpan;
      }
    });
    return cells;
  };

  const without = (cells, column) => {
    for (const cell of new Set(cells.map(row => row[column])))
      if (cell.colSpan > 1) cell.colSpan--; else cell.remove();
  };

  /** Labels that are the same in every row go into a line above the table; empty columns go. */
  const share = table => {
    const head = [...table.tHead.rows], body = [...table.tBodies[0].rows];
    if (body.length < 2) return;
    const cells = grid([...head, ...body]), below = cells.slice(head.length), said = [];
    const text = cell => cell.textContent.trim();
    const same = below[0].map((cell, c) => below.every(row => row[c] && text(row[c]) === text(cell)));
    const labels = below[0].filter(cell => cell.tagName === "TH").length;
    for (let c = below[0].length - 1; c >= 0; c--) {
      const value = text(below[0][c]), name = text(cells[head.length - 1][c]);
      if (!same[c] || below.some(row => row[c].childElementCount)) continue;
      if (c < labels && value && name && !same.slice(0, labels).every(Boolean)) said.unshift(`${name}: ${value}`);
      else if (c < labels || value) continue;
      without(cells, c);
    }
    if (!said.length) return;
    const line = document.createElement("p");
    line.className = "all-rows";
    line.textContent = `All rows: ${said.join("; ")}`;
    table.before(line);
  };

  /** The names of the labels have a line of their own; they move to the one above if it has room for them. */
  const join = table => {
    const [above, names] = [...table.tHead.rows].slice(-2);
    if (!names || [...above.cells, ...names.cells].some(cell => cell.colSpan * cell.rowSpan > 1)) return;
    const empty = cell => !cell.textContent.trim();
    const pairs = [...above.cells].map((cell, c) => [cell, names.cells[c]]);
    if (!pairs.every(([over, under]) => under && (empty(over) || empty(under)))) return;
    for (const [over, under] of pairs) if (empty(over)) over.replaceWith(under);
    names.remove();
  };

  const fold = table => {
    const count = table.tBodies[0].rows.length, button = document.createElement("button");
    Object.assign(button, {type: "button", className: "btn btn-sm more-rows d-print-none"});
    const set = folded => {
      table.classList.toggle("folded", folded);
      button.textContent = folded ? `show all ${count} rows` : `show the first ${FIRST} of ${count} rows`;
      button.setAttribute("aria-expanded", !folded);
    };
    button.addEventListener("click", () => set(!table.classList.contains("folded")));
    set(true);
    (table.closest(".pst-scrollable-table-container") ?? table).after(button);
  };

  const heads = table => ` ${[...table.tHead.rows[0].cells].map(cell => cell.textContent).join(" ")} `;

  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll("article table:has(> thead):has(> tbody)")) {
      if (table.matches(".dataframe:not(.map)")) {
        share(table);
        join(table);
      }
      table.classList.toggle("verdicts", table.matches(".sentences") && / verdict /.test(heads(table)));
      if (table.tBodies[0].rows.length > MOST && !table.closest("details, .whole")) fold(table);
    }
  });
})();
