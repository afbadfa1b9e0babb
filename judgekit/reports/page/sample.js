// One sample: its conversation and its scores, from one run or from two.

async function sampleView() {
  const { sample: key, scorer, filters, message } = here();
  const number = sampleOf(key);
  if (number === null) return el("div", {}, el("h1", { tabindex: -1 }, `There is no sample ${key} in this file`), el("p", {}, el("a", { href: "#/samples" }, "All samples")));
  const read = (side) => (side && placesOf(number)[side.name] !== null ? side.sample(placesOf(number)[side.name]) : null);
  const [a, b] = report.head.choices ? await pagedSample(number) : await Promise.all([report.a, report.b].map(read));
  const { id, domain, labels } = entry(number);
  const search = filters.q?.trim() ? verbatim(filters.q.trim(), "gi") : null;
  const marks = search ? [{ pattern: search, kind: "hit" }] : [];
  const beside = neighbors(number, filters, scorer);
  const view = el("article", { class: `sample${report.a ? " of-runs" : ""}` },
    el("div", { class: "sample-head" },
      el("h1", { tabindex: -1 }, el("span", { class: "place" }, `#${key} `), recorded(id || "(no id)")),
      beside,
      el("p", { class: "lead" }, domain === null ? null : el("span", { class: "chip" }, "domain ", recorded(domain)),
        Object.entries(labels).slice(0, 12).map(([name, value]) => el("span", { class: "chip" }, recorded(name), " ", recorded(`${value}`))))));
  const same = report.a && a?.messages && b?.messages && JSON.stringify(a.messages) === JSON.stringify(b.messages);
  if (!report.a) view.append(el("div", { class: "beside" }, talk(b, "b", scorer, search, "Conversation"), scoresOf(b, scorer, marks, filters, key)), report.history?.(b) ?? "");
  else view.append(compareScores(a, b, scorer, marks, filters, key),
    same ? el("p", { class: "lead" }, "Both runs scored the same conversation.") : "",
    el("div", { class: same ? "" : "beside equal" }, same ? talk(b, "b", scorer, search, "Conversation") : [talk(a, "a", scorer, search, `A: run ${report.head.a.number}`), talk(b, "b", scorer, search, `B: run ${report.head.b.number}`)]));
  view.progress = beside.progress;
  const place = linksOf(b, "b").trace;
  if (place?.numbers.has(message)) view.shown = () => reveal(messageAt(message, place));
  return view;
}

/** Returns links to the previous and the next sample that passes the filters. */
function neighbors(number, filters, scorer) {
  const made = el("nav", { class: "neighbors", "aria-label": "Samples of the list" });
  const draw = () => {
    const at = found.numbers.indexOf(number);
    const to = (by) => {
      const other = at < 0 ? undefined : found.numbers[at + by];
      if (at >= 0 && report.head.choices) [by, 8 * by].forEach((step) => want(at + step));
      return other === undefined ? null : address(["sample", report.head.choices ? pagedKey(other) : entry(other).key, ...(scorer ? [scorer] : [])], filters);
    };
    const link = (by, text, key) => {
      const href = to(by);
      return el(href ? "a" : "span", { href, class: `step${href ? "" : " is-off"}`, "data-key": key, rel: by < 0 ? "prev" : "next" }, text, " ", el("kbd", {}, key));
    };
    made.replaceChildren(el("a", { href: address(["samples"], filters), "data-key": "Escape" }, "list"), link(-1, "previous", "k"), link(1, "next", "j"),
      el("button", { class: "jump to-talk", type: "button", onclick: () => reveal(main.querySelector(".talk h2"), "start") }, "conversation"),
      el("span", { class: "lead" }, at < 0 ? `one of ${count(size())}` : `${count(at + 1)} of ${count(found.numbers.length)}`));
  };
  find(filters, draw, number);
  made.progress = () => filters.q && sides().every((side) => side.read === side.size) && find(filters, draw);
  return made;
}

/** Returns the places of the messages of a sample's recordings. */
const linksOf = (sample, side) => ({
  trace: placeOf(sample?.messages, `${side}-message-`, sample?.unlinked),
  baseline: placeOf(sample?.baseline, `${side}-baseline-`),
});

