"""Plants: recordings with one value changed, in a sentence of the agent or in its results, or with the result removed.

What became of each sentence is known then. Measured are the share of the plants that code finds alone, since the number or
id is not in the source that a judge waves through with; whether a judge that answers rightly gets exactly the planted
verdicts; and whether one that invents quotes, or cites what comes later or what the agent said, is caught.

python benchmarks/groundedness.py ../shared/data/traces/tau2/*.json
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgekit import Groundedness, Sample, Score, ScriptedJudge, read
from judgekit.judges.request import Request
from judgekit.traces.sentences import agent_sentences

SEED = 20261129
OF_EACH = 5
"""The most plants of each kind in a recording."""
WAYS = ("sentence", "results", "removed")
NOTHING = {"source": None, "document": None, "quote": ""}
SUPPORTED = {"document": None, "verdict": "supported", "bad": []}
_LEAVES = {"digits": re.compile(r"(?=.*\d)[\w@.-]{2,40}"), "words": re.compile(r"[^\W\d][^\d]{3,38}[^\W\d]")}


@dataclass(frozen=True)
class Claim:
    """A sentence of the agent with a value of an earlier result that neither the user nor the instructions have."""

    message: int
    start: int
    text: str
    value: str
    kind: str
    source: int


@dataclass(frozen=True)
class Plant:
    """A recording of which the verdict on every claim is known."""

    sample: Sample
    claims: Sequence[Claim]
    verdicts: Sequence[str]
    planted: Claim
    way: str
    shown: str
    """The value as it now stands in the sentence."""


Entry = Mapping[str, object]
Answer = Callable[[Plant, Claim, str], Entry | list[Entry]]


def word(value: str) -> re.Pattern[str]:
    """A value by itself, not within a longer word or number."""
    return re.compile(rf"(?<![\w.,@-]){re.escape(value)}(?![\w@-]|[.,]\d)")


def leaves(value: object) -> Iterator[str]:
    """The texts and numbers of a result."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def results(sample: Sample) -> dict[int, str]:
    """The results of the agent's calls, by the number of their message."""
    messages = enumerate(sample.trace.messages, 1)
    return {at: message.text for at, message in messages if message.role == "tool" and message.requestor == "assistant"}


def find(value: str, sample: Sample, before: int) -> int | None:
    """The first result with a value before a message."""
    return next((at for at, text in results(sample).items() if at < before and word(value).search(text)), None)


def claims(sample: Sample) -> list[Claim]:
    """The claims of a recording, at most one a sentence."""
    known = "\n".join(message.text for message in sample.trace.messages if message.role in {"user", "system"})
    values: dict[str, str] = {}
    for text in results(sample).values():
        try:
            result = json.loads(text)
        except ValueError:
            continue
        for value in leaves(result):
            kind = next((kind for kind, pattern in _LEAVES.items() if pattern.fullmatch(value)), None)
            if kind and not word(value).search(known):
                values[value] = kind
    found: list[Claim] = []
    sentences = agent_sentences(sample.trace)
    times = Counter((sentence.message, sentence.text) for sentence in sentences)
    for sentence in sentences:
        assert isinstance(sentence.message, int)
        if times[sentence.message, sentence.text] > 1:
            continue
        for value in sorted(values, key=len, reverse=True):
            if len(word(value).findall(sentence.text)) == 1 and (source := find(value, sample, sentence.message)):
                found.append(Claim(sentence.message, sentence.start, sentence.text, value, values[value], source))
                break
    return found


def changed(value: str, kind: str, everything: str, rng: random.Random) -> str:
    """Another value of the same form that stands nowhere in the recording."""
    while True:
        digits = "".join(str(rng.randrange(1, 10)) if sign.isdigit() else sign for sign in value)
        other = digits if kind == "digits" else "".join(rng.sample(value.lower(), len(value)))
        if other == other.strip() and not word(other).search(everything) and not word(other).search(value):
            return other


