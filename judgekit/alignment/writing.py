"""Candidates for a better question, which a model writes from the labels that it may read."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated

from pydantic import BaseModel, StringConstraints

from judgekit.alignment.cases import Case
from judgekit.alignment.refusals import MOST_ADDED, RecordedPhrases, refusal
from judgekit.errors import STOPS, JudgeError
from judgekit.gathering import gather_all
from judgekit.judges.inputs import CONVERSATION, RenderOptions, prompt_input
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.redaction.redact import redact_sample
from judgekit.resources import resource_folder
from judgekit.runs.hashes import recording_key
from judgekit.score import Score
from judgekit.traces.message import HumanMessage
from judgekit.traces.rendering import cut_middle, fence_text
from judgekit.traces.sample import Sample

REQUESTS = 6
"""The number of requests to the writing model: four for guidelines, and two for a rewritten question."""
CANDIDATES = 8
"""The number of candidates: the answers to these, one with examples, and one with guidelines and examples."""
_MOST_RULES = 7
_MOST_WRITTEN = 1_200
_FEWEST_EXAMPLES, _MOST_EXAMPLES = 2, 4
_CASE_TOKENS = 1_500
_INPUT_CHARACTERS = 4_000
_ID = re.compile(r"[^\w.:/@+-]")
_ID_SHOWN = 40
_TEMPLATE = re.compile(r"\{[{%#]|[%#}]\}")
_HEADING = "How people here decide:"
_MARK = "{#- Written by judgekit align from human labels. Delete a line to withdraw its rule. #}"


@dataclass(frozen=True)
class Candidate:
    """A candidate for a better question."""

    kind: str
    prompt: Prompt | None = None
    refusal_reason: str = ""


_Line = Annotated[str, StringConstraints(min_length=1)]


class _Guideline(BaseModel):
    rule: _Line
    cases: list[int]


class _Guidelines(BaseModel):
    reason: str
    guidelines: list[_Guideline]


class _Rewritten(BaseModel):
    reason: str
    cases: list[int]
    question: _Line


@dataclass(frozen=True)
class CandidateWriter:
    """Writes candidates for one question.

    Attributes:
        judge: The model that writes.
        base: The old question.
        name: The name of the new one.
        train: The cases that may be read.
        scores: The old verdicts on them.
        phrases: The phrases of all labeled recordings, which no candidate may copy.
        others: Those of the recordings that choose and test, which no example may share.
        redact: What the judge that answers the question must not see; see `judgekit.judges.redaction.redact`.
    """

    judge: Judge
    base: Prompt
    name: str
    train: Sequence[Case]
    scores: Sequence[Score]
    phrases: RecordedPhrases
    others: RecordedPhrases
    redact: Callable[[str], str] | Sequence[str] = ()

    async def candidates(self) -> Sequence[Candidate]:
        """Return all candidates, with those that are refused.

        Raises:
            JudgeError: The writing model cannot be asked.
        """
        parts = self._parts()
        guided = [self._guidelines(part) for part in parts]
        rewritten = [self._rewritten(part) for part in parts[: REQUESTS - len(parts)]]
        written = await gather_all([*guided, *rewritten])
        examples = self._examples()
        rules = next((text for candidate, text in written[: len(parts)] if not candidate.refusal_reason), "")
        candidates = [*(candidate for candidate, _ in written), self._with_examples("examples", "", examples)]
        candidates.append(
            self._with_examples("guidelines and examples", rules, examples)
            if rules
            else Candidate("guidelines and examples", refusal_reason="no guidelines were accepted")
        )
        return candidates

    def _parts(self) -> Sequence[Sequence[int]]:
        """Return four selections of the cases: different halves of the disagreements, each with as many agreements."""
        ordered = sorted(range(len(self.train)), key=lambda at: recording_key(self.train[at].sample))
        wrong = [at for at in ordered if self.train[at].error(self.scores[at]) > 0]
        right = [at for at in ordered if at not in wrong]
        middle = (len(wrong) + 1) // 2
        halves = [wrong[::2], wrong[1::2] or wrong, wrong[:middle], wrong[middle:] or wrong]
        parts: list[Sequence[int]] = []
        for number, half in enumerate(halves):
            shift = number * len(right) // len(halves)
            chosen = [*half, *(right[shift:] + right[:shift])[: len(half)]]
            random.Random(number).shuffle(chosen)  # noqa: S311 - an order, not a secret
            parts.append(chosen)
        return parts

    async def _guidelines(self, part: Sequence[int]) -> tuple[Candidate, str]:
        try:
            answer = (await self.judge.ask(self._prompt("guidelines", part), _NOTHING, _Guidelines)).answer
        except JudgeError as error:
            return _unwritten("guidelines", error), ""
        rules = [(" ".join(guideline.rule.split()), guideline.cases) for guideline in answer.guidelines]
        rule_text = " ".join(rule for rule, _ in rules)
        refused = ""
        if not rules:
            refused = "the reply has no guidelines"
        elif len(rules) > _MOST_RULES or len(rule_text) > _MOST_WRITTEN:
            refused = f"it has {len(rules)} guidelines of {len(rule_text):,} characters; at most {_MOST_RULES} of {_MOST_WRITTEN:,} are allowed"
        elif "{" in rule_text or "}" in rule_text:
            refused = "it has braces, which stand for placeholders"
        if refused:
            return Candidate("guidelines", refusal_reason=refused), ""
        lines = [f"- {rule}{{#- Shown by: {self._ids(part, cases)} #}}" for rule, cases in rules]
        block = "\n".join((f"{_HEADING}", _MARK, *lines))
        return self._candidate("guidelines", f"{self.base.question}\n\n{block}", rule_text), block

    async def _rewritten(self, part: Sequence[int]) -> tuple[Candidate, str]:
        try:
            answer = (await self.judge.ask(self._prompt("question", part), _NOTHING, _Rewritten)).answer
        except JudgeError as error:
            return _unwritten("rewritten question", error), ""
        question = answer.question.strip()
        if "{#" in question:
            return Candidate("rewritten question", refusal_reason="it has template commands"), ""
        mark = f"{{#- Rewritten by judgekit align from human labels. Shown by: {self._ids(part, answer.cases)} #}}"
        return self._candidate("rewritten question", f"{question}\n{mark}", question), ""

    def _candidate(self, kind: str, question: str, written: str) -> Candidate:
        prompt = self._renamed(question)
        return Candidate(kind, prompt, refusal(self.base, prompt, written, self.phrases))

    def _renamed(self, question: str) -> Prompt:
        source = " ".join(filter(None, (self.base.source, "Aligned with people by judgekit align.")))
        return replace(self.base, name=self.name, question=question, source=source)

    def _ids(self, part: Sequence[int], cases: Sequence[int]) -> str:
        ids = [self.train[part[case - 1]].sample.id for case in dict.fromkeys(cases) if 0 < case <= len(part)]
        return ", ".join(_ID.sub("?", identifier)[:_ID_SHOWN] for identifier in ids) or "unknown"

    # Requests.

    def _prompt(self, kind: str, part: Sequence[int]) -> Prompt:
        labels = ", ".join(f"{label} ({value})" for label, value in self.base.scale)
        cases = "\n\n".join(self._case_text(number, at) for number, at in enumerate(part, 1))
        return _request(kind).with_options(question=self.base.question, labels=labels, cases=cases)

    def _case_text(self, number: int, at: int) -> str:
        """Return a case in words, between lines that it cannot forge."""
        case, score = self.train[at], self.scores[at]
        sample = self._redacted(case.sample)
        shown: list[str] = []
        for name in (*self.base.inputs, *self.base.optional):
            if prompt_input(name).is_present(sample):
                text = prompt_input(name).text(sample, RenderOptions(_CASE_TOKENS))
                shown.append(text if name == CONVERSATION else cut_middle(text, _INPUT_CHARACTERS))
        opinions = [
            f"people: {opinion.label}{opinion.reason and f': {self._redacted_text(opinion.reason)}'}"
            for opinion in case.labeled.opinions
        ]
        judged = score.label if score.label is not None else f"{score.value}"
        agrees = "agrees with people" if not case.error(score) else "does not agree with people"
        verdict = f"the judge {agrees}: {judged}: {self._redacted_text(score.reason)}"
        return fence_text(f"case {number}", "\n".join((*shown, *opinions, verdict)))

    def _redacted(self, sample: Sample) -> Sample:
        """Return a sample without what the writing model, or the judge, must not see."""
        return redact_sample(redact_sample(sample, self.judge.redact), self.redact)

    def _redacted_text(self, text: str) -> str:
        return self._redacted(Sample.of([HumanMessage(text)])).trace.messages[0].text

    # Examples.

    def _examples(self) -> Sequence[str]:
        """Return up to four short cases that people decided, of all labels in turn, those that the judge erred on first."""
        room = MOST_ADDED - 200
        by_label: dict[str, list[tuple[bool, int, str]]] = {}
        for case, score in zip(self.train, self.scores, strict=True):
            text = self._example(case)
            if text and not self.others.copied(text, self.base.instructions):
                label = case.labeled.opinions[0].label
                by_label.setdefault(label, []).append((not case.error(score), len(text), text))
        turns = [sorted(examples) for _, examples in sorted(by_label.items())]
        chosen: list[str] = []
        for turn in range(_MOST_EXAMPLES):
            for examples in turns:
                if turn < len(examples) and len(chosen) < _MOST_EXAMPLES and examples[turn][1] <= room:
                    chosen.append(examples[turn][2])
                    room -= examples[turn][1]
        return chosen

    def _example(self, case: Case) -> str:
        sample = self._redacted(case.sample)
        spoken = [
            f"{message.role}: {message.text}"
            for message in sample.trace.messages
            if message.role in ("user", "assistant") and message.text
        ]
        opinion = case.labeled.opinions[0]
        reason = opinion.reason and f", because {self._redacted_text(opinion.reason)}"
        spoken.append(f"people say: {opinion.label}{reason}")
        text = fence_text("example", "\n".join(spoken))
        return "" if _TEMPLATE.search(text) or len(spoken) == 1 else text

    def _with_examples(self, kind: str, rules: str, examples: Sequence[str]) -> Candidate:
        if len(examples) < _FEWEST_EXAMPLES:
            reason = (
                "fewer than two labeled recordings are short enough, and share no phrase with those that choose or test"
            )
            return Candidate(kind, refusal_reason=reason)
        heading = "Examples of how people decide, recorded elsewhere:"
        block = "\n".join((heading, _MARK, *examples))
        question = "\n\n".join(filter(None, (self.base.question, rules, block)))
        prompt = self._renamed(question)
        added = len(prompt.instructions) - len(self.base.instructions)
        refused = f"it is {added:,} characters longer than the question" if added > MOST_ADDED else ""
        return Candidate(kind, prompt, refused)


@cache
def _request(kind: str) -> Prompt:
    folder = resource_folder("prompts")
    system = (folder / "align.system.md").read_text(encoding="utf-8").strip()
    return replace(load_prompt(folder / f"align.{kind}.md"), name=f"align_{kind}", system=system)


def _unwritten(kind: str, error: JudgeError) -> Candidate:
    """Return a candidate that was not written; an error that the next request would meet too is raised."""
    if isinstance(error, STOPS):
        raise error
    return Candidate(kind, refusal_reason=f"the writing model gave no usable answer: {error}")


def accepted(candidates: Sequence[Candidate]) -> Mapping[str, Prompt]:
    """Return the different prompts to be judged, by the names of their scorers."""
    prompts = [
        candidate.prompt for candidate in candidates if candidate.prompt is not None and not candidate.refusal_reason
    ]
    different = {prompt.instructions: prompt for prompt in reversed(prompts)}  # the first of those that read alike
    return {f"candidate {number}": prompt for number, prompt in enumerate(reversed(different.values()), 1)}


_NOTHING = Sample.of([], id="align")
