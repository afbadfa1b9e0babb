"""Corpus BLEU, chrF and TER, computed from the summed counts of all samples rather than from the samples' scores."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from judgekit.aggregates.total import Total, mean
from judgekit.score import Score

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEUScore


class BleuDetails(TypedDict):
    """The details of a BLEU score. Lists have one number per n-gram order, starting at 1."""

    metric: str
    correct: list[int]
    total: list[int]
    precisions: list[float]
    brevity_penalty: float
    response_length: int
    reference_length: int
    smooth: str
    signature: str
    corpus_signature: str


class ChrfDetails(TypedDict):
    """The details of a chrF score. Lists have one number per order, first of characters, then of words."""

    metric: str
    matched: list[int]
    response_ngrams: list[int]
    reference_ngrams: list[int]
    beta: int
    signature: str


class TerDetails(TypedDict):
    """The details of a TER score."""

    metric: str
    edits: int
    response_length: int
    reference_length: float
    ter: float
    signature: str


def corpus_bleu(scores: Sequence[Score]) -> Total:
    """Return corpus BLEU in [0, 1], equal to ``sacrebleu.corpus_bleu``, from the details of BLEU scores.

    Undefined if the scores were made with different settings. The note is sacrebleu's signature and, if no response is
    long enough, why the value is 0.
    """
    return _total(scores, "corpus_signature", _bleu)


def corpus_chrf(scores: Sequence[Score]) -> Total:
    """Return corpus chrF in [0, 1], equal to ``sacrebleu.corpus_chrf``, from the details of chrF scores.

    Undefined if the scores were made with different settings. The note is sacrebleu's signature.
    """
    return _total(scores, "signature", _chrf)


def corpus_ter(scores: Sequence[Score]) -> Total:
    """Return 1 - corpus TER, at least 0, from the details of TER scores.

    The TER itself, equal to ``sacrebleu.corpus_ter``, is one of the figures: edits per reference word, which may exceed
    1. Undefined if the scores were made with different settings. The note is sacrebleu's signature.
    """
    return _total(scores, "signature", _ter)


class _Measured(NamedTuple):
    value: float
    name: str
    metrics: Mapping[str, float] = {}
    note: str = ""


def _total(scores: Sequence[Score], signed: str, measure: Callable[[Sequence[object], str], _Measured]) -> Total:
    figures = {"mean of samples": mean(scores)}
    versions: dict[tuple[str, str], set[str]] = {}
    for score in scores:
        references, _, recipe = str(score.details[signed]).partition("|")
        versions.setdefault((str(score.details["metric"]), recipe), set()).add(references)
    if len(versions) > 1:
        ways = "; ".join(f"{metric} {recipe}" for metric, recipe in versions)
        return Total(None, "undefined", f"its scores have different settings: {ways}", figures)
    [((metric, recipe), numbers)] = versions.items()
    measured = measure([score.details for score in scores], f"corpus {metric}")
    references = numbers.pop() if len(numbers) == 1 else "nrefs:var"
    note = "; ".join(filter(None, (f"{references}|{recipe}", measured.note)))
    return Total(measured.value, measured.name, note, {**measured.metrics, **figures})


def _bleu(details: Sequence[object], name: str) -> _Measured:
    counted = cast("Sequence[BleuDetails]", details)
    corpus = bleu(
        _summed([counts["correct"] for counts in counted]),
        _summed([counts["total"] for counts in counted]),
        sum(counts["response_length"] for counts in counted),
        sum(counts["reference_length"] for counts in counted),
        counted[0]["smooth"],
    )
    remark = ""
    if not corpus.totals[0]:
        remark = "0 since no response has a word"
    elif not corpus.totals[-1]:
        remark = f"0 since no response has {len(corpus.totals)} words: use CHRF, or BLEU(max_order=1)"
    return _Measured(min(1.0, corpus.score / 100), name, note=remark)


def _chrf(details: Sequence[object], name: str) -> _Measured:
    counted = cast("Sequence[ChrfDetails]", details)
    value = chrf(
        _summed([counts["matched"] for counts in counted]),
        _summed([counts["response_ngrams"] for counts in counted]),
        _summed([counts["reference_ngrams"] for counts in counted]),
        counted[0]["beta"],
    )
    return _Measured(value, name)


def _ter(details: Sequence[object], name: str) -> _Measured:
    counted = cast("Sequence[TerDetails]", details)
    ter = sum(counts["edits"] for counts in counted) / sum(counts["reference_length"] for counts in counted)
    return _Measured(max(0.0, 1 - ter), f"1 - {name}", {name: ter})


def _summed(rows: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def bleu(
    correct: Sequence[int],
    total: Sequence[int],
    response_length: int,
    reference_length: int,
    smooth: str,
    *,
    effective_order: bool = False,
) -> "BLEUScore":
    """Return BLEU by sacrebleu, in percent, from n-gram counts per order and lengths in words."""
    import sacrebleu  # noqa: PLC0415 - slow to import

    return sacrebleu.BLEU.compute_bleu(  # pyright: ignore[reportUnknownMemberType] - one of its options has no type
        # Copies, because smoothing may write into them.
        [*correct],
        [*total],
        response_length,
        reference_length,
        smooth_method=smooth,
        effective_order=effective_order,
        max_ngram_order=len(total),
    )


def chrf(matched: Sequence[int], response: Sequence[int], reference: Sequence[int], beta: int) -> float:
    """Return chrF in [0, 1] from n-gram counts per order: the F-beta of precision and recall, averaged over orders.

    Orders in which the response or the reference has no n-gram are left out.
    """
    orders = [counts for counts in zip(matched, response, reference, strict=True) if counts[1] and counts[2]]
    if not any(matched):
        return 0.0
    precision = sum(match / total for match, total, _ in orders) / len(orders)
    recall = sum(match / there for match, _, there in orders) / len(orders)
    return min(1.0, (1 + beta**2) * precision * recall / (beta**2 * precision + recall))
