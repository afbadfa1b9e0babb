"""The base of text scorers: the agent's last message and its references."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple, final

from judgekit.score import Score
from judgekit.scoring import SyncScore, compute_score
from judgekit.traces.rendering import escape_surrogates
from judgekit.traces.sample import Sample

NO_RESPONSE = "the sample has no response: there is no agent message"

_SHORT = 4_000
"""The combined length, in characters or words, up to which a comparison is fast."""


def compare_without_gil(measure: Callable[..., float], one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return rapidfuzz's measure of two sequences. For long ones, other threads are not blocked meanwhile."""
    if len(one) + len(other) < _SHORT:
        return measure(one, other)
    import numpy as np  # noqa: PLC0415 - most texts are short
    from rapidfuzz.process import cpdist  # noqa: PLC0415 - as above

    return float(cpdist([one], [other], scorer=measure, dtype=np.float64)[0])


class TextPair(NamedTuple):
    """An encodable response, which may be empty, and at least one encodable reference, none of them blank."""

    response: str
    references: tuple[str, ...]


class TextScorer(SyncScore, ABC):
    """A scorer that only compares a sample's response with its references."""

    _quick_length: ClassVar[int] = 4_000
    """The total number of characters that are compared within 5 ms."""

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample. Long texts are compared in a worker thread."""
        characters = len(sample.trace.response or "") + sum(map(len, sample.all_references))
        return await compute_score(lambda: self.compute(sample), large=characters > self._quick_length)

    @final
    def compute(self, sample: Sample, /) -> Score:
        """Return the score of one sample, computed in the calling thread."""
        texts = texts_to_compare(sample)
        return Score.skipped(self.name, texts) if isinstance(texts, str) else self._compare(texts)

    @abstractmethod
    def _compare(self, texts: TextPair) -> Score:
        """Return the score of a response and its references."""


def texts_to_compare(sample: Sample) -> TextPair | str:
    """Return the texts to compare, or the reason to skip the sample."""
    if (response := sample.trace.response) is None:
        return NO_RESPONSE
    if references := sample.all_references:
        return TextPair(escape_surrogates(response), tuple(dict.fromkeys(map(escape_surrogates, references))))
    is_empty = sample.reference is not None or sample.references
    return "the reference is empty" if is_empty else "the sample has no reference"
