// The controls of a figure in the page's address, as in TensorFlow Playground: a link opens it as one left it.

/** Set a figure's controls to what the address says of it, and write there what the reader changes. */
function remember(element) {
  if (!element.closest("article.bd-article")) return; // in JupyterLab the address is not ours
  const figures = [...document.querySelectorAll(".dnnlib-figure")];
  const number = String(figures.indexOf(element.parentElement) + 1);
  const boxes = [...element.querySelectorAll("label.slider, label.choice, label:has([type=checkbox]), .buttons")];
  const input = (box) => box.querySelector("input, select");
  const pressed = (box) => [...box.querySelectorAll("button")].map((b) => b.getAttribute("aria-pressed") === "true");
  const controls = boxes.map((box) => (box.matches(".buttons") ? {
    name: box.getAttribute("aria-label"),
    value: () => String(pressed(box).indexOf(true)),
    set: (value) => box.querySelectorAll("button")[+value]?.click(),
  } : input(box).type === "checkbox" ? {
    name: box.textContent,
    value: () => String(+input(box).checked),
    set: () => input(box).click(),
  } : {
    name: box.querySelector("span").textContent,
    value: () => input(box).value,
    set: (value) => {
      if (input(box).options && ![...input(box).options].some((o) => o.value === value)) return;
      input(box).value = value;
      input(box).dispatchEvent(new Event(input(box).matches("select") ? "change" : "input"));
    },
  }));

  const told = new URLSearchParams(location.hash.slice(1));
  if (told.get("figure") === number) {
    for (const { name, value, set } of controls)
      if (told.has(name) && told.get(name) !== value()) set(told.get(name));
    addEventListener("load", () => element.scrollIntoView(), { once: true });
  }
  const write = () => {
    const state = new URLSearchParams({ figure: number });
    for (const { name, value } of controls) state.set(name, value());
    history.replaceState(null, "", `#${state}`);
  };
  for (const kind of ["input", "change", "click"]) element.addEventListener(kind, write);
}
