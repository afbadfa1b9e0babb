// Several runs side by side: only what differs. The first is the baseline of the others.

const cell = (name, ...children) => el("td", { "data-name": name }, children);
const several = new URLSearchParams(location.search);

function table(label, heads, rows) {
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label },
    el("table", { class: "lines" }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)));
}

const section = (title, ...children) => el("section", {}, el("h2", {}, title), children);

function scorerRow({ name, results, differences }, runs) {
  return el("tr", {}, el("th", { scope: "row" }, named(name)), runs.map((run, at) => {
    const one = results[at];
    const by = at ? differences[at - 1] : null;
    if (!one) return cell(`run ${run.number}`, "–");
    const best = by?.correction?.interval ? { ...by.correction, ...by.correction.interval } : by;
    const sure = ["better", "worse"].includes(best?.verdict) ? best.verdict : "same";
    return cell(`run ${run.number}`,
      el("strong", { class: "number" }, figure(one.value)), interval(one),
      by ? el("small", { class: sure }, `${signed(best.difference)}${typeof best.low === "number" ? ` (${signed(best.low)} to ${signed(best.high)})` : ""}: ${by.verdict === "no evidence" ? "no evidence of a difference" : by.verdict}${best === by ? "" : ", corrected"}`) : el("small", {}, `n ${count(one.n)}`),
      by ? el("small", {}, el("a", { href: `/runs/${runs[0].number}/compare/${run.number}#/samples?scorer=${encodeURIComponent(name)}&change=changed` }, `${count(by.worse)} worse, ${count(by.better)} better`)) : null);
  }));
}

function sampleRow({ id, numbers, scores }, runs) {
  return Object.entries(scores).map(([scorer, values], line) =>
    el("tr", {},
      el("th", { scope: "row" }, line ? null : el("a", { href: `/runs/${runs[0].number}#/sample/${numbers[0]}` }, recorded(id || "(no id)"))),
      cell("scorer", named(scorer)),
      runs.map((run, at) => {
        const [first, own] = [values[0], values[at]];
        const by = typeof first === "number" && typeof own === "number" && Math.abs(own - first) > 1e-9 ? own - first : 0;
        const kind = by > 0 ? "better" : "worse";
        const shown = el("span", { class: "number" }, figure(own, 2));
        return cell(`run ${run.number}`, by
          ? el("a", { href: `/runs/${runs[0].number}/compare/${run.number}#/sample/${numbers[at]}/${encodeURIComponent(scorer)}`, class: kind }, shown, el("span", { "aria-hidden": "true" }, by > 0 ? " ▲" : " ▼"), el("span", { class: "unseen" }, kind))
          : shown);
      })));
}

/** Returns the facts in which the runs differ. */
function factsThatDiffer(runs) {
  const facts = {
    agent: (run) => run.agents.map(([agent]) => agent).join(", "),
    files: (run) => run.inputs.map(({ path }) => path).join(", "),
    "content of the files": (run) => run.inputs.map((one) => `${one.sha256 ?? one.etag}`.slice(0, 12)).join(", "),
    judgekit: (run) => run.version,
  };
  for (const name of new Set(runs.flatMap((run) => run.scorers.map((one) => one.name)))) {
    facts[`signature of ${name}`] = (run) => {
      const own = run.scorers.find((one) => one.name === name);
      return own ? (own.signature ?? "none").slice(0, 12) : "";
    };
  }
  const shown = Object.entries(facts).map(([name, of]) => ({ name, cells: runs.map(of) }));
  return shown.filter(({ cells }) => new Set(cells).size > 1);
}

async function update() {
  const { comparisons, differing } = await fetched(`/compare.json?${several}`);
  const runs = [comparisons[0].a, ...comparisons.map(({ b }) => b)];
  const names = runs[0].scorers.map((one) => one.name);
  const scorers = names.map((name) => ({ name, results: runs.map((run) => run.scorers.find((one) => one.name === name)), differences: comparisons.map(({ comparison }) => comparison.scorers.find((one) => one.scorer === name)) }));
  const { samples, total } = differing;
  const notes = new Set(comparisons.flatMap(({ a, b, comparison }) => comparison.warnings.map((line) => (line.startsWith("A: ") ? `run ${a.number}: ${line.slice(3)}` : `run ${b.number}: ${line.replace(/^B: /, "")}`))));
  const differs = factsThatDiffer(runs);
  const heads = () => runs.map(({ number, name }) => [`run ${number}`, name ? el("small", {}, recorded(name)) : null]);
  document.getElementById("lead").replaceChildren(`Each run is compared with run ${runs[0].number} by itself: p is not adjusted for the number of runs.`);
  document.getElementById("runs").replaceChildren(...[
    [...notes].map((note) => el("p", { class: "note" }, recorded(note))),
    differs.length ? section("What differs between the runs", table("Facts that differ", ["fact", ...heads()], differs.map(({ name, cells }) => el("tr", {}, el("th", { scope: "row" }, recorded(name)), cells.map((text, at) => cell(`run ${runs[at].number}`, recorded(text || "–"))))))) : null,
    section("Scores", table("Scores by run", ["scorer", ...heads()], scorers.map((scorer) => scorerRow(scorer, runs)))),
    section("Samples that differ", total > samples.length ? el("p", { class: "lead" }, `The ${count(samples.length)} of ${count(total)} that differ most.`) : null,
      samples.length ? table("Samples that differ", ["sample", "scorer", ...heads()], samples.flatMap((sample) => sampleRow(sample, runs))) : el("p", {}, "No sample has another value.")),
  ].flat().filter(Boolean));
  document.documentElement.dataset.ready = "usable";
}

keepShown(update);
