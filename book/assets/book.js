// What is wider than its frame fades at the edge behind which it goes on, and scrolls by keys.
(() => {
  const KINDS = "table, pre, figure, div.math, mjx-container, .output, .pst-scrollable-table-container";
  const LEAST = 8; // pixels

  // of a table whose outer labels span rows, the first cell of a row may stand in an inner column
  const labelled = new WeakSet();
  const label = table => {
    const first = [...table.querySelectorAll("tbody th:first-child")];
    const left = Math.min(...first.map(cell => cell.offsetLeft));
    for (const cell of first) cell.classList.toggle("first-column", cell.offsetLeft === left);
  };
  const look = block => {
    if (!labelled.has(block) && block.offsetParent && block.matches("table.dataframe")) {
      labelled.add(block);
      label(block);
    }
    const hidden = block.scrollWidth - block.clientWidth;
    const scrolls = hidden >= LEAST && getComputedStyle(block).overflowX !== "visible";
    block.classList.toggle("more-left", scrolls && block.scrollLeft > LEAST / 2);
    block.classList.toggle("more-right", scrolls && block.scrollLeft < hidden - LEAST / 2);
    if (scrolls && block.tabIndex < 0) block.tabIndex = 0;
  };
  const sizes = new ResizeObserver(changed => changed.forEach(({target}) => look(target)));
  const known = new WeakSet();
  let waiting = false;

  const all = () => {
    waiting = false;
    for (const block of document.querySelectorAll(KINDS)) {
      if (!known.has(block)) {
        known.add(block);
        sizes.observe(block);
        block.addEventListener("scroll", () => look(block), {passive: true});
      }
      look(block);
    }
  };
  const soon = () => {
    if (!waiting) requestAnimationFrame(all);
    waiting = true;
  };

  addEventListener("load", soon);
  document.addEventListener("toggle", soon, true); // a folded cell opens
  document.addEventListener("DOMContentLoaded", () => {
    soon();
    const article = document.querySelector("article");
    if (article) new MutationObserver(soon).observe(article, {childList: true, subtree: true}); // equations
  });
})();
