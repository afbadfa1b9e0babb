// The differences between two runs.

function compared(comparison) {
  const reach = Math.max(0.05, ...comparison.scorers.flatMap((one) => [one.difference, one.low, one.high, one.correction?.interval?.low, one.correction?.interval?.high].map((value) => Math.abs(value ?? 0))));
  const rows = comparison.scorers.map((one) => {
    const change = (kind, number) => leading(number, { scorer: one.scorer, change: kind, sort: `drop:${one.scorer}` });
    const audited = [report.head.a, report.head.b].some((run) => run.scorers.some((line) => line.name === one.scorer && line.corrected));
    const corrected = one.correction?.interval ? { ...one.correction, ...one.correction.interval } : null;
    const best = corrected ?? one;
    const note = () => (corrected ? el("small", {}, "corrected") : audited ? el("small", {}, "raw") : null);
    const alone = (...shown) => (corrected ? el("small", { class: "raw" }, shown) : null);
    const sure = ["better", "worse"].includes(one.verdict) ? one.verdict : "same";
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: address(["samples"], { scorer: one.scorer, change: "changed", sort: `drop:${one.scorer}` }) }, named(one.scorer)), el("small", { class: sure }, inWords(one.verdict)), alone("by the judge alone: ", inWords(one.verdict_by_scores))),
      cell("A", el("span", { class: "number" }, figure(best.a)), note(), alone("judge ", figure(one.a))),
      cell("B", el("span", { class: "number" }, figure(best.b)), note(), alone("judge ", figure(one.b))),
      cell("difference", el("strong", { class: `number ${sure}` }, arrow(sure === "same" ? 0 : best.difference), signed(best.difference)), note(), alone("judge ", signed(one.difference))),
      cell("interval", difference(best, reach), typeof best.low === "number" ? el("small", {}, `${signed(best.low)} to ${signed(best.high)}`) : null, alone("judge ", typeof one.low === "number" ? `${signed(one.low)} to ${signed(one.high)}` : "–")),
      cell("p (Holm)", el("span", { class: "number", title: `before Holm's correction ${chance(best.p)}` }, chance(best.p_holm)), el("small", {}, corrected ? corrected.method : one.test), alone("judge ", chance(one.p_holm))),
      cell("pairs", count(one.pairs)),
      cell("worse", change("worse", one.worse)),
      cell("better", change("better", one.better)),
      cell("left out", change("left out", one.excluded)),
      cell("detectable", typeof one.detectable === "number" ? `± ${figure(one.detectable)}` : "–"));
  });
  const heads = ["scorer", "A", "B", "difference", "interval", "p (Holm)", "pairs", "worse", "better", "left out", "detectable"];
  return section("What changed",
    el("p", { class: "lead" }, `${comparison.head}. A difference above 0 means that B is better; it is colored if p is below 0.05. With human labels, the corrected numbers lead; worse, better and detectable are by the judge alone. Left out: pairs without a value in one run or both; detectable: the smallest difference that these pairs would likely have shown.`),
    comparison.warnings.map((warning) => el("p", { class: "note" }, recorded(warning))),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Differences by scorer" },
      el("table", { class: "lines differences" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows))),
    el("ul", { class: "told" }, comparison.told.map((line) => el("li", {}, recorded(line)))),
    losses("New losses of tool calls where samples got worse", comparison.scorers, report.head.b, "new"),
    losses("Gone losses of tool calls where samples got better", comparison.scorers, report.head.a, "gone"));
}

const inWords = (verdict) => (verdict === "no evidence" ? "no evidence of a difference" : verdict);
const direction = (change) => (!change ? "same" : change > 0 ? "better" : "worse");
const arrow = (change) => el("span", { "aria-hidden": "true", class: "arrow" }, !change ? "" : change > 0 ? "▲ " : "▼ ");
