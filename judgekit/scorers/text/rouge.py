"""ROUGE: the overlap of the response and a reference in n-grams or in words in the same order."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import inf
from typing import Literal, NamedTuple, TypeAlias, get_args

from judgekit.errors import check_choice
from judgekit.score import Score
from judgekit.scorers.text.base import TextPair, TextScorer, compare_without_gil
from judgekit.scorers.text.ngrams import NO_WORD, multiset_overlap, ngrams
from judgekit.scorers.text.porter import stem
from judgekit.scorers.text.words import Tokenize, splitter

RougeMode: TypeAlias = Literal["f1", "precision", "recall"]
ReferenceChoice: TypeAlias = Literal["value", "recall"]
Sentences: TypeAlias = Sequence[Sequence[str]]
"""The words of each sentence of a text."""

_TYPES = (*(f"rouge{n}" for n in range(1, 10)), "rougeL", "rougeLsum")
_MOST = {"rougeL": 10**10, "rougeLsum": 10**9}
"""The limits for the words of a response times those of a reference; beyond, time or memory would run out."""

_MOST_LINES = 10**7
"""The limit for the lines of a response times those of a reference."""


class Overlap(NamedTuple):
    """The number of words or n-grams that two texts share, and the totals of both."""

    matches: int
    in_response: int
    in_reference: int

    def share(self, mode: RougeMode) -> float:
        """Return the overlap as a share of the response (precision) or the reference (recall), or their harmonic mean.

        0/0 is 0.
        """
        totals = {
            "precision": self.in_response,
            "recall": self.in_reference,
            "f1": (self.in_response + self.in_reference) / 2,
        }
        return self.matches / totals[mode] if self.matches else 0.0


def rouge(type: str, response: Sentences, reference: Sentences) -> Overlap:
    """Return the overlap of a response and a reference.

    Args:
        type: ``rouge1`` to ``rouge9``, ``rougeL`` or ``rougeLsum``; only the last one depends on sentences.
        response: The words of the response, sentence by sentence.
        reference: The words of the reference, sentence by sentence.

    Raises:
        ValueError: The texts are too long for a longest common subsequence (100,000 words each; 30,000 words or 3,000
            lines for ``rougeLsum``).
    """
    words, expected = list(chain.from_iterable(response)), list(chain.from_iterable(reference))
    lines = len(response) * len(reference)
    if len(words) * len(expected) > _MOST.get(type, inf) or (type == "rougeLsum" and lines > _MOST_LINES):
        sizes = f"{len(words):,} words with {len(expected):,}"
        raise ValueError(f"{type} would take too long to compare {sizes}; use rouge1 or rouge2, or shorter texts")
    if type == "rougeL":
        return Overlap(_lcs()(words, expected), len(words), len(expected))
    if type == "rougeLsum":
        sentences = set(map(tuple, response))
        union = [word for sentence in reference if sentence for word in _union_of_lcs(sentence, sentences)]
        return Overlap(multiset_overlap(union, words), len(words), len(expected))
    n = int(type.removeprefix("rouge"))
    matches = multiset_overlap(ngrams(words, n), ngrams(expected, n))
    return Overlap(matches, max(len(words) - n + 1, 0), max(len(expected) - n + 1, 0))


def _union_of_lcs(reference: Sequence[str], response: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of a sentence that are in its longest common subsequence with any sentence of the response.

    If several are longest, rouge-score's choice is taken: starting at the ends, it pairs equal words, and otherwise
    drops the last word of the response if the table of lengths is higher on that side, else that of the reference. A
    column of the table (a word of the response) is stored as one integer, with a bit for each word of the reference at
    which the length grows (Hyyro 2004, "Bit-parallel LCS-length computation revisited"). Its highest remaining bit is
    where backtracking leaves the column.
    """
    positions: dict[str, int] = {}
    for index, word in enumerate(reference):
        positions[word] = positions.get(word, 0) | 1 << index
    every = (1 << len(reference)) - 1
    union = 0
    for sentence in response:
        same = every  # a bit for each word at which the length does not grow
        columns: list[tuple[int, int]] = []
        for word in sentence:
            if equal := positions.get(word, 0):
                kept = same & equal
                same = (same + kept | same - kept) & every
            elif not columns or not columns[-1][0]:
                continue  # same as the previous column
            columns.append((equal, every ^ same | equal))
        below = every
        for equal, stops in reversed(columns):
            below = (1 << (stops & below).bit_length()) - 1
            if not below:
                break
            if paired := equal & (below ^ below >> 1):
                union |= paired
                below >>= 1
    return [word for index, word in enumerate(reference) if union >> index & 1]


