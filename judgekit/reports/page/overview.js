// The overview: a line for each scorer, slices, and facts about the run.

function overview() {
  const { a, b, comparison, gates, notes } = report.head;
  return el("div", { class: "overview" },
    el("h1", { tabindex: -1 }, calledOf(b), a ? [" compared with ", calledOf(a, "run")] : null),
    el("p", { class: "lead" }, [plural(b.samples, "sample"), b.started.slice(0, 16), ...b.inputs.map((one) => recorded(one.path.split(/[\\/]/).pop()))].flatMap((one, at) => (at ? [" · ", one] : [one]))),
    a ? [aboutRun(a, "A: "), aboutRun(b, "B: ")] : aboutRun(b),
    comparison?.contradictions.map((line) => el("p", { class: "note" }, recorded(line))),
    report.head.is_first ? el("p", { class: "lead", role: "status" }, "Reasons, costs, slices and gates follow: all scores are being read.") : null,
    notes.map((note) => el("p", { class: "note" }, note)),
    gates.results.length ? section(gates.headline, el("ul", { class: "gates" }, gates.results.map(gateItem))) : null,
    a ? compared(comparison) : section("Scores", ofRun(b)),
    a ? section("Each run by itself", [a, b].map((run) => fold(`${run === a ? "A" : "B"}: run ${run.number}${run === a ? ", the baseline" : ""}`, () => ofRun(run), { class: "made-of" }))) : null,
    section(a ? "The two runs" : "The run", el("div", { class: "facts-beside" }, [a, b].filter(Boolean).map(facts))));
}

const AGENTS = 3;

/** Returns the number of a run with the name that people gave it. */
const calledOf = ({ number, name }, word = "Run") => [`${word} ${number}`, name ? [" ", recorded(name, { class: "run-name" })] : null];

/** Returns the agents that made the recordings of a run, its tags and its note; null if it has none. */
function aboutRun({ agents, tags, note }, side = "") {
  if (!agents.length && !tags.length && !note) return null;
  const shown = agents.slice(0, AGENTS).map(([agent, times]) => [recorded(agent), agents.length > 1 ? ` (${count(times)})` : null]);
  return el("p", { class: "about" }, side,
    agents.length ? [`${agents.length > 1 ? "agents" : "agent"} `, el("strong", { title: agents.map(([agent]) => visible(agent)).join(", ").slice(0, 2000) }, shown.flatMap((one, at) => (at ? [", ", one] : [one])), agents.length > AGENTS ? ` and ${count(agents.length - AGENTS)} more` : null), " "] : null,
    tags.map((tag) => [recorded(tag, { class: "chip" }), " "]),
    note ? recorded(note, { class: "quoted" }) : null);
}

const ofRun = (run) => [lines(run), turnPlots(run), losses("Losses of tool calls", run.scorers, run), slices(run)].flat(Infinity).filter(Boolean);

/** Returns the share of turns that passed by their number, for scorers that judge each turn. */
function turnPlots(run) {
  const judged = run.scorers.filter((line) => line.turns.length);
  if (!judged.length) return null;
  return el("section", {}, el("h3", {}, "Turns that passed, by number"), judged.map((line) => el("figure", { class: "turns-of" }, el("figcaption", {}, named(line.name)), turnShares(line.name, line.turns))));
}

/** Returns a gate with its result, as a word and a shape, so that its color adds no information. */
function gateItem({ text, met, explanation, sample }) {
  const link = sample !== null && report.b.places.has(sample) ? el("a", { href: address(["sample", `${sample}`]) }, "show the sample") : null;
  return el("li", { class: met ? "gate" : "gate unmet" },
    el("span", { class: "outcome" }, el("span", { "aria-hidden": "true" }, met ? "✓ " : "✕ "), met ? "met" : "not met"), " ",
    el("code", {}, recorded(text)), " ",
    el("p", { class: sample === null ? "found" : "found quoted" }, recorded(explanation), link && [" · ", link]));
}

const section = (title, ...children) => el("section", {}, el("h2", {}, title), children);

const cell = (name, ...children) => el("td", { "data-name": name }, children);

/** Returns a number as a link to what it counts. */
const leading = (number, filters) =>
  number && filters ? el("a", { href: address(["samples"], filters) }, count(number)) : number === null ? "…" : count(number);

