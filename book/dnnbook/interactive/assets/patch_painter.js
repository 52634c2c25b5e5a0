// A 2 x 2 patch on an image: drag it, throw a hundred, or draw the image yourself.

const SIDE = 2, BLINK = 12; // pixels of a patch; milliseconds of work between two pictures

function render(element, data) {
  const network = new Network(data.network), [channels, height, width] = network.shape;
  const n = height * width, size = channels * n, stored = bytes(data.images);
  const examples = data.labels.map((_, i) => Float32Array.from(
    stored.subarray(i * size, (i + 1) * size), (v) => v / 255));
  const state = { image: examples[data.first], truth: data.labels[data.first], top: data.at[0], left: data.at[1],
    kind: data.patch, grey: 1, drawing: false, clean: null, thrown: 0, changed: 0, waiting: [] };
  const hits = new Float32Array(n), tries = new Float32Array(n), points = new Map();

  const patched = (top, left, kind, colours) => {
    const x = state.image.slice();
    for (let c = 0; c < channels; c++)
      for (let dy = 0; dy < SIDE; dy++)
        for (let dx = 0; dx < SIDE; dx++) {
          const k = c * n + (top + dy) * width + left + dx;
          x[k] = kind === "invert" ? 1 - x[k] : colours[c];
        }
    return x;
  };

  // the image, the bars and the map
  const picture = make("canvas", { tabindex: 0, role: "application", "aria-roledescription": "image",
    "aria-label": "The image with its patch. The arrow keys move the patch; while you draw, space paints." });
  const frame = make("div", { class: "patch" });
  const chances = bars(data.classes);
  const facts = Object.fromEntries(["pd", "pv", "pe"].map((name) => [name, make("dd")]));
  const truth = make("div", { class: "quiet" });
  const said = make("output", { class: "said", "aria-live": "polite" });
  const map = make("canvas", { role: "img", "aria-label": "Where patches changed the class" });
  const count = make("output", { class: "eff", "aria-live": "polite" });

  // PD and Eff of every image that was tried
  const [left, low, wide] = [34, 164, 156];
  const chart = svg("svg", { viewBox: "0 0 200 200", role: "img", class: "chart" }), dots = svg("g");
  for (const value of [0, 0.5, 1]) {
    const x = left + value * wide, y = low - value * wide;
    chart.append(svg("path", { d: `M${x} ${low}V${low - wide}M${left} ${y}H${left + wide}`, class: "grid" }),
      svg("text", { x, y: low + 15, "text-anchor": "middle" }, value),
      svg("text", { x: left - 4, y: y + 4, "text-anchor": "end" }, value));
  }
  chart.append(svg("text", { x: left + wide / 2, y: low + 31, "text-anchor": "middle" }, "PD: unsure to sure"),
    svg("text", { x: left + 5, y: low - wide + 14 }, "Eff"), dots);
  const plot = () => {
    if (state.thrown) points.set(state.image, [measures(state.clean).pd, state.changed / state.thrown]);
    dots.replaceChildren(...[...points].map(([image, [pd, eff]]) => svg("circle", { r: 5,
      cx: left + pd * wide, cy: low - eff * wide, class: image === state.image ? "now" : "before" })));
    chart.setAttribute("aria-label", `Eff against PD: ${points.size || "no"} images tried. ${
      [...points.values()].map(([pd, eff]) => `PD ${pd.toFixed(2)}, Eff ${eff.toFixed(2)}`).join("; ")}`);
  };

  const show = () => {
    const x = state.drawing ? state.image
      : patched(state.top, state.left, state.kind, Array(channels).fill(state.grey));
    paint(picture, x, network.shape);
    Object.assign(frame.style, { left: `${(100 * state.left) / width}%`, top: `${(100 * state.top) / height}%`,
      width: `${(100 * SIDE) / width}%`, height: `${(100 * SIDE) / height}%` });
    const p = network.probabilities(x), now = measures(p), was = measures(state.clean);
    const before = largest(state.clean), after = largest(p);
    chances.update(p, before);
    for (const name in facts)
      facts[name].textContent = state.drawing ? now[name].toFixed(2)
        : `${now[name].toFixed(2)} (was ${was[name].toFixed(2)})`;
    const name = (c) => `${data.classes[c]} with ${p[c].toFixed(2)}`, known = state.truth !== null;
    const verdict = !known ? "" : before === state.truth ? " The patch has broken it."
      : after === state.truth ? " The patch has mended it." : " Both are wrong.";
    truth.textContent = known ? `True class: ${data.classes[state.truth]}` : "Your own image";
    said.textContent = state.drawing ? `The network says ${name(after)}.`
      : after === before ? `Patch at row ${state.top + 1}, column ${state.left + 1}: still ${name(after)}.`
        : `Patch at row ${state.top + 1}, column ${state.left + 1}: no longer ${data.classes[before]}, but ${name(after)}.${verdict}`;
    said.classList.toggle("changed", after !== before && !state.drawing);
  };

  const showMap = () => {
    const seen = new Float32Array(3 * n);
    for (let k = 0; k < n; k++) {
      const share = tries[k] ? hits[k] / tries[k] : 0, colour = share ? [1, 0.5, 0.08] : [0.24, 0.6, 0.86];
      const weight = share ? 0.35 + 0.6 * share : tries[k] ? 0.3 : 0;
      for (let c = 0; c < 3; c++) {
        const x = state.image[(channels === 3 ? c : 0) * n + k];
        seen[c * n + k] = (1 - weight) * 0.75 * x + weight * colour[c];
      }
    }
    paint(map, seen, [3, height, width]);
    count.textContent = state.thrown
      ? `Eff = ${state.changed} of ${state.thrown} patches = ${(state.changed / state.thrown).toFixed(2)}`
      : "No patch thrown yet.";
    plot();
  };

  const forget = () => {
    hits.fill(0);
    tries.fill(0);
    Object.assign(state, { thrown: 0, changed: 0, waiting: [] });
    showMap();
  };
  const clear = () => {
    points.delete(state.image);
    forget();
  };
  const restart = () => {
    state.clean = network.probabilities(state.image);
    forget();
    show();
  };

  // many patches, a few between two pictures
  const work = () => {
    const until = performance.now() + BLINK, first = largest(state.clean);
    while (state.waiting.length && performance.now() < until) {
      const { top, left, colours } = state.waiting.pop();
      const other = largest(network.logits(patched(top, left, state.kind, colours))) !== first;
      state.thrown++;
      state.changed += other;
      for (let k = 0; k < SIDE * SIDE; k++) {
        const at = (top + (k >> 1)) * width + left + (k & 1);
        tries[at]++;
        hits[at] += other;
      }
    }
    showMap();
    if (state.waiting.length) requestAnimationFrame(work);
  };
  const add = (places) => {
    if (state.drawing) finish();
    const idle = !state.waiting.length;
    state.waiting.push(...places.map(([top, left]) => (
      { top, left, colours: Array.from({ length: channels }, Math.random) })));
    if (idle) work();
  };
  const whole = (most) => Math.floor(Math.random() * most);
  const random = () => [whole(height - SIDE + 1), whole(width - SIDE + 1)];
  const everywhere = () => {
    forget();
    const places = [];
    for (let y = height - SIDE; y >= 0; y--) for (let x = width - SIDE; x >= 0; x--) places.push([y, x]);
    return places;
  };

  // the pointer and the arrow keys
  const brush = (row, column) => {
    for (let y = Math.max(0, row - 1); y <= Math.min(height - 1, row + 1); y++)
      for (let x = Math.max(0, column - 1); x <= Math.min(width - 1, column + 1); x++) {
        const ink = Math.abs(y - row) + Math.abs(x - column) === 2 ? 0.25 : 0.9;
        for (let c = 0; c < channels; c++)
          state.image[c * n + y * width + x] = Math.min(1, Math.max(state.image[c * n + y * width + x], ink));
      }
    state.clean = network.probabilities(state.image);
  };
  const move = (top, left, painting) => {
    state.top = Math.min(Math.max(top, 0), height - SIDE);
    state.left = Math.min(Math.max(left, 0), width - SIDE);
    if (painting) brush(state.top, state.left);
    show();
  };
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    move(Math.floor(((event.clientY - box.top) / box.height) * height - 0.5),
      Math.floor(((event.clientX - box.left) / box.width) * width - 0.5), state.drawing);
  };
  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    follow(event);
  });
  picture.addEventListener("pointermove", (event) => event.buttons && follow(event));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) move(state.top + step[0], state.left + step[1], false);
    else if (event.key === " " && state.drawing) move(state.top, state.left, true);
    else return;
    event.preventDefault();
  });

  // the controls
  const thumbs = buttons("Choose an image", examples.map((x, i) => ({ label: data.described[i],
    content: paint(make("canvas", { class: "thumb" }), x, network.shape) })), (i) => {
    state.drawing = false;
    state.image = examples[i];
    state.truth = data.labels[i];
    draw.textContent = "Draw one";
    restart();
  }, data.first);
  const finish = () => {
    state.drawing = false;
    draw.textContent = "Draw one";
    restart();
  };
  const draw = make("button", { type: "button", onclick: () => {
    if (state.drawing) return finish();
    state.drawing = true;
    state.image = new Float32Array(size);
    state.truth = null;
    for (const b of thumbs.box.querySelectorAll("[aria-pressed]")) b.setAttribute("aria-pressed", false);
    draw.textContent = "Done: patch my image";
    restart();
  } }, "Draw one");
  thumbs.box.append(draw);
  const grey = slider("Brightness", { min: 0, max: 1, step: 0.05, value: state.grey,
    shown: (v) => v.toFixed(2), change: (v) => { state.grey = v; show(); } });
  const kind = choice("The patch", [["invert", "inverts its pixels"], ["grey", "has one brightness"]], (v) => {
    state.kind = v;
    grey.box.hidden = v === "invert";
    points.clear(); // Eff of another patch
    forget();
    show();
  });
  kind.input.value = state.kind;
  grey.box.hidden = state.kind === "invert";
  const press = (text, action) => make("button", { type: "button", onclick: action }, text);
  const stage = make("div", { class: "stage" }, picture, frame);
  element.append(thumbs.box,
    make("div", { class: "board" },
      make("div", { class: "pane" }, make("div", { class: "head" }, "Drag the patch"), stage, truth),
      make("div", { class: "pane" }, make("div", { class: "head" }, "The network says"), chances.box,
        make("dl", { class: "facts" }, ...Object.entries(facts).flatMap(
          ([name, value]) => [make("dt", {}, name.toUpperCase()), value]))),
      make("div", { class: "pane" }, make("div", { class: "head" }, "Fragile places"), map, count),
      make("div", { class: "pane" }, make("div", { class: "head" }, "All that you tried"), chart)),
    said,
    make("div", { class: "controls" }, press("Throw 100 patches", () => add(Array.from({ length: 100 }, random))),
      press("Try every place", () => add(everywhere())), press("Clear the map", clear), kind.box, grey.box));
  restart();
}
