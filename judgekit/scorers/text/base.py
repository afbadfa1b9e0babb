"""The base of text scorers: the agent's last message and its references."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar, NamedTuple, final

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.unanswered import unanswered
from judgekit.scoring import SyncScore, compute_score
from judgekit.traces.ending import MissingAnswer, missing_answer
from judgekit.traces.rendering import escape_surrogates
from judgekit.traces.sample import Sample
from judgekit.traces.sample_path import TextTemplate, sample_template, sample_value, value_text

NO_RESPONSE = "the sample has no response: there is no agent message"
_EMPTY_REFERENCE = "the reference is empty"

_SHORT = 4_000
"""The combined length, in characters or words, up to which a comparison is fast."""


def compare_without_gil(measure: Callable[..., float], left: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return rapidfuzz's measure of two sequences. For long ones, other threads are not blocked meanwhile."""
    if len(left) + len(other) < _SHORT:
        return measure(left, other)
    import numpy as np  # noqa: PLC0415 - most texts are short
    from rapidfuzz.process import cpdist  # noqa: PLC0415 - as above

    return float(cpdist([left], [other], scorer=measure, dtype=np.float64)[0])


class TextPair(NamedTuple):
    """An encodable response, which may be empty, and at least one encodable reference.

    No reference is blank, except for a scorer that compares blanks.
    """

    response: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class TextScorer(SyncScore, ABC):
    """A scorer that only compares a sample's response with its references.

    Attributes:
        response: The text to compare in place of the response, with values of the sample in double braces:
            ``{{ response.answer }}`` for a value in a response that is JSON, ``{{ fields.draft }}`` for a field,
            ``{{ tool_calls[0].name }}`` for a call of the agent's last message.
        reference: The reference to compare with in place of those of the sample, in the same form.

    Raises:
        ConfigError: A text names a value that samples do not have.
    """

    response: str = field(default="", kw_only=True)
    reference: str = field(default="", kw_only=True)
    _quick_length: ClassVar[int] = 4_000
    """The total number of characters that are compared within 5 ms."""

    def __post_init__(self) -> None:
        _ = self._templates  # report an invalid one now, not for each sample

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample. Long texts are compared in a worker thread."""
        characters = len(sample.trace.response or "") + sum(map(len, sample.all_references))
        if self.response or self.reference:
            characters += len(value_text(sample.fields))
        return await compute_score(lambda: self.compute(sample), large=characters > self._quick_length)

    @final
    def compute(self, sample: Sample, /) -> Score:
        """Return the score of one sample, computed in the calling thread."""
        looks_for_answer = any(path.root == "response" for path in self._templates[0].paths)
        missing = missing_answer(sample.trace) if looks_for_answer else None
        is_filled = self.response or self.reference
        texts = self._filled_texts(sample, missing) if is_filled else texts_to_compare(sample, missing)
        if isinstance(texts, str):
            return Score.skipped(self.name, texts)
        return self._compare(texts) if missing is None else unanswered(self._compare(texts), missing)

    def _filled_texts(self, sample: Sample, missing: MissingAnswer | None) -> TextPair | str:
        """Return the texts to compare, filled with values of the sample, or the reason to skip it."""
        response, expected = self._templates
        value_at = partial(sample_value, sample)
        holes = response.missing(value_at) if missing is None else ()
        if unfilled := [*holes, *(expected.missing(value_at) if expected else ())]:
            return f"the sample has no {unfilled[0]}"
        references = (expected.fill(value_at),) if expected else sample.all_references
        if not references:
            return "the sample has no reference"
        if not (references[0].strip() or self._compares_blanks):
            return _EMPTY_REFERENCE
        filled = response.fill(value_at) if missing is None else ""
        return TextPair(escape_surrogates(filled), tuple(map(escape_surrogates, references)))

    @cached_property
    def _templates(self) -> tuple[TextTemplate, TextTemplate | None]:
        try:
            response = sample_template(self.response or "{{ response }}")
            return response, sample_template(self.reference) if self.reference else None
        except (TypeError, ValueError) as error:
            raise ConfigError(str(error)) from error

    @property
    def _compares_blanks(self) -> bool:
        """Whether a blank reference is a text to compare with, and not a missing one."""
        return False

    @abstractmethod
    def _compare(self, texts: TextPair) -> Score:
        """Return the score of a response and its references."""


def texts_to_compare(sample: Sample, missing: MissingAnswer | None = None) -> TextPair | str:
    """Return the texts to compare, or the reason to skip the sample. A missing answer is empty."""
    if (response := sample.trace.response if missing is None else "") is None:
        return NO_RESPONSE
    if references := sample.all_references:
        return TextPair(escape_surrogates(response), tuple(dict.fromkeys(map(escape_surrogates, references))))
    is_empty = sample.reference is not None or sample.references
    return _EMPTY_REFERENCE if is_empty else "the sample has no reference"
