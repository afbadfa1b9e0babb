"""The selection of samples for people to label: a random sample of those that a judge scored."""

import random
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from judgekit.analysis.labels import SelectionMethod
from judgekit.errors import ConfigError, check_choice
from judgekit.runs.alignments import LabelRole, assigned_role
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import ScoreStatus

_MOST_VERDICTS = 7
_PARTS = 4
_LEAST = 2  # samples of a stratum that give its error rate a variance
_UNSURE = 0.4  # of the samples of a verdict; see `strata`


class DrawnSample(NamedTuple):
    """A sample to be labeled: its number in the run, its id, how it was drawn, with what probability, and for what role.

    The probability of a sample drawn by its verdict is ``None``, since it would reveal the verdict to the person who
    labels. It is known nonetheless: the samples drawn from each of the `strata` are a random sample of it. The role is
    ``None`` unless samples were drawn for `judgekit.alignment` to read.
    """

    number: int
    id: str
    selection: SelectionMethod
    probability: float | None
    role: LabelRole | None = None


def draw_samples(
    run: Run,
    scorer: str,
    n: int,
    *,
    by_verdict: bool = False,
    include_skipped: bool = False,
    train: int = 0,
    seed: int = 0,
) -> Sequence[DrawnSample]:
    """Return samples that a scorer scored, drawn without replacement, in an order that reveals nothing about them.

    With the same seed, a larger draw includes a smaller one, so that labels can be added later.

    Args:
        run: The run.
        scorer: The scorer's name.
        n: The number of samples; all are drawn if there are no more.
        by_verdict: Whether to draw equally many samples of each of the `strata` as far as possible, so that rare verdicts
            are included.
        include_skipped: Whether to include samples to which the question does not apply according to the judge.
        train: The number of further samples for the model to read that aligns the judge: those of which the judge is
            least sure, among the rest. All samples then have a role.
        seed: The seed of the draw.

    Raises:
        ConfigError: There is no such scorer, it scored nothing, ``n`` is too small, or further samples are wanted and the
            run has no confidence or no conversations.
    """
    names = [record.name for record in run.scorers]
    check_choice("scorer of the run", scorer, names)
    statuses: Sequence[ScoreStatus] = ("scored", "skipped") if include_skipped else ("scored",)
    candidates = run.rows(scorer=scorer, statuses=statuses)
    rows = [row for row in candidates if row.score.value is not None or is_not_applicable(row)]
    if not rows:
        raise ConfigError(f"{scorer} scored no sample of run {run.number}: there is nothing to label")
    if n < 1:
        raise ConfigError(f"expected at least one sample to label, found {n}")
    dice = random.Random(seed)  # noqa: S311 - a draw, not a secret
    if n >= len(rows) or not by_verdict:
        n = min(n, len(rows))
        drawn = [DrawnSample(row.index, row.sample_id, "random", n / len(rows)) for row in _ordered(rows, dice)[:n]]
    elif n < _LEAST * len(parts := strata(rows, by_confidence=True)):
        raise ConfigError(
            f"{scorer} has {len(parts)} kinds of verdicts, and each needs at least {_LEAST} samples: draw "
            f"{_LEAST * len(parts)} or more"
        )
    else:
        drawn = [DrawnSample(row.index, row.sample_id, "stratified", None) for row in draw_by_verdict(rows, n, dice)]
    if train:
        drawn = [*_with_roles(run, drawn), *_unsure(run, rows, drawn, train)]
        dice.shuffle(drawn)
    return drawn


def draw_by_verdict(rows: Sequence[Row], n: int, dice: random.Random) -> Sequence[Row]:
    """Return rows of one scorer, equally many of each of the `strata` as far as possible; all if there are no more."""
    parts = strata(rows, by_confidence=True)
    shares = zip(parts, _shared([len(part) for part in parts], min(n, len(rows))), strict=True)
    drawn = [row for part, share in shares for row in _ordered(part, dice)[:share]]
    dice.shuffle(drawn)
    return drawn


def _with_roles(run: Run, drawn: Sequence[DrawnSample]) -> Sequence[DrawnSample]:
    """Return samples with roles: a hash decides which of them choose and which test; none is read."""
    if not run.record.keeps_text:
        raise ConfigError(f"run {run.number} stores no conversations, by which labels get their roles")
    wanted = {sample.number for sample in drawn}
    samples = dict(run.conversations(wanted.__contains__))
    return [
        sample._replace(role=assigned_role(samples[sample.number], train=0)) if sample.number in samples else sample
        for sample in drawn
    ]


