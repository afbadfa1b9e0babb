// The list of samples: filters, order, and the visible rows.

const found = { key: null, numbers: [], done: true };
const scrolled = new Map();

/** Returns the label in an address: [label] for one of a score, [name, label] for one of a sample. */
function pairOf(text) {
  try {
    return [JSON.parse(text)].flat();
  } catch {
    return [text];
  }
}

/** Returns the test of values that a filter such as "<0.5" describes; null if it describes none. */
function valueTest(text) {
  const [, sign, number] = text.match(/^\s*(<=|>=|!=|<|>|=|)\s*(\d*\.?\d+)\s*$/) ?? [];
  if (number === undefined) return null;
  const bound = Number(number);
  const close = (value) => Math.abs(value - bound) < 1e-9;
  const holds = { "<": (value) => value < bound && !close(value), ">": (value) => value > bound && !close(value), "<=": (value) => value < bound || close(value), ">=": (value) => value > bound || close(value), "!=": (value) => !close(value) };
  return holds[sign] ?? close;
}

/** Returns the samples that pass all filters except the text, in order. */
function chosen(filters) {
  const { scorer, status, domain, change, sort = "" } = filters;
  const scorers = scorer ? [scorer] : report.scorers;
  const label = filters.label ? pairOf(filters.label) : null;
  const from = filters.from ? Number(filters.from) : null;
  const to = filters.to ? Number(filters.to) : null;
  const value = filters.value ? valueTest(filters.value) : null;
  const some = (number, holds) => {
    const side = placesOf(number).b === null ? "a" : "b";
    return scorers.some((name) => holds(scoreOf(number, name, side)));
  };
  const keeps = (number) => {
    if (domain && entry(number).domain !== domain) return false;
    if (status === "not scored" && !some(number, (score) => score && score.status !== "scored")) return false;
    if (status && status !== "not scored" && !some(number, (score) => score?.status === status)) return false;
    if (label?.length === 1 && !some(number, (score) => score?.label === label[0])) return false;
    if (label?.length === 2 && entry(number).labels[label[0]] !== label[1]) return false;
    if (value && !some(number, (score) => typeof score?.value === "number" && value(score.value))) return false;
    if (from !== null || to !== null) {
      const fits = (value) => typeof value === "number" && value >= from && (value < to || (to >= 1 && value <= 1));
      if (!scorers.some((name) => fits(scoreOf(number, name, "b")?.value))) return false;
    }
    if (change === "one side") return report.samples[number].a === null || report.samples[number].b === null;
    if (change === "left out") {
      const both = report.samples[number].a !== null && report.samples[number].b !== null;
      return both && scorers.some((name) => sides().every((side) => side.scorers.has(name)) && changeOf(number, name) === null);
    }
    if (change) {
      return scorers.some((name) => {
        const by = changeOf(number, name);
        return by !== null && (change === "worse" ? by < 0 : change === "better" ? by > 0 : by !== 0);
      });
    }
    return true;
  };
  const numbers = report.samples.map((_, number) => number).filter(keeps);
  const [order, ...rest] = sort.split(":");
  const by = rest.join(":");
  const sign = order === "high" || order === "rise" ? -1 : 1;
  const keys = { low: (n) => scoreOf(n, by, "b")?.value, drop: (n) => changeOf(n, by) };
  keys.high = keys.low;
  keys.rise = keys.drop;
  if (order === "id") {
    const ids = new Map(numbers.map((number) => [number, entry(number).id]));
    const collator = new Intl.Collator("en", { numeric: true });
    numbers.sort((one, other) => collator.compare(ids.get(one), ids.get(other)));
  } else if (keys[order]) {
    const values = new Map(numbers.map((number) => [number, keys[order](number) ?? null]));
    numbers.sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one - other;
      return sign * (a - b) || one - other;
    });
  }
  return numbers;
}

/** Returns whether a sample contains a text; unknown until the sample is read. */
function says(number, text) {
  const sample = report.samples[number];
  const { id } = entry(number);
  if (id.toLowerCase().includes(text)) return true;
  return sides().some((side) => sample[side.name] !== null && side.texts[sample[side.name]]?.includes(text));
}

