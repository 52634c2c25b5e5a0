// A ranking: only the tiles that can be seen are part of the page.
const count = data.paths.length;
const TILE = 112, CAPTION = 40;  // pixels: least width of a tile; below its picture
let order = [], columns = 1, side = TILE, looked = -1, start = 0;
const shown = new Map();  // place in the order -> tile

const [byLabel, by] = choice("Sort by", data.methods.map(name => [name, name]), arrange);
const classes = counted(data.predicted.filter(value => value != null));
const [classLabel, given] = choice("Predicted class",
  [["", "all"], ...classes], arrange);
const budget = make("input", { type: "range", min: 0, max: count, step: 1,
  value: Math.min(data.chosen, count), on: { input: arrange } });
const told = make("output");
const only = make("input", { type: "checkbox", on: { change: arrange } });
const once = make("input", { type: "checkbox", on: { change: arrange } });
const state = make("p", { className: "state", role: "status" });
const grid = make("div", { id: "grid" });
const saved = make("button", { type: "button", on: { click: save } });
const large = make("dialog", { ariaLabel: "One image", on: {
  close: () => show(looked),
  touchstart: event => { start = event.changedTouches[0].clientX; },
  touchend: event => swipe(event.changedTouches[0].clientX - start) } });

document.body.append(make("article", {},
  make("header", {}, make("h1", { textContent: data.title }), byLabel,
    classes.length ? classLabel : null,
    make("label", {}, make("span", { textContent: "Budget" }), budget, told),
    make("label", {}, only, make("span", { textContent: "only the chosen" })),
    data.duplicate.some(Boolean)
      ? make("label", {}, once, make("span", { textContent: "hide duplicates" })) : null,
    saved, theme(), state),
  make("main", {}, grid), large));

function chosen(i) {
  return data.ranks[by.value][i] <= Number(budget.value);
}

function arrange() {
  const ranks = data.ranks[by.value], filter = given.value;
  const all = [...ranks.keys()].sort((a, b) => ranks[a] - ranks[b]);
  const picked = all.filter(chosen);
  const fits = i => (!filter || String(data.predicted[i]) === filter)
    && (!once.checked || !data.duplicate[i]);
  order = (only.checked ? picked : all).filter(fits);
  const share = (100 * budget.value / data.total).toPrecision(2);
  told.textContent = `${Number(budget.value).toLocaleString("en")} (${Number(share)} %)`;
  budget.ariaValueText = `${budget.value} images`;
  state.textContent = `${picked.length.toLocaleString("en")} of ${many(data.total, "image")} chosen `
    + `by ${by.value}` + (filter ? `, ${picked.filter(fits).length} of them predicted ${filter}` : "")
    + `; ${order.length.toLocaleString("en")} shown`
    + (count < data.total ? `, of the ${count.toLocaleString("en")} that a method ranks first` : "");
  const n = order.filter(chosen).length;
  saved.textContent = `Save the chosen paths (${n.toLocaleString("en")})`;
  saved.disabled = n === 0;
  layout();
}

function layout() {
  const width = grid.clientWidth || 300;
  columns = Math.max(2, Math.floor(width / TILE));
  side = width / columns;
  grid.style.height = `${Math.ceil(order.length / columns) * (side + CAPTION)}px`;
  for (const tile of shown.values()) tile.remove();
  shown.clear();
  draw();
}

function draw() {
  const row = side + CAPTION, top = grid.getBoundingClientRect().top;
  const first = Math.max(0, Math.floor(-top / row) - 2) * columns;
  const last = Math.min(order.length, (Math.ceil((innerHeight - top) / row) + 2) * columns);
  for (const [place, tile] of shown) {
    if (place < first || place >= last) { tile.remove(); shown.delete(place); }
  }
  for (let place = first; place < last; place++) {
    if (shown.has(place)) continue;
    const tile = tiled(order[place], place);
    tile.style.cssText = `left:${place % columns * side}px;`
      + `top:${Math.floor(place / columns) * row}px;width:${side - 4}px;height:${row - 4}px`;
    shown.set(place, tile);
    const after = [...shown.keys()].filter(other => other > place);
    grid.insertBefore(tile, after.length ? shown.get(Math.min(...after)) : null);
  }
}

