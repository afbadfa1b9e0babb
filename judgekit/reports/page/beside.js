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
    const best = by?.correction?.interval ? { ...by.correction, verdict: by.verdict } : by;
    const sure = ["better", "worse"].includes(best?.verdict) ? best.verdict : "same";
    return cell(`run ${run.number}`,
      el("strong", { class: "number" }, figure(one.value)), interval(one),
      by ? el("small", { class: sure }, `${signed(best.difference)}${best.interval ? ` (${signed(best.interval.low)} to ${signed(best.interval.high)})` : ""}: ${by.verdict === "no evidence" ? "no evidence of a difference" : by.verdict}${best === by ? "" : ", corrected"}`) : el("small", {}, `n ${count(one.n)}`),
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

async function update() {
  const { runs, differs, scorers, samples, changed, notes } = await fetched(`/compare.json?${several}`);
  const heads = runs.map(({ number, name }) => [`run ${number}`, name ? el("small", {}, recorded(name)) : null]);
  document.getElementById("lead").replaceChildren(`Each run is compared with run ${runs[0].number} by itself: p is not adjusted for the number of runs.`);
  document.getElementById("runs").replaceChildren(...[
    notes.map((note) => el("p", { class: "note" }, recorded(note))),
    differs.length ? section("What differs between the runs", table("Facts that differ", ["fact", ...heads], differs.map(({ name, cells }) => el("tr", {}, el("th", { scope: "row" }, recorded(name)), cells.map((text, at) => cell(`run ${runs[at].number}`, recorded(text || "–"))))))) : null,
    section("Scores", table("Scores by run", ["scorer", ...heads], scorers.map((scorer) => scorerRow(scorer, runs)))),
    section("Samples that differ", changed > samples.length ? el("p", { class: "lead" }, `The ${count(samples.length)} that differ most.`) : null,
      samples.length ? table("Samples that differ", ["sample", "scorer", ...heads], samples.flatMap((sample) => sampleRow(sample, runs))) : el("p", {}, "No sample has another value.")),
  ].flat().filter(Boolean));
  document.documentElement.dataset.ready = "usable";
}

keepShown(update);