/** Finds the samples that pass the filters. A long search runs in steps, and calls `told` after each. */
async function find(filters, told, sample) {
  if (report.head.choices) return findPaged(filters, told, sample);
  const key = JSON.stringify(FILTERS.map((name) => filters[name] ?? ""));
  const text = (filters.q ?? "").toLowerCase().trim();
  const read = sides().reduce((sum, side) => sum + side.read, 0);
  const mine = { key, read };
  if (found.key === key && (found.read === read || !text) && found.done) return told();
  Object.assign(found, { key, read, mine, done: false });
  const numbers = chosen(filters);
  if (!text) {
    Object.assign(found, { numbers, done: true });
    return told();
  }
  const hits = [];
  let since = performance.now();
  for (const number of numbers) {
    if (says(number, text)) hits.push(number);
    if (performance.now() - since > 30) {
      if (found.numbers.length <= hits.length || hits.length > 50) {
        found.numbers = [...hits];
        told();
      }
      await pause();
      if (found.mine !== mine) return;
      since = performance.now();
    }
  }
  Object.assign(found, { numbers: hits, done: true });
  told();
}

/** Returns the options of each filter. */
function choices() {
  if (report.head.choices) return { ...report.head.choices, domains: report.head.choices.domains.length > 1 ? report.head.choices.domains : [] };
  const domains = new Set();
  const given = new Map();
  for (const [number] of report.samples.entries()) {
    const { domain, labels } = entry(number);
    if (domain !== null) domains.add(domain);
    for (const pair of Object.entries(labels)) {
      const key = JSON.stringify(pair);
      given.set(key, (given.get(key) ?? 0) + 1);
    }
  }
  const verdicts = new Set(sides().flatMap((side) => side.list.scores.flatMap((column) => [...new Set(column.label)])));
  verdicts.delete(null);
  const frequent = [...given].sort((one, other) => other[1] - one[1]).slice(0, 100);
  return {
    domains: domains.size > 1 ? [...domains].sort() : [],
    verdicts: [...verdicts].sort().slice(0, 200),
    known: frequent.map(([key]) => JSON.parse(key)),
  };
}

