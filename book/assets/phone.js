// On a phone a wide picture is shown whole; a button enlarges it until its letters can be read, and it scrolls.
document.addEventListener("DOMContentLoaded", () => {
  const LEAST = 8; // pixels that may be hidden, as in book.js
  const phone = matchMedia("(max-width: 40rem)"); // as in book.css

  const look = picture => {
    const figure = picture.parentElement;
    if (!phone.matches || figure.dataset.looked || picture.getBoundingClientRect().width < figure.clientWidth + LEAST) return;
    figure.dataset.looked = "";
    const button = document.createElement("button");
    Object.assign(button, {type: "button", className: "btn btn-sm more-rows enlarge d-print-none"});
    const set = fitted => {
      figure.classList.toggle("fitted", fitted);
      button.textContent = fitted ? "enlarge" : "show the whole picture";
      button.setAttribute("aria-expanded", !fitted);
    };
    button.addEventListener("click", () => set(!figure.classList.contains("fitted")));
    picture.after(button);
    set(true);
  };
  const pictures = document.querySelectorAll("article figure > img:is([src$='.png'], .scrolls > *)");
  const all = () => {
    for (const picture of pictures) {
      if (picture.complete) look(picture);
      else picture.addEventListener("load", () => look(picture), {once: true});
    }
  };
  phone.addEventListener("change", all);
  all();
});