const EXPECTED = ["reference", "references", "reference_tool_calls", "reference_topics", "label"];
const CALLS = 10;

/** Returns what was expected of the agent, open above the conversation; null if the sample does not say. */
function expectedOf(about, links) {
  const known = EXPECTED.filter((name) => about[name] !== undefined);
  if (!known.length) return null;
  const call = ({ name, args, ...more }) => el("li", {}, recorded(`${name}`, { class: "tool-name" }), args && Object.keys(args).length ? [" ", recorded(spaced(JSON.stringify(args)), { class: "args" })] : null, Object.keys(more).length ? tree(more, links) : null);
  const calls = (all) => [el("ol", { class: "expected-calls" }, all.slice(0, CALLS).map(call)), all.length > CALLS ? fold(`${count(all.length - CALLS)} more`, () => el("ol", { class: "expected-calls", start: CALLS + 1 }, all.slice(CALLS).map(call)), { class: "made-of" }) : null];
  const shown = (name) => (name !== "reference_tool_calls" ? tree(about[name], links) : about[name].length ? calls(about[name]) : el("span", { class: "nothing" }, "none"));
  return fold("Expected", () => el("dl", {}, known.map((name) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, shown(name))])), { open: true, class: "expected" });
}

function talk(sample, side, scorer, search, title) {
  const made = el("section", { class: `talk${scorer ? " of-score" : ""}` }, el("h2", { tabindex: -1 }, title));
  if (!sample) return fill(made, {}, [el("p", { class: "lead" }, "This sample is not in this run.")]);
  if (!sample.messages) return fill(made, {}, [withoutMessages()]);
  const cited = sample.scores.flatMap((score, at) => {
    const { name } = report[side].run.scorers[at];
    return scorer && scorer !== name ? [] : citationsOf(score, name);
  });
  const of = (which) => cited.filter((one) => one.side === which);
  const links = linksOf(sample, side);
  const base = address(["sample", here().sample, ...(scorer ? [scorer] : [])], here().filters);
  const linked = { ...links.trace, link: (number) => `${base}${base.includes("?") ? "&" : "?"}message=${number}` };
  const { about } = sample;
  made.append(...stripsOf(sample, side, scorer, links.trace), expectedOf(about, links) ?? "");
  made.append(conversation(sample.messages, side === "b" ? linked : links.trace, of("trace"), search, sample.unlinked));
  if (sample.error) made.append(el("p", { class: "note" }, "The recording ends with an error: ", recorded(sample.error)));
  if (sample.agents.length) made.append(fold("usage of each agent", () => agentsOf(sample.agents, links.trace), { class: "made-of" }));
  if (sample.baseline) made.append(el("h3", {}, "The baseline"), conversation(sample.baseline, links.baseline, of("baseline"), search));
  const others = Object.entries(about).filter(([name]) => !EXPECTED.includes(name));
  if (others.length) made.append(fold("other fields and metadata", () => tree(Object.fromEntries(others), links), { class: "made-of" }));
  return made;
}

/** Returns a strip of turns for each scorer that judged them, or for the chosen one; each turn leads to its message. */
function stripsOf(sample, side, scorer, place) {
  return sample.scores.flatMap((score, at) => {
    const { name } = report[side].run.scorers[at];
    const rows = score && (!scorer || scorer === name) ? turnRows(score.details) : null;
    if (!rows) return [];
    const step = (row) => el("button", { class: `turn ${turnState(row)}`, type: "button", title: visible(`${row.verdict}: ${row.reason}`).slice(0, 500), onclick: () => reveal(messageAt(row.message, place), "start") },
      el("span", { class: "unseen" }, "turn "), `${row.turn} `, el("span", { "aria-hidden": "true" }, SHAPES[turnState(row)]), el("span", { class: "unseen" }, visible(` ${row.verdict}`)));
    return [el("nav", { class: "turn-strip", "aria-label": `turns by ${name}` }, named(name), rows.map(step))];
  });
}

