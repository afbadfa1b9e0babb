// The findings of an audit on each judge: its agreement with people, its corrected mean, and the disagreements.

const DIFFERENCES = 20;

const auditOf = (scorer) => report.head.audit?.scorers.find((one) => one.name === scorer);

function auditView(scorer) {
  const { audit, b } = report.head;
  return el("div", { class: "audit" },
    el("h1", { tabindex: -1 }, "Audit"),
    el("p", { class: "lead" }, `Run ${b.number}: the judges compared with human labels`, audit.sources.map((one, at) => [at ? ", " : ", from ", recorded(one)])),
    audit.left_out.map((line) => el("p", { class: "note" }, recorded(line))),
    audit.scorers.length ? null : el("p", { class: "nothing" }, "The run has no scorer that asks a judge."),
    chosenFirst(audit.scorers.map((one) => one.name), scorer).map((name) => findings(auditOf(name))));
}

function findings(found) {
  const { name, head, use, parts, confusion, disagreements } = found;
  const cards = parts.filter((part) => part.name !== "labels").map(card);
  if (Object.keys(confusion).length) cards.splice(2, 0, confusionCard(confusion));
  return el("section", { class: "findings" },
    el("h2", {}, el("a", { href: address(["samples"], { scorer: name, sort: `low:${name}` }) }, named(name))),
    el("p", { class: "headline" }, recorded(head)),
    el("p", { class: "use" }, recorded(use)),
    parts.filter((part) => part.name === "labels").map((part) => part.told.map((line) => el("p", { class: "lead" }, recorded(line)))),
    el("div", { class: "cards" }, cards),
    disagreements.length ? differencesOf(found) : null);
}

function card({ name, figures, told, refused }) {
  const shown = figures.filter((one) => one.value !== null);
  return el("section", { class: "card" },
    el("h3", {}, name),
    name === "mean" && shown.length ? estimates(shown) : figures.length ? figuresTable(name, figures) : null,
    refused ? el("p", { class: "note" }, recorded(refused)) : null,
    told.map((line) => el("p", {}, recorded(line))),
    name === "mean" ? el("p", { class: "lead" }, figures.filter((one) => one.method).map((one, at) => [at ? "; " : "95 % interval by ", recorded(one.method), " (", recorded(one.name), ")"])) : null);
}

/** Returns figures with their intervals; the axis of all goes below 0 if one of them does. */
function figuresTable(name, figures) {
  const below = figures.some((one) => Math.min(one.value ?? 0, one.low ?? 0) < 0);
  const plot = (one) => (below ? difference({ ...one, difference: one.value }, 1) : interval(one));
  const rows = figures.map((one) =>
    el("tr", {},
      el("th", { scope: "row" }, recorded(one.name)),
      el("td", { class: "number" }, one.value === null ? "undefined" : figure(one.value)),
      el("td", {}, plot(one), typeof one.low === "number" ? el("small", { title: one.method }, `${figure(one.low)} to ${figure(one.high)}`) : null)));
  const heads = ["figure", "value", "95 % interval"].map((text) => el("th", { scope: "col" }, text));
  return el("table", { class: "figures", "aria-label": name }, el("thead", { class: "unseen" }, el("tr", {}, heads)), el("tbody", {}, rows));
}

/** Returns how often people gave the label of a row and the judge that of a column. */
function confusionCard(counts) {
  const names = [...new Set([...Object.keys(counts), ...Object.values(counts).flatMap(Object.keys)])];
  const most = Math.max(1, ...Object.values(counts).flatMap(Object.values));
  const square = (row, column) => {
    const times = Object.hasOwn(counts, row) && Object.hasOwn(counts[row], column) ? counts[row][column] : 0;
    const made = el("td", { class: row === column ? "agreed" : "differing" }, count(times));
    made.style.setProperty("--share", times / most);
    return made;
  };
  return el("section", { class: "card" },
    el("h3", {}, "confusion"),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Confusion" },
      el("table", { class: "confusion" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "human labels (rows), judge (columns)"), names.map((name) => el("th", { scope: "col" }, recorded(name))))),
        el("tbody", {}, names.map((row) => el("tr", {}, el("th", { scope: "row" }, recorded(row)), names.map((column) => square(row, column))))))));
}

const differencesOf = ({ name, disagreements }) =>
  inHalves([plural(disagreements.length, "disagreement"), disagreements.length > 1 ? ", worst first" : ""], name, disagreements, (one) =>
    [[{ annotator: "the judge", label: one.label, value: one.judge_value, reason: one.reason }], one.opinions]);

/** Returns samples on which two sides disagree, with the opinions of both: some, and the others on demand. */
function inHalves(title, scorer, found, halves) {
  const item = (one) => el("li", { class: "disagreement" },
    el("h4", {}, report.b.places.has(one.index) ? el("a", { href: address(["sample", `${one.index}`, scorer]) }, `#${one.index} `, recorded(one.sample_id || "(no id)")) : [`#${one.index} `, recorded(one.sample_id)]),
    el("div", { class: "halves" }, halves(one).map((opinions) => el("div", { class: "half" }, opinions.map(opinion)))));
  const list = (some) => el("ol", { class: "disagreements" }, some.map(item));
  const rest = found.slice(DIFFERENCES);
  return el("section", {},
    el("h3", {}, title),
    list(found.slice(0, DIFFERENCES)),
    rest.length ? fold(`${count(rest.length)} more`, () => list(rest), { class: "made-of" }) : null);
}

/** Returns an opinion on a sample: a label, its value, and a reason. */
function opinion({ annotator, label, value, reason }) {
  const named = label !== null && label !== `${value}`;
  return el("p", { class: "opinion" }, recorded(annotator ?? "a person", { class: "of" }), " ",
    el("span", { class: "chip" }, named ? [recorded(label), " "] : null, el("strong", { class: "number" }, figure(value, 2))),
    reason ? [" ", prose(reason, [], "span")] : null);
}

/** Returns people's opinions on a sample, to be shown beside a score. */
function opinionsOf(scorer, number) {
  const opinions = auditOf(scorer)?.opinions[number] ?? [];
  return opinions.length ? el("div", { class: "people" }, opinions.map(opinion)) : null;
}
