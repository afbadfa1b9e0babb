"""BLEU, chrF and TER: similarity to reference translations."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import unwrap
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from judgekit.aggregates.translation import bleu, chrf
from judgekit.distribution import install_command
from judgekit.errors import ConfigError, check_choice
from judgekit.score import Score
from judgekit.scorers.text.base import TextPair, TextScorer

if TYPE_CHECKING:
    import sacrebleu
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEUScore

Smooth: TypeAlias = Literal["exp", "floor", "add-k", "none"]
SplitFunction: TypeAlias = Callable[[str], list[str]]

MOST_WORDS = 1000
"""The maximum number of words of a text for TER: such a pair takes up to a minute in a worker thread."""

_NO_WORDS = "the reference has no words"
_EMPTY = "the response has no words"
_SPACED = {"13a", "intl", "none"}
"""The tokenizers that find words by the spaces between them."""
_unspaced = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
).search


class NgramCounts(NamedTuple):
    """The numbers of matching and of all n-grams of a response, by order from 1, and both lengths in words."""

    correct: list[int]
    total: list[int]
    response_length: int
    reference_length: int


def count_ngrams(response: list[str], references: Sequence[list[str]], max_order: int) -> NgramCounts:
    """Return the counts of BLEU for texts given as words.

    An n-gram is clipped to its highest count in any one reference. The reference length is the one closest to the
    response's, the shorter of two that are equally close.
    """
    length = len(response)
    counts = _ngrams(references[0], max_order)
    for reference in references[1:]:
        counts |= _ngrams(reference, max_order)
    correct = [0] * max_order
    for ngram, count in _ngrams(response, max_order).items():
        correct[len(ngram) - 1] += min(count, counts[ngram])
    total = [max(0, length - shorter) for shorter in range(max_order)]
    nearest = min([len(reference) for reference in references], key=lambda other: (abs(other - length), other))
    return NgramCounts(correct, total, length, nearest)


def _ngrams(words: list[str], max_order: int) -> Counter[tuple[str, ...]]:
    later = [words[start:] for start in range(max_order)]
    return Counter(chain.from_iterable([zip(*later[:order], strict=False) for order in range(1, max_order + 1)]))


@dataclass(frozen=True)
class BLEU(TextScorer):
    """1 if a reference has all n-grams of the response and is no longer, 0 if it has no word: BLEU by sacrebleu.

    The geometric mean of the precisions of 1- to ``max_order``-grams, times a penalty for being shorter than the
    reference. Each text is one segment, including line breaks. The value is sentence BLEU (smoothed, with effective
    order); the total of a run is corpus BLEU, of the summed counts (without). All references are used together. An
    empty response scores 0 and counts in the corpus. Details: see `judgekit.aggregates.translation.BleuDetails`, with
    sacrebleu's signatures.

    Skipped without a conversation, and without a reference or if it has no words. No judge. Source: Papineni et al., 2002
    (https://aclanthology.org/P02-1040/) and Post, 2018 (https://aclanthology.org/W18-6319/).

    Attributes:
        tokenize: The tokenizer of sacrebleu: ``13a`` and ``intl`` split at spaces and punctuation, ``zh`` also around
            each Chinese character, ``char`` into characters, ``ja-mecab`` into Japanese words
            (``pip install 'sacrebleu[ja]'``), ``none`` at spaces; there are others, for some of which sacrebleu
            downloads a model on first use.
        lowercase: Whether to ignore case.
        max_order: The order of the longest n-grams.
        smooth: The replacement for a precision of 0: halves (``exp``), 0.1 matches (``floor``), one more match of one
            more n-gram in all orders above 1 (``add-k``), or 0 (``none``).
        name: The name of the scores.

    Raises:
        ConfigError: The tokenizer or smoothing is unknown or not installed, or ``max_order`` is below 1.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    max_order: int = 4
    smooth: Smooth = "exp"
    name: str = "bleu"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("smoothing of BLEU", self.smooth, get_args(Smooth))
        _at_least(1, max_order=self.max_order)
        _ = self._tokenizer  # report a missing tokenizer now, not for each sample

    @cached_property
    def _tokenizer(self) -> tuple[SplitFunction, str, str]:
        """The tokenizer, and the signatures of sentence and corpus BLEU, without numbers of references."""
        import sacrebleu  # noqa: PLC0415 - slow to import

        check_choice("tokenizer of sacrebleu", self.tokenize, sacrebleu.BLEU.TOKENIZERS)
        try:
            metric, corpus = (
                sacrebleu.BLEU(
                    self.lowercase, tokenize=self.tokenize, smooth_method=self.smooth, effective_order=effective
                )
                for effective in (True, False)
            )
        except (ImportError, RuntimeError, AssertionError, OSError) as error:
            why = install_command("japanese") if self.tokenize == "ja-mecab" else " ".join(str(error).split())
            raise ConfigError(f"tokenize={self.tokenize!r} needs a missing dependency: {why}") from error
        tokenize = _without_cache(metric.tokenizer)

        def split(text: str) -> list[str]:
            if "mecab" in self.tokenize and "\0" in text:
                raise ValueError("the text has a NUL character, where MeCab stops reading")
            return tokenize((text.lower() if self.lowercase else text).rstrip()).split()

        return split, _recipe(metric), _recipe(corpus)

    def counts(self, response: str, references: Sequence[str]) -> NgramCounts:
        """Return the counts that BLEU is computed from."""
        split = self._tokenizer[0]
        return count_ngrams(split(response), [split(reference) for reference in references], self.max_order)

    def sentence(self, counts: NgramCounts) -> "BLEUScore":
        """Return sentence BLEU as sacrebleu's score, in percent."""
        return bleu(*counts, self.smooth, effective_order=True)

    def _compare(self, texts: TextPair) -> Score:
        counts = self.counts(*texts)
        if not counts.reference_length:
            return Score.skipped(self.name, _NO_WORDS)
        sentence = self.sentence(counts)
        _, recipe, corpus = self._tokenizer
        numbered = f"nrefs:{len(texts.references)}|"
        warnings = _unsplit_warning(*texts, because=f"tokenize={self.tokenize!r}", instead="'zh', 'ja-mecab' or 'char'")
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
    """The numbers of matching, response and reference n-grams by order: of characters, then of words."""

    matched: list[int]
    response_ngrams: list[int]
    reference_ngrams: list[int]


@dataclass(frozen=True)
class CHRF(TextScorer):
    """1 if the response and the reference have the same character n-grams, 0 if they share none: chrF by sacrebleu.

    The F-beta of the precision and recall of 1- to ``char_order``-grams of characters, averaged over orders; recall
    weighs ``beta`` times as much. Whitespace is ignored. chrF needs no tokenizer and therefore suits all languages.
    ``word_order=2`` adds 1- and 2-grams of words: chrF++. The best reference counts. The total of a run is corpus chrF,
    of the summed counts. An empty response scores 0 and counts in the corpus. Details: see
    `judgekit.aggregates.translation.ChrfDetails`, with sacrebleu's signature.

    Skipped without a conversation, and without a reference or if it is empty. No judge. Source: Popović, 2015
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
        super().__post_init__()
        _at_least(1, char_order=self.char_order, beta=self.beta)
        _at_least(0, word_order=self.word_order)

    @cached_property
    def _tokenizer(self) -> "tuple[sacrebleu.CHRF, str]":
        import sacrebleu  # noqa: PLC0415 - slow to import

        metric = sacrebleu.CHRF(self.char_order, self.word_order, self.beta, self.lowercase)
        return metric, _recipe(metric)

    def counts(self, response: str, references: Sequence[str]) -> ChrfCounts:
        """Return the counts of chrF with the best reference."""
        metric, _ = self._tokenizer
        if self.lowercase:
            response, references = response.lower(), [reference.lower() for reference in references]
        # The public functions return no counts, and write into the metric, which samples share.
        flat: list[int] = metric._compute_segment_statistics(  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            response,
            metric._extract_reference_info(references),  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
        )
        return ChrfCounts(flat[2::3], flat[0::3], flat[1::3])

    def _compare(self, texts: TextPair) -> Score:
        counts = self.counts(*texts)
        matched, total, there = map(sum, counts)
        reason = f"{matched} of {total} n-grams of the response are in the reference, which has {there}"
        return Score.scored(
            self.name,
            chrf(*counts, self.beta),
            reason=reason if texts.response.strip() else _EMPTY,
            details={
                "metric": f"chrF{self.beta}{'+' * self.word_order}",
                **counts._asdict(),
                "beta": self.beta,
                "signature": f"nrefs:{len(texts.references)}|{self._tokenizer[1]}",
            },
            aggregate="corpus_chrf",
        )


class EditCounts(NamedTuple):
    """The number of edits from response to reference, and both lengths in words, averaged over references."""

    edits: int
    response_length: int
    reference_length: float


@dataclass(frozen=True)
class TER(TextScorer):
    """1 if the response equals the reference, 0 if it needs as many edits as that has words: 1 - TER by sacrebleu.

    The translation edit rate is the number of words to insert, delete, replace, or shift in groups, over the number of
    words of the reference; the value is max(0, 1 - TER). The reference with the fewest edits counts, over the average
    length of the references. The total of a run is 1 - corpus TER, of the summed counts, with the TER among its
    figures. An empty response scores 0 and counts in the corpus. Details: see
    `judgekit.aggregates.translation.TerDetails`, with sacrebleu's signature.

    The search for shifts is slow: about a millisecond for 20 words, up to some seconds for 300, up to a minute for
    1,000. Longer texts fail. Words are separated by spaces, so Chinese and the like need
    ``normalized=True, asian_support=True``.

    Skipped without a conversation, and without a reference or if it has no words. No judge. Source: Snover et al., 2006
    (https://aclanthology.org/2006.amta-papers.25/).

    Attributes:
        normalized: Whether to split punctuation from words.
        no_punct: Whether to remove punctuation.
        asian_support: Whether to do both for Chinese and Japanese as well; with ``normalized``, each character is a
            word.
        case_sensitive: Whether case matters.
        name: The name of the scores.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    name: str = "ter"
    _quick_length: ClassVar[int] = 100

    @cached_property
    def _tokenizer(self) -> tuple[SplitFunction, str]:
        import sacrebleu  # noqa: PLC0415 - slow to import

        metric = sacrebleu.TER(self.normalized, self.no_punct, self.asian_support, self.case_sensitive)
        tokenize = _without_cache(metric.tokenizer)
        return (lambda text: tokenize(text.rstrip()).split()), _recipe(metric)

    def counts(self, response: str, references: Sequence[str]) -> EditCounts:
        """Return the counts that TER is computed from.

        Raises:
            ValueError: A text has more than `MOST_WORDS` words.
        """
        from sacrebleu.metrics.lib_ter import translation_edit_rate  # noqa: PLC0415 - as above

        split, _ = self._tokenizer
        words, reference_words = split(response), [split(reference) for reference in references]
        if (longest := max(map(len, [words, *reference_words]))) > MOST_WORDS:
            raise ValueError(
                f"a text of {longest:,} words is too long for TER (at most {MOST_WORDS:,}); use BLEU or chrF"
            )
        edits = min(translation_edit_rate(words, reference)[0] for reference in reference_words)
        return EditCounts(edits, len(words), sum(map(len, reference_words)) / len(reference_words))

    def _compare(self, texts: TextPair) -> Score:
        counts = self.counts(*texts)
        if not counts.reference_length:
            return Score.skipped(self.name, _NO_WORDS)
        ter = counts.edits / counts.reference_length
        reason = f"edits from response to reference: {counts.edits}, for {counts.reference_length:g} reference words"
        is_split = self.normalized and self.asian_support
        instead = "normalized=True, asian_support=True"
        warnings = () if is_split else _unsplit_warning(*texts, because="TER", instead=instead)
        signature = f"nrefs:{len(texts.references)}|{self._tokenizer[1]}"
        return Score.scored(
            self.name,
            # With several references, the rate of an empty response may be below 1.
            max(0.0, 1 - ter) if counts.response_length else 0.0,
            reason=reason if counts.response_length else _EMPTY,
            details={"metric": "TER", **counts._asdict(), "ter": ter, "signature": signature},
            aggregate="corpus_ter",
            warnings=warnings,
        )


def _at_least(least: int, **options: int) -> None:
    for name, value in options.items():
        if type(value) is not int or value < least:
            raise ConfigError(f"{name} must be an integer of at least {least}, found {value!r}")


def _recipe(metric: "Metric") -> str:
    """Return sacrebleu's signature without its first part, the number of references."""
    metric.num_refs = -1  # any number: without one, there is no signature
    return str(metric.get_signature()).partition("|")[2]


def _without_cache(tokenizer: object) -> Callable[[str], str]:
    """Return a tokenizer of sacrebleu without its cache, which would keep the last 65,536 texts of any length."""
    own = vars(tokenizer)
    if (after := own.get("_post_tokenizer")) is not None:
        own["_post_tokenizer"] = _without_cache(after)
    return partial(unwrap(type(tokenizer).__call__), tokenizer)


def _unsplit_warning(response: str, references: Sequence[str], *, because: str, instead: str) -> tuple[str, ...]:
    """Return a warning if words are split at spaces in a script without them."""
    if any(not text.isascii() and _unspaced(text) for text in (response, *references)):
        return (f"{because} treats Chinese, Japanese, Thai and similar scripts as a few long words; use {instead}",)
    return ()
