// A tall picture of verdicts opens with its first claims, as long tables do with their first rows (book.css).
document.addEventListener("DOMContentLoaded", () => {
  const MOST = 550; // pixels, as shown
  for (const picture of document.querySelectorAll(".cell:has(table.verdicts) .cell_output img")) {
    const button = document.createElement("button");
    Object.assign(button, {type: "button", className: "btn btn-sm more-rows d-print-none"});
    const set = folded => {
      picture.classList.toggle("folded", folded);
      button.textContent = folded ? "show the cells of all claims" : "show the cells of the first claims";
      button.setAttribute("aria-expanded", !folded);
    };
    const measured = () => {
      if (picture.getBoundingClientRect().height <= MOST) return;
      button.addEventListener("click", () => set(!picture.classList.contains("folded")));
      picture.after(button);
      set(true);
    };
    if (picture.complete) measured();
    else picture.addEventListener("load", measured, {once: true});
  }
});
