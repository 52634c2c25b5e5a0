// One image under several methods, within a bound on the distance that the slider moves.

function render(element, data) {
  const [channels, height, width] = data.shape, size = channels * height * width;
  const cut = (text) => {
    const all = bytes(text);
    return data.labels.map((_, i) => all.subarray(i * size, (i + 1) * size));
  };
  const seeds = cut(data.images), stops = [0, ...data.bounds];
  for (const method of data.methods) method.images = method.examples.map(cut);
  const state = { seed: data.first, stop: data.at };
  const draw = (canvas, x) => paint(canvas, x, data.shape, 1);

  const tile = (name, colour) => {
    const canvas = make("canvas", { role: "img", "aria-label": name }), text = make("div", { class: "quiet" });
    const box = make("div", { class: "tile" }, make("div", { class: "head" },
      make("span", { class: "swatch", style: `background:${colour}` }), name), canvas, text);
    return { canvas, text, box };
  };
  const original = tile("the image", "transparent");
  const tiles = data.methods.map((method) => tile(method.name, method.colour));
  const said = make("output", { class: "said", "aria-live": "polite" });
  const chart = curves(data);

  const show = () => {
    const { seed, stop } = state, label = data.labels[seed], clean = data.clean;
    const says = (c, sure) => `${data.classes[c]} with ${sure.toFixed(2)}`;
    draw(original.canvas, seeds[seed]);
    original.text.textContent = `The network says ${says(clean.class[seed], clean.sure[seed])}.`;
    const lost = [];
    data.methods.forEach((method, i) => {
      const { canvas, text, box } = tiles[i], at = stop - 1;
      const c = stop ? method.class[at][seed] : clean.class[seed];
      draw(canvas, stop ? method.images[at][seed] : seeds[seed]);
      text.textContent = stop
        ? `${says(c, method.sure[at][seed])}; L2 = ${method.l2[at][seed].toFixed(1)}; `
          + `errors: ${method.errors[at][seed]} of ${method.examples_each}` : "not moved";
      box.classList.toggle("wrong", c !== label);
      if (c !== label) lost.push(`${method.name} (${data.classes[c]})`);
    });
    said.textContent = `Within L2 = ${stops[stop]}, of an image of class ${data.classes[label]}: `
      + (lost.length ? `another class from ${lost.join(", ")}.` : "no example shown has another class.");
    chart.mark(stops[stop]);
  };

  const thumbs = buttons("Choose an image", seeds.map((x, i) => ({ label: `image of class ${data.classes[data.labels[i]]}`,
    content: draw(make("canvas", { class: "thumb" }), x) })), (i) => { state.seed = i; show(); },
  data.first);
  const bound = slider("Bound on L2", { min: 0, max: stops.length - 1, value: state.stop,
    shown: (i) => String(stops[i]), change: (i) => { state.stop = i; show(); } });
  bound.box.classList.add("wide");
  element.append(thumbs.box, make("div", { class: "controls" }, bound.box),
    make("div", { class: "tiles" }, original.box, ...tiles.map((t) => t.box)), said, chart.box);
  show();
}

/** The error rates of the records as lines; `mark(x)` puts the broken line at a bound. */
function curves(data) {
  const drawn = data.methods.filter((method) => method.curve.length);
  if (!drawn.length) return { box: "", mark() {} };
  const W = 420, H = 220, left = 48, right = 10, top = 10, bottom = 40, end = data.bounds.at(-1);
  const px = (x) => left + ((W - left - right) * Math.min(x, end)) / end;
  const py = (y) => H - bottom - ((H - top - bottom) * y) / 100;
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", class: "chart",
    "aria-label": `Share of test errors against the bound on the L2 distance: ${data.source}` });
  for (const y of [0, 25, 50, 75, 100]) {
    picture.append(svg("line", { x1: left, x2: W - right, y1: py(y), y2: py(y), class: "grid" }),
      svg("text", { x: left - 6, y: py(y) + 4, "text-anchor": "end" }, `${y} %`));
  }
  for (let x = 0; x <= end; x += 2)
    picture.append(svg("text", { x: px(x), y: H - bottom + 16, "text-anchor": "middle" }, x));
  picture.append(svg("text", { x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" },
    "bound on the L2 distance"));
  for (const { curve, colour } of drawn) {
    const inside = curve.filter(([x]) => x <= end);
    picture.append(svg("polyline", { points: inside.map(([x, y]) => `${px(x)},${py(y)}`).join(" "),
      fill: "none", stroke: colour, "stroke-width": 2.5 }),
      ...inside.map(([x, y]) => svg("circle", { cx: px(x), cy: py(y), r: 4, fill: colour })));
  }
  const line = svg("line", { y1: top, y2: H - bottom, class: "cursor" });
  picture.append(line);
  const legend = make("div", { class: "legend" }, ...drawn.map(({ name, colour }) => make("span", {},
    make("span", { class: "swatch", style: `background:${colour}` }), name)));
  return { box: make("div", {}, make("div", { class: "head" }, "Share of examples that are test errors"),
    legend, picture, make("div", { class: "quiet" }, data.source)),
    mark: (x) => { line.setAttribute("x1", px(x)); line.setAttribute("x2", px(x)); } };
}
