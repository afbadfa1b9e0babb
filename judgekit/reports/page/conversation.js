// A conversation as a chat, with messages numbered as judges saw them, and calls and results folded.

/** The place of a recording's messages in the page: the prefix of their ids, all of them by number, and the path of a sub-agent. */
const placeOf = (messages, prefix, unlinked = []) => (messages ? { prefix, path: "", numbers: new Map(numbered(messages, unlinked, "")) } : null);

const numberIn = (path, index) => (path ? `${path}.${index + 1}` : index + 1);

/** Returns the messages of a conversation and of its sub-agents, each with its number as text. */
const numbered = (messages, unlinked, path) =>
  messages.flatMap((message, index) => [[`${numberIn(path, index)}`, message], ...(message.sub_agents ?? []).flatMap(numberedIn)]).concat(unlinked.flatMap(numberedIn));

const numberedIn = (agent) => numbered(agent.messages, agent.unlinked ?? [], agent.path);

/** Returns a note on why a sample has no conversation. */
const withoutMessages = () => el("p", { class: "lead" }, "The conversation is not stored with the run, or is damaged there.");

/** Returns the messages of one conversation, with its sub-agents folded in their places. `citations` are those of the scores on display. */
function conversation(messages, place, citations, search, unlinked = []) {
  if (!messages.length && !unlinked.length) return el("p", { class: "lead" }, "The recording has no messages.");
  const made = el("ol", { class: "chat" });
  messages.forEach((message, index) => {
    const number = numberIn(place.path, index);
    const cited = citations.filter((one) => one.message === number);
    const marks = cited.flatMap((one) => quoted(one.quote)).map((pattern) => ({ pattern, kind: "quote", title: "quoted by a judge" }));
    if (search) marks.push({ pattern: search, kind: "hit" });
    made.append(messageItem(message, number, place, cited, marks));
    made.append(...(message.sub_agents ?? []).map((agent) => subAgent(agent, place, citations, search)));
  });
  made.append(...unlinked.map((agent) => subAgent(agent, place, citations, search)));
  return made;
}

/** Returns the conversation of a sub-agent, folded unless a judge cites it. */
function subAgent(agent, place, citations, search) {
  const within = { ...place, path: agent.path };
  const open = citations.some(({ message }) => `${message}`.startsWith(`${agent.path}.`));
  const summary = [el("span", { class: "place" }, agent.path), " ", el("span", { class: "kind" }, "sub-agent"), " ", recorded(agent.agent ?? "(no name)", { class: "who" }), " ", el("small", {}, plural(agent.messages.length, "message"))];
  const build = () => conversation(agent.messages, within, citations, search, agent.unlinked);
  return el("li", { class: "sub-agent" }, fold(summary, build, { open, id: `${place.prefix}${agent.path}` }));
}

/** Returns the pattern of a quotation, without the bars that judges see before each line. */
function quoted(quote) {
  const pattern = quote ? verbatim(quote.replace(/^\| /, "").replace(/\n\| /g, "\n")) : null;
  return pattern ? [pattern] : [];
}

const ROLES = { user: "user", assistant: "agent", system: "system", developer: "developer", tool: "tool result" };

function messageItem(message, number, place, cited, marks) {
  const tags = [...new Set(cited.map((one) => one.scorer))].map((name) => el("span", { class: "cited" }, "cited by ", recorded(name)));
  const answers = message.called ? el("span", {}, "from ", recorded(message.who ?? ""), " (called in ", jump(numberIn(place.path, message.called - 1), place), ")") : message.who ? recorded(message.who, { class: "who" }) : null;
  const item = el("li", { class: `message ${message.role}${cited.length ? " is-cited" : ""}${message.error ? " is-error" : ""}`, id: `${place.prefix}${number}`, tabindex: -1 },
    el("div", { class: "from" },
      place.link ? el("a", { class: "place", href: place.link(number), title: "link to this message" }, `${number}`) : el("span", { class: "place" }, `${number}`), el("span", { class: "role" }, ROLES[message.role] ?? message.role), answers,
      message.requestor === "user" ? el("span", { class: "who" }, "for the user") : null,
      message.error ? badge("failed", "error") : null, tags));
  const folded = message.role === "tool" || message.role === "system" || message.role === "developer";
  const empty = !message.parts.length && !message.calls?.length;
  if (empty) item.append(el("p", { class: "nothing" }, "(empty message)"));
  for (const [kind, text, ...more] of message.parts) item.append(part(kind, text, more, marks, folded));
  for (const call of message.calls ?? []) item.append(callFold(call, marks));
  return item;
}

function part(kind, text, more, marks, folded) {
  if (kind === "text" && folded && (text.length > 160 || text.includes("\n") || /^\s*[[{]/.test(text))) {
    const shown = () => prose(readable(text), marks, "pre");
    return fold([el("span", { class: "preview" }, oneLine(text)), el("small", {}, `${count(text.length)} characters`)], shown, { class: "result" });
  }
  if (kind === "text") return written(text, marks);
  if (kind === "reasoning") return fold([el("span", { class: "kind" }, "reasoning"), el("span", { class: "preview" }, oneLine(text))], () => prose(text, marks), { class: "result" });
  if (kind === "refusal") return el("div", { class: "refusal" }, el("span", { class: "kind" }, "refusal"), prose(text, marks));
  if (kind === "media") return el("p", { class: "media" }, el("span", { class: "kind" }, text), " ", recorded(more.join(", ")));
  return fold([el("span", { class: "kind" }, "other part"), el("span", { class: "preview" }, oneLine(text))], () => prose(readable(text), marks, "pre"), { class: "result" });
}

function callFold(call, marks) {
  const summary = [el("span", { class: "kind" }, "calls"), recorded(call.name || "(no name)", { class: "tool-name" }), el("span", { class: "preview" }, call.args === "{}" ? "" : oneLine(call.args)),
    call.error ? badge("failed", "arguments cannot be read") : null];
  return fold(summary, () => [call.error ? el("p", { class: "problem" }, recorded(call.error)) : null, prose(readable(call.args), marks, "pre")].filter(Boolean), { class: "call" });
}

const oneLine = (text) => text.slice(0, 400).replace(/\s+/g, " ");

/** Returns a button that scrolls to a message, if there is one with this number. */
function jump(number, place, text = `${number}`) {
  if (!place?.numbers.has(`${number}`)) return el("span", {}, text);
  return el("button", { class: "jump", type: "button", onclick: () => reveal(messageAt(number, place)), title: `go to message ${number}` }, text);
}

/** Returns the item of a message, after the sub-agents that it belongs to are unfolded. */
function messageAt(number, { prefix }) {
  const steps = `${number}`.split(".");
  for (let depth = 2; depth < steps.length; depth += 2) document.getElementById(`${prefix}${steps.slice(0, depth).join(".")}`)?.show();
  return document.getElementById(`${prefix}${number}`);
}

function reveal(item, block = "center") {
  if (!item) return;
  for (let around = item.parentElement; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
  for (const one of item.querySelectorAll("details")) one.open = true;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  item.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
  item.focus({ preventScroll: true });
  item.classList.remove("is-shown");
  requestAnimationFrame(() => item.classList.add("is-shown"));
}
