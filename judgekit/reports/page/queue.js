// Labels that are stored as they are given, by the server that this page came from.

const waiting = new Map();
const unsent = new Set();
let sending = Promise.resolve();
let figures = null;
let auditing = 0;
const AUDIT_PAUSE = 2000;

const queueAddress = (annotator) => `${location.pathname}.json?${new URLSearchParams([...new URLSearchParams(location.search), ["annotator", annotator]])}`;

/** Stores the label of a sample; a reason or a message that is being typed is sent after a pause. */
function send(at, pause) {
  if (!state.labels[at].value) return;
  state.unsaved = true;
  unsent.add(at);
  clearTimeout(waiting.get(at));
  const post = () => (sending = sending.then(() => sendNow(at)));
  waiting.set(at, setTimeout(post, pause));
}

async function sendNow(at) {
  const before = JSON.stringify(state.labels[at]);
  try {
    figures = await fetched(`${location.pathname}${location.search}`, { annotator: state.annotator, number: sheet.samples[at][0], ...state.labels[at] });
    if (JSON.stringify(state.labels[at]) === before) unsent.delete(at);
    document.getElementById("problem").textContent = "";
  } catch (error) {
    document.getElementById("problem").textContent = `Not stored, sample ${at + 1}: ${visible(error.message)}`;
  }
  state.unsaved = unsent.size > 0;
  showFigures();
}

/** Shows how far the judge agrees with the labels, once nothing has been given for a while. */
function showAudit() {
  clearTimeout(auditing);
  auditing = setTimeout(async () => {
    const [, run, scorer] = location.pathname.match(/^(.*)\/label\/(.*)$/);
    const name = decodeURIComponent(scorer);
    const { audit } = await fetched(`${run}.json`).catch(() => ({}));
    const own = audit?.scorers.find((one) => one.name === name);
    const link = document.getElementById("audit") ?? el("a", { id: "audit" });
    link.setAttribute("href", `${run}#/audit/${encodeURIComponent(name)}`);
    link.textContent = visible(own?.agreed ?? "");
    document.getElementById("stored").after(" ", link);
  }, AUDIT_PAUSE);
}

function showFigures() {
  if (!figures) return;
  if (figures.labeled) showAudit();
  const stored = unsent.size ? `${count(unsent.size)} not stored yet` : "all stored";
  const plan = figures.planned === null ? "" : ` of ${count(figures.planned)} planned`;
  document.getElementById("stored").textContent = `${stored} · ${count(figures.labeled)}${plan} labeled by all`;
}

/** Takes over the labels that the annotator has given before. */
async function takeUp(annotator) {
  figures = await fetched(queueAddress(annotator));
  state.annotator = annotator;
  sheet.samples.forEach(([number], at) => {
    if (!unsent.has(at)) state.labels[at] = figures.own[turnAt(at) ? `${number}:${turnAt(at)[1]}` : number] ?? blank(at);
  });
  state.at = Math.max(0, state.labels.findIndex((one) => one.value === ""));
  draw();
  showFigures();
}

function keepName(name) {
  try {
    localStorage.setItem("judgekit-annotator", name);
  } catch {
    // It is asked for again next time.
  }
}

function lastName() {
  try {
    return localStorage.getItem("judgekit-annotator") ?? "";
  } catch {
    return "";
  }
}

/** Asks who labels, and starts. */
function askName() {
  const input = el("input", { id: "who", type: "text", autocomplete: "off", spellcheck: "false", required: true, value: lastName() });
  const problem = el("p", { role: "alert" });
  const begin = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    keepName(name);
    takeUp(name).then(() => (dialog.close(), dialog.remove()), (error) => (problem.textContent = visible(error.message)));
  };
  const dialog = el("dialog", { "aria-labelledby": "who-title" },
    el("h2", { id: "who-title" }, "Who labels?"),
    el("form", { onsubmit: begin },
      el("label", { for: "who" }, "Your name ", el("small", {}, "Each label is stored with it as soon as you give it.")), input, problem,
      el("p", { class: "choose" }, el("button", { class: "main", type: "submit" }, "Start"))));
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
}
