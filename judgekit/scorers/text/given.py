"""The texts that all text scorers compare: the agent's last message, and the texts that it should be like."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple, final

from judgekit.score import Score
from judgekit.scoring import Blocking, computed
from judgekit.traces.rendering import encodable
from judgekit.traces.sample import Sample

NO_RESPONSE = "the sample has no response: there is no message of the agent"

_SHORT = 4_000
"""Characters or words."""


def free(measure: Callable[..., float], one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return what rapidfuzz measures between two sequences. Of long ones it frees the other threads meanwhile."""
    if len(one) + len(other) < _SHORT:
        return measure(one, other)
    import numpy as np  # noqa: PLC0415 - most texts are short
    from rapidfuzz.process import cpdist  # noqa: PLC0415 - as above

    return float(cpdist([one], [other], scorer=measure, dtype=np.float64)[0])


class Given(NamedTuple):
    """A response, which may be empty, and references, at least one, of which none is blank; text that can be written."""

    response: str
    references: tuple[str, ...]


class TextScorer(Blocking, ABC):
    """A scorer that compares the response of a sample with its references, and reads nothing else of it."""

    name: str
    _few: ClassVar[int] = 4_000
    """The characters of all texts that are compared within 5 ms."""

    async def ascore(self, sample: Sample, /) -> Score:
        """Compare the texts, in a worker thread if they are long."""
        characters = len(sample.trace.response or "") + sum(map(len, sample.all_references))
        return await computed(lambda: self.compute(sample), large=characters > self._few)

    @final
    def compute(self, sample: Sample, /) -> Score:
        """Return the score of a sample, computed in the calling thread."""
        texts = given(sample)
        return Score.skipped(self.name, texts) if isinstance(texts, str) else self._compare(texts)

    @abstractmethod
    def _compare(self, texts: Given) -> Score:
        """Return the score of a response beside its references."""


def given(sample: Sample) -> Given | str:
    """Return the texts to be compared, or why there are none: such a sample is skipped."""
    if (response := sample.trace.response) is None:
        return NO_RESPONSE
    if references := sample.all_references:
        return Given(encodable(response), tuple(dict.fromkeys(map(encodable, references))))
    is_empty = sample.reference is not None or sample.references
    return "the reference is empty" if is_empty else "the sample has no reference"
