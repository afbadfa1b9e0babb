// A score: its value, its reason, its details, and the requests to judges.

/** Returns the messages that a score cites anywhere in its details, with the recording that they belong to. */
function citationsOf(score, scorer) {
  const found = [];
  const add = (side, message, quote, listed = false) => isNumber(message) && found.push({ scorer, side, message, quote, listed });
  const walk = (value) => {
    if (Array.isArray(value)) return value.forEach(walk);
    if (value === null || typeof value !== "object") return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "sentences") for (const row of sentenceRows(value) ?? []) if (!row.problem) add("trace", row.source, row.quote, true);
      const cites = /^evidence(_first|_second)?$/.test(key) && Array.isArray(inner);
      if (!cites) walk(inner);
      else for (const one of inner) add(sideOf(key, value), isNumber(one) ? one : one?.message, one?.quote);
    }
  };
  walk(score?.details);
  return found;
}

/** Whether a value is the number of a message, which is a path in a sub-agent. */
const isNumber = (value) => Number.isInteger(value) || (typeof value === "string" && /^\d+(\.\d+\.\d+)+$/.test(value));

/** Returns the recording that is cited if two were shown: the first one is the trace or its baseline. */
function sideOf(key, around) {
  const baselineFirst = around.shown_first === "baseline";
  return (key === "evidence_first" && baselineFirst) || (key === "evidence_second" && !baselineFirst) ? "baseline" : "trace";
}

/** Returns a JSON value as a tree, in which message numbers are links. */
function tree(value, links, key = "", around = {}) {
  const link = (number, side = "trace") => jump(number, links?.[side]);
  if (/^evidence(_first|_second)?$/.test(key) && Array.isArray(value)) {
    if (!value.length) return el("span", { class: "nothing" }, "none");
    return value.map((one) => {
      if (isNumber(one)) return [link(one, sideOf(key, around)), " "];
      if (!isNumber(one?.message)) return tree(one, links);
      const there = one.found === false ? badge("failed", "not found word for word") : null;
      return el("span", { class: "quotation" }, link(one.message, sideOf(key, around)), " ", el("q", { dir: "auto" }, visible(one.quote ?? "")), " ", there);
    });
  }
  if (isNumber(value) && (key === "message" || (around.handoff && (key === "given" || key === "used")))) return link(value);
  if (value === null) return el("span", { class: "nothing" }, "null");
  if (typeof value === "string") return prose(value, [], "span");
  if (typeof value !== "object") return el("span", { class: "number" }, `${value}`);
  const inner = Object.entries(value);
  if (!inner.length) return el("span", { class: "nothing" }, Array.isArray(value) ? "none" : "empty");
  if (Array.isArray(value) && value.every((one) => typeof one !== "object" || one === null)) {
    return el("span", {}, value.map((one, at) => [at ? ", " : "", tree(one, links)]));
  }
  return el("ul", { class: "tree" }, inner.map(([name, one]) =>
    el("li", {}, el("span", { class: "key" }, recorded(Array.isArray(value) ? `${Number(name) + 1}` : name)), " ", tree(one, links, Array.isArray(value) ? "" : name, value))));
}

/** Returns the rows on each agent in a score's details; `null` if there are none. */
function agentRows({ by_agent: rows }) {
  const is = (row) => row !== null && typeof row === "object" && "agent" in row && Number.isInteger(row.calls);
  return Array.isArray(rows) && rows.length && rows.every(is) ? rows : null;
}

/** Returns a table of what each agent did, and of the verdict on it. */
function verdictsByAgent(rows, links) {
  const shown = rows.map((row) => ({
    path: row.path,
    agent: row.agent,
    cells: [count(row.calls), count(row.errors), row.repeats === null ? "–" : count(row.repeats), el("span", {}, agentVerdict(row, links))],
  }));
  return agentTable("verdicts", ["calls", "errors", "repeats", "verdict"], shown, links?.trace);
}

