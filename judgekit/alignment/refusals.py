"""Static refusals of candidates, before a judge is asked: those that copy, or that change more than the wording."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from judgekit.errors import PromptError, short_repr
from judgekit.judges.prompt import Prompt
from judgekit.judges.redaction.plain_text import to_plain_text
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.rendering import compact_json
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

MOST_ADDED = 1_500
"""The number of characters by which a candidate may be longer than the question."""
_COPIED = 5
"""The number of successive words of a recording that no candidate may share."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-Z]\w+")  # a capital within a sentence
_QUOTED = re.compile(r'"([^"\n]+)"|\u201c([^\u201d\n]+)\u201d|`([^`\n]+)`')
_RANGE = re.compile(r"\b\d+\s*(?:-|\u2013|to|out of|/)\s*\d+\b")
_FIELD = re.compile(r"^\d+\. (\w+):", re.MULTILINE)
_SIGNS = ("{{", "{%")


def words(text: str) -> Sequence[str]:
    """Return the words of a text in lower case, without the escapes and look-alikes that hide them."""
    return [word.casefold() for word in _WORD.findall(to_plain_text(text)[0])]


def recorded_text(sample: Sample) -> str:
    """Return what was said, called and returned in a recording, and what it is compared with; no system messages."""
    compared = (*sample.all_references, *(sample.documents or ()), *(sample.reference_topics or ()))
    return "\n".join((spoken_text(sample), *filter(None, compared)))


def spoken_text(sample: Sample) -> str:
    """Return what was said, called and returned in a recording; no system messages."""
    return "\n".join(
        text for trace in (sample.trace, sample.baseline) if trace is not None for text in _spoken_texts(trace)
    )


def _spoken_texts(trace: Trace) -> Iterator[str]:
    for message in trace.messages:
        if message.role != "system":
            yield message.text
        if isinstance(message, AIMessage | HumanMessage):
            for call in message.tool_calls:
                yield compact_json(call.args)
    for child in trace.children:
        yield from _spoken_texts(child)


@dataclass(frozen=True)
class RecordedPhrases:
    """Phrases that must not be copied from recordings: successive words, and names and numbers of a single recording."""

    phrases: frozenset[tuple[str, ...]]
    names: frozenset[str]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Self:
        """Return the phrases of recordings."""
        phrases: set[tuple[str, ...]] = set()
        recordings, marked, lower = Counter[str](), set[str](), set[str]()
        for sample in samples:
            text = to_plain_text(recorded_text(sample))[0]
            text_words = words(text)
            phrases.update(_successive(text_words))
            recordings.update(set(text_words))
            marked.update(name.casefold() for name in _NAME.findall(text))
            marked.update(word for word in text_words if any(map(str.isdigit, word)))
            lower.update(word for word in _WORD.findall(text) if word.islower())
        names = {word for word in marked if recordings[word] == 1 and (word not in lower or not word.isalpha())}
        return cls(frozenset(phrases), frozenset(names))

    def copied(self, text: str, original: str) -> str:
        """Return what a text copies from the recordings, other than what is ``original`` anyway; empty if nothing."""
        text_words, allowed = words(text), words(original)
        phrases = self.phrases.difference(_successive(allowed))
        if shared := next((phrase for phrase in _successive(text_words) if phrase in phrases), None):
            return " ".join(shared)
        return next((word for word in text_words if word in self.names and word not in allowed), "")


def _successive(text_words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(text_words[at : at + _COPIED]) for at in range(len(text_words) - _COPIED + 1))


def changed_scale(base: Prompt, candidate: Prompt) -> str:
    """Return how the question of a candidate changes placeholders, labels, fields or the scale; empty if it does not."""
    old, new = base.instructions, candidate.question
    try:
        if candidate.holes != base.holes:
            missing, added = sorted(base.holes - candidate.holes), sorted(candidate.holes - base.holes)
            return f"its placeholders changed: {missing or 'none'} missing, {added or 'none'} new"
        text = candidate.instructions
    except PromptError as error:
        return f"it is no template: {error}"
    if any(new.count(sign) != base.question.count(sign) for sign in _SIGNS):
        return "its placeholders or template commands changed"
    labels = [label for label, _ in base.scale]
    for label in labels:
        if label in words_as_written(old) and label not in words_as_written(text):
            return f"the candidate no longer names the label {short_repr(label)}"
    fields = _FIELD.findall(old)
    if gone := [name for name in fields if name not in words_as_written(text)]:
        return f"it no longer asks for {', '.join(gone)}"
    allowed = {*labels, *(base.steps)}
    for groups in _QUOTED.findall(text):
        quoted = "".join(groups)
        if quoted not in allowed and quoted not in old:
            return f"it quotes {short_repr(quoted)}, which is no label of the scale"
    for range_text in _RANGE.findall(text):
        if range_text not in old:
            return f"it names another scale, {short_repr(range_text)}"
    return ""


def words_as_written(text: str) -> frozenset[str]:
    """Return the words of a text, with their underscores and capitals."""
    return frozenset(re.findall(r"\w+", text))


def refusal(base: Prompt, candidate: Prompt, written: str, phrases: RecordedPhrases) -> str:
    """Return why a candidate is not judged; empty if it may be."""
    if change := changed_scale(base, candidate):
        return change
    if (added := len(candidate.instructions) - len(base.instructions)) > MOST_ADDED:
        return f"it is {added:,} characters longer than the question; at most {MOST_ADDED:,} are allowed"
    if copied := phrases.copied(written, base.instructions):
        return f"it copies {short_repr(copied)} from a labeled recording"
    return ""
