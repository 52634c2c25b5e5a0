// A swarm among all images of two pixels: it flies again as soon as lambda, the inertia or the ground is moved.

const PAUSE = 700, OPEN = 5; // milliseconds between two iterations; the iteration that one sees first
const REACH = 0.09, LIFT = 0.12; // of a stroke that draws ground: how wide, and how high

function render(element, data) {
  const network = new Network(data.network), side = data.side, n = side * side;
  const star = data.image, count = data.start.length, luck = floats(data.luck);
  const length = luck.length / (2 * count);
  const state = { at: Math.min(OPEN, length - 1), timer: 0, drawn: false, lower: false, brush: [0.5, 0.5],
    threshold: data.threshold, inertia: [...data.inertia], flight: null };

  // the ground: Eqs. 1 and 2
  const run = (x) => {
    const outputs = [], logits = network.logits(Float32Array.from(x), outputs);
    return { phi: data.counted.flatMap((i) => [...outputs[i]]), other: largest(logits) !== data.label };
  };
  const clean = run(star).phi;
  const slopes = ({ phi }, x) => {
    const far = Math.hypot(x[0] - star[0], x[1] - star[1]);
    return phi.map((value, k) => (far ? (value - clean[k]) / far : 0));
  };
  const share = (ns, least) => ns.reduce((sum, value) => sum + (value > least), 0) / clean.length;
  const image = (k) => [(k % side) / (side - 1), Math.floor(k / side) / (side - 1)];
  const cell = (x) => Math.round(x[1] * (side - 1)) * side + Math.round(x[0] * (side - 1));
  const every = Array.from({ length: n }, (_, k) => {
    const found = run(image(k));
    return { ns: Float32Array.from(slopes(found, image(k))), other: found.other };
  });
  const own = new Float32Array(n);
  const fitness = (x) => (state.drawn ? own[cell(x)] : share(slopes(run(x), x), state.threshold));
  const top = Math.max(...every.map(({ ns }) => share(ns, Math.min(0, data.threshold)))) || 1;

  // the flight: Algorithm 1, Eqs. 3 to 5, with the engine's random numbers
  const fly = () => {
    const [first, end] = state.inertia;
    const x = data.start.map((p) => [...p]), v = x.map((p) => p.map((value, d) => value - star[d]));
    const own = x.map((p) => [...p]), P = Array(count).fill(-Infinity), path = [];
    let best = { value: -Infinity };
    for (let g = 0; g < length; g++) {
      x.forEach((p, i) => {
        const value = fitness(p);
        if (value > P[i]) [P[i], own[i]] = [value, [...p]];
      });
      const leader = largest(P);
      if (P[leader] > best.value) best = { value: P[leader], place: [...own[leader]], found: g };
      path.push({ x: x.map((p) => [...p]), best });
      const omega = ((first - end) * (length - g)) / length + end;
      x.forEach((p, i) => {
        const [r1, r2] = [0, 1].map((k) => luck[(2 * g + k) * count + i]);
        for (let d = 0; d < 2; d++) {
          v[i][d] = omega * v[i][d] + data.c1 * r1 * (own[i][d] - p[d]) + data.c2 * r2 * (best.place[d] - p[d]);
          p[d] = Math.min(1, Math.max(0, p[d] + v[i][d]));
        }
      });
    }
    state.flight = path;
  };

  // the picture
  const S = 400, px = (x) => S * x[0], py = (x) => S * (1 - x[1]);
  const field = make("canvas", { tabindex: 0, role: "application", "aria-roledescription": "landscape" });
  const overlay = svg("svg", { viewBox: `0 0 ${S} ${S}`, "aria-hidden": "true" });
  const step = 1 / (side - 1), edges = [];
  for (let k = 0; k < n; k++) { // where neighbours differ in class
    const [x, y] = image(k);
    if ((k + 1) % side && every[k].other !== every[k + 1].other)
      edges.push(`M${px([x + step / 2])} ${py([0, y - step / 2])}V${py([0, y + step / 2])}`);
    if (k + side < n && every[k].other !== every[k + side].other)
      edges.push(`M${px([x - step / 2])} ${py([0, y + step / 2])}H${px([x + step / 2])}`);
  }
  const tracks = data.start.map(() => svg("polyline", { class: "trail" }));
  const points = data.start.map(() => svg("circle", { r: 6, class: "point" }));
  const best = svg("path", { d: "M0 -9L9 0L0 9L-9 0Z", class: "best" });
  const brush = svg("circle", { r: REACH * S, class: "brush" });
  const petal = (k) => [Math.sin((Math.PI * k) / 5), -Math.cos((Math.PI * k) / 5)].map((c) => c * (k % 2 ? 4.5 : 11));
  overlay.append(svg("path", { class: "border", d: edges.join("") }), ...tracks, svg("path", { class: "point",
    d: `M${Array.from({ length: 10 }, (_, k) => petal(k)).join("L")}Z`, transform: `translate(${px(star)} ${py(star)})` }),
  ...points, best, brush);
  const bar = make("div", { style: `background: linear-gradient(to top, ${data.colours.map((c) => `rgb(${c})`)})` });
  const [high, low] = [make("span"), make("span")];
  const said = make("output", { class: "said", "aria-live": "polite" });

  const ground = () => {
    const seen = new Float32Array(3 * n), last = data.colours.length - 1;
    for (let k = 0; k < n; k++) {
      const height = state.drawn ? own[k] : share(every[k].ns, state.threshold) / top;
      const colour = data.colours[Math.min(last, Math.round(height * last))];
      const row = side - 1 - Math.floor(k / side); // the right pixel rises upwards
      for (let c = 0; c < 3; c++) seen[c * n + row * side + (k % side)] = colour[c];
    }
    paint(field, seen, [3, side, side], 1);
    [high.textContent, low.textContent] = state.drawn ? ["high", "low"] : [percent(top), "0 %"];
  };
  const show = () => {
    const { x, best: leader } = state.flight[state.at];
    x.forEach((p, i) => {
      points[i].setAttribute("cx", px(p));
      points[i].setAttribute("cy", py(p));
      tracks[i].setAttribute("points", state.flight.slice(Math.max(0, state.at - 3), state.at + 1)
        .map((t) => `${px(t.x[i])},${py(t.x[i])}`).join(" "));
    });
    best.setAttribute("transform", `translate(${px(leader.place)} ${py(leader.place)})`);
    brush.setAttribute("visibility", state.drawn ? "visible" : "hidden");
    brush.setAttribute("cx", px(state.brush));
    brush.setAttribute("cy", py(state.brush));
    const moved = state.at ? x.reduce((sum, p, i) => {
      const before = state.flight[state.at - 1].x[i];
      return sum + Math.hypot(p[0] - before[0], p[1] - before[1]) / count;
    }, 0) : 0;
    said.textContent = `Iteration ${state.at} of ${length - 1}. Best: ${state.drawn ? `height ${leader.value.toFixed(2)}`
      : `${percent(leader.value)} of the neurons`}, found in iteration ${leader.found}, at left pixel `
      + `${leader.place[0].toFixed(2)} and right pixel ${leader.place[1].toFixed(2)}; the network gives it `
      + `${run(leader.place).other ? "another" : "the same"} class. `
      + (state.at ? `The last move was ${moved.toFixed(2)} long on average.` : "Nothing has moved yet.");
    next.disabled = state.at + 1 >= length;
  };
  const again = () => { fly(); show(); };

  // drawing: the pointer, or the arrow keys and space
  const stroke = (sign) => {
    for (let k = 0; k < n; k++) {
      const x = image(k), far = Math.hypot(x[0] - state.brush[0], x[1] - state.brush[1]) / REACH;
      if (far < 3) own[k] = Math.min(1, Math.max(0, own[k] + sign * LIFT * Math.exp(-(far ** 2) / 2)));
    }
    ground();
    again();
  };
  const sign = (event) => (state.lower !== event.shiftKey ? -1 : 1);
  const follow = (event) => {
    const box = field.getBoundingClientRect(), within = (value) => Math.min(1, Math.max(0, value));
    state.brush = [within((event.clientX - box.left) / box.width), within(1 - (event.clientY - box.top) / box.height)];
    if (event.buttons) stroke(sign(event)); else show();
  };
  field.addEventListener("pointerdown", (event) => {
    if (!state.drawn) return;
    field.setPointerCapture(event.pointerId);
    follow(event);
  });
  field.addEventListener("pointermove", (event) => state.drawn && follow(event));
  field.addEventListener("keydown", (event) => {
    const way = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!state.drawn || !(way || event.key === " ")) return;
    if (way) {
      state.brush = state.brush.map((value, d) => Math.min(1, Math.max(0, value + way[d] / 20)));
      show();
    } else stroke(sign(event));
    event.preventDefault();
  });

  // the controls
  const stop = () => {
    clearInterval(state.timer);
    state.timer = 0;
    play.textContent = "Play";
    said.setAttribute("aria-live", "polite");
  };
  const set = (input, value) => {
    input.value = value;
    input.dispatchEvent(new Event("input"));
  };
  const go = (t) => set(time.input, t);
  const play = make("button", { type: "button", onclick: () => {
    if (state.timer) return stop();
    if (state.at + 1 >= length) go(0);
    said.setAttribute("aria-live", "off"); // or a screen reader would never come to an end
    play.textContent = "Pause";
    state.timer = setInterval(() => {
      if (!element.isConnected || state.at + 1 >= length) stop();
      else go(state.at + 1);
    }, PAUSE);
  } }, "Play");
  const next = make("button", { type: "button", onclick: () => { stop(); go(state.at + 1); } }, "Step");
  const time = slider("Iteration", { min: 0, max: length - 1, value: state.at,
    change: (t) => { state.at = t; show(); } });
  time.box.classList.add("wide");
  const two = (value) => value.toFixed(2);
  const lambda = slider("Threshold λ", { min: 0, max: Math.max(3, 2 * data.threshold), step: 0.05,
    value: data.threshold, shown: two, change: (value) => { state.threshold = value; ground(); again(); } });
  const inertia = ["start", "end"].map((name, i) => slider(`Inertia, ${name}`, { min: 0,
    max: Math.max(1.2, ...data.inertia), step: 0.05, value: data.inertia[i], shown: two,
    change: (value) => { state.inertia[i] = value; again(); } }));
  const raise = buttons("Brush", ["raise", "lower"], (i) => { state.lower = i === 1; });
  raise.box.prepend(make("span", {}, "Press and drag to"));
  const whose = (drawn) => {
    state.drawn = drawn;
    field.classList.toggle("drawn", drawn);
    field.setAttribute("aria-label", drawn
      ? "Your ground. The arrow keys move the brush; space raises the ground, with shift it lowers it."
      : "The square of all images, coloured by the share of sensitive neurons");
    raise.box.hidden = !drawn;
    lambda.input.disabled = drawn;
    ground();
    again();
  };
  const kinds = buttons("Ground", ["the network's ground", "draw your own"], (i) => whose(i === 1));
  const reset = make("button", { type: "button", onclick: () => {
    stop();
    own.fill(0);
    raise.press(0);
    set(lambda.input, data.threshold);
    inertia.forEach(({ input }, i) => set(input, data.inertia[i]));
    kinds.press(0);
    go(Math.min(OPEN, length - 1));
  } }, "Reset");
  element.append(make("div", { class: "field" },
    make("div", { class: "ground" }, make("div", { class: "stage" }, field, overlay), bar,
      make("div", { class: "scale" }, high, low)),
    make("div", { class: "moved" }, kinds.box, raise.box, lambda.box, ...inertia.map((i) => i.box), reset,
      make("div", { class: "quiet" }, "Colour: the share of sensitive neurons, or your own ground. ☆ the input; "
        + "◆ the swarm's best place; beyond the red line, another class. The left pixel gets brighter to the right, "
        + "the right pixel upwards."))),
  make("div", { class: "controls" }, play, next, time.box), said);
  whose(false);
}
