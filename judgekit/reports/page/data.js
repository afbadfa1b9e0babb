// The data of the page: the numbers of each run, the list of its samples, and each sample on demand.

const STATUSES = ["scored", "skipped", "failed", "abstained"];
const AT_ONCE = 16;

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** A run: the only one, or one of two that are compared. */
class Side {
  constructor(name, run, list) {
    Object.assign(this, { name, run, list });
    this.texts = [];
    this.reasons = [];
    this.previews = [];
    this.read = 0;
    this.places = new Map(list.numbers.map((number, at) => [number, at]));
    this.scorers = new Map(run.scorers.map((one, at) => [one.name, at]));
  }

  static async of(name, run) {
    return new Side(name, run, await unpacked(`list-${name}`));
  }

  get size() {
    return this.list.numbers.length;
  }

  /** Returns a scorer's score of the sample at a place of the list; null if there is none. */
  score(at, scorer) {
    const column = at === null ? undefined : this.scorers.get(scorer);
    if (column === undefined) return null;
    const { status, value, label, first_bad: bad } = this.list.scores[column];
    return (status[at] ?? "-") === "-" ? null : { status: STATUSES[status[at]], value: value[at], label: label[at], bad: bad[at] };
  }

  /** Returns a complete sample. */
  async sample(at) {
    const number = Math.floor(at / AT_ONCE);
    if (this.kept?.number !== number) this.kept = { number, samples: unpacked(`samples-${this.name}-${number}`) };
    return sampleIn(await this.kept.samples, at % AT_ONCE);
  }

  /** Reads the texts of all samples, a few at a time so that the page stays responsive; ends if the run is read anew. */
  async readAll(told) {
    for (let number = 0; number * AT_ONCE < this.size && report[this.name] === this; number++) {
      const pack = await unpacked(`samples-${this.name}-${number}`);
      for (let at = 0; at < pack.scores.length; at++) {
        const sample = sampleIn(pack, at);
        this.reasons.push(sample.scores.map((score) => score?.reason ?? ""));
        this.previews.push(previewOf(sample.messages));
        this.texts.push(textOf(sample).toLowerCase());
      }
      this.read = this.texts.length;
      told();
      await untilWanted(this);
    }
  }
}

/** Returns a sample of a pack, which holds its samples field by field to compress well. */
const sampleIn = (pack, at) => Object.fromEntries(Object.entries(pack).map(([name, column]) => [name, column[at]]));

/** Returns the first words of the user and the last ones of the agent, each on one line; empty if there are none. */
function previewOf(messages) {
  const said = (role) => (message) => message.role === role && message.parts.some(([kind, text]) => kind === "text" && text.trim());
  const [question, answer] = [messages?.find(said("user")), messages?.findLast(said("assistant"))];
  return [question, answer].map((message) => (message ? message.parts.filter(([kind]) => kind === "text").map(([, text]) => text.slice(0, 300)).join(" ").trim().replace(/\s+/g, " ").slice(0, 300) : ""));
}

/** Returns the searchable text of a sample. */
function textOf(sample) {
  const texts = sample.scores.map((score) => (score ? `${score.label ?? ""}\n${score.reason}` : ""));
  const add = (messages, unlinked = []) => {
    for (const message of messages ?? []) {
      texts.push(message.who ?? "", ...message.parts.map((part) => part[1]));
      for (const call of message.calls ?? []) texts.push(call.name, call.args);
      for (const agent of message.sub_agents ?? []) addAgent(agent);
    }
    unlinked.forEach(addAgent);
  };
  const addAgent = (agent) => {
    texts.push(agent.agent ?? "");
    add(agent.messages, agent.unlinked);
  };
  add(sample.messages, sample.unlinked);
  add(sample.baseline);
  return texts.join("\n");
}

const report = { head: null, a: null, b: null, samples: [], scorers: [] };

/** Takes over a head of the page, and reads the lists of samples unless a server lists them as they are wanted. */
async function read(head) {
  const { b, a, pairs } = head;
  report.head = head;
  if (head.choices) Object.assign(report, { b: new PagedSide("b", b), a: a ? new PagedSide("a", a) : null, pairs: new Map() });
  else {
    Object.assign(report, { b: await Side.of("b", b), a: a ? await Side.of("a", a) : null });
    report.samples = report.b.list.numbers.map((_, at) => ({ a: pairs?.[at] ?? null, b: at }));
    const paired = new Set(pairs);
    report.a?.list.numbers.forEach((_, at) => paired.has(at) || report.samples.push({ a: at, b: null }));
  }
  const names = [...(a?.scorers ?? []), ...b.scorers].map((one) => one.name);
  report.scorers = [...new Set([...b.scorers.map((one) => one.name), ...names])];
}

/** Returns the number of all samples of the page. */
const size = () => (report.head.choices ? report.head.pairs ?? report.b.size : report.samples.length);

/** Returns the places of a sample in the lists of the runs. */
const placesOf = (number) => (report.head.choices ? pagedPlaces(number) : report.samples[number]);

const sides = () => [report.a, report.b].filter(Boolean);

/** Returns a sample's entry in the list of the reported run, or else in that of the baseline. */
function entry(number) {
  const sample = placesOf(number);
  const side = sample.b === null ? report.a : report.b;
  const at = sample.b ?? sample.a;
  const { numbers, ids, domains, labels } = side.list;
  return { key: `${sample.b === null ? "a" : ""}${numbers[at]}`, number: numbers[at], id: ids[at], domain: domains[at], labels: labels[at] ?? {} };
}

/** Returns the number of the sample that an address names; null if there is none. */
function sampleOf(key) {
  if (report.head.choices) return pagedNumber(key);
  const side = key.startsWith("a") ? "a" : "b";
  const at = report[side]?.places.get(Number(key.replace("a", "")));
  return at === undefined ? null : report.samples.findIndex((one) => one[side] === at);
}

const scoreOf = (number, scorer, side) => report[side]?.score(placesOf(number)[side], scorer) ?? null;

/** Returns the difference from A to B, ignoring rounding errors. */
const gain = (a, b) => (Math.abs(b - a) > 1e-9 ? b - a : 0);

/** Returns by how much a score changed; null if either is missing. */
function changeOf(number, scorer) {
  const [a, b] = [scoreOf(number, scorer, "a")?.value, scoreOf(number, scorer, "b")?.value];
  return typeof a === "number" && typeof b === "number" ? gain(a, b) : null;
}