def plant(sample: Sample, held: Sequence[Claim], at: int, way: str, rng: random.Random) -> Plant:
    """Return the recording with a plant in one of its claims."""
    claim = held[at]
    everything = "\n".join(message.text for message in sample.trace.messages)
    other = changed(claim.value, claim.kind, everything, rng)
    messages = list(sample.trace.messages)
    text = word(claim.value).sub(lambda _: other, claim.text)
    if way == "sentence":
        said = messages[claim.message - 1].text
        content = said[: claim.start] + text + said[claim.start + len(claim.text) :]
        messages[claim.message - 1] = messages[claim.message - 1].model_copy(update={"content": content})
    else:
        for number, result in results(sample).items():
            new = word(claim.value).sub(lambda _: other, result) if way == "results" else ""
            if word(claim.value).search(result):
                messages[number - 1] = messages[number - 1].model_copy(update={"content": new})
    trace = sample.trace.model_copy(update={"messages": tuple(messages)})
    planted = sample.model_copy(update={"trace": trace})
    if way == "sentence":
        held = [replace(claim, text=text) if one is claim else one for one in held]
        verdicts = ["contradicted" if one.text == text else "supported" for one in held]
        return Plant(planted, held, verdicts, held[at], way, other)
    verdicts = ["supported" if find(one.value, planted, one.message) else "unsupported" for one in held]
    return Plant(planted, held, verdicts, claim, way, claim.value)


def plants(path: Path, seed: int = SEED, most: int = OF_EACH) -> Iterator[Plant]:
    """The plants in the recordings of a file."""
    rng = random.Random(seed)  # noqa: S311 - it draws plants
    for sample in read(path):
        held = claims(sample)
        for way in WAYS:
            for kind in _LEAVES:
                of_kind = [at for at, claim in enumerate(held) if claim.kind == kind]
                for at in rng.sample(of_kind, min(most, len(of_kind))):
                    yield plant(sample, held, at, way, rng)


# Judges


def window(text: str, value: str) -> str:
    """A short part of one line of a text, with a value if it is there."""
    match = word(value).search(text)
    start, end = match.span() if match else (0, 20)
    line = text[max(0, start - 25) : end + 5]
    return next(part for part in line.split("\n") if match is None or value in part)


def rightly(it: Plant, claim: Claim, verdict: str) -> Entry:
    """The entry of a judge that is right."""
    if verdict == "unsupported":
        return {**NOTHING, "verdict": verdict, "bad": [claim.value]}
    texts = results(it.sample)
    if verdict == "contradicted":
        source, bad, value = claim.source, [it.shown], claim.value
    else:
        source, bad, value = find(claim.value, it.sample, claim.message) or 0, [], claim.value
    return {"source": source, "document": None, "quote": window(texts[source], value), "verdict": verdict, "bad": bad}


def waving(it: Plant, claim: Claim, _: str) -> list[Entry]:
    """The entries of a judge that calls everything supported, and cites all that came before, so that code looks in it."""
    earlier = enumerate(it.sample.trace.messages[: claim.message - 1], 1)
    texts = {at: message.text for at, message in earlier if message.role in {"tool", "user"} and message.text.strip()}
    return [
        {"source": at, "document": None, "quote": window(text, claim.value), "verdict": "supported", "bad": []}
        for at, text in texts.items()
    ]


def inventing(_it: Plant, claim: Claim, _verdict: str) -> Entry:
    """The entry of a judge that cites the right message with words that it does not have."""
    return {**SUPPORTED, "source": claim.source, "quote": f'"answer": "{" ".join(claim.text.split())}"'}


def late(it: Plant, claim: Claim, _: str) -> Entry:
    """The entry of a judge that quotes what comes after the sentence, if anything does."""
    later = {
        at: message.text
        for at, message in enumerate(it.sample.trace.messages, 1)
        if at > claim.message and message.text.strip()
    }
    if not later:
        return {**NOTHING, "verdict": "unsupported", "bad": []}
    tools = [at for at in later if at in results(it.sample)]
    source = (tools or [*later])[0]
    return {**SUPPORTED, "source": source, "quote": window(later[source].strip(), claim.value)}


def own(it: Plant, claim: Claim, _: str) -> Entry:
    """The entry of a judge that takes the agent's word for it."""
    quote = window(" ".join(claim.text.split()), it.shown if claim is it.planted else claim.value)
    return {**SUPPORTED, "source": claim.message, "quote": quote}


JUDGES = {"rightly": rightly, "waving": waving, "inventing": inventing, "late": late, "own": own}
_LISTED = re.compile(r"^\| (\d+)\. \(message (\d+)\) (.*)$", re.MULTILINE)


