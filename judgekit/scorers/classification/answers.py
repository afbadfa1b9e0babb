"""Answer matching: does the response say what was expected?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

from pydantic import JsonValue

from judgekit.errors import ConfigError, check_choice, join_limited, short_repr, short_reprs
from judgekit.formats.row_facts import to_text
from judgekit.score import Score
from judgekit.scorers.classification.content import NEGATED, content_words, load_word_list, published_words
from judgekit.scorers.text.base import TextPair, texts_to_compare
from judgekit.scorers.text.normalization import normalize_text
from judgekit.scorers.text.words import Tokenize, splitter
from judgekit.scorers.unanswered import unanswered
from judgekit.scoring import SyncScore, compute_score
from judgekit.traces.ending import missing_answer
from judgekit.traces.rendering import escape_surrogates
from judgekit.traces.sample import Sample

AnswerMeasure: TypeAlias = Literal["accuracy", "precision", "recall", "f1"]
"""The measures over many answers: see `judgekit.aggregates.classification.answer_match`."""
WordRecipe: TypeAlias = Literal["content", "published"]
"""The words of an answer that count: its content words, or those of a published recipe."""

_FEW = 4_000
"""The number of characters that are compared within 5 ms."""
_PUBLISHED_STOP_WORDS = frozenset("的是在了和有就不人都")
_NO_WORDS = "the response or the expected text has no content words, so only an equal text matches"
_ONE_NEGATED = "matched, although only one of the response and the expected text negates a word"


class _Match(NamedTuple):
    """An expected text compared with the response; the greatest is the best."""

    is_equal: bool
    similarity: float
    expected: str
    words: set[str]


@dataclass(frozen=True)
class AnswerMatch(SyncScore):
    r"""1 if the response says what was expected, else 0.

    It does if the Jaccard similarity of the content words (shared over all) is at least ``threshold``, or if the texts
    are equal apart from case, width, whitespace and surrounding punctuation. The expected text is ``sample.label``, or
    its field ``expected_output`` (a text, a list of texts, or other JSON as text), or its references; if there are
    several, the most similar one counts.

    Content words are found by `content_words`: without stop words (``stop_words``, or a list of Chinese and English
    ones) and single Latin letters, with numbers kept whole (20% is not 20, unless with ``ignore_percent=True``), and
    with a mark on words after a negation, so that 支持退款 and
    不支持退款 have no word in common. Words before a negation are not marked; a warning is added if two texts match although
    only one of them negates a word. Calibrate the threshold on pairs that include negated ones, especially for Chinese,
    where each character is a word unless ``tokenize="jieba"``.
    ``recipe="published"`` uses the words of a published recipe instead: matches of ``\b\w+\b`` in lowercase with more
    than one character, where a Chinese clause is one word and negations are ignored.

    The label is ``matched``, ``wrong``, or ``no_answer`` if the response is empty. The total of many samples is
    ``measure``, with matched = TP, wrong = FP and FN, no answer = FN. Skipped without a conversation or an expected text.
    Details: ``similarity``, ``threshold``, ``equal``, the ``expected`` text, and the words that are ``shared``,
    ``only_expected`` and ``only_response``. No judge. Source: Jaccard similarity of at least 0.3, as published for the
    evaluation of agents, with negations marked as by Das & Chen (2001) and Pang et al. (2002,
    https://aclanthology.org/W02-1011).

    Raises:
        ConfigError: The measure, recipe or way to split words is unknown, the latter is not installed, the threshold is
            not above 0 and at most 1, or the stop words are not a list of words.
    """

    threshold: float = 0.3
    measure: AnswerMeasure = "accuracy"
    tokenize: Tokenize = "auto"
    stop_words: Sequence[str] | None = None
    recipe: WordRecipe = "content"
    ignore_percent: bool = False
    name: str = "answer_match"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"threshold must be above 0 and at most 1, found {self.threshold!r}")
        check_choice("measure", self.measure, get_args(AnswerMeasure))
        check_choice("recipe", self.recipe, get_args(WordRecipe))
        if self.recipe == "published" and self.tokenize != "auto":
            raise ConfigError(f"recipe='published' splits words itself; remove tokenize={self.tokenize!r}")
        words: object = self.stop_words
        if words is not None and not _are_words(words):
            raise ConfigError(f"stop_words must be a list of words, found {short_repr(words)}")
        splitter(self.tokenize)

    @cached_property
    def _words(self) -> Callable[[str], set[str]]:
        stop_words = None if self.stop_words is None else frozenset(map(str.casefold, self.stop_words))
        if self.recipe == "published":
            return partial(published_words, stop_words=_PUBLISHED_STOP_WORDS if stop_words is None else stop_words)
        stop_words = load_word_list("stop_words") if stop_words is None else stop_words
        split = splitter(self.tokenize)
        return partial(content_words, split=split, stop_words=stop_words, ignore_percent=self.ignore_percent)

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        missing, labels = missing_answer(sample.trace), _known(sample)
        response = sample.trace.response if missing is None else ""
        pair = (
            TextPair(escape_surrogates(response), labels)
            if response is not None and labels
            else texts_to_compare(sample, missing)
        )
        if isinstance(pair, str):
            lacks = "" if response is None else ", no label and no expected_output"
            return Score.skipped(self.name, pair + lacks)
        if missing is not None:
            return unanswered(self._compared(pair), missing)
        characters = len(pair.response) + sum(map(len, pair.references))
        return await compute_score(lambda: self._compared(pair), large=characters > _FEW)

    def _compared(self, pair: TextPair) -> Score:
        words = self._words(pair.response)
        best = max((self._match(pair.response, words, text) for text in pair.references), key=itemgetter(0, 1))
        matched = self._matches(best)
        answered = bool(pair.response.strip())
        sides: dict[str, list[JsonValue]] = {
            "shared": [*sorted(best.words & words)],
            "only_expected": [*sorted(best.words - words)],
            "only_response": [*sorted(words - best.words)],
        }
        return Score.scored(
            self.name,
            float(matched),
            label="matched" if matched else "wrong" if answered else "no_answer",
            reason=self._reason(best, sides) if answered else "the response is empty",
            details={
                "similarity": best.similarity,
                "threshold": self.threshold,
                "equal": best.is_equal,
                "expected": best.expected,
                **sides,
                "measure": self.measure,
            },
            aggregate="answer_match",
            warnings=self._warnings(words, best) if answered else (),
        )

    def _match(self, response: str, words: set[str], expected: str) -> _Match:
        there = self._words(expected)
        similarity = len(words & there) / len(words | there) if words and there else 0.0
        return _Match(normalize_text(response) == normalize_text(expected), similarity, expected, there)

    def _matches(self, match: _Match) -> bool:
        return match.is_equal or match.similarity >= self.threshold

    def _warnings(self, words: set[str], best: _Match) -> Iterator[str]:
        if not (words and best.words):
            yield _NO_WORDS
        if self._matches(best) and _negates(words) != _negates(best.words):
            yield _ONE_NEGATED

    def _reason(self, best: _Match, sides: Mapping[str, Sequence[JsonValue]]) -> str:
        if best.is_equal:
            return f"equal to {short_repr(best.expected)} ignoring case, width, whitespace and surrounding punctuation"
        compared = "at least" if self._matches(best) else "below"
        both = [*chain.from_iterable(sides.values())]
        shown = iter(short_reprs(both))
        words = [
            f"{side.replace('_', ' ')}: {join_limited(islice(shown, len(those)), 8, ', ')}"
            for side, those in sides.items()
            if those
        ]
        return "; ".join([f"similarity {best.similarity:.2f}, {compared} {self.threshold:g}", *words])


def _negates(words: set[str]) -> bool:
    return any(word.endswith(NEGATED) for word in words) or not load_word_list("negations").isdisjoint(words)


def _are_words(words: object) -> bool:
    return isinstance(words, list | tuple) and all(isinstance(word, str) for word in cast("Sequence[object]", words))


def _known(sample: Sample) -> tuple[str, ...]:
    """Return the label, or else a dataset row's expected output: a text, a list of texts, or other JSON."""
    for label in (sample.label, sample.fields.get("expected_output")):
        texts = [label] if not isinstance(label, list) else label
        if labels := tuple(
            escape_surrogates(text)
            for candidate in texts
            if candidate is not None and (text := to_text(candidate)).strip()
        ):
            return labels
    return ()
