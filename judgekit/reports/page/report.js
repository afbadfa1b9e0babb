// The page: its views by address, and the keyboard.

const main = document.getElementById("main");
let shown = null;
let turn = 0;
let wanted = null;

async function viewOf(view, sample) {
  try {
    if (view === "sample" && sample) return await sampleView();
    if (view === "audit" && report.head.audit) return auditView(sample);
    if (view === "failures" && report.head.failures) return failuresView();
    return view === "samples" ? samplesView() : overview();
  } catch (error) {
    return el("div", {}, el("h1", { tabindex: -1 }, "This view cannot be shown"), el("p", { class: "note" }, error.message));
  }
}

async function show() {
  const mine = ++turn;
  const { view, sample } = here();
  const made = await viewOf(view, sample);
  if (mine !== turn) return;
  shown?.list?.stop();
  const before = wanted ?? document.activeElement?.name;
  wanted = null;
  shown = made;
  main.replaceChildren(glossary(made), made);
  made.list?.start();
  scrollTo(0, made.list ? (scrolled.get(address(["samples"], here().filters)) ?? 0) : 0);
  made.list?.draw();
  const heading = made.querySelector("h1");
  document.title = `${heading.textContent} – judgekit`;
  for (const link of document.querySelectorAll("#top nav a")) {
    const current = link.getAttribute("href") === (view === "sample" ? "#/samples" : ["samples", "audit", "failures"].includes(view) ? `#/${view}` : "#/");
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const same = before ? made.querySelector(`[name="${before}"]`) : null;
  (same ?? heading).focus({ preventScroll: true });
  made.shown?.();
}

const steps = { j: 1, k: -1 };

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches?.("input, select, textarea");
  const dialog = document.getElementById("keys");
  if (dialog.open) return;
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (here().view === "sample") go(["samples"], here().filters);
    else if (here().view) go([]);
  } else if (typing) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    if (here().view === "samples") return document.getElementById("search").focus();
    wanted = "q";
    go(["samples"], here().filters);
  } else if (steps[event.key]) {
    if (shown?.list) shown.list.step(steps[event.key]);
    else shown?.querySelector(`a[data-key="${event.key}"]`)?.click();
  } else if (event.key === "b" && here().view === "sample") {
    nextBadTurn();
  } else if (event.key === "?") {
    dialog.showModal();
  }
}

function theme() {
  const root = document.documentElement.style;
  const dark = root.colorScheme ? root.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.colorScheme = dark ? "light" : "dark";
}

async function start() {
  if (!("DecompressionStream" in window)) {
    main.prepend(el("p", { class: "note" }, "This browser is too old to show samples and conversations; it can show only the table below."));
    return;
  }
  await read(await headOf());
  document.getElementById("all-samples").textContent = `Samples (${count(size())})`;
  document.getElementById("theme").addEventListener("click", theme);
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  addEventListener("keydown", key);
  addEventListener("click", settle, true);
  addEventListener("hashchange", show);
  history.scrollRestoration = "manual";
  await show();
  performance.mark("usable");
  document.documentElement.dataset.ready = "usable";
  await readTexts();
  document.documentElement.dataset.ready = "read";
}

/** Reads the texts of the runs as they are wanted. */
async function readTexts() {
  for (const side of sides()) await side.readAll(() => (shown?.list ?? shown)?.progress?.());
}

start().catch((error) => main.prepend(el("p", { class: "note" }, error.message)));