function samplesView() {
  const { filters } = here();
  report.choices ??= choices();
  const { domains, verdicts, known } = report.choices;
  const change = (name) => (event) => go(["samples"], { ...here().filters, [name]: event.target.value });
  const option = (value, text, now) => el("option", { value, selected: value === (now ?? "") }, visible(text));
  const select = (name, title, options) =>
    el("label", { class: "filter" }, el("span", {}, title), el("select", { name, onchange: change(name) }, options));
  const orders = (name) => [
    option(`low:${name}`, `${name}, lowest first`, filters.sort),
    option(`high:${name}`, `${name}, highest first`, filters.sort),
    report.a ? option(`drop:${name}`, `${name}, greatest loss first`, filters.sort) : null,
    report.a ? option(`rise:${name}`, `${name}, greatest gain first`, filters.sort) : null,
  ];
  const search = el("input", {
    type: "search", name: "q", id: "search", autocomplete: "off", spellcheck: "false", value: filters.q ?? "",
    placeholder: "id, reason or conversation",
    oninput: (event) => { refine({ ...here().filters, q: event.target.value }); list.update(); },
  });
  const controls = el("form", { class: "filters", role: "search", "aria-label": "Filter samples", onsubmit: (event) => event.preventDefault() },
    el("label", { class: "filter text" }, el("span", {}, "text ", el("kbd", {}, "/")), search),
    select("scorer", "scorer", [option("", "all scorers", filters.scorer), report.scorers.map((name) => option(name, name, filters.scorer))]),
    select("status", "status", ["", ...STATUSES, "not scored"].map((status) => option(status, status || "any", filters.status))),
    verdicts.length || known.length ? select("label", "label", [
      option("", "any", filters.label),
      verdicts.length ? el("optgroup", { label: "of the score" }, verdicts.map((label) => option(JSON.stringify([label]), label, filters.label))) : null,
      known.length ? el("optgroup", { label: "of the sample" }, known.map((pair) => option(JSON.stringify(pair), `${pair[0]}: ${pair[1]}`, filters.label))) : null,
    ]) : null,
    el("label", { class: "filter" }, el("span", {}, "value"),
      el("input", { name: "value", list: "values", autocomplete: "off", value: filters.value ?? "", placeholder: "such as <0.5", "aria-invalid": filters.value && !valueTest(filters.value) ? "true" : null, onchange: change("value") }),
      el("datalist", { id: "values" }, ["<1", "<0.5", "0", "1", ">=0.5"].map((text) => el("option", { value: text })))),
    domains.length ? select("domain", "domain", [option("", "any", filters.domain), domains.map((domain) => option(domain, domain, filters.domain))]) : null,
    report.a ? select("change", "change", [["", "any"], ["changed", "changed"], ["worse", "worse"], ["better", "better"], ["left out", "left out of the comparison"], ["one side", "in one run only"]].map(([value, text]) => option(value, text, filters.change))) : null,
    select("sort", "order", [
      option("", "as recorded", filters.sort), option("id", "by id", filters.sort),
      (filters.scorer ? [filters.scorer] : report.scorers).map(orders),
    ]),
    filters.from ? el("a", { class: "chip", href: address(["samples"], { ...filters, from: "", to: "" }) }, `values ${filters.from} to ${filters.to} `, el("span", { "aria-hidden": "true" }, "✕"), el("span", { class: "unseen" }, " remove")) : null,
    FILTERS.some((name) => filters[name]) ? el("a", { class: "chip", href: "#/samples" }, "clear all") : null);
  const list = new SampleList();
  const view = el("div", { class: "samples" }, el("h1", { tabindex: -1 }, "Samples"), controls, list.status, list.element);
  view.list = list;
  return view;
}

/** The rows of the samples that were found. Only those in sight are in the page. */
class SampleList {
  constructor() {
    this.status = el("p", { class: "status", role: "status" });
    this.rows = el("ol", { class: "rows" });
    this.none = el("p", { class: "none-found" });
    this.element = el("div", { class: "list wide", tabindex: 0, role: "region", "aria-label": "Samples" });
    this.seen = new Map();
    this.at = -1;
    this.scroll = 0;
    this.onresize = () => {
      this.height = null;
      this.draw();
    };
    this.onscroll = () => {
      this.scroll = scrollY;
      this.draw();
    };
  }

  start() {
    this.update();
    addEventListener("scroll", this.onscroll, { passive: true });
    addEventListener("resize", this.onresize);
  }

  stop() {
    removeEventListener("scroll", this.onscroll);
    removeEventListener("resize", this.onresize);
    scrolled.set(address(["samples"], this.filters), this.scroll);
  }

  update() {
    const { filters } = here();
    find(filters, () => this.show(filters));
  }

  /** Updates the list after more texts were read: there may be more samples, and reasons for the rows in sight. */
  progress() {
    const now = performance.now();
    if (here().filters.q && (now - (this.asked ?? 0) > 300 || sides().every((side) => side.read === side.size))) {
      this.asked = now;
      this.update();
    }
    for (const cell of this.rows.querySelectorAll("[data-waits]")) this.explain(cell);
  }

