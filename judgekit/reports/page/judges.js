// A comparison of judges: the speed of each, the agreement of each pair, and their flips.

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
  const people = ({ human_value }) => (human_value === null ? [] : [{ annotator: "people", label: null, value: human_value, reason: "" }]);
  return inHalves([recorded(a), " and ", recorded(b), `: ${plural(flips.length, "flip")}`], scorer, flips, (one) =>
    [[{ annotator: a, ...one.a }], [{ annotator: b, ...one.b }, ...people(one)]]);
}
