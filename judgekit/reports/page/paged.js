// The samples of a run or a comparison that `judgekit view` lists, a hundred at a time, as they come into sight or are searched.

const WINDOW = 100;

/** A run whose samples are read as they are wanted. The place of a sample is its number. */
class PagedSide extends Side {
  constructor(name, run) {
    super(name, run, { numbers: [], ids: [], domains: [], labels: [], scores: run.scorers.map(() => ({ status: [], value: [], label: [], first_bad: [] })) });
    this.places = { has: () => true };
  }

  get size() {
    return this.run.listed;
  }

  /** Takes over a sample of a list. */
  take({ number, rows }, preview = []) {
    const { sample_id: id = "", domain = null, labels = {} } = rows[0] ?? {};
    const scores = scoresIn(rows);
    Object.entries({ numbers: number, ids: id, domains: domain, labels }).forEach(([name, one]) => (this.list[name][number] = one));
    for (const [scorer, at] of this.scorers) {
      const { status, value = null, label = null, first_bad: bad = null } = scores[scorer] ?? {};
      const column = this.list.scores[at];
      column.status[number] = status ? STATUSES.indexOf(status) : "-";
      column.value[number] = value;
      column.label[number] = label;
      column.first_bad[number] = bad;
    }
    this.reasons[number] = [...this.scorers.keys()].map((scorer) => scores[scorer]?.reason ?? "");
    this.previews[number] = preview;
  }

  /** Reads what takes a pass over all scores, if the page was opened without it. */
  async readAll() {
    if (report.head.is_first) await refresh();
  }
}

/** Takes over a sample of a list, of both runs in a comparison. */
function takeSample(sample) {
  const { a = null, b = sample, preview } = report.a ? sample : {};
  if (a && b) report.pairs.set(b.number, a.number);
  if (b) report.b.take(b, sample.preview);
  if (a) report.a.take(a, b ? undefined : preview);
}

/** Returns the places of a sample, whose number is that in the run or, if only the baseline has it, -1 minus that in the baseline. */
const pagedPlaces = (number) => (number < 0 ? { a: -1 - number, b: null } : { a: report.pairs.get(number) ?? null, b: number });

const pagedKey = (number) => (number < 0 ? `a${-1 - number}` : `${number}`);

/** Returns the number of the sample that an address names; null if it names none. */
function pagedNumber(key) {
  if (!(report.a ? /^a?\d{1,9}$/ : /^\d{1,9}$/).test(key)) return null;
  return key.startsWith("a") ? -1 - Number(key.slice(1)) : Number(key);
}

let keptSample = { number: null };

/** Returns a complete sample, of the baseline and of the run. */
async function pagedSample(number) {
  if (keptSample.number !== number || keptSample.side !== report.b) keptSample = { number, side: report.b, sample: fetched(`${page}/samples/${pagedKey(number)}.json`) };
  const sample = await keptSample.sample;
  const { numbers } = (number < 0 ? report.a : report.b).list;
  if (numbers[number < 0 ? -1 - number : number] === undefined) takeSample(sample);
  return report.a ? [sample.a, sample.b] : [null, sample];
}

/** Returns the scores of rows by scorer. */
const scoresIn = (rows) => Object.fromEntries(rows.map(({ score, first_bad }) => [score.scorer, { ...score, first_bad }]));

/** Returns the head of a page from the entry of its run in the list of runs, which has no counts of statuses. */
function firstHead({ first, choices }) {
  const none = { low: null, high: null, method: "", kind: "mean", corrected: null, requests: 0, cached: 0, tokens: 0, cost: 0, told: [], unscored: [], audited: "", audited_at: null, losses: { all: 0, shown: [] }, turns: [], histogram: Array(10).fill(0) };
  const scorers = first.scorers.map((one) => ({
    ...none, ...one, value: one.mean, identity: null, about: first.about, total: first.samples, n: one.n ?? 0,
    counts: { scored: one.n ?? 0, skipped: null, failed: one.failed, abstained: null },
  }));
  const time = (text) => text && `${text.slice(0, 19).replace("T", " ")} UTC`;
  const run = { ...first, scorers, agents: (first.agents ?? []).map((agent) => [agent, first.samples]), started: time(first.started), ended: time(first.ended), stopped: first.why, listed: first.samples, inputs: first.files.map((path) => ({ path, sha256: "" })), notes: [], usage: "", imported: "", prices: "", slices: [], columns: [] };
  return { b: run, choices, gates: { headline: "", results: [] }, glossary: [], audit: null, failures: null, notes: [], is_first: true };
}

