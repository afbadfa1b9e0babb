// The part of the address after the # says what is shown, so that it can be shared.

const FILTERS = ["q", "scorer", "status", "label", "domain", "from", "to", "value", "change", "sort"];

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", sample = "", scorer = ""] = path.split("/").map(decoded);
  const found = new URLSearchParams(query);
  const filters = {};
  for (const name of FILTERS) if (found.get(name)) filters[name] = found.get(name);
  return { view, sample, scorer, filters, message: found.get("message") };
}

function address(parts, filters = {}) {
  const query = `${new URLSearchParams(FILTERS.filter((name) => filters[name]).map((name) => [name, filters[name]]))}`;
  return `#/${parts.map(encodeURIComponent).join("/")}${query && "?"}${query}`;
}

let typed = null;
let timer = 0;

const here = () => ({ ...parsed(location.hash), ...(typed && { filters: typed }) });

const go = (parts, filters) => {
  settle();
  location.hash = address(parts, filters);
};

/** Changes the filters during typing, without adding to the browser's history, which is rate-limited. */
function refine(filters) {
  typed = filters;
  clearTimeout(timer);
  timer = setTimeout(settle, 200);
}

/** Writes what was typed into the address. */
function settle() {
  if (typed) history.replaceState(null, "", address(["samples"], typed));
  typed = null;
}