  show(filters) {
    const share = report.head.choices ? found.share : sides().reduce((sum, side) => sum + side.read, 0) / sides().reduce((sum, side) => sum + side.size, 0);
    const still = filters.q && (share < 1 || !found.done) ? `; ${Math.floor(100 * share)}% of the texts searched so far` : "";
    const ignored = filters.value && !valueTest(filters.value) ? `; the value ${visible(filters.value)} is no number such as 0.5, <0.5 or >=0.5, so it filters nothing` : "";
    this.status.textContent = `${count(found.numbers.length)} of ${plural(size(), "sample")}${still}${ignored}`;
    const looks = JSON.stringify({ ...filters, q: "" });
    if (this.looks !== looks) {
      this.looks = looks;
      this.filters = filters;
      this.scorer = filters.scorer ?? (report.scorers.length === 1 ? report.scorers[0] : null);
      this.columns = this.scorer ? [this.scorer] : report.scorers;
      this.labels = !report.a && this.scorer && (report.head.choices ? report.head.choices.labeled.includes(this.scorer) : report.b.list.scores[report.b.scorers.get(this.scorer)]?.label.some((label) => label !== null));
      this.turns = !report.a && this.scorer && report.head.b.scorers.some((one) => one.name === this.scorer && one.per_turn);
      const domain = report.choices.domains.length ? "minmax(5rem, 8rem) " : "";
      this.element.className = `list wide ${this.scorer ? "of-one" : "of-all"}${this.scorer && report.a ? " of-two" : ""}`;
      const width = report.a ? "8.5rem" : "5.5rem";
      const reasons = report.a ? "minmax(0, 3fr) minmax(0, 3fr)" : `${this.turns ? "minmax(5rem, 7rem) " : ""}${this.labels ? "minmax(0, 9rem) " : ""}minmax(0, 4fr)`;
      const rest = this.scorer ? `minmax(${width}, 9rem) ${reasons}` : `repeat(${this.columns.length}, minmax(${width}, 9rem))`;
      this.element.style.setProperty("--lines", this.columns.length);
      this.element.style.setProperty("--least", `${(this.scorer ? 32 : 14) + (domain ? 6 : 0) + this.columns.length * (report.a ? 9.5 : 6.5)}rem`);
      this.element.style.setProperty("--columns", `3.75rem minmax(9rem, 2fr) ${domain}${rest}`);
      this.clear();
      this.element.replaceChildren(this.head(filters), this.rows, this.none);
    }
    this.filters = filters;
    this.numbers = found.numbers;
    this.none.textContent = this.numbers.length ? "" : still ? "None so far." : "No sample matches these filters.";
    this.draw();
  }

  drop(at, row) {
    row.element.remove();
    this.seen.delete(at);
  }

  clear() {
    for (const [at, row] of this.seen) this.drop(at, row);
  }

  head(filters) {
    const sorted = (name, orders) => {
      const at = orders.indexOf(filters.sort ?? "");
      const next = { ...filters, sort: orders[(at + 1) % orders.length] };
      const mark = at < 0 || !filters.sort ? "" : at === 1 ? " ↑" : " ↓";
      return el("a", { class: "cell", href: address(["samples"], next), title: `${name}: change the order` }, named(name), mark);
    };
    return el("div", { class: "row heads" },
      el("span", { class: "cell" }, "#"), sorted("id", ["", "id"]),
      report.choices.domains.length ? el("span", { class: "cell domain" }, "domain") : null,
      this.columns.map((name) => sorted(name, ["", `low:${name}`, `high:${name}`])),
      this.scorer ? (report.a ? ["reason in A", "reason in B"] : [...(this.turns ? ["first bad turn"] : []), ...(this.labels ? ["label"] : []), "reason"]).map((head) => el("span", { class: "cell" }, head)) : null);
  }

