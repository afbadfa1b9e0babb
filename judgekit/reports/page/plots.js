// Small plots of numbers between 0 and 1.

/** Returns a mean as a dot on its interval. */
function interval({ value, low, high, method }) {
  const x = (number) => 4 + 132 * number;
  const bounds = typeof low === "number" ? `, interval ${figure(low)} to ${figure(high)}${method ? ` (${method})` : ""}` : "";
  const made = svg("svg", { class: "interval", viewBox: "0 0 140 20", preserveAspectRatio: "xMinYMid", role: "img", "aria-label": `${figure(value)}${bounds}` });
  made.append(svg("title", {}, `${figure(value)}${bounds}`), svg("line", { class: "axis", x1: x(0), x2: x(1), y1: 10, y2: 10 }));
  for (const at of [0, 0.5, 1]) made.append(svg("line", { class: "axis", x1: x(at), x2: x(at), y1: 7, y2: 13 }));
  if (typeof low === "number") made.append(svg("line", { class: "whisker", x1: x(low), x2: x(high), y1: 10, y2: 10 }));
  if (typeof value === "number") made.append(svg("circle", { class: "dot", cx: x(Math.min(1, Math.max(0, value))), cy: 10, r: 3.5 }));
  return made;
}

/** Returns a difference as a dot on its interval, on an axis from -reach to reach. */
function difference({ difference: value, low, high, method }, reach) {
  const x = (number) => 70 + (66 * Math.min(reach, Math.max(-reach, number))) / reach;
  const bounds = typeof low === "number" ? `, interval ${signed(low)} to ${signed(high)}${method ? ` (${method})` : ""}` : "";
  const made = svg("svg", { class: "interval", viewBox: "0 0 140 20", preserveAspectRatio: "xMinYMid", role: "img", "aria-label": `${signed(value)}${bounds}` });
  made.append(svg("title", {}, `${signed(value)}${bounds}; the axis is from ${signed(-reach, 2)} to ${signed(reach, 2)}`));
  made.append(svg("line", { class: "axis", x1: 4, x2: 136, y1: 10, y2: 10 }), svg("line", { class: "axis", x1: 70, x2: 70, y1: 3, y2: 17 }));
  if (typeof low === "number") made.append(svg("line", { class: "whisker", x1: x(low), x2: x(high), y1: 10, y2: 10 }));
  if (typeof value === "number") made.append(svg("circle", { class: "dot", cx: x(value), cy: 10, r: 3.5 }));
  return made;
}

/** Returns a histogram of values by tenths, whose bars are links to their samples. */
function histogram(scorer, bins) {
  const most = Math.max(...bins, 1);
  const made = svg("svg", { class: "histogram", viewBox: "0 0 100 28", role: "group", "aria-label": `values of ${scorer}` });
  bins.forEach((times, bin) => {
    made.append(svg("rect", { class: "floor", x: bin * 10 + 0.5, y: 27, width: 9, height: 1 }));
    if (!times) return;
    const [from, to] = [bin / 10, (bin + 1) / 10];
    const said = `${plural(times, "sample")} from ${from.toFixed(1)} to ${to.toFixed(1)}`;
    const height = Math.max(2, (26 * times) / most);
    made.append(
      svg("a", { href: address(["samples"], { scorer, from: from.toFixed(1), to: to.toFixed(1), sort: `low:${scorer}` }), "aria-label": said },
        svg("title", {}, said),
        svg("rect", { class: "reach", x: bin * 10, y: 0, width: 10, height: 28 }),
        svg("rect", { class: "count", x: bin * 10 + 0.5, y: 27 - height, width: 9, height })),
    );
  });
  return made;
}

const TURNS = 40;

/** Returns the share of samples in which each turn passed, as bars by its number; those of fewer samples are paler. */
function turnShares(scorer, turns) {
  const shown = turns.slice(0, TURNS);
  const most = Math.max(...shown.map(([, , times]) => times));
  const said = shown.map(([turn, passed, times]) => `turn ${turn}: ${figure(passed / times, 2)} of ${plural(times, "sample")}`);
  const width = 12 * shown.length + 24;
  const made = svg("svg", { class: "turn-shares", viewBox: `0 0 ${width} 74`, preserveAspectRatio: "xMinYMid", role: "img", "aria-label": `${scorer}: ${said.join("; ")}` });
  for (const at of [0, 0.5, 1]) made.append(svg("line", { class: "axis", x1: 22, x2: width, y1: 58 - 54 * at, y2: 58 - 54 * at }), svg("text", { class: "tick", x: 18, y: 61 - 54 * at, "text-anchor": "end" }, `${at}`));
  shown.forEach(([turn, passed, times], at) => {
    const height = Math.max(1, (54 * passed) / times);
    made.append(svg("rect", { class: "count", x: 24 + 12 * at, y: 58 - height, width: 10, height, opacity: 0.4 + (0.6 * times) / most }, svg("title", {}, said[at])));
    if (turn === 1 || turn % 5 === 0) made.append(svg("text", { class: "tick", x: 29 + 12 * at, y: 70, "text-anchor": "middle" }, `${turn}`));
  });
  return made;
}

/** Returns estimates of one number below each other, each a dot on its interval; the last one is the result. */
function estimates(figures) {
  const x = (number) => 8 + 304 * Math.min(1, Math.max(0, number));
  const bottom = figures.length * 38 + 6;
  const said = figures.map((one) => `${one.name} ${figure(one.value)}${typeof one.low === "number" ? `, interval ${figure(one.low)} to ${figure(one.high)}` : ""}`);
  const made = svg("svg", { class: "estimates", viewBox: `0 0 320 ${bottom + 18}`, role: "img", "aria-label": said.join("; ") });
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    made.append(svg("line", { class: "axis", x1: x(at), x2: x(at), y1: 4, y2: bottom }), svg("text", { class: "tick", x: x(at), y: bottom + 13, "text-anchor": "middle" }, `${at}`));
  }
  figures.forEach((one, at) => {
    const y = at * 38 + 29;
    const kind = at === figures.length - 1 ? "last" : "first";
    const bounds = typeof one.low === "number" ? `  ${figure(one.low)} to ${figure(one.high)}` : "";
    made.append(svg("text", { class: "said", x: 8, y: y - 11 }, svg("tspan", {}, `${visible(one.name)}  `), svg("tspan", { class: "value" }, figure(one.value)), svg("tspan", {}, bounds)));
    if (typeof one.low === "number") made.append(svg("line", { class: `whisker ${kind}`, x1: x(one.low), x2: x(one.high), y1: y, y2: y }));
    if (typeof one.value === "number") made.append(svg("circle", { class: `dot ${kind}`, cx: x(one.value), cy: y, r: 4 }));
  });
  return made;
}