/** Returns the sentences of an agent in a score's details, each with a verdict; `null` if there are none. */
function sentenceRows({ sentences: rows }) {
  const is = (row) => typeof row?.text === "string" && Number.isInteger(row.start) && Array.isArray(row.bad) && row.bad.every(Array.isArray) && Array.isArray(row.numbers_missing);
  return Array.isArray(rows) && rows.length && rows.every(is) ? rows : null;
}

const VERDICTS = { supported: "scored", contradicted: "failed", unsupported: "abstained" };

/** Returns a list of sentences with their verdicts, linked to their messages and sources. */
function sentenceList(rows, links) {
  const cited = ({ source, quote }) => (source === null ? null : [isNumber(source) ? jump(source, links?.trace, `message ${source}`) : recorded(`${source}`), " ", quote ? el("q", { dir: "auto" }, visible(`${quote}`)) : null]);
  const flaws = ({ problem, numbers_missing: numbers }) => [problem ? badge("failed", visible(`${problem}`.replaceAll("_", " "))) : null, numbers.length ? badge("abstained", visible(`not in the source: ${numbers.join(", ")}`)) : null];
  const item = (row) => el("li", { class: row.verdict ? "claim" : "claim is-none" },
    el("p", { class: "prose", dir: "auto" }, jump(row.message, links?.trace), " ", withBad(row)),
    row.verdict ? el("p", { class: "lead" }, badge(VERDICTS[row.verdict] ?? "missing", visible(`${row.verdict} ${row.kind}`)), " ", cited(row), " ", flaws(row)) : null);
  const claims = rows.filter((row) => row.verdict);
  const open = claims.some((row) => row.verdict !== "supported" || row.numbers_missing.length);
  return fold(`${plural(rows.length, "sentence")}, ${plural(claims.length, "claim")}`, () => el("ol", { class: "claims" }, rows.map(item)), { open, class: "made-of" });
}

/** Returns the text of a sentence with its bad passages marked. Offsets count code points. */
function withBad({ text, start, bad }) {
  const chars = [...text];
  const part = (from, to) => visible(chars.slice(from, to).join(""));
  const nodes = [];
  let at = 0;
  for (const [from, to] of bad.map(([from, to]) => [from - start, to - start]).sort((one, other) => one[0] - other[0])) {
    if (from < at) continue;
    nodes.push(part(at, from), el("mark", { class: "bad", title: "not supported" }, part(from, to)));
    at = to;
  }
  return [...nodes, part(at)];
}

/** Returns the turns in a score's details, each with a verdict; `null` if there are none. */
function turnRows({ turns: rows }) {
  const is = (row) => Number.isInteger(row?.turn) && Number.isInteger(row.message) && (row.value === null || typeof row.value === "number");
  return Array.isArray(rows) && rows.length && rows.every(is) ? rows : null;
}

/** Returns whether a turn passed, as the name of a badge. */
const turnState = ({ value }) => (value === null ? "skipped" : value < 0.5 ? "failed" : "scored");

/** Returns the turns with their verdicts, reasons and details; those that did not pass are open. */
function turnList(rows, links) {
  const rest = ({ turn, message, verdict, value, reason, sentences, ...more }) => more;
  const item = (row) => el("li", { value: row.turn },
    el("p", {}, jump(row.message, links?.trace, `turn ${row.turn}`), " ", badge(turnState(row), visible(`${row.verdict}`))),
    reasonText(`${row.reason}`, links, []),
    sentenceRows(row) ? sentenceList(row.sentences, links) : null,
    Object.values(rest(row)).some((one) => `${one}`) ? fold("details", () => tree(rest(row), links), { class: "made-of" }) : null);
  return fold(plural(rows.length, "turn"), () => el("ol", { class: "turns" }, rows.map(item)), { class: "made-of", open: rows.some((row) => turnState(row) === "failed") });
}

const OUTCOMES = ["matched", "differing", "out_of_order", "missing", "extra"];

function agentVerdict({ verdict, reason, violated, ...outcomes }, links) {
  if (verdict) return [el("strong", {}, recorded(verdict)), reason ? reasonText(reason, links, []) : null];
  if (violated) return violated.length ? ["violated ", violated.map((one, at) => [at ? ", " : "", recorded(one)])] : "nothing violated";
  return OUTCOMES.filter((name) => outcomes[name]).map((name) => `${count(outcomes[name])} ${name.replaceAll("_", " ")}`).join(", ") || "–";
}

