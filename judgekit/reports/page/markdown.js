// Recorded Markdown as elements that hold text only: no HTML of the recording, no addresses to follow, no pictures.

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^ {0,3}#{1,6}[ \t]+(?=\S)/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])[ \t]+(?=\S)/;
const QUOTE = /^ {0,3}> ?/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const DASHES = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$/;
const DEEPEST = 5;

/** Returns the blocks of a text. `leaf` returns what to show of the text from one offset to another. */
function markdown(text, leaf) {
  const lines = [];
  for (let start = 0; start <= text.length; ) {
    const end = text.indexOf("\n", start) < 0 ? text.length : text.indexOf("\n", start);
    lines.push({ start, end, text: text.slice(start, end).replace(/\r$/, "") });
    start = end + 1;
  }
  const spans = (start, end) => inline(text, start, end, leaf);
  const blocks = [];
  let at = 0;
  const takeWhile = (holds) => {
    const from = at;
    while (at < lines.length && holds(lines[at], at - from)) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    if (!line.text.trim()) at++;
    else if (FENCE.test(line.text)) blocks.push(fenced());
    else if (HEADING.test(line.text)) {
      const [mark] = line.text.match(HEADING);
      blocks.push(el("p", { class: "heading", dir: "auto" }, spans(line.start + mark.length, line.end)));
      at++;
    } else if (RULE.test(line.text)) blocks.push(el("hr")), at++;
    else if (ITEM.test(line.text)) blocks.push(el("ul", { class: "items" }, items()));
    else if (isTable(at)) blocks.push(table());
    else if (QUOTE.test(line.text)) {
      const quoted = takeWhile(({ text }) => QUOTE.test(text));
      blocks.push(el("blockquote", { dir: "auto" }, quoted.map(({ text, start, end }, row) => [row ? "\n" : "", spans(start + text.match(QUOTE)[0].length, end)])));
    } else {
      const [first, ...rest] = takeWhile((next, row) => row === 0 || (next.text.trim() && !begins(at)));
      blocks.push(el("p", { class: "prose", dir: "auto" }, spans(first.start, (rest.at(-1) ?? first).end)));
    }
  }
  return blocks;

  function begins(row) {
    return [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(lines[row].text)) || isTable(row);
  }

  function fenced() {
    const { start, end, text } = lines[at++];
    const [all, fence] = text.match(FENCE);
    const code = takeWhile(({ text }) => !(text.trim().startsWith(fence) && !text.trim().replaceAll(fence[0], "")));
    at++;
    const language = text.slice(all.length).trim() ? el("small", {}, leaf(start + all.length, end)) : null;
    return el("div", { class: "fenced" }, language, el("pre", { class: "prose" }, code.length ? leaf(code[0].start, code.at(-1).end) : ""));
  }

  /** Returns the items of a list with their marks as recorded; lines that are indented go on with an item. */
  function items() {
    const made = [];
    while (at < lines.length && ITEM.test(lines[at].text) && !RULE.test(lines[at].text)) {
      const { start, text } = lines[at];
      const [all, indent, mark] = text.match(ITEM);
      const more = takeWhile((next, row) => row === 0 || (/^\s+\S/.test(next.text) && !begins(at)));
      const item = el("li", { dir: "auto" }, el("span", { class: "mark" }, /\d/.test(mark) ? mark : "•"), " ", el("span", {}, spans(start + all.length, more.at(-1).end)));
      item.style.setProperty("--depth", Math.min(DEEPEST, Math.floor(indent.length / 2)));
      made.push(item);
      const next = at;
      takeWhile(({ text }) => !text.trim());
      if (at >= lines.length || !ITEM.test(lines[at].text)) at = next;
      if (at < lines.length && !lines[at].text.trim()) break;
    }
    return made;
  }

  /** Returns whether a table begins at a line: a row, and below it dashes for as many cells. */
  function isTable(row) {
    const below = lines[row + 1]?.text;
    return below?.includes("|") && below.length < 1000 && DASHES.test(below) && lines[row].text.includes("|") && cells(lines[row]).length === cells(lines[row + 1]).length;
  }

  /** Returns the offsets of the cells of a row. */
  function cells({ start, text }) {
    const found = [];
    let from = text.match(/^\s*\|?/)[0].length;
    const to = text.replace(/\|?\s*$/, "").length;
    for (let end; from <= to; from = end + 1) {
      end = from;
      while (end < to && !(text[end] === "|" && text[end - 1] !== "\\")) end++;
      const content = text.slice(from, end);
      const trimmed = content.trim() ? content.length - content.trimStart().length : 0;
      found.push([start + from + trimmed, start + from + Math.max(trimmed, content.trimEnd().length)]);
    }
    return found;
  }

  function table() {
    const [head, , ...body] = takeWhile(({ text }, row) => row < 2 || (text.includes("|") && text.trim()));
    const row = (line, tag) => el("tr", {}, cells(line).map(([start, end]) => el(tag, tag === "th" ? { scope: "col", dir: "auto" } : { dir: "auto" }, spans(start, end))));
    return el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "table" },
      el("table", { class: "written" }, el("thead", {}, row(head, "th")), el("tbody", {}, body.map((line) => row(line, "td")))));
  }
}

// Underscores are left alone: names such as __init__ and my_file_name are more frequent than emphasis by them.
const SPANS = /(?<code>(?<!`)(`+)(?!`)([^`\n]+)\2(?!`))|(?<bold>\*\*(?=[^\s*])((?:[^*\n]|\*(?!\*))+)(?<=\S)\*\*)|(?<tilted>(?<![*\w\\])\*(?=[^\s*])([^*\n]+)(?<=\S)\*(?![*\w]))|(?<link>!?\[([^[\]\n]+)\]\(([^()\s]+)\))/g;

/** Returns the spans of a text. An address is shown as text after the words of its link. */
function inline(text, start, end, leaf) {
  const made = [];
  let at = start;
  for (const match of text.slice(start, end).matchAll(SPANS)) {
    const from = start + match.index;
    const to = from + match[0].length;
    const { code, bold, tilted } = match.groups;
    made.push(leaf(at, from));
    const edge = code ? match[2].length : bold ? 2 : 1;
    if (code) made.push(el("code", {}, leaf(from + edge, to - edge)));
    else if (bold || tilted) made.push(el(bold ? "strong" : "em", {}, inline(text, from + edge, to - edge, leaf)));
    else {
      const words = from + match[0].indexOf("[") + 1;
      const address = to - 1 - match[10].length;
      made.push(el("span", { class: "link" }, inline(text, words, address - 2, leaf)), " (", el("span", { class: "address" }, leaf(address, to - 1)), ")");
    }
    at = to;
  }
  return [...made, leaf(at, end)];
}

/** Returns a text with its Markdown rendered, and a button that shows it as it was recorded if that differs. */
function written(said, marks) {
  const text = visible(said);
  const isPlain = text.length > LONGEST || markdown(text, () => []).every((block) => block.matches("p.prose") && !block.firstElementChild);
  if (isPlain) return prose(said, marks);
  const ranges = rangesOf(text, marks);
  const blocks = markdown(text, (start, end) => markedRange(text, ranges, start, end));
  const rendered = el("div", { class: "markdown" }, blocks);
  const button = el("button", { class: "more source", type: "button", onclick: () => {
    const isShown = button.textContent === "as recorded";
    rendered.replaceChildren(...(isShown ? [prose(said, marks)] : blocks));
    button.textContent = isShown ? "as Markdown" : "as recorded";
  } }, "as recorded");
  return el("div", { class: "text" }, rendered, button);
}