@cache
def _lcs() -> Callable[[Sequence[Hashable], Sequence[Hashable]], int]:
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most scorers do without

    return lambda left, other: int(compare_without_gil(LCSseq.similarity, left, other))


@dataclass(frozen=True)
class ROUGE(TextScorer):
    """1 if the response and a reference share everything: words, n-grams, or words in the same order.

    ``rouge1`` counts words, ``rouge2`` pairs of adjacent words, and so on; ``rougeL`` counts the words of the longest
    common subsequence; ``rougeLsum`` those of each line of the reference with any line of the response. Precision is
    the share of the response, recall the share of the reference, F1 their harmonic mean. The values equal those of
    Google's rouge-score for ASCII words (and for all text with ``tokenize="rouge-score"``, which ignores other words),
    including 0, with a warning, if a reference is shorter than the n-gram.

    The reference with the highest value counts, or with ``reference_choice="recall"`` the one with the highest recall,
    whatever the mode (the first of equals). A response without words scores 0. Skipped if there is no conversation, or no
    reference with a word. No judge. Details: ``precision``, ``recall``, ``f1``, ``matches``, ``in_response`` and
    ``in_reference`` (words or n-grams), and ``reference``, the one that counted. Source: Lin 2004
    (https://aclanthology.org/W04-1013), as in rouge-score 0.1.2.

    Args:
        type: ``rouge1`` to ``rouge9``, ``rougeL`` or ``rougeLsum``.
        mode: ``f1``, ``precision`` or ``recall``.
        stemmer: Whether to compare words longer than three characters by their stems (Porter's, for English).
        tokenize: The way to split lowercase text into words: `judgekit.scorers.text.words.Tokenize`.
        reference_choice: ``value`` or ``recall``.
        name: The name of the scores; by default, the type and the mode, such as ``rougeL_f1``.

    Raises:
        ConfigError: The type, mode, choice or way to split words is unknown, or the latter is not installed.
    """

    type: str = "rougeL"
    mode: RougeMode = "f1"
    stemmer: bool = False
    tokenize: Tokenize = "auto"
    reference_choice: ReferenceChoice = "value"
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("type of ROUGE", self.type, _TYPES)
        check_choice("mode of ROUGE", self.mode, get_args(RougeMode))
        check_choice("choice of a reference", self.reference_choice, get_args(ReferenceChoice))
        splitter(self.tokenize)
        if not self.name:
            object.__setattr__(self, "name", f"{self.type}_{self.mode}")

    def _sentences(self, text: str) -> list[list[str]]:
        whole = text.lower()
        sentences = [*map(splitter(self.tokenize), whole.split("\n") if self.type == "rougeLsum" else [whole])]
        if not self.stemmer:
            return sentences
        stems = {word: stem(word) if len(word) > 3 else word for word in set(chain.from_iterable(sentences))}
        return [[stems[word] for word in sentence] for sentence in sentences]

    def _compare(self, texts: TextPair) -> Score:
        references = [(text, words) for text in texts.references if any(words := self._sentences(text))]
        if not references:
            return Score.skipped(self.name, "no reference has words")
        response = self._sentences(texts.response)
        overlaps = [rouge(self.type, response, words) for _, words in references]
        rank: RougeMode = "recall" if self.reference_choice == "recall" else self.mode
        ranks = [overlap.share(rank) for overlap in overlaps]
        best = ranks.index(max(ranks))
        reference, _ = references[best]
        too_short = not any(overlap.in_reference for overlap in overlaps)
        overlap = overlaps[best]
        things = {"rouge1": "words", "rougeL": "words in the same order", "rougeLsum": "words in the same order"}
        counted = things.get(self.type, f"sequences of {self.type[-1]} words")
        matches, in_response, in_reference = overlap
        shares = f"{matches} of {in_response} in the response, of {in_reference} in the reference"
        which = f", the one of {len(references)} with the highest {rank}" if len(references) > 1 else ""
        ratios = {mode: overlap.share(mode) for mode in get_args(RougeMode)}
        return Score.scored(
            self.name,
            overlap.share(self.mode),
            reason=f"{counted} in common: {shares}{which}" if any(response) else NO_WORD,
            details={**ratios, **overlap._asdict(), "reference": reference},
            warnings=[f"the reference has too few words for {self.type}: 0, as in rouge-score"] if too_short else (),
        )