/** Returns a reason, in which message numbers are links. */
function reasonText(said, links, marks) {
  const text = visible(said);
  const made = el("p", { class: "reason prose", dir: "auto" });
  let at = 0;
  for (const match of text.matchAll(/\bmessages? (\d{1,6}(?:\.\d{1,6}\.\d{1,6})*)\b/gi)) {
    made.append(...marked(text.slice(at, match.index), marks), jump(match[1], links.trace, match[0]));
    at = match.index + match[0].length;
  }
  made.append(...marked(text.slice(at), marks));
  return made;
}

const MARKS = { "=": "as expected", "~": "differs", "-": "missing", "+": "not expected", "<>": "out of order" };

/** Returns the arguments of the matched calls, in the order of the rows that say so; null where it is not certain which call was matched. */
function matchedArguments({ pairs = [], out_of_order: moved = [], extra = [] }, place) {
  const order = (of) => (one, other) => Number(one[of] ?? 0) - Number(other[of] ?? 0);
  const all = [...pairs, ...moved, ...extra].sort(order("actual"));
  const matched = pairs.filter((call) => !call.differences?.length && Number(call.score ?? 1) >= 1).sort(order("expected"));
  return matched.map((call) => {
    const same = (other) => other.name === call.name && `${other.message}` === `${call.message}`;
    const compared = all.filter(same);
    const made = (place?.numbers.get(`${call.message}`)?.calls ?? []).filter(({ name }) => name === call.name);
    return compared.length === made.length ? made[compared.indexOf(call)].args : null;
  });
}

const SHOWN = 160;

/** Returns expected calls beside the calls made, with differing words marked, and the arguments of those that match. */
function diffTable(diff, links, details) {
  const known = matchedArguments(details, links.trace);
  const certain = known.length === diff.filter(([mark]) => mark === "=").length;
  const row = ([mark, expected, made]) => {
    const args = mark === "=" ? known.shift() : null;
    const [, number, agent, rest] = made.match(/^(\d+(?:\.\d+\.\d+)*)(?: ((?:(?!: ).)*))?: ([^]*)$/) ?? [null, null, null, made];
    const [left, right] = mark === "~" ? differing(expected, rest) : [[expected], [rest]];
    return el("tr", { class: `diff ${{ "=": "equal", "~": "differs", "-": "missing", "+": "extra", "<>": "moved" }[mark]}` },
      el("td", { "data-name": "expected" }, el("bdi", {}, left)),
      el("td", { class: "mark", title: MARKS[mark] }, el("span", { "aria-hidden": "true" }, mark), el("span", { class: "unseen" }, MARKS[mark])),
      el("td", { "data-name": "made" }, number ? [jump(number, links.trace), " "] : null, agent ? [recorded(agent, { class: "who" }), " "] : null, el("bdi", {}, right),
        certain && args ? [" ", recorded(args === "{}" ? "no arguments" : args.length > SHOWN ? `${spaced(args.slice(0, SHOWN))}…` : spaced(args), { class: "args" })] : null));
  };
  return el("table", { class: "diffs" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "expected"), el("th", { scope: "col" }, el("span", { class: "unseen" }, "match")), el("th", { scope: "col" }, "made (by message)"))),
    el("tbody", {}, diff.map(row)));
}

/** Returns two texts with the words marked that are not in their longest common subsequence. */
function differing(one, other) {
  const [left, right] = [one, other].map((text) => text.match(/\s+|[\w.-]+|[^\w\s]/gu) ?? []);
  const longest = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      longest[i][j] = left[i] === right[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const [lefts, rights] = [[], []];
  const marking = (word) => (word.trim() ? el("mark", { class: "differs" }, word) : word);
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      lefts.push(left[i++]);
      rights.push(right[j++]);
    } else if (j >= right.length || (i < left.length && longest[i + 1][j] >= longest[i][j + 1])) lefts.push(marking(left[i++]));
    else rights.push(marking(right[j++]));
  }
  return [lefts, rights];
}