function lines(run) {
  const own = run === report.head.b;
  const asked = run.scorers.some((line) => line.requests + line.cached > 0);
  const judged = run.scorers.some((line) => line.audited);
  const heads = ["scorer", "score", "interval", ...(judged ? ["audit"] : []), "n", "skipped", "failed", "abstained", ...run.columns.map((column) => column.name), "values", ...(asked ? ["requests", "cost"] : [])];
  const rows = run.scorers.map((line) => {
    const to = (filters) => (own ? { scorer: line.name, ...filters } : null);
    const best = line.corrected ?? line;
    const name = own ? el("a", { href: address(["samples"], to({ sort: `low:${line.name}` })) }, named(line.name)) : named(line.name);
    return el("tr", {},
      el("th", { scope: "row" }, name, line.kind === "mean" ? null : el("small", {}, line.kind), own ? report.links?.(line, run) : null),
      cell("score", el("strong", { class: "number" }, figure(best.value)), line.corrected ? [el("small", {}, "corrected"), el("small", { class: "raw" }, "raw ", el("span", { class: "number" }, figure(line.value)))] : null),
      cell("interval", interval(best), typeof best.low === "number" ? el("small", { title: best.method }, `${figure(best.low)} – ${figure(best.high)}`) : null),
      judged ? (line.audited ? cell("audit", audited(line, own)) : el("td", { class: "blank" }, "–")) : null,
      cell("n", `${count(line.counts.scored)} of ${line.about}${count(line.total)}`),
      ["skipped", "failed", "abstained"].map((status) =>
        cell(status, el("span", { class: line.counts[status] ? `badge ${status}` : "none" },
          line.counts[status] ? el("span", { "aria-hidden": "true" }, `${SHAPES[status]} `) : null, leading(line.counts[status], to({ status }))))),
      run.columns.map((column) => cell(column.name, recorded(column.cells[line.name] ?? "–"))),
      cell("values", histogram(line.name, line.histogram)),
      asked && !(line.requests + line.cached) ? [el("td", { class: "blank" }, "–"), el("td", { class: "blank" }, "–")] : null,
      line.requests + line.cached ? cell("requests", count(line.requests), line.cached ? el("small", {}, `${count(line.cached)} cached`) : null) : null,
      line.requests + line.cached ? cell("cost", dollars(line.cost), line.requests ? el("small", {}, line.tokens === null ? "tokens unknown" : plural(line.tokens, "token")) : null) : null);
  });
  const told = run.scorers.flatMap((line) => [
    ...line.told.map((text) => el("li", {}, recorded(line.name, { class: "of" }), " ", recorded(text))),
    ...line.unscored.map(([times, reason]) => el("li", {}, recorded(line.name, { class: "of" }), ` ${times}: `, recorded(reason, { class: "quoted" }))),
  ]);
  return [
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Scores of run ${run.number}${own ? "" : ", the baseline"}` },
      el("table", { class: "lines" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows))),
    told.length ? el("ul", { class: "told" }, told) : null,
  ];
}

/** Returns the losses of tool calls by scorer, with links to samples of the reported run. */
function losses(title, scorers, run, kind = "losses") {
  const rows = scorers.flatMap((line) => line[kind].shown.map((loss) =>
    el("tr", {},
      el("th", { scope: "row" }, recorded(loss.text), el("small", {}, named(line.name ?? line.scorer))),
      cell("samples", `${count(loss.count)} of ${count(loss.total)}`),
      cell("interval", interval(loss.share), el("small", {}, `${figure(loss.share.low)} – ${figure(loss.share.high)}`)),
      cell("examples", loss.samples.map(([number, id]) => (run === report.head.b && report.b.places.has(number) ? el("a", { href: address(["sample", `${number}`]) }, recorded(id)) : recorded(id))).flatMap((link, at) => (at ? [", ", link] : [link]))))));
  if (!rows.length) return null;
  const all = scorers.reduce((sum, line) => sum + line[kind].all, 0);
  return fold(`${title} (${all > rows.length ? `the most frequent of ${count(all)}` : count(all)})`, () => el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `${title} of run ${run.number}` },
    el("table", { class: "lines" },
      el("thead", {}, el("tr", {}, ["loss", "samples", "interval", "examples"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows))), { class: "made-of", open: kind === "new" });
}

/** Returns the audit status of a scorer's judge, with its age as of today, and a link to the findings. */
function audited({ name, audited: kept, audited_at: at }, own) {
  const found = own ? auditOf(name) : null;
  const days = Math.max(0, Math.floor((Date.now() - Date.parse(at)) / 86_400_000));
  const age = days ? plural(days, "day") : "less than a day";
  const said = at ? kept.replace(/^audited .*? ago/, `audited ${age} ago`) : found?.agreed || kept;
  const text = recorded(said, { class: said.startsWith("audited") ? "" : "unaudited" });
  return found ? el("a", { href: address(["audit", name]) }, text) : text;
}

/** Returns the numbers of parts of the samples, by domain and by each label. */
function slices(run) {
  if (!run.slices.length) return null;
  return el("section", {}, el("h3", {}, "Slices"),
    run.slices.map((slice, at) => fold(["by ", recorded(slice.name), ` (${count(slice.values.length)})`], () => sliceTable(run, slice), { class: "made-of", open: at === 0 && slice.values.length <= 10 })));
}

/** Returns whether a label belongs to a slice, whose name is the label as Python writes it. */
const isWritten = (label, value) => (typeof label === "number" ? label === Number(value) : typeof label === "boolean" ? `${label}` === value.toLowerCase() : label === value);

function sliceTable(run, { name, values }) {
  const own = run === report.head.b;
  const linked = (value) => {
    const pair = report.head.choices?.known.find(([key, label]) => key === name && isWritten(label, value));
    const labels = name === "domain" ? null : report.head.choices ? pair && { [name]: pair[1] } : (own ? report.b : report.a).list.labels.find((one) => one && Object.hasOwn(one, name) && isWritten(one[name], value));
    const filters = name === "domain" ? { domain: value } : labels && { label: JSON.stringify([name, labels[name]]) };
    const text = recorded(labels ? `${labels[name]}` : value);
    return own && filters ? el("a", { href: address(["samples"], filters) }, text) : text;
  };
  const rows = values.map(({ value, scores }) =>
    el("tr", {},
      el("th", { scope: "row" }, linked(value)),
      run.scorers.map((line) => {
        const one = scores[line.name];
        return cell(line.name, one ? el("span", { class: "in-line" }, el("span", { class: "number" }, figure(one.value)), interval(one), el("small", {}, `${count(one.n)} of ${count(one.total)}${one.few ? ", too few for an interval" : ""}`)) : "–");
      })));
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Scores by ${name} of run ${run.number}${run === report.head.b ? "" : ", the baseline"}` },
    el("table", { class: "slices" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, recorded(name)), run.scorers.map((line) => el("th", { scope: "col" }, recorded(line.name), line.corrected ? " (raw)" : null)))),
      el("tbody", {}, rows)));
}

