// What the terms of statistics in a view mean.

/** The words of a view; those that may be broken are whole. */
function wordsOf(view) {
  const texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  let words = "";
  while (texts.nextNode()) words += `${texts.currentNode.previousSibling?.nodeName === "WBR" ? "" : " "}${texts.currentNode.data}`;
  return words.replace(/\s+/g, " ");
}

/** A part that explains the terms of a view, such as it is when the part is opened. */
function glossary(view) {
  const list = el("dl", { class: "terms" });
  const explain = () => {
    const words = wordsOf(view);
    const terms = report.head.glossary.filter(({ pattern }) => new RegExp(pattern).test(words));
    list.replaceChildren(...terms.map(({ name, meaning }) => el("div", {}, el("dt", {}, name), el("dd", {}, meaning))));
    if (!terms.length) list.append(el("div", {}, el("dt", {}, "nothing"), el("dd", {}, "no term of statistics is shown here")));
  };
  return el("details", { class: "glossary", ontoggle: explain }, el("summary", {}, el("span", { "aria-hidden": "true" }, "? "), "What the words mean"), list);
}
