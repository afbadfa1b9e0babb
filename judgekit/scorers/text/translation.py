"""BLEU, chrF and TER: how near is the response to what people wrote, by the numbers of machine translation?"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import unwrap
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from judgekit.aggregates.translation import bleu, chrf
from judgekit.errors import ConfigError, must_be_known
from judgekit.score import Score
from judgekit.scorers.text.given import Given, TextScorer

if TYPE_CHECKING:
    import sacrebleu
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEUScore

Smooth: TypeAlias = Literal["exp", "floor", "add-k", "none"]
Split: TypeAlias = Callable[[str], list[str]]

MOST_WORDS = 1000
"""The longest text, in words, that TER is computed of: such a pair takes up to a minute of a worker thread."""

_NO_WORDS = "no words are left of the reference"
_EMPTY = "the response has no words"
_SPACED = {"13a", "intl", "none"}
"""Tokenizers that find words by the spaces between them."""
_unspaced = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
).search


class NgramCounts(NamedTuple):
    """How many n-grams of a response are in a reference, and how many there are, for each order from 1; lengths in words."""

    correct: list[int]
    total: list[int]
    response_length: int
    reference_length: int


def count_ngrams(response: list[str], references: Sequence[list[str]], max_order: int) -> NgramCounts:
    """The counts of BLEU, of texts in words.

    An n-gram counts as often as in the one reference that has it most often. The reference's length is the one nearest
    to the response's; of two as near, the shorter.
    """
    length = len(response)
    known = _ngrams(references[0], max_order)
    for reference in references[1:]:
        known |= _ngrams(reference, max_order)
    correct = [0] * max_order
    for ngram, count in _ngrams(response, max_order).items():
        if ngram in known:
            most = known[ngram]
            correct[len(ngram) - 1] += count if count < most else most  # noqa: FURB136 - in half the time of min()
    total = [max(0, length - shorter) for shorter in range(max_order)]
    nearest = min([len(one) for one in references], key=lambda other: (abs(other - length), other))
    return NgramCounts(correct, total, length, nearest)


def _ngrams(words: list[str], max_order: int) -> Counter[tuple[str, ...]]:
    later = [words[start:] for start in range(max_order)]
    return Counter(chain.from_iterable([zip(*later[:order], strict=False) for order in range(1, max_order + 1)]))


@dataclass(frozen=True)
class BLEU(TextScorer):
    """1 if all n-grams of the response are in a reference and it is no shorter, 0 if no word is: BLEU by sacrebleu.

    The geometric mean of the precisions of 1- to ``max_order``-grams, times a penalty for what is shorter than the
    reference. Each text is one segment, lines and all. The value is sentence BLEU (smoothed, with effective order); a
    run comes to corpus BLEU, of the summed counts (without). The references count together. An empty response scores 0
    and counts in the corpus. Details: see `judgekit.aggregates.translation.BleuDetails`, with sacrebleu's signatures.

    Skipped without a reference, and if it is empty. No judge. Source: Papineni et al., 2002
    (https://aclanthology.org/P02-1040/) and Post, 2018 (https://aclanthology.org/W18-6319/).

    Attributes:
        tokenize: How sacrebleu splits texts into words: ``13a`` and ``intl`` at spaces and punctuation, ``zh`` also
            around each Chinese character, ``char`` into characters, ``ja-mecab`` into Japanese words
            (``pip install 'judgekit[japanese]'``), ``none`` at spaces; and others, for some of which sacrebleu fetches
            a model when they are first used.
        lowercase: Whether case is ignored.
        max_order: The longest n-grams.
        smooth: What stands for a precision of 0: halves (``exp``), 0.1 matches (``floor``), one match more of one
            n-gram more in all orders above 1 (``add-k``), or 0 (``none``).
        name: What its scores are called.

    Raises:
        ConfigError: There is no such tokenizer or smoothing, or it is not installed, or ``max_order`` is below 1.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    max_order: int = 4
    smooth: Smooth = "exp"
    name: str = "bleu"

    def __post_init__(self) -> None:
        must_be_known("smoothing of BLEU", self.smooth, get_args(Smooth))
        _at_least(1, max_order=self.max_order)
        _ = self._made  # a tokenizer that cannot be had is told now, not by each sample

    @cached_property
    def _made(self) -> tuple[Split, str, str]:
        """The tokenizer, and the signatures of a sample and of a corpus, without numbers of references."""
        import sacrebleu  # noqa: PLC0415 - it takes a while

        if self.tokenize not in sacrebleu.BLEU.TOKENIZERS:
            raise ConfigError.unknown("tokenizer of sacrebleu", self.tokenize, sacrebleu.BLEU.TOKENIZERS)
        try:
            metric, corpus = (
                sacrebleu.BLEU(
                    self.lowercase, tokenize=self.tokenize, smooth_method=self.smooth, effective_order=effective
                )
                for effective in (True, False)
            )
        except (ImportError, RuntimeError, AssertionError, OSError) as error:
            why = "pip install 'judgekit[japanese]'" if self.tokenize == "ja-mecab" else " ".join(str(error).split())
            raise ConfigError(f"tokenize={self.tokenize!r} needs what is not there: {why}") from error
        tokenize = _forgetful(metric.tokenizer)

        def split(text: str) -> list[str]:
            if "mecab" in self.tokenize and "\0" in text:
                raise ValueError("the text has a NUL character, at which MeCab stops reading")
            return tokenize((text.lower() if self.lowercase else text).rstrip()).split()

        return split, _recipe(metric), _recipe(corpus)

    def counts(self, response: str, references: Sequence[str]) -> NgramCounts:
        """The counts that BLEU is made of."""
        split = self._made[0]
        return count_ngrams(split(response), [split(reference) for reference in references], self.max_order)

    def sentence(self, counts: NgramCounts) -> "BLEUScore":
        """Sentence BLEU, which sacrebleu gives in percent."""
        return bleu(*counts, self.smooth, effective_order=True)

    def _compare(self, texts: Given) -> Score:
        counts = self.counts(*texts)
        if not counts.reference_length:
            return Score.skipped(self.name, _NO_WORDS)
        sentence = self.sentence(counts)
        _, recipe, corpus = self._made
        numbered = f"nrefs:{len(texts.references)}|"
        warnings = _glued(*texts, because=f"tokenize={self.tokenize!r}", instead="'zh', 'ja-mecab' or 'char'")
        return Score.scored(
            self.name,
            min(1.0, sentence.score / 100),
            reason=_bleu_reason(counts, sentence.bp),
            details={
                "metric": "BLEU" if self.max_order == 4 else f"BLEU-{self.max_order}",
                **counts._asdict(),
                "precisions": [precision / 100 for precision in sentence.precisions],
                "brevity_penalty": sentence.bp,
                "smooth": self.smooth,
                "signature": numbered + recipe,
                "corpus_signature": numbered + corpus,
            },
            aggregate="corpus_bleu",
            warnings=warnings if self.tokenize in _SPACED else (),
        )


def _bleu_reason(counts: NgramCounts, brevity_penalty: float) -> str:
    if not counts.response_length:
        return _EMPTY
    orders = enumerate(zip(counts.correct, counts.total, strict=True), 1)
    shares = ", ".join(f"{correct} of {total} {n}-grams" for n, (correct, total) in orders if total)
    lengths = f"{counts.response_length} words for {counts.reference_length}"
    return f"{shares} are in the reference; {lengths}: brevity penalty {brevity_penalty:.2f}"


class ChrfCounts(NamedTuple):
    """How many n-grams of a response are in a reference, and how many each has, by order: of characters, then of words."""

    matched: list[int]
    response_ngrams: list[int]
    reference_ngrams: list[int]


@dataclass(frozen=True)
class CHRF(TextScorer):
    """1 if the response has the same n-grams of characters as the reference, 0 if it has none of them: chrF by sacrebleu.

    Precision and recall of 1- to ``char_order``-grams of characters, averaged over orders; their F-beta, in which recall
    weighs ``beta`` times as much. White space does not count. It needs no tokenizer, so that it serves all languages.
    ``word_order=2`` also takes 1- and 2-grams of words: chrF++. Of several references the best counts. A run comes to
    corpus chrF, of the summed counts. An empty response scores 0 and counts in the corpus. Details: see
    `judgekit.aggregates.translation.ChrfDetails`, with sacrebleu's signature.

    Skipped without a reference, and if it is empty. No judge. Source: Popović, 2015
    (https://aclanthology.org/W15-3049/) and 2017 (https://aclanthology.org/W17-4770/).

    Raises:
        ConfigError: ``char_order`` or ``beta`` is below 1, or ``word_order`` is below 0.
    """

    word_order: int = 0
    char_order: int = 6
    beta: int = 2
    lowercase: bool = False
    name: str = "chrf"

    def __post_init__(self) -> None:
        _at_least(1, char_order=self.char_order, beta=self.beta)
        _at_least(0, word_order=self.word_order)

    @cached_property
    def _made(self) -> "tuple[sacrebleu.CHRF, str]":
        import sacrebleu  # noqa: PLC0415 - it takes a while

        metric = sacrebleu.CHRF(self.char_order, self.word_order, self.beta, self.lowercase)
        return metric, _recipe(metric)

    def counts(self, response: str, references: Sequence[str]) -> ChrfCounts:
        """The counts that chrF is made of, beside the best reference."""
        metric, _ = self._made
        if self.lowercase:
            response, references = response.lower(), [reference.lower() for reference in references]
        # Its public functions give no counts, and write into the metric, which samples share.
        flat: list[int] = metric._compute_segment_statistics(  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            response,
            metric._extract_reference_info(references),  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
        )
        return ChrfCounts(flat[2::3], flat[0::3], flat[1::3])

    def _compare(self, texts: Given) -> Score:
        counts = self.counts(*texts)
        matched, made, there = map(sum, counts)
        reason = f"of {made} n-grams of the response {matched} are in the reference, which has {there}"
        return Score.scored(
            self.name,
            chrf(*counts, self.beta),
            reason=reason if texts.response.strip() else _EMPTY,
            details={
                "metric": f"chrF{self.beta}{'+' * self.word_order}",
                **counts._asdict(),
                "beta": self.beta,
                "signature": f"nrefs:{len(texts.references)}|{self._made[1]}",
            },
            aggregate="corpus_chrf",
        )


class EditCounts(NamedTuple):
    """How many edits make a response a reference, and how many words both have: on average over the references."""

    edits: int
    response_length: int
    reference_length: float


@dataclass(frozen=True)
class TER(TextScorer):
    """1 if the response is the reference, 0 if as many words would have to be edited as it has: 1 - TER by sacrebleu.

    The translation edit rate is the number of words to insert, delete, replace, or shift in groups, over the number of
    words of the reference; the value is max(0, 1 - TER). Of several references the one that needs the fewest edits
    counts, over their average length. A run comes to 1 - corpus TER, of the summed counts, with the TER beside it. An
    empty response scores 0 and counts in the corpus. Details: see `judgekit.aggregates.translation.TerDetails`, with
    sacrebleu's signature.

    The search for shifts is slow: about a millisecond for 20 words, up to some seconds for 300, up to a minute for 1,000. The
    score of longer texts is failed. Words stand between spaces, so that Chinese and the like need ``normalized=True,
    asian_support=True``.

    Skipped without a reference, and if it is empty. No judge. Source: Snover et al., 2006
    (https://aclanthology.org/2006.amta-papers.25/).

    Attributes:
        normalized: Whether punctuation is split from words.
        no_punct: Whether punctuation is left out.
        asian_support: Whether both are done for Chinese and Japanese too; normalized, each character is a word.
        case_sensitive: Whether case counts.
        name: What its scores are called.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    name: str = "ter"
    _few: ClassVar[int] = 100

    @cached_property
    def _made(self) -> tuple[Split, str]:
        import sacrebleu  # noqa: PLC0415 - it takes a while

        metric = sacrebleu.TER(self.normalized, self.no_punct, self.asian_support, self.case_sensitive)
        tokenize = _forgetful(metric.tokenizer)
        return (lambda text: tokenize(text.rstrip()).split()), _recipe(metric)

    def counts(self, response: str, references: Sequence[str]) -> EditCounts:
        """The counts that TER is made of.

        Raises:
            ValueError: A text has more than `MOST_WORDS` words.
        """
        from sacrebleu.metrics.lib_ter import translation_edit_rate  # noqa: PLC0415 - as above

        split, _ = self._made
        words, known = split(response), [split(reference) for reference in references]
        if (longest := max(map(len, [words, *known]))) > MOST_WORDS:
            raise ValueError(
                f"a text of {longest:,} words is too long for TER, which takes up to {MOST_WORDS:,}; use BLEU or chrF"
            )
        edits = min(translation_edit_rate(words, reference)[0] for reference in known)
        return EditCounts(edits, len(words), sum(map(len, known)) / len(known))

    def _compare(self, texts: Given) -> Score:
        counts = self.counts(*texts)
        if not counts.reference_length:
            return Score.skipped(self.name, _NO_WORDS)
        ter = counts.edits / counts.reference_length
        reason = (
            f"edits that make the response the reference: {counts.edits}, for its {counts.reference_length:g} words"
        )
        is_split = self.normalized and self.asian_support
        warnings = () if is_split else _glued(*texts, because="TER", instead="normalized=True, asian_support=True")
        signature = f"nrefs:{len(texts.references)}|{self._made[1]}"
        return Score.scored(
            self.name,
            # With several references the rate of an empty response is below 1.
            max(0.0, 1 - ter) if counts.response_length else 0.0,
            reason=reason if counts.response_length else _EMPTY,
            details={"metric": "TER", **counts._asdict(), "ter": ter, "signature": signature},
            aggregate="corpus_ter",
            warnings=warnings,
        )


def _at_least(least: int, **options: int) -> None:
    for name, value in options.items():
        if type(value) is not int or value < least:
            raise ConfigError(f"{name} is {value!r}; it must be a whole number, at least {least}")


def _recipe(metric: "Metric") -> str:
    """The signature by sacrebleu without the number of references, which comes first in it."""
    metric.num_refs = -1  # any number: it gives no signature without one
    return str(metric.get_signature()).partition("|")[2]


def _forgetful(tokenizer: object) -> Callable[[str], str]:
    """One of sacrebleu's tokenizers without its memory, which would keep the last 65,536 texts, however long."""
    own = vars(tokenizer)
    if (after := own.get("_post_tokenizer")) is not None:
        own["_post_tokenizer"] = _forgetful(after)
    return partial(unwrap(type(tokenizer).__call__), tokenizer)


def _glued(response: str, references: Sequence[str], *, because: str, instead: str) -> tuple[str, ...]:
    """A warning where words are told by spaces that the script does not have."""
    if any(not text.isascii() and _unspaced(text) for text in (response, *references)):
        return (f"{because} takes Chinese, Japanese, Thai and the like for few, long words; use {instead}",)
    return ()
