// Shared by all figures: elements, pixels, and a small network on typed arrays.

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const floats = (text) => new Float32Array(bytes(text).buffer);
const percent = (value) => `${(100 * value).toFixed(value > 0 && value < 0.0095 ? 1 : 0)} %`;
const largest = (values) => values.reduce((best, v, i) => (v > values[best] ? i : best), 0);

/** An element with attributes; "on..." are listeners, false and null leave an attribute out. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** An element of SVG. */
function svg(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text != null) element.textContent = text;
  return element;
}

/** A slider with its label, and its value in words behind it. */
function slider(label, { min, max, step = 1, value, shown = String, change }) {
  const said = make("output", { class: "value" }, shown(value));
  const input = make("input", { type: "range", min, max, step, value, "aria-valuetext": shown(value),
    oninput: () => {
      said.textContent = shown(+input.value);
      input.setAttribute("aria-valuetext", said.textContent);
      change(+input.value);
    } });
  return { box: make("label", { class: "slider" }, make("span", {}, label), input, said), input };
}

/** A choice among named options: [value, name] pairs. */
function choice(label, options, change) {
  const input = make("select", { onchange: () => change(input.value) },
    ...options.map(([value, name]) => make("option", { value }, name)));
  return { box: make("label", { class: "choice" }, make("span", {}, label), input), input };
}

/** Buttons of which one is pressed: at first that of number `first`. */
function buttons(label, contents, change, first = 0) {
  const all = contents.map((content, i) => make("button", { type: "button", "aria-pressed": String(i === first),
    ...(content.label ? { "aria-label": content.label } : {}), onclick: () => press(i) },
    content.content ?? content));
  const press = (i) => {
    all.forEach((b, k) => b.setAttribute("aria-pressed", k === i));
    change(i);
  };
  return { box: make("div", { class: "buttons", role: "group", "aria-label": label }, ...all), press };
}

/** Draw pixels (C, H, W) from 0 to 1, or bytes, on a canvas of that size. */
function paint(canvas, x, [channels, height, width], scale = 255) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const picture = new ImageData(width, height), n = width * height;
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < 3; c++) picture.data[4 * i + c] = scale * x[(channels === 3 ? c : 0) * n + i];
    picture.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
  return canvas;
}

/** A bar for every class; `update(p, marked)` sets their lengths. */
function bars(classes) {
  const rows = classes.map((name) => {
    const bar = make("span", { class: "bar" }), value = make("span", { class: "number" });
    return { bar, value, row: make("div", { class: "chance" }, make("span", { class: "name" }, name),
      make("span", { class: "track" }, bar), value) };
  });
  const box = make("div", { class: "bars" }, ...rows.map((r) => r.row));
  return { box, update(p, marked) {
    const first = largest(p);
    rows.forEach(({ bar, value, row }, i) => {
      bar.style.width = `${100 * p[i]}%`;
      value.textContent = p[i].toFixed(2);
      row.className = `chance${i === first ? " first" : ""}${i === first && i !== marked ? " other" : ""}`;
    });
  } };
}

function softmax(logits) {
  const top = Math.max(...logits), e = Array.from(logits, (v) => Math.exp(v - top));
  const sum = e.reduce((a, b) => a + b, 0);
  return e.map((v) => v / sum);
}

/** NSATP's three measures of a softmax vector: Eqs. 1 to 3. */
function measures(p) {
  const sorted = [...p].sort((a, b) => b - a), n = p.length;
  let pd = 0, pv = 0, pe = 0;
  for (let i = 0; i < n; i++) {
    if (i < n - 1) pd += (sorted[i] - sorted[i + 1]) / (i + 1);
    pv += (p[i] - 1 / n) ** 2;
    if (p[i] > 0) pe -= p[i] * Math.log(p[i]);
  }
  return { pd, pv, pe };
}

const STEPS = {
  flatten: (layer, x) => x,
  relu(layer, x) {
    const out = new Float32Array(x.length);
    for (let i = 0; i < x.length; i++) if (x[i] > 0) out[i] = x[i];
    return out;
  },
  sigmoid: (layer, x) => x.map((v) => 1 / (1 + Math.exp(-v))),
  tanh: (layer, x) => x.map(Math.tanh),
  linear(layer, x) {
    const out = new Float32Array(layer.bias.length), n = x.length;
    for (let o = 0; o < out.length; o++) {
      let sum = layer.bias[o];
      for (let i = 0, k = o * n; i < n; i++, k++) sum += layer.weight[k] * x[i];
      out[o] = sum;
    }
    return out;
  },
  conv(layer, x) {
    const [c, h, w] = layer.from, [n, high, wide] = layer.to, [kh, kw] = layer.kernel;
    const [sy, sx] = layer.stride, [top, left] = layer.padding;
    const out = new Float32Array(n * high * wide);
    for (let o = 0, k = 0; o < n; o++) {
      out.fill(layer.bias[o], o * high * wide, (o + 1) * high * wide);
      for (let i = 0; i < c; i++) {
        for (let ky = 0; ky < kh; ky++) {
          for (let kx = 0; kx < kw; kx++, k++) {
            const v = layer.weight[k], from = Math.max(0, Math.ceil((left - kx) / sx));
            const to = Math.min(wide, Math.floor((w - 1 - kx + left) / sx) + 1);
            for (let y = 0; y < high; y++) {
              const row = y * sy + ky - top;
              if (row < 0 || row >= h) continue;
              const a = (o * high + y) * wide, b = (i * h + row) * w + kx - left;
              for (let q = from; q < to; q++) out[a + q] += v * x[b + q * sx];
            }
          }
        }
      }
    }
    return out;
  },
  max: (layer, x) => pool(layer, x, true),
  mean: (layer, x) => pool(layer, x, false),
};

function pool(layer, x, highest) {
  const [c, h, w] = layer.from, [, high, wide] = layer.to, [kh, kw] = layer.kernel;
  const [sy, sx] = layer.stride, [top, left] = layer.padding;
  const out = new Float32Array(c * high * wide);
  for (let i = 0, k = 0; i < c; i++) {
    for (let y = 0; y < high; y++) {
      for (let q = 0; q < wide; q++, k++) {
        let value = highest ? -Infinity : 0;
        for (let r = Math.max(0, y * sy - top); r < Math.min(h, y * sy - top + kh); r++)
          for (let s = Math.max(0, q * sx - left); s < Math.min(w, q * sx - left + kw); s++) {
            const v = x[(i * h + r) * w + s];
            if (!highest) value += v;
            else if (v > value) value = v;
          }
        out[k] = highest ? value : value / (kh * kw);
      }
    }
  }
  return out;
}

/** What `exported` of dnnbook.interactive.networks packed. */
class Network {
  constructor(data) {
    const weights = floats(data.weights);
    let at = 0;
    this.layers = data.layers.map((layer) => {
      const [weight, bias] = layer.held.map((n) => weights.subarray(at, (at += n)));
      return { ...layer, weight, bias };
    });
    this.shape = data.shape;
  }
  /** Logits of an image (C, H, W) in [0, 1]; `outputs`, if given, gets every layer's. */
  logits(x, outputs) {
    for (const layer of this.layers) {
      x = STEPS[layer.kind](layer, x);
      if (outputs) outputs.push(x);
    }
    return x;
  }
  probabilities(x) { return softmax(this.logits(x)); }
}