function facts(run) {
  const fact = (name, ...value) => [el("dt", {}, name), el("dd", {}, value)];
  return el("dl", { class: "facts" },
    report.head.a ? fact("run", `${run.number}${run === report.head.b ? "" : ", the baseline"}`) : null,
    fact("started", run.started),
    fact("ended", run.ended ?? "not yet: it is running or was interrupted"),
    run.stopped ? fact("stopped", recorded(run.stopped)) : null,
    fact("samples", count(run.samples), run.listed < run.samples ? `, of which ${count(run.listed)} are in this file` : ""),
    run.usage ? fact("usage", recorded(run.usage)) : null,
    run.inputs.length ? fact("files", el("ul", {}, run.inputs.map((one) => el("li", {}, recorded(one.path), " ", el("code", { title: `SHA-256 ${one.sha256}` }, one.sha256.slice(0, 12)))))) : null,
    run.notes.length ? fact("notes", el("ul", {}, run.notes.map((note) => el("li", {}, recorded(note))))) : null,
    run.imported ? fact("labels", recorded(run.imported, { class: "quoted" })) : null,
    run.version ? fact("judgekit", run.version) : null,
    run.prices ? fact("prices", recorded(run.prices)) : null,
    fact("scorers", run.scorers.map((line) =>
      fold(recorded(line.name), () => [el("p", { class: "lead" }, "signature ", el("code", {}, line.signature ?? "none")), tree(line.identity)]))));
}
