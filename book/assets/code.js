// The bars of folded code stand only where a reader wants them: a switch in the header, which is remembered.
(() => {
  const KEY = "code", BARS = ".cell:not(.prompted, .tag_hide-cell) > details.above-input"; // as in book.css
  const root = document.documentElement;
  const kept = () => {
    try { return localStorage.getItem(KEY) === "shown"; } catch { return false; } // a browser that keeps nothing
  };
  root.classList.toggle("without-code", !kept()); // before the page is drawn

  document.addEventListener("DOMContentLoaded", () => {
    const header = document.querySelector(".article-header-buttons");
    if (!header || !document.querySelector(BARS)) return;
    const button = document.createElement("button");
    Object.assign(button, {type: "button", textContent: "Code", className: "btn btn-sm code-switch",
      title: "Show or hide the bars that open folded code"});
    button.setAttribute("aria-pressed", kept());
    button.addEventListener("click", () => {
      const shown = !root.classList.toggle("without-code");
      button.setAttribute("aria-pressed", shown);
      try { localStorage.setItem(KEY, shown ? "shown" : "hidden"); } catch { /* until the next page */ }
    });
    header.prepend(button);
  });
})();
