// What the terms of statistics in a view mean.

/** A part that explains the terms of a view, as it is when the part is opened. */
function glossary(view) {
  const list = el("dl", { class: "terms" });
  const explain = () => {
    const texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
    const words = [];
    while (texts.nextNode()) words.push(texts.currentNode.data);
    const text = words.join(" ").replace(/\s+/g, " ");
    const terms = report.head.glossary.filter(({ pattern }) => new RegExp(pattern).test(text));
    list.replaceChildren(...terms.flatMap(({ name, meaning }) => [el("dt", {}, name), el("dd", {}, meaning)]));
    if (!terms.length) list.append(el("dd", { class: "nothing" }, "No term of statistics is shown here."));
  };
  return el("details", { class: "glossary", ontoggle: explain }, el("summary", { title: "What the words mean" }, el("span", { "aria-hidden": "true" }, "? "), "What the words mean"), list);
}
