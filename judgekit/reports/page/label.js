// Labeling of one sample after another, by keyboard or mouse. The labels are downloaded as CSV.

const sheet = JSON.parse(document.getElementById("head").textContent);
const SIZE = sheet.samples.length;
const STORED = `judgekit-labels-${sheet.key}`;

/** Returns the turn that is labeled: its number, and those of its first and last message; null if the sample is. */
const turnAt = (at) => sheet.samples[at][6];

/** Returns the label of what nobody has labeled; that of a turn names its first message. */
const blank = (at) => ({ value: "", reason: "", message: turnAt(at) ? `${turnAt(at)[1]}` : "" });

const state = { at: 0, annotator: "", unsaved: false, labels: sheet.samples.map((_, at) => blank(at)) };
const steps = [];
let isKept = false;

// --- what the browser stores, if it may

function restore() {
  if (sheet.served) return;
  try {
    const found = JSON.parse(localStorage.getItem(STORED));
    if (!found || found.labels?.length !== SIZE) return;
    state.annotator = `${found.annotator ?? ""}`;
    state.unsaved = found.unsaved === true;
    state.at = Number.isInteger(found.at) && found.at >= 0 && found.at < SIZE ? found.at : 0;
    found.labels.forEach((one, at) => {
      const value = `${one?.value ?? ""}`;
      state.labels[at] = { value: isLabel(value) ? value : "", reason: `${one?.reason ?? ""}`, message: turnAt(at) ? blank(at).message : `${one?.message ?? ""}` };
    });
  } catch {
    // The browser stores nothing: labels last as long as the page is open.
  }
}

function keep() {
  if (sheet.served) return (isKept = true);
  try {
    localStorage.setItem(STORED, JSON.stringify(state));
    isKept = true;
  } catch {
    isKept = false;
  }
}

// --- labels

const isGiven = (at) => state.labels[at].value !== "";
const given = () => state.labels.filter((one) => one.value !== "").length;
const isLabel = (value) => (sheet.choices.length ? sheet.choices.some(([, written]) => written === value) : /^(0|1|0?\.\d+|0\.|1\.0*|n\/a)$/.test(value));
const inWords = (value) => sheet.choices.find(([, written]) => written === value)?.[0] ?? value;

/** Gives a label and moves to the next sample; giving the same label again removes it. */
function give(value) {
  const { at } = state;
  const before = state.labels[at].value;
  const after = before === value && !sheet.served ? "" : value;
  steps.push({ at, before });
  state.labels[at].value = after;
  changed(0);
  const said = after ? `Sample ${at + 1}: ${inWords(after)}.` : `Sample ${at + 1}: label removed.`;
  if (sheet.marks && after && after !== sheet.marks && !state.labels[at].message) {
    draw(`${said} Now name the message where it went wrong.`);
    document.getElementById("mark").focus();
  } else if (after && at + 1 < SIZE) go(at + 1, said);
  else draw(said);
}

function undo() {
  const step = steps.pop();
  if (!step) return say("Nothing to undo.");
  if (sheet.served && !step.before) return go(step.at, `Sample ${step.at + 1}: its label is stored, give another one to change it.`);
  state.labels[step.at].value = step.before;
  state.at = step.at;
  changed(0);
  go(step.at, `Sample ${step.at + 1}: ${step.before ? inWords(step.before) : "no label"} again.`);
}

function changed(pause = 800) {
  if (sheet.served) return send(state.at, pause);
  state.unsaved = true;
  keep();
}

// --- navigation

function go(at, said = "") {
  if (at < 0 || at >= SIZE) return;
  state.at = at;
  keep();
  draw(said);
  scrollTo(0, 0);
  main.querySelector("h1").focus({ preventScroll: true });
  if (turnAt(at)) document.getElementById(`message-${turnAt(at)[1]}`)?.scrollIntoView({ block: "nearest" });
}

function nextBlank() {
  for (let by = 1; by <= SIZE; by++) {
    const at = (state.at + by) % SIZE;
    if (!isGiven(at)) return go(at);
  }
  say("All samples have a label.");
}

const say = (text) => (document.getElementById("said").textContent = text);

// --- display

const main = document.getElementById("main");

