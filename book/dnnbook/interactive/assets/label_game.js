// A queue of candidates: the first of them get labels, and show whether the network was wrong.

function render(element, data) {
  const n = data.labels.length, methods = Object.keys(data.orders), all = bytes(data.images);
  const size = all.length / n, wrong = data.labels.map((label, i) => label !== data.predicted[i]);
  const share = wrong.filter(Boolean).length / n;
  const state = { method: methods[0], budget: Math.round(n / 10), known: false };
  const tried = new Set();
  const order = (method) => (state.known && data.knowing[method]) || data.orders[method];
  const found = (method) => order(method).slice(0, state.budget).filter((i) => wrong[i]).length;
  const rate = (method) => found(method) / state.budget;

  const cells = Array.from({ length: n }, () => {
    const canvas = make("canvas"), text = make("div", { class: "truth" });
    return { canvas, text, box: make("div", { class: "candidate" }, canvas, text) };
  });
  const queue = make("div", { class: "queue", tabindex: 0, role: "region",
    "aria-label": "The queue of candidates" }, ...cells.map((c) => c.box));
  const said = make("output", { class: "said", "aria-live": "polite" });
  const table = make("div", { class: "scores" });

  const chart = faults(n);
  const deal = () => order(state.method).forEach((i, place) => paint(cells[place].canvas,
    all.subarray(i * size, (i + 1) * size), data.shape, 1));
  const show = () => {
    order(state.method).forEach((i, place) => {
      const { box, text } = cells[place], labelled = place < state.budget;
      text.textContent = labelled ? data.classes[data.labels[i]] : "";
      box.className = `candidate${labelled ? (wrong[i] ? " wrong" : " right") : ""}`;
      box.title = labelled ? `class ${data.classes[data.labels[i]]}, the network says `
        + data.classes[data.predicted[i]] : "";
    });
    if (state.budget) tried.add(state.method);
    chart.draw(Object.fromEntries([...tried].map((m) => [m, order(m).map((i) => wrong[i])])),
      state.method, state.budget, share);
    said.textContent = state.budget
      ? `${state.method}${state.known ? ", originals known" : ""}: ${state.budget} of ${n} labelled, `
        + `${found(state.method)} of them wrong. FDR = ${percent(rate(state.method))}.`
      : `${n} candidates in the order of ${state.method}; the truth is hidden. Buy labels with the slider.`;
    table.replaceChildren(...(state.budget ? [
      ...methods.filter((m) => tried.has(m)).map((m) => [m, rate(m)]), ["any order, expected", share],
    ].map(([name, value]) => make("div", { class: "score" }, make("span", {}, name),
      make("span", { class: "track" }, make("span", { class: "bar", style: `width:${100 * value}%` })),
      make("span", { class: "number" }, percent(value)))) : []));
  };

  const kinds = buttons("Who orders the queue", methods, (i) => {
    state.method = methods[i];
    deal();
    show();
  });
  const budget = slider("Labels", { min: 0, max: n, value: state.budget, change: (v) => { state.budget = v; show(); } });
  budget.box.classList.add("wide");
  const known = make("input", { type: "checkbox", onchange: () => {
    state.known = known.checked;
    deal();
    show();
  } });
  const knowing = make("label", {}, known, make("span", {}, "the original of every candidate is known"));
  element.append(kinds.box, make("div", { class: "controls" }, budget.box,
    ...(Object.keys(data.knowing).length ? [knowing] : [])), said, table, chart.box, queue,
  make("div", { class: "quiet" }, "Orange: labelled, and the network was wrong. Blue: it was right. "
    + "Below: the true class."));
  deal();
  show();
}

/** Faults found against labels bought, a line for each method that was tried; broken: any order, expected. */
function faults(n) {
  const W = 420, H = 170, left = 40, right = 10, top = 8, bottom = 36;
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", class: "chart",
    "aria-label": "Faults found against labels bought" });
  const draw = (tried, now, budget, share) => {
    const most = Math.max(1, Math.round(share * n));
    const px = (x) => left + ((W - left - right) * x) / n, py = (y) => H - bottom - ((H - top - bottom) * y) / most;
    const line = (points, kind) => svg("polyline", { class: kind, fill: "none",
      points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") });
    const found = (row) => row.reduce((sums, w) => [...sums, sums.at(-1) + w], [0]).map((y, x) => [x, y]);
    picture.replaceChildren(
      ...[0, most].flatMap((y) => [svg("line", { x1: left, x2: W - right, y1: py(y), y2: py(y), class: "grid" }),
        svg("text", { x: left - 6, y: py(y) + 5, "text-anchor": "end" }, y)]),
      svg("text", { x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, "labels bought; upwards: faults found"),
      line([[0, 0], [n, most]], "chance-line"),
      ...Object.entries(tried).map(([m, row]) => line(found(row), m === now ? "now" : "before")),
      svg("line", { x1: px(budget), x2: px(budget), y1: top, y2: H - bottom, class: "cursor" }));
  };
  return { box: picture, draw };
}
