// The flight of a swarm: play it, step through it, switch what it searches for.

const PAUSE = 700; // milliseconds between two iterations

function render(element, data) {
  const [channels, height, width] = data.shape, size = channels * height * width;
  const count = data.population, state = { swarm: 0, at: 0, timer: 0 };
  for (const swarm of data.swarms) {
    const two = bytes(swarm.pixels);
    swarm.length = swarm.places.length;
    swarm.pixel = (k) => (k % 2 ? two[k >> 1] & 15 : two[k >> 1] >> 4) / 15;
  }
  const now = () => data.swarms[state.swarm];
  const image = (t, i) => Float32Array.from({ length: size },
    (_, k) => now().pixel((t * count + i) * size + k));

  // the plane
  const S = 320, margin = 14, all = data.swarms.flatMap((s) => s.places.flat()).concat([[0, 0]]);
  const [left, right] = [0, 1].map((i) => (i ? Math.max : Math.min)(...all.map((p) => p[0])));
  const [low, high] = [0, 1].map((i) => (i ? Math.max : Math.min)(...all.map((p) => p[1])));
  const scale = (S - 2 * margin) / Math.max(right - left, high - low, 1e-6);
  const px = ([x]) => S / 2 + (x - (left + right) / 2) * scale;
  const py = ([, y]) => S / 2 - (y - (low + high) / 2) * scale;
  const plane = svg("svg", { viewBox: `0 0 ${S} ${S}`, role: "img", class: "plane",
    "aria-label": "The particles as points, seen from the image" });
  const star = svg("text", { x: px([0, 0]), y: py([0, 0]) + 7, "text-anchor": "middle", class: "star" }, "★");
  const ring = svg("circle", { r: 10, class: "ring" });
  const tails = Array.from({ length: count }, () => svg("polyline", { class: "tail" }));
  const dots = Array.from({ length: count }, () => svg("circle", { r: 6, class: "dot" }));
  const flat = svg("text", { x: S / 2, y: S - 8, "text-anchor": "middle", class: "flat" }, "the best fitness never rises");
  plane.append(...tails, star, ring, ...dots, flat);

  // the thumbnails
  const cells = Array.from({ length: count }, () => {
    const canvas = make("canvas"), text = make("div", { class: "quiet" });
    return { canvas, text, box: make("div", { class: "particle" }, canvas, text) };
  });
  const said = make("output", { class: "said", "aria-live": "polite" });

  const told = (swarm, fitness) => (swarm.neurons
    ? `${Math.round(fitness * swarm.neurons)} of ${swarm.neurons} neurons` : fitness.toPrecision(3));
  const show = () => {
    const swarm = now(), t = state.at, [bestTime, best] = swarm.leaders[t];
    let lost = 0;
    cells.forEach(({ canvas, text, box }, i) => {
      const c = swarm.class[t][i], wrong = c !== data.label, place = swarm.places[t][i];
      lost += wrong;
      paint(canvas, image(t, i), data.shape);
      text.textContent = `says ${data.classes[c]}`;
      box.classList.toggle("wrong", wrong);
      dots[i].setAttribute("cx", px(place));
      dots[i].setAttribute("cy", py(place));
      dots[i].classList.toggle("wrong", wrong);
      tails[i].setAttribute("points", swarm.places.slice(Math.max(0, t - 3), t + 1)
        .map((p) => `${px(p[i])},${py(p[i])}`).join(" "));
    });
    const leader = swarm.places[bestTime][best];
    ring.setAttribute("cx", px(leader));
    ring.setAttribute("cy", py(leader));
    flat.setAttribute("visibility", swarm.leaders.at(-1)[0] ? "hidden" : "visible");
    said.textContent = `Iteration ${t + 1} of ${swarm.length}, fitness ${swarm.name}. `
      + `Best so far: ${told(swarm, swarm.fitness[bestTime][best])}, found in iteration ${bestTime + 1}. `
      + `${lost} of ${count} particles have another class than ${data.classes[data.label]}; `
      + `mean L2 distance ${swarm.l2[t].toFixed(1)}.`;
    step.disabled = t + 1 >= swarm.length;
  };
  const go = (t) => {
    state.at = Math.min(t, now().length - 1);
    time.input.value = state.at;
    time.input.dispatchEvent(new Event("input"));
  };

  // the controls
  const stop = () => {
    clearInterval(state.timer);
    state.timer = 0;
    play.textContent = "Play";
    said.setAttribute("aria-live", "polite");
  };
  const play = make("button", { type: "button", onclick: () => {
    if (state.timer) return stop();
    if (state.at + 1 >= now().length) go(0);
    said.setAttribute("aria-live", "off"); // or a screen reader would never come to an end
    play.textContent = "Pause";
    state.timer = setInterval(() => {
      if (!element.isConnected || state.at + 1 >= now().length) stop();
      else go(state.at + 1);
    }, PAUSE);
  } }, "Play");
  const step = make("button", { type: "button", onclick: () => { stop(); go(state.at + 1); } }, "Step");
  const time = slider("Iteration", { min: 0, max: Math.max(...data.swarms.map((s) => s.length)) - 1, value: 0,
    shown: (t) => String(t + 1), change: (t) => { state.at = Math.min(t, now().length - 1); show(); } });
  time.box.classList.add("wide");
  const kinds = buttons("Fitness", data.swarms.map((s) => s.name), (i) => { state.swarm = i; go(state.at); });
  kinds.box.prepend(make("span", {}, "Fitness:"));
  const original = paint(make("canvas", { role: "img", "aria-label": "The image" }), bytes(data.image), data.shape, 1);
  element.append(kinds.box, make("div", { class: "controls" }, play, step, time.box),
    make("div", { class: "scene" },
      make("div", {}, plane, make("div", { class: "quiet" },
        "★ the image; ○ the swarm's best place; orange: another class")),
      make("div", { class: "swarm" }, make("div", { class: "particle" }, original,
        make("div", { class: "quiet" }, "the image")), ...cells.map((c) => c.box))),
    said);
  show();
}
