// All runs of a file: filtered by the query of the address, and compared in pairs.

const QUERY = ["q", "file", "judge", "agent", "tag", "state"];
const MOST = 8;
const state = { runs: [], store: "", chosen: [] };

const asked = () => new URLSearchParams(location.search);

function set(name, value) {
  const query = asked();
  if (value) query.set(name, value);
  else query.delete(name);
  history.replaceState(null, "", `${location.pathname}${query.size ? "?" : ""}${query}`);
  draw();
}

/** Returns whether a run passes all filters. */
function passes(run) {
  const query = asked();
  const text = query.get("q")?.toLowerCase().trim();
  const is = (name, values) => !query.get(name) || values.includes(query.get(name));
  const words = [run.number, run.state, run.why, ...run.files ?? [], ...run.judges ?? [], run.name ?? "", run.note ?? "", ...run.tags ?? [], ...run.agents ?? [], ...run.scorers.map((one) => one.name)].join("\n");
  return is("file", run.files ?? []) && is("judge", run.judges ?? []) && is("agent", run.agents ?? []) && is("tag", run.tags ?? []) && is("state", [run.state]) && (!text || words.toLowerCase().includes(text));
}

function age(started) {
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(started)) / 60_000));
  if (minutes < 60) return minutes ? `${plural(minutes, "minute")} ago` : "just now";
  return minutes < 2880 ? `${plural(Math.floor(minutes / 60), "hour")} ago` : `${plural(Math.floor(minutes / 1440), "day")} ago`;
}

function took(run) {
  const seconds = Math.round((Date.parse(run.ended) - Date.parse(run.started)) / 1000);
  return seconds < 120 ? `${seconds} s` : `${count(Math.round(seconds / 60))} min`;
}

function progress(run) {
  if (run.state === "ended") return el("span", { class: "badge" }, "ended");
  if (run.state === "stopped") return [el("span", { class: "badge abstained" }, "stopped early"), el("small", {}, recorded(run.why))];
  if (run.state === "damaged") return el("span", { class: "badge failed" }, "damaged");
  const all = Math.max(run.samples, Math.ceil(run.done));
  return [
    el("span", { class: "badge" }, run.state),
    el("progress", { value: run.done, max: all || 1, "aria-label": `Progress of run ${run.number}` }),
    el("small", {}, `${count(Math.floor(run.done))} of ${run.about}${count(all)}`, run.failed ? `, ${count(run.failed)} failed` : "", run.state === "running" ? timeLeft(run) : ""),
  ];
}

/** Returns how long a run will take at its pace so far, if the number of its samples is known. */
function timeLeft({ started, done, samples, about }) {
  if (!done || done > samples || about === "at least ") return "";
  const seconds = Math.round((((Date.now() - Date.parse(started)) / 1000) * (samples - done)) / done);
  return `, about ${seconds < 120 ? `${seconds} s` : `${count(Math.round(seconds / 60))} min`} left`;
}

function scores(run) {
  return el("ul", { class: "run-scores" }, run.scorers.map((scorer) =>
    el("li", {},
      named(scorer.name, { class: "of" }),
      el("strong", { class: "number" }, figure(scorer.mean)),
      scorer.mean === null ? el("span") : interval({ ...scorer, value: scorer.mean }),
      el("small", {}, scorer.n === null ? "" : `n ${count(scorer.n)}`, scorer.failed ? `, ${count(scorer.failed)} failed` : ""),
      el("span", { class: "links" }, scorer.judged && run.state !== "damaged" ? el("a", { href: `/runs/${run.number}/label/${encodeURIComponent(scorer.name)}`, "aria-label": `label run ${run.number} for ${visible(scorer.name)}` }, "label") : null,
      run.files?.length && scorer.n !== null ? el("a", { href: `/runs/${run.number}/trend/${encodeURIComponent(scorer.name)}`, "aria-label": `trend of ${visible(scorer.name)} up to run ${run.number}` }, "trend") : null))));
}

function choose(number, checked) {
  state.chosen = checked ? [...state.chosen, number].slice(-MOST) : state.chosen.filter((one) => one !== number);
  draw();
}

const shortened = (names) => names.slice(0, 2).join(", ") + (names.length > 2 ? ` and ${names.length - 2} more` : "");

function row(run) {
  const damaged = run.state === "damaged";
  return el("tr", {},
    el("td", { "data-name": "compare" }, el("input", { type: "checkbox", name: `run-${run.number}`, checked: state.chosen.includes(run.number), disabled: damaged, "aria-label": `compare run ${run.number}`, onchange: (event) => choose(run.number, event.target.checked) })),
    el("th", { scope: "row" }, damaged ? `run ${run.number}` : el("a", { href: `/runs/${run.number}` }, `run ${run.number}`), run.name ? recorded(run.name, { class: "given" }) : null, damaged ? null : el("small", { title: run.started }, age(run.started), run.ended ? `, took ${took(run)}` : ""), damaged ? null : description(run)),
    el("td", { "data-name": "state" }, progress(run)),
    el("td", { "data-name": "file", class: "words" }, damaged ? null : run.files.length ? recorded(shortened(run.files)) : "samples in Python",
      damaged ? null : el("small", {}, plural(run.samples, "sample"), run.gates.length ? ` · ${plural(run.gates.length, "gate")}` : "")),
    el("td", { "data-name": "agent", class: "words" }, run.agents?.length ? recorded(shortened(run.agents)) : "–"),
    el("td", { "data-name": "judge", class: "words" }, damaged || !run.judges.length ? "–" : [recorded(run.judges.join(", ")), run.agents ? el("small", {}, run.cost === null ? "cost unknown" : `${dollars(run.cost)}${run.ended ? "" : " so far"}`) : null]),
    el("td", { "data-name": "scores" }, scores(run)));
}