function draw(said = "") {
  const [number, , , , , place, turn] = sheet.samples[state.at];
  const content = JSON.parse(document.getElementById(`sample-${place}`).textContent);
  const heading = turn ? `Turn ${turn[0]} of sample #${number} · ${state.at + 1} of ${SIZE}` : `Sample ${state.at + 1} of ${SIZE}`;
  if (turn && content.messages) Object.assign(content, { unlinked: turn[2] < content.messages.length ? [] : content.unlinked, messages: content.messages.slice(0, turn[2]) });
  main.replaceChildren(el("article", { class: "sample" },
    el("div", { class: "sample-head" }, el("h1", { tabindex: -1 }, heading), turn ? el("p", { class: "lead" }, `Messages ${turn[1]} to ${turn[2]}, by what was known at their end.`) : null),
    el("div", { class: "beside" }, material(content), panel())));
  for (let at = turn?.[1] ?? 1; at <= (turn?.[2] ?? 0); at++) document.getElementById(`message-${at}`)?.classList.add("is-turn");
  const done = given();
  document.getElementById("count").textContent = `${count(done)} of ${count(SIZE)} labeled`;
  Object.assign(document.getElementById("progress"), { value: done, max: SIZE });
  document.body.classList.toggle("is-done", done === SIZE);
  say(`${said} ${done === SIZE ? "All samples are labeled: download the labels." : ""}`.trim());
}

function material(content) {
  const made = el("section", { class: "talk" });
  for (const [name, text] of content.known) made.append(el("section", { class: "known" }, el("h2", {}, name), prose(readable(text))));
  const both = content.baseline !== null;
  made.append(el("h2", {}, both ? "The first" : "Conversation"), content.messages ? recording(content.messages, "message-", content.unlinked) : withoutMessages());
  if (both) made.append(el("h2", { class: "second" }, "The second"), recording(content.baseline, "baseline-"));
  return made;
}

const recording = (messages, prefix, unlinked = []) => conversation(messages, placeOf(messages, prefix, unlinked), [], null, unlinked);

function panel() {
  const { value, reason } = state.labels[state.at];
  const comment = el("textarea", { id: "reason", rows: 2, oninput: (event) => ((state.labels[state.at].reason = event.target.value), changed()) });
  comment.value = reason;
  const step = (by, text, key) => el("button", { type: "button", disabled: state.at + by < 0 || state.at + by >= SIZE, onclick: () => go(state.at + by) }, text, " ", el("kbd", {}, key));
  return el("section", { class: "panel", "aria-label": "Label" },
    el("div", { class: "ask" },
      el("h2", { id: "question" }, visible(sheet.question)),
      sheet.choices.length ? buttons(value) : number(value),
      el("nav", { class: "steps", "aria-label": "Samples" }, step(-1, "previous", "k"), step(1, "next", "j"),
        el("button", { type: "button", onclick: nextBlank }, "next unlabeled ", el("kbd", {}, "n")),
        el("button", { type: "button", disabled: !steps.length, onclick: undo }, "undo ", el("kbd", {}, "u")))),
    el("div", { class: "more-to-say" },
      isKept ? null : el("p", { class: "note" }, "This browser cannot store your labels: download them before you leave this page."),
      sheet.marks ? mark() : null,
      el("label", { for: "reason" }, "Reason (optional) ", el("kbd", {}, "c")), comment,
      sheet.instructions ? fold("How to decide: the judge's instructions", () => prose(sheet.instructions), { class: "made-of", open: state.at === 0 }) : null));
}

/** Returns a field for the message where it went wrong; a click on the number of a message fills it. */
function mark() {
  const input = el("input", { id: "mark", type: "text", inputmode: "decimal", autocomplete: "off", size: 8 });
  input.value = state.labels[state.at].message;
  const take = (text) => {
    const right = text === "" || document.getElementById(`message-${text}`) !== null;
    input.setAttribute("aria-invalid", `${!right}`);
    if (!right) return say(`There is no message ${text}.`);
    state.labels[state.at].message = text;
    changed();
  };
  input.addEventListener("input", () => take(input.value.trim()));
  input.addEventListener("fill", (event) => ((input.value = event.detail), take(input.value)));
  input.addEventListener("keydown", (event) => event.key === "Enter" && go(state.at + 1));
  return [el("label", { for: "mark" }, "Message where it went wrong (optional) ", el("kbd", {}, "m")), input];
}

const buttons = (value) =>
  el("div", { class: "choices", role: "group", "aria-labelledby": "question" }, sheet.choices.map(([text, written], at) =>
    el("button", { type: "button", "aria-pressed": `${written === value}`, onclick: () => give(written) }, at < 9 ? el("kbd", {}, `${at + 1}`) : null, named(text))));