/** Finds the samples that pass the filters: those of the beginning, or around a sample; others when they come into sight. */
async function findPaged(filters, told, number) {
  const key = JSON.stringify(FILTERS.map((name) => filters[name] ?? ""));
  found.told = told;
  if (found.key !== key) {
    const numbers = [];
    Object.assign(found, { key, numbers, done: false, share: 0, wanted: new Set() });
    found.first = filters.q?.trim() ? search(filters, numbers) : load(filters, numbers, number === undefined ? { start: 0 } : { number: pagedKey(number) });
  }
  await found.first;
  found.told();
}

const listed = (filters, more) => fetched(`${page}/samples.json?${new URLSearchParams([...FILTERS.filter((name) => filters[name]).map((name) => [name, filters[name]]), ...Object.entries(more)])}`);

async function load(filters, numbers, more) {
  const { samples, start, total } = await listed(filters, more);
  if (found.numbers !== numbers) return;
  numbers.length = total;
  found.wanted.add(start);
  samples.forEach((sample, at) => {
    takeSample(sample);
    numbers[start + at] = sample.number;
  });
  found.done = true;
}

/** Searches the texts of all samples in steps. */
async function search(filters, numbers) {
  await new Promise((resolve) => setTimeout(resolve, 150));
  for (let start = 0; start !== null && found.numbers === numbers; ) {
    const { samples, next, total } = await listed(filters, { start });
    if (found.numbers !== numbers) return;
    for (const sample of samples) {
      takeSample(sample);
      numbers.push(sample.number);
    }
    found.share = next === null ? 1 : next / total;
    found.done = next === null;
    start = next;
    found.told();
  }
}

/** Reads the samples around a place of the list. */
function want(at) {
  const start = Math.floor(at / WINDOW) * WINDOW;
  const { numbers, wanted } = found;
  if (at < 0 || at >= numbers.length || wanted.has(start)) return;
  wanted.add(start);
  load(here().filters, numbers, { start }).then(() => found.told(), () => wanted.delete(start));
}

/** Returns the links below a scorer: to its numbers over runs, and to its label queue. */
report.links = (line, run) => {
  const link = (kind, text) => el("a", { href: `/runs/${run.number}/${kind}/${encodeURIComponent(line.name)}`, "aria-label": `${text}: ${visible(line.name)}` }, text);
  const shown = [run.inputs.length ? link("trend", "trend") : null, line.audited ? link("label", "label") : null].filter(Boolean);
  return shown.length ? el("small", {}, shown.flatMap((one, at) => (at ? [" · ", one] : [one]))) : null;
};

/** Returns the scores of a sample in runs of the same recordings, oldest first; null if there is one run. */
report.history = ({ history: runs, number: own }) => {
  if (runs.length < 2) return null;
  const history = runs.map((one) => ({ ...one, scores: scoresIn(one.rows) }));
  const names = [...new Set(history.flatMap(({ scores }) => Object.keys(scores)))];
  const shown = (score, before) => {
    if (!score) return el("span", { class: "nothing" }, "–");
    const by = typeof score.value === "number" && typeof before?.value === "number" ? gain(before.value, score.value) : 0;
    return [el("span", { class: "in-line" }, oneValue(score)), by ? el("small", { class: direction(by) }, " ", arrow(by), signed(by, 2)) : null, score.label ? el("small", {}, recorded(score.label)) : null];
  };
  const row = ({ run, name, sample, scores }, at) => {
    const before = history[at - 1];
    return el("tr", { "aria-current": run === report.b.run.number && sample === own ? "true" : null },
      el("th", { scope: "row" }, el("a", { href: `/runs/${run}#/sample/${sample}` }, `run ${run}`), name ? el("small", {}, recorded(name)) : null),
      names.map((scorer) => cell(scorer, shown(scores[scorer], before?.scores[scorer]))),
      el("td", {}, before ? el("a", { href: `/runs/${before.run}/compare/${run}#/sample/${sample}` }, `with run ${before.run}`) : ""));
  };
  return el("section", { class: "history" }, el("h2", {}, "Earlier and later runs"),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Scores of this sample over runs" },
      el("table", { class: "lines" },
        el("thead", {}, el("tr", {}, ["run", ...names].map((head) => el("th", { scope: "col" }, named(head))), el("th", { scope: "col" }, "compare"))),
        el("tbody", {}, history.map(row)))));
};
