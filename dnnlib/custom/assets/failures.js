// Failing inputs, group by group: an input, and what was made of it. Pictures come as they are seen.
const nearest = group => Math.min(...group.failures.map(failure => failure.l2));
const farthest = Math.max(0, ...data.groups.flatMap(group => group.failures.map(f => f.l2)));
const all = data.groups.flatMap(group => group.failures);

const ORDERS = {
  "nearest first": (a, b) => nearest(a) - nearest(b),
  "most failures first": (a, b) => b.failures.length - a.failures.length,
  "by name": (a, b) => a.path.localeCompare(b.path, "en", { numeric: true }),
};
const [byLabel, by] = choice("Inputs", Object.keys(ORDERS).map(name => [name, name]), arrange);
const [labelLabel, label] = choice("Class of the input",
  [["", "all"], ...counted(data.groups.map(group => group.label))], arrange);
const [classLabel, given] = choice("Taken for",
  [["", "all"], ...counted(all.map(failure => failure.predicted))], arrange);
const step = farthest / 100 || 1;
const bound = make("input", { type: "range", min: 0, max: 100, value: 100, on: { input: arrange } });
const told = make("output");
const state = make("p", { className: "state", role: "status" });
const list = make("div");
const wrong = data.wrong.length ? make("details", { className: "wrong" },
  make("summary", { textContent: `Wrong before any change: ${many(data.outcomes.misclassified, "image")}`
    + (data.wrong.length < data.outcomes.misclassified ? `, of which ${data.wrong.length} are shown` : "") }),
  ...data.wrong.map(({ path, label, predicted, image }) => make("figure", {},
    picture(image, path), make("figcaption", {}, make("b", { textContent: label }), " taken for ",
      make("b", { textContent: predicted }), ` ${path}`)))) : null;

document.body.append(make("article", {},
  make("header", {}, make("h1", { textContent: data.title }), byLabel, labelLabel, classLabel,
    make("label", {}, make("span", { textContent: "L2 at most" }), bound, told), theme(), state),
  make("main", {}, list, wrong)));

const watch = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    fill(target);
  }
}, { rootMargin: "600px" });
const within = new WeakMap();  // section -> the group, and those of its failures that are shown

function arrange() {
  const most = bound.value >= 100 ? Infinity : step * bound.value;
  told.textContent = short(step * bound.value);
  watch.disconnect();
  const sections = [];
  let failures = 0;
  for (const group of [...data.groups].sort(ORDERS[by.value])) {
    if (label.value && group.label !== label.value) continue;
    const fitting = group.failures.filter(failure => failure.l2 <= most
      && (!given.value || failure.predicted === given.value));
    if (!fitting.length) continue;
    failures += fitting.length;
    const section = make("section", { className: "group", ariaLabel: group.path, tabIndex: 0 });
    within.set(section, [group, fitting]);
    sections.push(section);
  }
  list.replaceChildren(...sections);
  for (const section of sections) watch.observe(section);
  const outcomes = Object.entries(data.outcomes).map(([name, n]) => `${n.toLocaleString("en")} ${name}`);
  state.textContent = `${many(failures, "failing input")} of ${many(sections.length, "input")} shown`
    + (all.length < data.total ? `, of the ${all.length.toLocaleString("en")} nearest of `
       + data.total.toLocaleString("en") : "") + `; all inputs: ${outcomes.join(", ")}`;
}

function player(base64, what) {
  return base64 ? make("audio", { controls: true, preload: "none", ariaLabel: what,
    src: `data:audio/wav;base64,${base64}` }) : null;
}

function fill(section) {
  const [group, failures] = within.get(section);
  section.append(
    make("figure", { className: "seed" }, picture(group.image, group.path),
      player(group.sound, "The input"),
      make("figcaption", {}, make("b", { textContent: group.label }), ` ${group.path}`)),
    ...failures.map(failure => make("figure", {},
      make("div", { className: "pair" }, picture(failure.image, `Taken for ${failure.predicted}`),
        picture(failure.change, "What changed, times ten")),
      player(failure.sound, "The example"),
      make("figcaption", {}, "taken for ", make("b", { textContent: failure.predicted }),
        `; L2 ${short(failure.l2)}, L∞ ${short(failure.linf)}, iteration ${failure.iteration}`))));
}

arrange();
