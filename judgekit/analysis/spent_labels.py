"""Labels that were read or that chose when a judge was aligned: they prove nothing about it, wherever they turn up."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from judgekit.analysis.labels import HumanLabel
from judgekit.errors import StoreError
from judgekit.runs.alignments import AlignmentRecord, ancestry
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord

SPENT = "read, or used to choose, when the judge was aligned, so they prove nothing about it"


class SpentSamples(NamedTuple):
    """The samples of a run whose labels must not be used, by number, and the reason."""

    numbers: Collection[int] = ()
    reason: str = SPENT


def alignments_of(run: Run, scorers: Iterable[ScorerRecord]) -> Sequence[AlignmentRecord]:
    """Return the alignments that the questions of scorers came from, each with those before it."""
    wanted = [alignment for scorer in scorers for alignment in scorer.alignments]
    folder = run.audits_folder
    if wanted and folder is None:
        raise StoreError("a run in memory has no records of alignments: give it a store")
    return [] if folder is None else [record for alignment in wanted for record in ancestry(alignment, folder)]


def question_names(run: Run, scorer: ScorerRecord) -> Sequence[str]:
    """Return the names by which labels may name a scorer's question: its own, and those before it was aligned."""
    try:
        return list(dict.fromkeys((scorer.name, *(alignment.scorer for alignment in alignments_of(run, [scorer])))))
    except StoreError:
        return [scorer.name]


def spent_samples(
    run: Run, scorers: Iterable[ScorerRecord], rows: Iterable[Row], labels: Iterable[HumanLabel]
) -> SpentSamples:
    """Return the labeled samples of a run that were read or chose when one of its judges was aligned.

    If that cannot be told, these are all labeled samples.
    """
    ids = {label.sample for label in labels}
    labeled = {row.index for row in rows if row.sample_id in ids}
    try:
        records = alignments_of(run, scorers)
    except StoreError as error:
        return SpentSamples(labeled, f"perhaps read when the judge was aligned, which is not recorded here: {error}")
    if not records:
        return SpentSamples()
    if not run.record.keeps_text:
        return SpentSamples(
            labeled, f"perhaps read when the judge was aligned: run {run.number} stores no text to tell"
        )
    read = run.conversations(labeled.__contains__)
    return SpentSamples({number for number, sample in read if any(record.was_fitted_to(sample) for record in records)})