  draw() {
    if (!this.numbers) return;
    const height = (this.height ??= this.measured());
    const top = this.rows.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - 8);
    const last = Math.min(this.numbers.length, Math.ceil((innerHeight - top) / height) + 8);
    for (const [at, row] of this.seen) {
      if (at < first || at >= last) this.drop(at, row);
    }
    let next = null;
    for (let at = last - 1; at >= first; at--) {
      const before = this.seen.get(at);
      let row = before;
      if (before?.number !== this.numbers[at] || !before) {
        row = { number: this.numbers[at], element: this.row(at) };
        this.seen.set(at, row);
        if (before) before.element.replaceWith(row.element);
        else this.rows.insertBefore(row.element, next);
      }
      next = row.element;
    }
    this.rows.style.paddingTop = `${first * height}px`;
    this.rows.style.paddingBottom = `${Math.max(0, this.numbers.length - last) * height}px`;
  }

  measured() {
    const probe = el("li", { class: "row" }, "0");
    this.rows.append(probe);
    const { height } = probe.getBoundingClientRect();
    probe.remove();
    return height || 36;
  }

  row(at) {
    const number = this.numbers[at];
    if (number === undefined) {
      want(at);
      return el("li", { class: "row" }, el("span", { class: "cell" }, "…"));
    }
    const { key, id, domain } = entry(number);
    const link = el("a", { class: "cell id", href: address(["sample", key, ...(this.filters.scorer ? [this.filters.scorer] : [])], this.filters) }, recorded(id || "(no id)"));
    const cells = this.columns.map((name) => el("span", { class: `cell value${report.a ? " both" : ""}`, title: name }, el("span", { class: "scorer-name" }, visible(name), " "), report.a ? bothValues(number, name) : oneValue(scoreOf(number, name, "b"))));
    const row = el("li", { class: "row", "aria-setsize": this.numbers.length, "aria-posinset": at + 1 },
      el("span", { class: "cell place" }, key), link,
      report.choices.domains.length ? el("span", { class: "cell domain" }, recorded(domain ?? "")) : null, cells);
    if (this.scorer) {
      if (this.turns) row.append(el("span", { class: "cell first-bad", "data-name": "first bad turn" }, `${scoreOf(number, this.scorer, "b")?.bad ?? "–"}`));
      if (this.labels) row.append(el("span", { class: "cell label" }, recorded(scoreOf(number, this.scorer, "b")?.label ?? "")));
      for (const side of sides()) {
        const reason = el("span", { class: "cell reason", dir: "auto", "data-waits": number, "data-side": side.name });
        this.explain(reason);
        row.append(reason);
      }
    }
    const preview = el("span", { class: "preview-of", "data-waits": number, "data-side": placesOf(number).b === null ? "a" : "b" });
    this.explain(preview);
    row.append(preview);
    return row;
  }

  /** Fills in the reason or the preview of a row, if it has been read. */
  explain(cell) {
    const side = report[cell.dataset.side];
    const place = placesOf(Number(cell.dataset.waits))[side.name];
    if (place !== null && !side.previews[place]) return;
    if (cell.className === "preview-of") {
      cell.append(...(side.previews[place] ?? []).map((text, at) => el("span", { class: at ? "answer" : "question" }, el("span", { class: "kind" }, at ? "agent " : "user "), recorded(text || "–"))));
    } else cell.textContent = visible(side.reasons[place]?.[side.scorers.get(this.scorer)]?.slice(0, 300) ?? "");
    cell.removeAttribute("data-waits");
  }

  /** Moves the focus by a number of rows. */
  step(by) {
    if (!this.numbers.length) return;
    const focused = [...this.seen].find(([, row]) => row.element.contains(document.activeElement));
    this.at = Math.min(this.numbers.length - 1, Math.max(0, (focused ? focused[0] : this.at) + by));
    const top = this.rows.getBoundingClientRect().top + scrollY + this.at * this.height;
    if (top < scrollY + 120) scrollTo(0, top - 120);
    else if (top + this.height > scrollY + innerHeight) scrollTo(0, top + this.height - innerHeight + 8);
    this.draw();
    this.seen.get(this.at)?.element.querySelector("a")?.focus({ preventScroll: true });
  }
}

function oneValue(score) {
  if (!score) return badge("missing", "none");
  if (score.status !== "scored") return badge(score.status);
  return [el("span", { class: `number ${levelOf(score)}` }, figure(score.value, 2)), barOf(score)];
}

function bothValues(number, name) {
  const [a, b] = ["a", "b"].map((side) => scoreOf(number, name, side));
  const change = changeOf(number, name);
  const side = (score) => (!score ? badge("missing", "none") : score.status === "scored" ? el("span", { class: `number ${levelOf(score)}` }, figure(score.value, 2)) : badge(score.status));
  if (change === 0 || (a && b && change === null && a.status === b.status)) return [side(b), el("span", { class: "same" }, " =")];
  return [side(a), el("span", { class: `to ${direction(change)}` }, change === null ? " → " : change > 0 ? " ▲ " : " ▼ "), side(b)];
}
