// What both pages use: elements, pictures, the theme.
const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("data").remove();  // or the page would hold it twice

function make(tag, options = {}, ...children) {
  const { className, on, ...rest } = options;
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(rest)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  for (const [name, action] of Object.entries(on ?? {})) made.addEventListener(name, action);
  made.append(...children.filter(child => child != null));
  return made;
}

function picture(base64, alt) {
  const image = make("img", { alt });
  image.addEventListener("load", () => {
    image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) <= 64);
  });
  if (base64) image.src = `data:image/webp;base64,${base64}`;
  return image;
}

function choice(label, values, action) {
  const select = make("select", { on: { change: action } },
    ...values.map(([value, text]) => make("option", { value, textContent: text })));
  return [make("label", {}, make("span", { textContent: label }), select), select];
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return make("button", { className: "theme", type: "button", textContent: "Theme", title: "Light or dark", on: {
    click: () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; } } });
}

const many = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const short = value => value == null ? "" : String(Number(value.toPrecision(3)));

// by number where the values are numbers, else by name; with how often each is there
function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => String(a).localeCompare(String(b), "en", { numeric: true }))
    .map(([value, n]) => [String(value), `${value} (${n.toLocaleString("en")})`]);
}
