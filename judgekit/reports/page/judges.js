// Judges held against each other: what each takes, how far each two agree, and where they say different things.

const FLIPS = 20;

function judgesOf({ tables, told, pairs }) {
  return section("Judges",
    tables.map(judgesTable),
    told.length ? el("ul", { class: "told" }, told.map((line) => el("li", {}, recorded(line)))) : null,
    pairs.filter((pair) => pair.flips.length).map(flipsOf));
}

function judgesTable({ title, heads, rows }) {
  return el("section", {},
    el("h3", {}, title),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": title },
      el("table", { class: "lines" },
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, rows.map(([name, ...cells]) => el("tr", {},
          el("th", { scope: "row" }, recorded(name)),
          cells.map((text, at) => cell(heads[at + 1], el("span", { class: "number" }, text)))))))));
}

function flipsOf({ a, b, scorer, flips }) {
  const half = (...opinions) => el("div", { class: "half" }, opinions.map(opinion));
  const human = (value) => (value === null ? [] : [{ annotator: "people", label: null, value, reason: "" }]);
  const item = (one) => el("li", { class: "disagreement" },
    el("h4", {}, report.b.places.has(one.index) ? el("a", { href: address(["sample", `${one.index}`, scorer]) }, `#${one.index} `, recorded(one.sample_id || "(no id)")) : [`#${one.index} `, recorded(one.sample_id)]),
    el("div", { class: "halves" }, half({ annotator: a, ...one.a }), half({ annotator: b, ...one.b }, ...human(one.human))));
  const list = (some) => el("ol", { class: "disagreements" }, some.map(item));
  const rest = flips.slice(FLIPS);
  return el("section", {},
    el("h3", {}, recorded(a), " and ", recorded(b), `: ${plural(flips.length, "flip")}`),
    list(flips.slice(0, FLIPS)),
    rest.length ? fold(`${count(rest.length)} more`, () => list(rest), { class: "made-of" }) : null);
}
