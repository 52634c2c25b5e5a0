// The maps of a layer before and after a mutation; neurons that change much are marked, or, where the
// data has values of the maps, maps of a large value.

function render(element, data) {
  const network = new Network(data.network), shape = network.shape, size = shape[0] * shape[1] * shape[2];
  const cut = (text) => {
    const all = bytes(text);
    return Array.from({ length: all.length / size }, (_, i) => Float32Array.from(
      all.subarray(i * size, (i + 1) * size), (v) => v / 255));
  };
  const images = cut(data.images), count = images.length;
  for (const mutation of data.mutations) mutation.all = cut(mutation.images);
  const state = { image: data.first, mutation: 0, strength: data.mutations[0].strengths,
    layer: data.layers.at(-1), threshold: data.threshold };

  const before = make("canvas", { role: "img", "aria-label": "The image" });
  const after = make("canvas", { role: "img", "aria-label": "The mutated image" });
  const words = [make("div", { class: "quiet" }), make("div", { class: "quiet" })];
  const maps = make("div", { class: "maps" });
  const said = make("output", { class: "said", "aria-live": "polite" });
  let drawn = [];

  const outputs = (x) => {
    const all = [], p = softmax(network.logits(x, all)), c = largest(p);
    return { all, first: c, text: `${data.classes[c]} with ${p[c].toFixed(2)}` };
  };
  const show = () => {
    const mutation = data.mutations[state.mutation];
    const x = images[state.image], y = mutation.all[(state.strength - 1) * count + state.image];
    paint(before, x, shape);
    paint(after, y, shape);
    const place = network.layers.findIndex((layer) => layer.name === state.layer);
    const [channels, height, width] = network.layers[place].to, n = height * width;
    const one = outputs(x), two = outputs(y), a = one.all[place], b = two.all[place];
    words[0].textContent = `before: ${one.text}`;
    words[1].textContent = `after: ${two.text}`;
    after.classList.toggle("broken", one.first === data.labels[state.image] && two.first !== one.first);
    if (drawn.length !== channels) {
      drawn = Array.from({ length: channels }, (_, i) => {
        const pair = [make("canvas"), make("canvas")], text = make("div", { class: "quiet" });
        return { pair, text, box: make("div", { class: "map" },
          make("div", { class: "pair" }, ...pair), text) };
      });
      maps.replaceChildren(...drawn.map((d) => d.box));
    }
    let marked = 0, moved = 0, all = 0;
    const values = mutation.values?.[state.strength - 1][state.image];
    drawn.forEach(({ pair, text, box }, i) => {
      const both = [a.subarray(i * n, (i + 1) * n), b.subarray(i * n, (i + 1) * n)];
      let low = Infinity, high = -Infinity, here = 0;
      for (const part of both) for (const v of part) { low = Math.min(low, v); high = Math.max(high, v); }
      const pictures = both.map((part) => {
        const picture = new Float32Array(3 * n);
        for (let k = 0; k < n; k++)
          picture[k] = picture[n + k] = picture[2 * n + k] = (part[k] - low) / (high - low || 1);
        return picture;
      });
      if (values) {
        all += values[i];
        here = +(values[i] > state.threshold);
        moved += here * values[i];
      } else for (let k = 0; k < n; k++) {
        const change = Math.abs(both[1][k] - both[0][k]);
        all += change;
        if (change > state.threshold) {
          here++;
          moved += change;
          const grey = pictures[1][k]; // marked in the second: orange, still lighter or darker
          pictures[1].set([0.55 + 0.45 * grey], k);
          pictures[1].set([0.2 + 0.35 * grey], n + k);
          pictures[1].set([0], 2 * n + k);
        }
      }
      pair.forEach((canvas, k) => paint(canvas, pictures[k], [3, height, width]));
      text.textContent = `map ${i + 1}: ${values ? values[i].toFixed(2) : `${here} of ${n}`}`;
      box.classList.toggle("marked", here > 0);
      text.classList.toggle("adds", Boolean(values && values[i] > 0));
      text.classList.toggle("takes", Boolean(values && values[i] < 0));
      marked += here;
    });
    said.textContent = values ? `${marked} of ${channels} maps have a Shapley value above `
      + `${state.threshold.toFixed(2)}. Theirs add up to ${moved.toFixed(2)}, those of all maps to `
      + `${all.toFixed(2)}: the change of loss, in nats.` : `${marked} of ${channels * n} neurons change by more than ${state.threshold.toFixed(2)}. `
      + `The sum of their changes is ${moved.toFixed(2)}`
      + `, ${percent(all ? moved / all : 0)} of the change of all neurons of this layer.`;
  };

  const thumbs = buttons("Choose an image", images.map((x, i) => ({ label: `image of class ${data.classes[data.labels[i]]}`,
    content: paint(make("canvas", { class: "thumb" }), x, shape) })), (i) => { state.image = i; show(); },
  data.first);
  const kind = choice("Mutation", data.mutations.map((m, i) => [i, m.name]), (i) => {
    state.mutation = +i;
    strength.input.max = data.mutations[state.mutation].strengths;
    state.strength = Math.min(state.strength, +strength.input.max);
    show();
  });
  const strength = slider("Strength", { min: 1, max: data.mutations[0].strengths, value: state.strength,
    change: (v) => { state.strength = v; show(); } });
  const shared = "values" in data.mutations[0];
  const threshold = slider(shared ? "Mark values above" : "Mark changes above", { min: 0, max: data.most, step: data.most / 100 || 1,
    value: state.threshold, shown: (v) => v.toFixed(2), change: (v) => { state.threshold = v; show(); } });
  const layer = choice("Layer", [...data.layers].reverse().map((name) => {
    const [c, h, w] = network.layers.find((one) => one.name === name).to;
    return [name, `${name}: ${c} maps of ${h} x ${w}`];
  }), (name) => {
    state.layer = name;
    show();
  });
  element.append(thumbs.box, make("div", { class: "controls" }, kind.box, strength.box, threshold.box,
    ...(data.layers.length > 1 ? [layer.box] : [])),
    make("div", { class: "lit" }, make("div", { class: "inputs" }, make("div", {}, before, words[0]),
      make("div", {}, after, words[1])),
      make("div", {}, make("div", { class: "head" }, `The maps, each before and after; ${shared
        ? "framed: a large Shapley value; orange adds to the loss, blue takes from it" : "marked neurons are orange"}`),
        maps)), said);
  show();
}