def _unsure(run: Run, rows: Sequence[Row], drawn: Sequence[DrawnSample], n: int) -> Sequence[DrawnSample]:
    """Return the samples of which the judge is least sure, of units that are not drawn."""
    taken = {sample.number for sample in drawn}
    units = {row.unit for row in rows if row.index in taken and row.unit is not None}
    rest = [row for row in rows if row.index not in taken and row.unit not in units]
    sure = [(row.score.confidence, row) for row in rest if row.score.confidence is not None]
    if not sure and rest:
        raise ConfigError(
            f"the scores of run {run.number} have no confidence, by which samples to read are chosen: use repeats=5, a panel, "
            "or a judge with logprobs"
        )
    least_sure = sorted(sure, key=lambda sample: (sample[0], sample[1].index))[:n]
    return [DrawnSample(row.index, row.sample_id, "convenience", None, "train") for _, row in least_sure]


def is_not_applicable(row: Row) -> bool:
    """Return whether a judge was asked and says that the question does not apply.

    A sample that is skipped without asking lacks something that the question needs, which is not a verdict.
    """
    return row.score.status == "skipped" and bool(row.score.calls)


def _ordered(rows: Sequence[Row], dice: random.Random) -> Sequence[Row]:
    return dice.sample(rows, len(rows))


def strata(rows: Iterable[Row], *, by_confidence: bool = False) -> Sequence[Sequence[Row]]:
    """Return the rows of one scorer grouped by verdict: by label, by value, or by quartile if there are many values.

    Equal values stay together, and so do rows to which the question does not apply according to the judge. A group of a
    single sample, which has no variance, is merged with the next one.

    Args:
        rows: The rows.
        by_confidence: Whether to separate, within each verdict, the 40 % of which the judge is least sure, if all have a
            confidence. The judge errs more often there, so labels drawn equally from all groups tell more of the mean. If
            it is right on 60 % of the 30 % of samples that are hard and on 95 % of the others, 60 labels are as precise as
            some 85 drawn at random; if its confidence says nothing, as 60.
    """
    parts = _verdicts([*rows])
    return [part for whole in parts for part in _by_confidence(whole)] if by_confidence else parts


def _by_confidence(rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
    sure = [row.score.confidence for row in rows if row.score.confidence is not None]
    if len(sure) < len(rows):
        return [rows]
    cut = sorted(sure)[int(_UNSURE * (len(sure) - 1))]
    parts = (
        [row for row in rows if (row.score.confidence or 0) <= cut],
        [row for row in rows if (row.score.confidence or 0) > cut],
    )
    return parts if min(map(len, parts)) >= _LEAST else [rows]


def _verdicts(rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
    scored = [(row, row.score.value) for row in rows if row.score.value is not None]
    labels = {row.score.label for row, _ in scored}
    values = sorted(value for _, value in scored)
    is_labeled = None not in labels and len(labels) <= _MOST_VERDICTS
    bounds = sorted({*values})
    if len(bounds) > _MOST_VERDICTS:
        bounds = [values[len(values) * part // _PARTS] for part in range(1, _PARTS)]
    parts: dict[str, list[Row]] = {}
    for row, value in scored:
        verdict = str(row.score.label if is_labeled else bisect_right(bounds, value))
        parts.setdefault(verdict, []).append(row)
    ordered = [part for _, part in sorted(parts.items(), key=lambda named: (named[1][0].score.value or 0.0, named[0]))]
    if skipped := [row for row in rows if is_not_applicable(row)]:
        ordered.append(skipped)
    merged: list[list[Row]] = []
    for part in ordered:
        if merged and min(len(part), len(merged[-1])) < _LEAST:
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _shared(sizes: Sequence[int], n: int) -> Sequence[int]:
    """Return how many of ``n`` samples to draw from each part, as equally as their sizes allow."""
    shares = [0] * len(sizes)
    for _ in range(n):
        _, index = min((share, index) for index, share in enumerate(shares) if share < sizes[index])
        shares[index] += 1
    return shares