/** Returns how much a value stands out: what is full recedes, and what is low is bold and has a mark. */
const levelOf = ({ value }) => (value >= 1 ? "full" : value < 0.5 ? "low" : "partial");

/** Returns a bar that is as long as what the value lacks. */
function barOf({ value }) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--value", value);
  return bar;
}

function valueOf(score) {
  if (!score) return badge("missing", "no score");
  if (score.status !== "scored") return badge(score.status);
  return el("span", { class: "big" }, el("strong", { class: `number ${levelOf(score)}` }, figure(score.value)), barOf(score));
}

/** Returns the parts of a score below its head. */
function scoreBody(score, links, marks, exchanges) {
  if (!score) return [];
  const { reason, details, diff, calls, warnings, error } = score;
  const cited = citationsOf(score, "");
  const uncited = [...new Map(cited.map((one) => [`${one.side}${one.message}`, one])).values()];
  const agents = agentRows(details), sentences = sentenceRows(details), turns = turnRows(details);
  const own = [agents && "by_agent", sentences && "sentences", turns && "turns", turns && "first_bad"];
  const others = Object.fromEntries(Object.entries(details).filter(([name]) => !own.includes(name)));
  return [
    error && !reason?.startsWith(error) ? el("p", { class: "problem" }, el("code", {}, error)) : null,
    reason ? reasonText(reason, links, marks) : el("p", { class: "nothing" }, "no reason given"),
    uncited.length ? el("p", { class: "cites" }, "cites ", uncited.map((one) => [jump(one.message, links[one.side], `${one.side === "baseline" ? "baseline " : ""}${one.message}`), " "])) : null,
    cited.filter((one) => one.quote && !one.listed).map((one) => el("blockquote", { dir: "auto" }, visible(one.quote))),
    warnings.map((warning) => el("p", { class: "note" }, recorded(warning))),
    diff.length ? diffTable(diff, links, details) : null,
    agents ? verdictsByAgent(agents, links) : null,
    sentences ? sentenceList(sentences, links) : null,
    turns ? turnList(turns, links) : null,
    Object.keys(others).length ? fold("details", () => tree(others, links), { class: "made-of" }) : null,
    calls.length ? fold(callsSummary(calls), () => calls.map((call, at) => judgeCall(call, exchanges?.[at])), { class: "made-of" }) : null,
  ].flat().filter(Boolean);
}

function callsSummary(calls) {
  const cached = calls.filter((call) => call.cached).length;
  const paid = calls.reduce((sum, call) => (sum === null || call.cost === null ? null : sum + call.cost), 0);
  const asked = calls.filter((call) => call.request || call.cached).length;
  return `${plural(asked, "judge request")}${cached ? `, ${cached} from the cache` : ""}, cost ${dollars(paid)}`;
}

function judgeCall(call, exchange) {
  const usage = call.tokens === null ? "tokens unknown" : `${count(call.tokens[0])} + ${count(call.tokens[1])} tokens`;
  const answered = call.model && `answered as ${call.model}`, fingerprint = call.fingerprint && `fingerprint ${call.fingerprint}`;
  const facts = [call.prompt, call.judge, answered, fingerprint, call.cached ? "from the cache" : dollars(call.cost), usage, call.questions ? `${call.questions} questions together` : null, call.cached ? null : `${call.seconds.toFixed(1)} s`].filter(Boolean).join(" · ");
  return el("div", { class: "asked" },
    el("p", { class: "lead" }, recorded(facts), call.error ? [" ", badge("failed", call.error)] : null),
    exchange
      ? [
          fold("prompt as sent", () => exchange.messages.map(([role, text]) => [el("h4", {}, role), prose(text, [], "pre")]).flat()),
          exchange.reply === null ? el("p", { class: "nothing" }, "no reply") : fold("reply as received", () => prose(readable(exchange.reply), [], "pre")),
        ]
      : el("p", { class: "nothing" }, "prompt and reply are not stored, or are damaged"));
}