function number(value) {
  const input = el("input", { id: "number", type: "text", inputmode: "decimal", autocomplete: "off", size: 6, "aria-describedby": "range" });
  input.value = value;
  const take = (event) => {
    event.preventDefault();
    const text = input.value.trim().replace(",", ".");
    const right = isLabel(text);
    input.setAttribute("aria-invalid", `${!right}`);
    if (right && text !== value) give(text);
    else if (right) go(state.at + 1);
    else say("Give a number from 0 to 1, such as 0.5, or n/a if the question does not apply.");
  };
  return el("form", { class: "choices", onsubmit: take },
    el("label", { for: "number" }, "Value"), input, el("button", { type: "submit" }, "Set ", el("kbd", {}, "Enter")),
    el("small", { id: "range" }, "from 0 to 1; 1 is best, 0 is worst"));
}

// --- keys

const KEYS = {
  j: () => go(state.at + 1),
  ArrowRight: () => go(state.at + 1),
  k: () => go(state.at - 1),
  ArrowLeft: () => go(state.at - 1),
  n: nextBlank,
  u: undo,
  c: () => document.getElementById("reason").focus(),
  m: () => document.getElementById("mark")?.focus(),
  d: openSaving,
  "?": () => document.getElementById("keys").showModal(),
};

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches?.("textarea, input")) {
    if (event.key === "Escape") main.querySelector("h1").focus();
    return;
  }
  const choice = /^[1-9]$/.test(event.key) ? sheet.choices[event.key - 1] : null;
  if (choice) event.repeat || give(choice[1]);
  else if (!sheet.choices.length && /^[\d.,]$/.test(event.key)) return document.getElementById("number").select();
  else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
  else return;
  event.preventDefault();
}

// --- the file

const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NUMBER = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufffe\uffff]/g;

/** Returns a CSV cell that no spreadsheet runs as a formula. */
function cell(value) {
  if (value === null || typeof value === "number") return value === null ? "" : `${value}`;
  const text = value.replace(CONTROLS, "\ufffd");
  return `"${(FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function csv() {
  const rows = sheet.samples.map(([number, sample, selection, probability, role], at) => {
    const { value, reason, message } = state.labels[at];
    const row = { sample, scorer: sheet.scorer, value, message, annotator: state.annotator.trim(), reason, run: sheet.run, number, recordings: sheet.recordings, selection, probability, role };
    return sheet.columns.map((name) => row[name]);
  });
  return `\ufeff${[sheet.columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}

function openSaving() {
  const blank = SIZE - given();
  document.getElementById("left-blank").textContent = blank ? `${plural(SIZE - blank, "sample")} of ${count(SIZE)} labeled; ${blank === 1 ? "the other stays" : `the other ${count(blank)} stay`} blank.` : `All ${plural(SIZE, "sample")} are labeled.`;
  document.getElementById("annotator").value = state.annotator;
  document.getElementById("saving").showModal();
}

function save() {
  state.annotator = document.getElementById("annotator").value;
  const url = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
  const name = ["labels", `run-${sheet.run}`, sheet.scorer, state.annotator.trim()].filter(Boolean).join("-").replace(/[^\p{L}\p{N}_.-]+/gu, "-");
  el("a", { href: url, download: `${name.slice(0, 100)}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  state.unsaved = false;
  keep();
  say("The labels are downloaded.");
}

function start() {
  restore();
  keep();
  document.getElementById("help").addEventListener("click", KEYS["?"]);
  document.getElementById("save").addEventListener("click", openSaving);
  document.getElementById("not-now").addEventListener("click", () => document.getElementById("saving").close());
  document.getElementById("naming").addEventListener("submit", save);
  addEventListener("keydown", key);
  main.addEventListener("click", (event) => {
    const place = event.target.closest(".message .place");
    if (place) document.getElementById("mark")?.dispatchEvent(new CustomEvent("fill", { detail: place.textContent }));
  });
  addEventListener("storage", (event) => {
    if (event.key !== STORED) return;
    const { at } = state;
    // Another tab with this sheet has changed the labels.
    restore();
    state.at = at;
    draw();
  });
  addEventListener("beforeunload", (event) => state.unsaved && event.preventDefault());
  draw();
  if (sheet.served) askName();
  document.documentElement.dataset.ready = "usable";
}

start();
