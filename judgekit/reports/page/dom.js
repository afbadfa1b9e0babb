// Elements and numbers. All text enters the page as text, never as markup.

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** Returns the text with invisible control characters written out. */
const visible = (text) =>
  text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Returns recorded text for one line. Its writing direction does not affect the text around it. */
const recorded = (text, attributes = {}) => el("bdi", attributes, visible(text));

/** Returns the name of a scorer or a tool, which may break after punctuation. */
const named = (text, attributes = {}) =>
  el("bdi", attributes, visible(text).split(/(?<=[_./:-])/).flatMap((piece, at) => (at ? [el("wbr"), piece] : [piece])));

/** Returns a part that is built when it is first opened. */
function fold(summary, build, { open = false, ...attributes } = {}) {
  const made = el("details", { open, ...attributes }, el("summary", {}, summary));
  const add = () => made.open && made.childElementCount === 1 && made.append(...[build()].flat());
  made.addEventListener("toggle", add);
  made.show = () => {
    made.open = true;
    add();
  };
  add();
  return made;
}

const LONGEST = 20_000;

/** Returns a text as it is; of a long text, the beginning and a button for the rest. */
function prose(said, marks = [], tag = "p", attributes = {}) {
  const text = visible(said);
  const made = el(tag, { class: "prose", dir: "auto", ...attributes });
  if (text.length <= LONGEST) {
    made.append(...marked(text, marks));
  } else {
    const all = () => made.replaceChildren(...marked(text, marks));
    made.append(...marked(text.slice(0, LONGEST), marks), " ");
    made.append(el("button", { class: "more", onclick: all }, `show all ${count(text.length)} characters`));
  }
  return made;
}

/** Returns the text with the matches of the patterns marked. */
const marked = (text, marks) => markedRange(text, rangesOf(text, marks), 0, text.length);

/** Returns the matches of the patterns in their order; of overlapping matches, the first one counts. */
function rangesOf(text, marks) {
  const ranges = [];
  for (const { pattern, kind, title } of marks) {
    for (const found of text.matchAll(pattern)) {
      if (found[0]) ranges.push({ start: found.index, end: found.index + found[0].length, kind, title });
    }
  }
  let last = 0;
  return ranges.sort((one, other) => one.start - other.start).filter(({ start, end }) => start >= last && (last = end));
}

/** Returns a part of the text, with what of the ranges is in it marked. */
function markedRange(text, ranges, from, to) {
  const nodes = [];
  let at = from;
  for (const { start, end, kind, title } of ranges) {
    if (Math.max(start, at) >= Math.min(end, to)) continue;
    const begin = Math.max(start, at), stop = Math.min(end, to);
    nodes.push(text.slice(at, begin), el("mark", { class: kind, title }, text.slice(begin, stop)));
    at = stop;
  }
  nodes.push(text.slice(at, to));
  return nodes;
}

/** Returns a pattern that finds a text word for word, with any white space between words. */
function verbatim(text, flags = "g") {
  const words = visible(text).split(/\s+/u).filter(Boolean);
  return words.length ? new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("\\s+"), flags) : null;
}

const count = (number) => number.toLocaleString("en-US");
const plural = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
const figure = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const signed = (value, digits = 3) => (value === null || value === undefined ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`);
const dollars = (usd) => (usd === null ? "unknown" : usd === 0 ? "$0" : `$${usd.toFixed(4)}`);
const chance = (p) => (p === null || p === undefined ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));

const SHAPES = { scored: "●", skipped: "○", failed: "✕", abstained: "◇", missing: "–" };

/** Returns a status as a word and a shape, so that its color adds no information. */
const badge = (status, text = status) =>
  el("span", { class: `badge ${status}` }, el("span", { "aria-hidden": "true" }, SHAPES[status]), " ", text);

/** Returns JSON on several lines, with all characters of its values unchanged. */
function indented(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[[{]\s*[\]}]|[[\]{},:]/g, (token) => {
    if (token.length > 1) return token;
    if (token === ":") return ": ";
    if (token === ",") return `,${line()}`;
    depth += token === "[" || token === "{" ? 1 : -1;
    return token === "[" || token === "{" ? `${token}${line()}` : `${line()}${token}`;
  });
}

/** Returns JSON with a space after each comma and colon, so that it may break there. */
const spaced = (json) => json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[,:]/g, (token) => (token.length > 1 ? token : `${token} `));

/** Returns JSON on several lines, and any other text as it is. */
function readable(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 500_000) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  return indented(text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, "$1"));
}