function tiled(i, place) {
  const name = by.value, score = short(data.scores[name][i]);
  return make("button", { type: "button", className: chosen(i) ? "tile chosen" : "tile",
      ariaLabel: `Rank ${data.ranks[name][i]}, ${data.paths[i]}`, on: { click: () => look(place) } },
    picture(data.thumbs[i], ""),
    data.duplicate[i] ? make("i", { className: "twice", textContent: "twice" }) : null,
    make("span", {}, make("b", { textContent: data.ranks[name][i] }), score ? `: ${score}` : ""),
    make("span", { textContent: data.paths[i].split("/").at(-1) }));
}

function look(place) {
  looked = Math.max(0, Math.min(order.length - 1, place));
  const i = order[looked], image = picture(data.thumbs[i], data.paths[i]);
  if (data.links[i]) {
    const whole = new Image();
    whole.onload = () => { image.src = whole.src; };  // the file itself, if it is still there
    whole.src = data.links[i];
  }
  const facts = [["predicted", data.predicted[i]], ["confidence", short(data.confidence[i])],
    ["margin", short(data.margin[i])], ["same bytes as", data.duplicate[i]],
    ...data.methods.map(name => [name, `rank ${data.ranks[name][i].toLocaleString("en")}`
      + (data.scores[name][i] == null ? "" : `, score ${short(data.scores[name][i])}`)])];
  const before = document.activeElement?.textContent;  // its place is taken by a new button
  large.replaceChildren(image, make("h2", { textContent: data.paths[i] }),
    make("table", {}, ...facts.filter(([, value]) => value != null && value !== "").map(
      ([name, value]) => make("tr", {}, make("th", { scope: "row", textContent: name }),
        make("td", { textContent: value })))),
    make("nav", {},
      make("button", { type: "button", textContent: "Before", on: { click: () => look(looked - 1) } }),
      make("button", { type: "button", textContent: "Next", on: { click: () => look(looked + 1) } }),
      make("button", { type: "button", textContent: "Close", on: { click: () => large.close() } })));
  if (!large.open) large.showModal();
  const buttons = [...large.querySelectorAll("button")];
  (buttons.find(button => button.textContent === before) ?? buttons[1]).focus();
}

// The tile of a place gets the focus, wherever one has scrolled to.
function show(place) {
  const wanted = Math.max(0, Math.min(order.length - 1, place)), row = side + CAPTION;
  const top = grid.getBoundingClientRect().top + Math.floor(wanted / columns) * row;
  const above = document.querySelector("header").offsetHeight;  // it stays in sight
  if (top < above) scrollBy(0, top - above);
  if (top + row > innerHeight) scrollBy(0, top + row - innerHeight);
  draw();
  shown.get(wanted)?.focus();
}

function turn(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns,
    Home: -order.length, End: order.length }[event.key];
  const place = [...shown].find(([, tile]) => tile === document.activeElement)?.[0];
  if (!step || (!large.open && place == null)) return;
  if (large.open) look(looked + step);
  else show(place + step);
  event.preventDefault();
}

function swipe(distance) {
  if (Math.abs(distance) > 40) look(looked - Math.sign(distance));
}

function save() {
  const lines = order.filter(chosen).map(i => data.files[i] ?? data.paths[i]).join("\n") + "\n";
  const link = make("a", { href: URL.createObjectURL(new Blob([lines], { type: "text/plain" })),
    download: `chosen-by-${by.value}.txt` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

addEventListener("scroll", draw, { passive: true });
addEventListener("resize", layout);
addEventListener("keydown", turn);
arrange();
