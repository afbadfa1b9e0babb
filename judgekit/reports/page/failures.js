// The failures of the run as issues, each with the messages to open.

const MESSAGES = 20;

function failuresView() {
  const { failures } = report.head;
  return el("div", { class: "failures" },
    el("h1", { tabindex: -1 }, "Failures"),
    el("p", { class: "lead" }, recorded(failures.headline)),
    failures.notes.map((note) => el("p", { class: "note" }, recorded(note))),
    failures.issues.map(issueOf));
}

function issueOf(issue) {
  const { name, id, state, loose, share, corrected, fix, failures } = issue;
  const best = corrected.corrected ?? share;
  return el("section", { class: "findings" },
    el("h2", {}, recorded(name)),
    el("p", { class: "headline" }, el("span", { class: ["new", "back"].includes(state) ? "badge failed" : "badge" }, state), loose ? [" ", el("span", { class: "badge" }, "loose group")] : null, ` ${plural(failures.length, "sample")} · `, el("code", {}, id)),
    el("p", {}, el("strong", { class: "number" }, percent(best.value)), " of the run ", corrected.corrected ? "as people would see it " : "by the judge ", interval(best),
      typeof best.low === "number" ? el("small", { title: best.method }, `${percent(best.low)} – ${percent(best.high)}`) : null),
    fix ? el("p", {}, "To change: ", recorded(fix)) : null,
    report.edit?.(issue),
    failuresOf(failures));
}

/** Returns links to the messages where failures began: some, and the others on demand. */
function failuresOf(failures) {
  const item = ({ sample, number, message, symptom, quote }) => {
    const name = [`#${number} `, recorded(sample), message === null ? "" : ` message ${message}`];
    const link = `${address(["sample", `${number}`, report.head.failures.scorer])}${message === null ? "" : `?message=${encodeURIComponent(message)}`}`;
    return el("li", {},
      report.b.places.has(number) ? el("a", { href: link }, name) : name, ": ", recorded(symptom, { class: "quoted" }),
      quote ? el("blockquote", { class: "quoted" }, recorded(quote)) : null);
  };
  const list = (some) => el("ol", { class: "messages" }, some.map(item));
  const rest = failures.slice(MESSAGES);
  return [list(failures.slice(0, MESSAGES)), rest.length ? fold(`${count(rest.length)} more`, () => list(rest), { class: "made-of" }) : null];
}

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
