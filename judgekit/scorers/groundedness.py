"""Groundedness: which of the agent's claims do its sources support, sentence by sentence?"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

from pydantic import BaseModel, JsonValue, model_validator

from judgekit.errors import count_text, join_limited, short_repr
from judgekit.judges.evidence import CitedMessage, StrictNumber, has_quote
from judgekit.judges.judge import Judge, Judgment
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import ScaleValue, Score
from judgekit.scorers.turns import TurnJudgedScorer, Verdict
from judgekit.traces.figures import missing_figures
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, ToolMessage
from judgekit.traces.rendering import message_passages, message_text
from judgekit.traces.sample import Sample
from judgekit.traces.sentences import Sentence, agent_sentences
from judgekit.traces.tree import Branch, Chronology, MessageNumber, conversation_path, find_message
from judgekit.traces.turns import find_turns, numbered_sentences


class SentenceEntry(BaseModel):
    """A verdict on one sentence; the judge quotes a source before it decides."""

    sentence: StrictNumber
    kind: Literal["fact", "action", "none"]
    source: CitedMessage | None
    document: StrictNumber | None
    quote: str
    verdict: Literal["supported", "contradicted", "unsupported"] | None
    bad: list[str]

    @model_validator(mode="after")
    def _cites_what_decides(self) -> "SentenceEntry":
        if self.kind == "none":
            self.verdict, self.bad = None, []
        elif self.verdict is None:
            raise ValueError(f"sentence {self.sentence} needs a verdict")
        if self.verdict in (None, "unsupported"):
            self.source, self.document, self.quote = None, None, ""
        elif not self.quote.strip() or (self.source is None) == (self.document is None):
            raise ValueError(f"sentence {self.sentence} needs a quote of one message or of one document")
        return self


class GroundednessAnswer(BaseModel):
    """The entries of all sentences; sources and quotes are checked in code."""

    entries: list[SentenceEntry]


@dataclass(frozen=True)
class Groundedness(TurnJudgedScorer):
    """1 if sources support all facts and actions that the agent claims, else the share of the claims.

    Sources are tool results, documents, instructions, and what users say of themselves. A claim is unsupported, whatever
    the judge says, if its quote is not in the source, or if the source comes later, is the agent's own words or, for an
    action, no successful call's result. The label is ``contradicted``, ``grounded``, ``partly`` or ``ungrounded``. Skipped
    without claims. One judge request a sample. Details: ``sentences``, each with its source. With ``per_turn``, a turn has 1 if
    all its claims are supported, else 0, and the ``sentences`` of its own; see `TurnJudgedScorer`. Source: see the prompt.

    Example:
        ``Groundedness("openai/gpt-6-luna")``
    """

    judge: Judge | str
    name: str = "groundedness"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt for the judge."""
        return (load_prompt("groundedness"),)

    async def _score(self, sample: Sample) -> Score:
        no_turns = ["turns"] if self.per_turn and not find_turns(sample.trace) else []
        if missing := [*self.prompts[0].missing_inputs(sample), *no_turns]:
            return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")
        if self.per_turn:
            judgment, turns, verdicts = await self._ask_blocks(sample, self._ask)
            score = self._score_over_turns(judgment, turns, verdicts)
        else:
            judgment, [(grade, label, reason, details)] = await self._ask(self.prompts[0], sample)
            score = judgment.score(self.name, grade, label=label, reason=reason, details=details)
        shown = agent_sentences(judgment.sample.trace)
        is_same = shown == agent_sentences(sample.trace)[: len(shown)]
        redacted = () if is_same else ("spans are offsets in the text that was redacted for the judge",)
        return score.model_copy(update={"warnings": (*score.warnings, *redacted)})

    async def _ask(self, prompt: Prompt, sample: Sample) -> tuple[Judgment[GroundednessAnswer], list[Verdict]]:
        """Return the verdicts on the turns of a prompt, or without turns the only one."""
        judgment = Judgment(GroundednessAnswer(entries=[]), (), sample)
        if wanted := numbered_sentences(sample.trace, prompt.turns):
            judgment = await self._judge.ask(prompt, sample, GroundednessAnswer, partial(_check, wanted))
        rows = _rows(judgment.answer, judgment.sample)
        of_turns = [[row for row in rows if turn.has(cast("MessageNumber", row["message"]))] for turn in prompt.turns]
        return judgment, [_verdict(some, of_turn=bool(of_turns)) for some in of_turns or [rows]]