/** Goes to the next turn that did not pass, and from the last to the first. */
function nextBadTurn() {
  const bad = [...main.querySelectorAll(".turn.failed")];
  const at = bad.findIndex((one) => one.classList.contains("is-at"));
  bad[at]?.classList.remove("is-at");
  const next = bad[(at + 1) % bad.length];
  next?.classList.add("is-at");
  next?.click();
}

/** Returns a table of the usage of each agent. */
function agentsOf(agents, place) {
  const rows = agents.map(([path, agent, messages, calls, results, errors, repeats]) => ({
    path,
    agent,
    cells: [count(messages), count(calls), results ? `${count(errors)} of ${count(results)}` : "–", repeats === null ? "–" : count(repeats)],
  }));
  return agentTable("agents", ["messages", "tool calls", "errors", "repeats"], rows, place);
}

/** Returns a table with a row for each agent, in which texts are figures. */
function agentTable(kind, heads, rows, place) {
  const cell = (content, at) => el("td", { class: typeof content === "string" ? "number" : null, "data-name": heads[at] }, content);
  const row = ({ path, agent, cells }) => {
    const name = agent === null ? el("span", { class: "nothing" }, path === null ? "any agent" : "(no name)") : recorded(agent);
    return el("tr", {}, el("th", { scope: "row" }, path ? [jump(`${path}.1`, place, path), " "] : null, name), cells.map(cell));
  };
  return el("table", { class: `lines ${kind}`, "aria-label": kind },
    el("thead", {}, el("tr", {}, ["agent", ...heads].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map(row)));
}

function scoreHead(name, key, filters, ...values) {
  return el("header", {}, el("h3", {}, el("a", { href: address(["sample", key, name], filters) }, named(name))), values);
}

/** Returns the names with the chosen scorer first. */
const chosenFirst = (names, scorer) => (names.includes(scorer) ? [scorer, ...names.filter((name) => name !== scorer)] : names);

function scoresOf(sample, scorer, marks, filters, key) {
  const links = linksOf(sample, "b");
  const made = el("section", { class: "scores", "aria-label": "Scores" }, el("h2", {}, "Scores"));
  for (const name of chosenFirst([...report.b.scorers.keys()], scorer)) {
    const at = report.b.scorers.get(name);
    const score = sample.scores[at];
    made.append(el("section", { class: `score${name === scorer ? " is-chosen" : ""}` },
      scoreHead(name, key, filters, score?.label ? recorded(score.label, { class: "chip" }) : null, valueOf(score)), opinionsOf(name, key), scoreBody(score, links, marks, sample.exchanges[at])));
  }
  return made;
}

function compareScores(a, b, scorer, marks, filters, key) {
  const made = el("section", { class: "scores both", "aria-label": "Scores" }, el("h2", {}, "Scores"));
  const of = (sample, side, name) => sample?.scores[report[side].scorers.get(name)] ?? null;
  for (const name of chosenFirst(report.scorers, scorer)) {
    const [one, other] = [of(a, "a", name), of(b, "b", name)];
    const by = typeof one?.value === "number" && typeof other?.value === "number" ? gain(one.value, other.value) : null;
    const half = (score, sample, side, title) => el("div", { class: "half" },
      el("p", { class: "half-head" }, el("span", { class: "kind" }, title), " ", valueOf(score), score?.label ? recorded(score.label, { class: "chip" }) : null),
      scoreBody(score, linksOf(sample, side), marks, sample?.exchanges[report[side].scorers.get(name)]));
    const halves = () => el("div", { class: "halves" }, half(one, a, "a", `A: run ${report.head.a.number}`), half(other, b, "b", `B: run ${report.head.b.number}`));
    made.append(el("section", { class: `score${name === scorer ? " is-chosen" : ""}` },
      scoreHead(name, key, filters, by === null ? null : el("strong", { class: `number ${direction(by)}` }, arrow(by), by === 0 ? `no change: ${figure(other.value)}` : signed(by))),
      by === 0 && name !== scorer ? fold("both reasons", halves) : halves()));
  }
  return made;
}
