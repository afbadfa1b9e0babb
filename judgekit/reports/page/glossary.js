// The meanings of the statistical terms in a view.

/** Places with text of recordings, people and judges, whose terms are not explained. */
const QUOTED = ".quoted, .verdicts, .claims, .prose, blockquote, .tree, .chip, .sample-head, .chat, .diffs, .people, .expected, .about, .run-name, .disagreements, .rows, .filters, .slices, .confusion";

/** Returns the text of a view, with words joined that may break. */
function wordsOf(view) {
  const visit = (node) => (node.nodeType === Node.TEXT_NODE ? NodeFilter.FILTER_ACCEPT : node.matches(QUOTED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP);
  const texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, visit);
  let words = "";
  while (texts.nextNode()) words += `${texts.currentNode.previousSibling?.nodeName === "WBR" ? "" : " "}${texts.currentNode.data}`;
  return words.replace(/\s+/g, " ");
}

/** Returns a part that explains the terms that a view contains when the part is opened. */
function glossary(view) {
  const list = el("dl", { class: "terms" });
  const explain = () => {
    const words = wordsOf(view);
    const terms = report.head.glossary.filter(({ pattern }) => new RegExp(pattern).test(words));
    list.replaceChildren(...terms.map(({ name, meaning }) => el("div", {}, el("dt", {}, name), el("dd", {}, meaning))));
    if (!terms.length) list.append(el("div", {}, el("dt", {}, "no terms"), el("dd", {}, "this view shows no statistical terms")));
  };
  return el("details", { class: "glossary", ontoggle: explain }, el("summary", {}, el("span", { "aria-hidden": "true" }, "? "), "Glossary"), list);
}
