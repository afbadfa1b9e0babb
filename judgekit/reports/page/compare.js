// The differences between two runs.

function compared(comparison) {
  const reach = Math.max(0.05, ...comparison.scorers.flatMap((one) => [one.difference, one.low, one.high].map((value) => Math.abs(value ?? 0))));
  const rows = comparison.scorers.map((one) => {
    const change = (kind, number) => leading(number, { scorer: one.scorer, change: kind, sort: `drop:${one.scorer}` });
    const raw = [report.head.a, report.head.b].some((run) => run.scorers.some((line) => line.name === one.scorer && line.corrected)) ? el("small", {}, "raw") : null;
    const sure = ["better", "worse"].includes(one.verdict) ? one.verdict : "same";
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: address(["samples"], { scorer: one.scorer, change: "changed", sort: `drop:${one.scorer}` }) }, named(one.scorer)), el("small", { class: sure }, one.verdict === "no evidence" ? "no evidence of a difference" : one.verdict)),
      cell("A", el("span", { class: "number" }, figure(one.a)), raw?.cloneNode(true)),
      cell("B", el("span", { class: "number" }, figure(one.b)), raw),
      cell("difference", el("strong", { class: `number ${sure}` }, arrow(sure === "same" ? 0 : one.difference), signed(one.difference))),
      cell("interval", difference(one, reach), typeof one.low === "number" ? el("small", {}, `${signed(one.low)} to ${signed(one.high)}`) : null),
      cell("p (Holm)", el("span", { class: "number", title: `before Holm's correction ${chance(one.p)}` }, chance(one.p_holm)), el("small", {}, one.test)),
      cell("pairs", count(one.pairs)),
      cell("worse", change("worse", one.worse)),
      cell("better", change("better", one.better)),
      cell("left out", change("left out", one.excluded)),
      cell("detectable", typeof one.detectable === "number" ? `± ${figure(one.detectable)}` : "–"));
  });
  const heads = ["scorer", "A", "B", "difference", "interval", "p (Holm)", "pairs", "worse", "better", "left out", "detectable"];
  return section("What changed",
    el("p", { class: "lead" }, `${comparison.head}. A difference above 0 means that B is better; it is colored if p is below 0.05. Left out: pairs without a value in one run or both; detectable: the smallest difference that these pairs would likely have shown.`),
    comparison.warnings.map((warning) => el("p", { class: "note" }, recorded(warning))),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Differences by scorer" },
      el("table", { class: "lines differences" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows))),
    el("ul", { class: "told" }, comparison.told.map((line) => el("li", {}, recorded(line)))));
}

const direction = (change) => (!change ? "same" : change > 0 ? "better" : "worse");
const arrow = (change) => el("span", { "aria-hidden": "true", class: "arrow" }, !change ? "" : change > 0 ? "▲ " : "▼ ");