def judged(it: Plant, answer: Answer) -> Score:
    """The score with a judge that reads the sentences in its request."""
    held = {
        (claim.message, " ".join(claim.text.split())): (claim, verdict)
        for claim, verdict in zip(it.claims, it.verdicts, strict=True)
    }

    def reply(request: Request) -> dict[str, object]:
        listed = request.messages[1].content.rpartition(" sentences begins]")[2]
        entries: list[Entry] = []
        for number, message, text in _LISTED.findall(listed):
            if (int(message), text) in held:
                given = answer(it, *held[int(message), text])
                claimed = [{"kind": "fact", **entry} for entry in (given if isinstance(given, list) else [given])]
            else:
                claimed = [{"kind": "none", **NOTHING, "verdict": None, "bad": []}]
            entries += [{"sentence": int(number), **entry} for entry in claimed]
        return {"entries": entries}

    score = Groundedness(ScriptedJudge(reply)).score(it.sample)
    assert score.status == "scored", score.reason
    return score


def rows_of(score: Score, claim: Claim) -> list[dict]:
    """The rows on a claim."""
    rows = score.details["sentences"]
    return [row for row in rows if (row["message"], row["text"]) == (claim.message, claim.text) and row["verdict"]]


def gets_the_planted_verdicts(it: Plant) -> bool:
    """Whether a judge that answers rightly gets exactly the planted verdicts and passages, and the label for them."""
    score = judged(it, rightly)
    counts = Counter(it.verdicts)
    label = "contradicted" if counts["contradicted"] else "partly" if counts["supported"] else "ungrounded"
    label = "grounded" if counts["supported"] == counts.total() else label
    for claim, verdict in zip(it.claims, it.verdicts, strict=True):
        for row in rows_of(score, claim):
            text = it.sample.trace.messages[claim.message - 1].text
            bad = [text[start:end] for start, end in row["bad"]]
            expected = [] if verdict == "supported" else [it.shown if verdict == "contradicted" else claim.value]
            if (row["verdict"], bad, row["problem"]) != (verdict, expected, None):
                return False
    return score.label == label and score.value == counts["supported"] / counts.total()


def caught(it: Plant, answer: Answer) -> tuple[int, int]:
    """How many claims with such an entry count as supported no more, and how many had one."""
    score = judged(it, answer)
    rows = [row for claim in it.claims for row in rows_of(score, claim) if row["quote"]]
    return sum(row["verdict"] == "unsupported" and row["problem"] is not None for row in rows), len(rows)


def main() -> None:
    """Print the tables."""
    found: Counter[tuple[str, str, str]] = Counter()
    planted: Counter[tuple[str, str, str]] = Counter()
    right = total = 0
    stopped = {name: [0, 0] for name in ("inventing", "late", "own")}
    untouched: dict[str, Counter[tuple[str, str]]] = {"waving": Counter(), "rightly": Counter()}
    for path in map(Path, sys.argv[1:]):
        domain = path.name.split("_")[1]
        for it in plants(path):
            kind = (domain, it.way, it.planted.kind)
            rows = rows_of(judged(it, waving), it.planted)
            planted[kind] += 1
            found[kind] += any(figure in it.shown or it.shown in figure for figure in rows[0]["numbers_missing"])
            right += gets_the_planted_verdicts(it)
            total += 1
            for name, counts in stopped.items():
                for at, number in enumerate(caught(it, JUDGES[name])):
                    counts[at] += number
        for sample in read(path):
            if held := claims(sample):
                it = Plant(sample, held, ["supported"] * len(held), held[0], "", held[0].value)
                for name, counts in untouched.items():
                    score = judged(it, JUDGES[name])
                    for claim in held:
                        counts[claim.kind, "flagged"] += bool(rows_of(score, claim)[0]["numbers_missing"])
                        counts[claim.kind, "all"] += 1
    print(f"Seed {SEED}, at most {OF_EACH} plants of each kind in a recording.\n")
    print("| recordings | changed | value with digits: found by code | words: found by code |\n|---|---|---|---|")
    for domain, way in dict.fromkeys((domain, way) for domain, way, _ in planted):
        cells = (f"{found[domain, way, kind]} of {planted[domain, way, kind]}" for kind in _LEAVES)
        print(f"| {domain} | {way} | {' | '.join(cells)} |")
    print("\n| untouched sentences with a number that is not | value with digits | words |\n|---|---|---|")
    for name, where in (
        ("waving", "in any result or words of the user before"),
        ("rightly", "in the one result cited"),
    ):
        cells = (f"{untouched[name][kind, 'flagged']} of {untouched[name][kind, 'all']}" for kind in _LEAVES)
        print(f"| {where} | {' | '.join(cells)} |")
    print()
    print(f"A judge that answers rightly gets exactly the planted verdicts: {right} of {total}")
    for name, (number, of) in stopped.items():
        print(f"Claims of a judge that is {name}: {number} of {of} caught")


if __name__ == "__main__":
    main()
