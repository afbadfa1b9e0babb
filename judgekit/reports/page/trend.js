// The numbers of a scorer over the runs of the same recordings.

const HEIGHT = 200;

/** Returns the numbers as dots on their intervals, each a link to the comparison with the run before. */
function trendPlot(points) {
  const step = Math.max(48, Math.min(160, 1000 / points.length));
  const x = (at) => 32 + step * (at + 0.5);
  const y = (number) => 12 + HEIGHT * (1 - Math.min(1, Math.max(0, number)));
  const made = svg("svg", { class: "trend", viewBox: `0 0 ${x(points.length - 0.5) + 8} ${HEIGHT + 44}`, width: x(points.length - 0.5) + 8, height: HEIGHT + 44, role: "group", "aria-label": "Numbers by run" });
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    made.append(svg("line", { class: "axis", x1: 32, x2: x(points.length - 0.5), y1: y(at), y2: y(at) }), svg("text", { class: "tick", x: 26, y: y(at) + 4, "text-anchor": "end" }, `${at}`));
  }
  points.forEach((point, at) => {
    if (at && point.broken.length) made.append(svg("line", { class: "break", x1: x(at) - step / 2, x2: x(at) - step / 2, y1: y(1), y2: y(0) }));
    const before = points[at - 1];
    const best = bestOf(point);
    if (before && !point.broken.length && typeof best.value === "number" && typeof bestOf(before).value === "number") made.append(svg("line", { class: "course", x1: x(at - 1), x2: x(at), y1: y(bestOf(before).value), y2: y(best.value) }));
  });
  points.forEach((point, at) => {
    const best = bestOf(point);
    const before = points[at - 1];
    const bounds = typeof best.low === "number" ? `, interval ${figure(best.low)} to ${figure(best.high)}` : "";
    const title = `run ${point.run}: ${figure(best.value)}${bounds}${point.corrected ? ", corrected by human labels" : ""}${before ? `; compare with run ${before.run}` : ""}`;
    const link = svg("a", { href: before ? `/runs/${before.run}/compare/${point.run}` : `/runs/${point.run}`, "aria-label": title }, svg("title", {}, title), svg("rect", { class: "reach", x: x(at) - step / 2, y: 0, width: step, height: HEIGHT + 24 }));
    if (typeof best.low === "number") link.append(svg("line", { class: "whisker", x1: x(at), x2: x(at), y1: y(best.low), y2: y(best.high) }));
    if (typeof best.value === "number") link.append(svg("circle", { class: point.corrected ? "dot is-corrected" : "dot", cx: x(at), cy: y(best.value), r: 4.5 }));
    link.append(svg("text", { class: "tick", x: x(at), y: HEIGHT + 30, "text-anchor": "middle" }, `${point.run}`));
    made.append(link);
  });
  return made;
}

const bestOf = (point) => (point.corrected ? point.corrected : { value: point.mean, low: point.low, high: point.high });

function trendTable(points) {
  const row = (point, at) => {
    const best = bestOf(point);
    const before = points[at - 1];
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `/runs/${point.run}` }, `run ${point.run}`), point.name ? el("small", {}, recorded(point.name)) : null),
      cell("started", point.started.slice(0, 16).replace("T", " ")),
      cell("score", el("strong", { class: "number" }, figure(best.value)), point.corrected ? el("small", {}, "corrected; judge ", figure(point.mean)) : null),
      cell("interval", interval(best), typeof best.low === "number" ? el("small", {}, `${figure(best.low)} – ${figure(best.high)}`) : null),
      cell("n", count(point.n), point.failed ? el("small", {}, `${count(point.failed)} failed`) : null),
      cell("changed", point.broken.length ? el("ul", { class: "told" }, point.broken.map((text) => el("li", {}, recorded(text)))) : "–"),
      cell("compare", before ? el("a", { href: `/runs/${before.run}/compare/${point.run}` }, `with run ${before.run}`) : "–"));
  };
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Numbers by run" },
    el("table", { class: "lines runs" },
      el("thead", {}, el("tr", {}, ["run", "started", "score", "interval", "n", "changed", "compare"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, points.map(row).reverse())));
}

const cell = (name, ...children) => el("td", { "data-name": name, class: name === "changed" ? "words" : null }, children);

/** Returns why numbers of two runs may not be comparable. */
function changes(before, after) {
  const judges = [before, after].map((one) => one.judges.join(", ") || "none");
  return [
    judges[0] === judges[1] ? null : `the judge was ${judges[0]} and is ${judges[1]}`,
    judges[0] !== judges[1] || (before.scorer.signature !== null && before.scorer.signature === after.scorer.signature) ? null : "the scorer or its prompt has another signature",
    before.version === after.version ? null : `judgekit was ${before.version} and is ${after.version}`,
  ].filter(Boolean);
}

async function update() {
  const { run, scorer: name, runs, corrected_up_to: most } = await fetched(`${page}.json`);
  const points = runs.map((one) => ({ ...one, run: one.number, scorer: one.scorers.find((other) => other.name === name) })).filter((one) => typeof one.scorer?.n === "number");
  points.forEach((point, at) => Object.assign(point, { mean: point.scorer.mean, low: point.scorer.low, high: point.scorer.high, n: point.scorer.n, failed: point.scorer.failed, broken: at ? changes(points[at - 1], point) : [] }));
  document.querySelector("h1").replaceChildren("Trend of ", named(name));
  document.getElementById("lead").replaceChildren(
    `The newest runs of the recordings of run ${run} that have ended. A dashed line is where the scorer, its judge, its prompt or judgekit changed: numbers on its two sides may not be comparable. `,
    `Numbers corrected by human labels are shown for runs of up to ${count(most)} samples.`);
  document.getElementById("runs").replaceChildren(...(points.length
    ? [el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Plot" }, trendPlot(points)), trendTable(points)]
    : [el("p", {}, "No run with this scorer has ended.")]));
  document.documentElement.dataset.ready = "usable";
}

keepShown(update);
