"""N-grams, and n-gram precision: the share of the response's n-grams that a reference contains."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.text.base import TextPair, TextScorer
from judgekit.scorers.text.words import Tokenize, splitter

NO_WORD = "the response has no words"


def ngrams(words: Sequence[str], n: int) -> Iterable[Hashable]:
    """Return the n-grams of a list of words, in order."""
    return words if n == 1 else zip(*(words[start:] for start in range(n)), strict=False)


def multiset_overlap(a: Iterable[Hashable], b: Iterable[Hashable]) -> int:
    """Return the size of the multiset intersection of two lists."""
    return (Counter(a) & Counter(b)).total()


@dataclass(frozen=True)
class NgramPrecision(TextScorer):
    """1 if a reference contains all n-grams of the response of one to ``n`` words, 0 if it contains none.

    N-grams of all orders are counted together: those shared with a reference, each at most as often as it occurs there,
    over all of the response. The best reference counts. Some tools call this BLEU, with
    ``lowercase=True, tokenize="whitespace"``. It is not BLEU: it has no geometric mean and no penalty for short
    responses.

    A response without words scores 0. Skipped if there is no conversation, or no reference with a word. No judge. Details:
    ``matches`` and ``in_response``, with a number per order, and ``reference``, the best one. Source: clipped n-gram
    precision (Papineni et al. 2002, https://aclanthology.org/P02-1040), pooled over orders.

    Raises:
        ConfigError: ``n`` is not an integer of at least 1, or the way to split words is unknown or not installed.
    """

    n: int = 4
    lowercase: bool = False
    tokenize: Tokenize = "auto"
    name: str = "ngram_precision"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.n) is not int or self.n < 1:
            raise ConfigError(f"n must be an integer of at least 1, found {self.n!r}")
        splitter(self.tokenize)

    def _words(self, text: str) -> list[str]:
        return splitter(self.tokenize)(text.lower() if self.lowercase else text)

    def _compare(self, texts: TextPair) -> Score:
        references = [(text, words) for text in texts.references if (words := self._words(text))]
        if not references:
            return Score.skipped(self.name, "no reference has words")
        response = self._words(texts.response)
        orders = range(1, min(self.n, len(response)) + 1)
        overlaps = [
            [multiset_overlap(ngrams(response, n), ngrams(words, n)) for n in orders] for _, words in references
        ]
        matches = max(overlaps, key=sum)
        reference, _ = references[overlaps.index(matches)]
        totals = [len(response) - n + 1 for n in orders]
        value = sum(matches) / sum(totals) if totals else 0.0
        which = "the reference" if len(references) == 1 else f"the best of {len(references)} references"
        return Score.scored(
            self.name,
            value,
            reason=f"{sum(matches)} of {sum(totals)} n-grams of the response are in {which}" if totals else NO_WORD,
            details={"matches": [*matches], "in_response": [*totals], "reference": reference},
        )