/** Returns the tags and the note that people gave to a run, and fields to change these and its name. */
function description(run) {
  const problem = el("span", { role: "alert" });
  const field = (name, text) => el("label", { class: "filter" }, el("span", {}, name),
    el("input", { type: "text", value: text, autocomplete: "off", onchange: (event) => fetched(`/runs/${run.number}/description`, { [name]: event.target.value }).then(() => (problem.textContent = "saved"), (error) => (problem.textContent = visible(error.message))) }));
  return [
    run.tags.map((tag) => recorded(tag, { class: "chip" })),
    run.note ? el("small", {}, recorded(run.note)) : null,
    fold("edit", () => [field("name", run.name), field("tags", run.tags.join(" ")), field("note", run.note), problem], { class: "made-of", "aria-label": `name, tags and note of run ${run.number}` }),
  ];
}

function comparison() {
  if (state.chosen.length < 2) return el("p", { class: "lead" }, state.chosen.length ? "Choose another run to compare it with." : "Choose two or more runs to compare them.");
  const chosen = [...state.chosen].sort((one, other) => one - other);
  const [before, after] = chosen;
  if (chosen.length > 2) return el("p", {}, el("a", { href: `/compare?${chosen.map((number) => `run=${number}`).join("&")}` }, `Compare ${chosen.length - 1} runs with run ${before}`));
  return el("p", {}, el("a", { href: `/runs/${before}/compare/${after}` }, `Compare run ${after} with run ${before}`));
}

function draw() {
  const runs = state.runs.filter(passes);
  document.getElementById("lead").replaceChildren(`${runs.length === state.runs.length ? plural(runs.length, "run") : `${count(runs.length)} of ${plural(state.runs.length, "run")}`} in `, recorded(state.store));
  const focused = document.activeElement?.name;
  const heads = ["", "run", "state", "file", "agent", "judge", "scores"];
  const table = el("table", { class: "lines runs" }, el("thead", {}, el("tr", {}, heads.map((head) => (head ? el("th", { scope: "col" }, head) : el("td"))))), el("tbody", {}, runs.map(row)));
  document.getElementById("runs").replaceChildren(comparison(), runs.length ? el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Runs" }, table) : el("p", {}, state.runs.length ? "No run matches these filters." : "There are no runs yet: judgekit run creates one."));
  if (focused?.startsWith("run-")) document.getElementsByName(focused)[0]?.focus();
}

function filters() {
  const values = { file: new Set(), judge: new Set(), agent: new Set(), tag: new Set(), state: new Set() };
  for (const run of state.runs) {
    for (const file of run.files ?? []) values.file.add(file);
    for (const judge of run.judges ?? []) values.judge.add(judge);
    for (const agent of run.agents ?? []) values.agent.add(agent);
    for (const tag of run.tags ?? []) values.tag.add(tag);
    values.state.add(run.state);
  }
  const select = (name) =>
    el("label", { class: "filter" }, el("span", {}, name),
      el("select", { name, onchange: (event) => set(name, event.target.value) },
        ["", ...[...values[name]].sort()].map((text) => el("option", { value: text, selected: text === (asked().get(name) ?? "") }, visible(text) || "any"))));
  const search = el("input", { type: "search", name: "q", autocomplete: "off", spellcheck: "false", placeholder: "number, file, agent, judge or note", value: asked().get("q") ?? "", oninput: (event) => set("q", event.target.value) });
  const focused = document.activeElement?.name;
  document.getElementById("filters").replaceChildren(el("label", { class: "filter text" }, el("span", {}, "text"), search), Object.keys(values).filter((name) => values[name].size > 1 || asked().get(name)).map(select).reduce((all, one) => (all.append(one), all), document.createDocumentFragment()));
  if (QUERY.includes(focused)) document.getElementsByName(focused)[0]?.focus();
}

async function update() {
  Object.assign(state, await fetched("/runs.json"));
  if (document.activeElement?.name !== "q") filters();
  if (!document.querySelector("#runs details[open]")) draw();
  document.documentElement.dataset.ready = "usable";
  if (state.runs.some((run) => run.agents === null)) setTimeout(() => update().catch(() => {}), 500);
}

document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
setInterval(() => document.querySelector(":focus") === null && state.runs.length && draw(), 60_000);
keepShown(update);