def _verdict(rows: Sequence[JsonObject], *, of_turn: bool = False) -> Verdict:
    """Return the verdict on sentences: the share of their claims that are supported; of a turn, whether all are."""
    verdicts = Counter(str(row["verdict"]) for row in rows if row["verdict"])
    supported, claims = verdicts["supported"], verdicts.total()
    label = "grounded" if supported == claims else "partly" if supported else "ungrounded"
    label = "contradicted" if verdicts["contradicted"] else label if claims else "no_claims"
    flagged = sum(bool(row["numbers_missing"]) for row in rows)
    reason = f"{supported} of {count_text(claims, 'claim')} supported, {flagged} with numbers_missing"
    bad = [row for row in rows if row["verdict"] not in (None, "supported")]
    flaws = (f"message {row['message']}: {row['problem'] or row['verdict']}: {short_repr(row['text'])}" for row in bad)
    details: JsonObject = {"sentences": [*rows], **({"evidence": [row["message"] for row in bad]} if of_turn else {})}
    grade: ScaleValue = "skipped" if not claims else float(not bad) if of_turn else supported / claims
    return Verdict(grade, label, join_limited([reason, *flaws]), details)


def _check(wanted: Mapping[int, Sentence], answer: GroundednessAnswer, _sample: Sample) -> None:
    entries = Counter((entry.sentence, entry.verdict, entry.source, entry.document) for entry in answer.entries)
    numbers = Counter(number for number, *_ in entries)
    doubled = {n for (n, verdict, *_), times in entries.items() if times > 1 or (verdict is None and numbers[n] > 1)}
    if wrong := sorted(({*numbers} ^ {*wanted}) | doubled):
        raise ValueError(
            f"must have an entry for each sentence, {min(wanted)} to {max(wanted)}, or each verdict; wrong: {wrong[:20]}"
        )


def _rows(answer: GroundednessAnswer, sample: Sample) -> list[JsonObject]:
    """Return the details on each entry, in the order of the sentences."""
    order = Chronology(sample.trace)
    relayed = {passage.message_number for passage in message_passages(Branch(sample.trace), 0) if passage.same_as}
    rows: list[JsonObject] = []
    for number, sentence in enumerate(agent_sentences(sample.trace), 1):
        entries = [entry for entry in answer.entries if entry.sentence == number]
        sources = [_source(entry, sentence, sample, order, relayed) for entry in entries]
        missing = missing_figures(sentence.text, [text for text, problem in sources if not problem])
        bad = " ".join(passage for entry in entries for passage in entry.bad)
        for entry, (_, problem) in zip(entries, sources, strict=True):
            spans = {passage: _span(passage, sentence) for passage in entry.bad}
            verdict = "unsupported" if problem else entry.verdict
            row: JsonObject = {**sentence._asdict(), "kind": entry.kind, "verdict": verdict, "problem": problem}
            source = entry.source or (entry.document and f"document {entry.document}")
            row |= {"source": source, "quote": entry.quote}
            row["bad"] = [span for span in spans.values() if span]
            row["passages_missing"] = [passage for passage, span in spans.items() if not span]
            row["numbers_missing"] = [figure for figure in missing if verdict == "supported" and figure not in bad]
            rows.append(row)
    return rows


def _span(passage: str, sentence: Sentence) -> list[JsonValue]:
    """Return the start and end of a passage of a sentence in the text of its message; nothing if it is not there."""
    match = re.search(r"\s+".join(map(re.escape, passage.split())), sentence.text)
    return [sentence.start + match.start(), sentence.start + match.end()] if match and match[0] else []


def _source(
    entry: SentenceEntry, sentence: Sentence, sample: Sample, order: Chronology, relayed: set[MessageNumber]
) -> tuple[str, str | None]:
    """Return the text of the source that decides an entry, and what is wrong with the source."""
    cited, documents = entry.source or 0, dict(enumerate(sample.documents or (), 1))
    message = find_message(sample.trace, cited)
    text = documents.get(entry.document or 0) if message is None else message_text(message)
    is_call = isinstance(message, ToolMessage) and message.requestor == "assistant"
    has_failed = isinstance(message, ToolMessage) and message.is_error and entry.verdict == "supported"
    is_task = conversation_path(cited) not in ("", conversation_path(sentence.message))
    is_agent = isinstance(message, AIMessage) or (isinstance(message, HumanMessage) and is_task)
    problems = {
        "source_missing": text is None,
        "source_later": message is not None and order.precedes(cited, sentence.message) is False,
        "source_is_agent": is_agent or cited in relayed,
        "call_missing": entry.kind == "action" and (has_failed or not is_call),
        "quote_missing": not has_quote(text or "", entry.quote),
    }
    return text or "", next((problem for problem, holds in problems.items() if holds and entry.quote), None)
