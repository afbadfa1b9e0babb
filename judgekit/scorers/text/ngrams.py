"""N-grams, and n-gram precision: how much of the response stands in a reference, in runs of one to n words?"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.text.given import Given, TextScorer
from judgekit.scorers.text.words import Tokenize, splitter

NO_WORD = "the response has no word"


def ngrams(words: Sequence[str], n: int) -> Iterable[Hashable]:
    """The runs of ``n`` words, in order."""
    return words if n == 1 else zip(*(words[start:] for start in range(n)), strict=False)


def in_common(ones: Iterable[Hashable], others: Iterable[Hashable]) -> int:
    """How many things two lists have in common, each as often as it is in both."""
    left: dict[Hashable, int] = {}
    for other in others:
        left[other] = left.get(other, 0) + 1
    common = 0
    for one in ones:
        if count := left.get(one):
            left[one] = count - 1
            common += 1
    return common


@dataclass(frozen=True)
class NgramPrecision(TextScorer):
    """1 if all runs of one to ``n`` words of the response are in a reference as often, 0 if none is.

    The n-grams of all orders are counted together: those that the response and a reference have in common, by all of
    the response; of several references the best counts. Some tools call it BLEU, with ``lowercase=True,
    tokenize="whitespace"``. It is not BLEU: there is no geometric mean, and a short response is not punished.

    A response without words scores 0. Skipped if there is no response, or no reference with a word. No judge. Details:
    ``matches`` and ``in_response``, a number for each order, and ``reference``, the one that counted. Source: clipped
    n-gram precision (Papineni et al. 2002, https://aclanthology.org/P02-1040), pooled over orders.

    Raises:
        ConfigError: ``n`` is no whole number of 1 or more, or words cannot be split in such a way.
    """

    n: int = 4
    lowercase: bool = False
    tokenize: Tokenize = "auto"
    name: str = "ngram_precision"

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise ConfigError(f"n is a whole number of words, 1 or more, found {self.n!r}")
        splitter(self.tokenize)

    def _words(self, text: str) -> list[str]:
        return splitter(self.tokenize)(text.lower() if self.lowercase else text)

    def _compare(self, texts: Given) -> Score:
        references = [(text, words) for text in texts.references if (words := self._words(text))]
        if not references:
            return Score.skipped(self.name, "no reference has a word")
        response = self._words(texts.response)
        orders = range(1, min(self.n, len(response)) + 1)
        found = [
            ([in_common(ngrams(response, n), ngrams(words, n)) for n in orders], text) for text, words in references
        ]
        matches, reference = max(found, key=lambda one: sum(one[0]))
        totals = [len(response) - n + 1 for n in orders]
        value = sum(matches) / sum(totals) if totals else 0.0
        return Score.scored(self.name, value, explain=partial(_explain, matches, totals, reference, len(references)))


def _explain(matches: list[int], totals: list[int], reference: str, of: int) -> tuple[str, dict[str, JsonValue]]:
    which = "the reference" if of == 1 else f"the best of {of} references"
    reason = f"{sum(matches)} of {sum(totals)} n-grams of the response are in {which}" if totals else NO_WORD
    return reason, {"matches": [*matches], "in_response": [*totals], "reference": reference}
