"""The outcome of a check of anchors: whether a judge has changed, where, and how much of a change would show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan, nan
from typing import NamedTuple

from judgekit.errors import count_text, join_limited
from judgekit.runs.anchors import BASELINE_ROUNDS, AnchorSet, date_text
from judgekit.stats.drift import Drift, detect_drift, detection_rate
from judgekit.stats.improvement import mcnemar_mid_p

_NO_VALUE = -1.0
_LEVEL = 0.025
_NAMES_SHOWN = 3
_RARE = 0.25


class TurnedAnchor(NamedTuple):
    """An anchor whose usual verdict since a change was rare before: both verdicts, in quarters, and the mean of people's.

    ``None`` stands for verdicts without a value, and for no people's.
    """

    sample: str
    before: float | None
    after: float | None
    human: float | None

    def __str__(self) -> str:
        verdicts = ["no value" if number is None else f"{number:g}" for number in (self.before, self.after)]
        return f"{self.sample}: {' -> '.join(verdicts)}{'' if self.human is None else f', people {self.human:.2g}'}"


@dataclass(frozen=True)
class AnchorsCheck:
    """The outcome of a check of anchors.

    Attributes:
        anchors: The number of anchors.
        answered: The number of these that got a verdict.
        detector: The evidence of a change, by `judgekit.stats.drift.detect_drift`: an alarm at 100.
        since: The date of the check in which the change first showed; ``None`` if the judge has not changed.
        turned: The anchors that turned, if it has.
        detection_rate: How likely a change of 10 % of the anchors raises the alarm within four checks.
        notes: Whether agreement with people changed too, and whether the provider reports other models.
    """

    scorer: str
    checked_at: datetime
    anchors: int
    answered: int
    detector: float
    since: datetime | None
    turned: Sequence[TurnedAnchor]
    detection_rate: float
    notes: Sequence[str]

    def __str__(self) -> str:
        text = (
            f"judge unchanged on {self.answered:,} anchors, checked today (a change of 10 % is found within 4 checks in about "
            f"{100 * self.detection_rate:.0f} %; at most one false alarm in 100 checks, on average)"
        )
        if self.since is not None:
            towards = sum(None not in turn[1:3] and (turn.after or 0) > (turn.before or 0) for turn in self.turned)
            turned = count_text(len(self.turned), "anchor")
            text = f"changed since {date_text(self.since)}: {turned} turned, {towards:,} of them towards pass"
        lost = [f"{self.anchors - self.answered:,} gave no verdict"] if self.answered < self.anchors else []
        return "; ".join((f"{self.scorer}: {text}", *lost, *self.notes))


def detect_change(anchors: AnchorSet) -> Drift:
    """Return the evidence that a judge has changed, with the round that is under way if there are verdicts in it."""
    return detect_drift(_table(anchors), baseline=BASELINE_ROUNDS)


def check_outcome(anchors: AnchorSet) -> AnchorsCheck:
    """Return the outcome of the last check, after which no other round has begun."""
    table, drift = _table(anchors), detect_change(anchors)
    start = len(anchors.rounds) - 1 if drift.since is None else drift.since
    turned: list[TurnedAnchor] = []
    for anchor, row in zip(anchors.anchors.values(), table if drift.since is not None else (), strict=False):
        before, after = _usual(row[:start]), _usual(row[start:])
        given = [_quarters(verdict) for verdict in row[:start] if not isnan(verdict)]
        if before is not None and after is not None and before != after and given.count(after) < _RARE * len(given):
            values = [None if number == _NO_VALUE else number for number in (before, after)]
            turned.append(TurnedAnchor(str(anchor.sample.get("id")), values[0], values[1], anchor.human))
    labeled = sum(anchor.human is not None for anchor in anchors.anchors.values())
    return AnchorsCheck(
        scorer=anchors.head.scorer,
        checked_at=anchors.rounds[-1].at,
        anchors=len(anchors.anchors),
        answered=sum(not isnan(row[-1]) for row in table),
        detector=drift.detector[-1],
        since=None if drift.since is None else anchors.rounds[drift.since].at,
        turned=turned,
        detection_rate=detection_rate(table),
        notes=[*(_agreement_notes(turned, labeled) if drift.since is not None else ()), *_model_notes(anchors, start)],
    )


def _table(anchors: AnchorSet) -> Sequence[Sequence[float]]:
    columns = [draws for draws in anchors.draws if draws]
    return [
        [
            nan if (draw := draws.get(key)) is None else _NO_VALUE if draw.value is None else draw.value
            for draws in columns
        ]
        for key in anchors.anchors
    ]


def _quarters(verdict: float) -> float:
    return round(4 * verdict) / 4


def _usual(verdicts: Iterable[float]) -> float | None:
    """Return the most frequent verdict, rounded to quarters; ``None`` if several are."""
    counts = Counter(_quarters(verdict) for verdict in verdicts if not isnan(verdict)).most_common(2)
    return counts[0][0] if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]) else None


def _agreement_notes(turned: Iterable[TurnedAnchor], labeled: int) -> Iterator[str]:
    """Yield whether the judge is closer to people since a change, by McNemar's test."""
    changes = [
        abs(turn.after - turn.human) - abs(turn.before - turn.human)
        for turn in turned
        if turn.human is not None and turn.before is not None and turn.after is not None
    ]
    closer, farther = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    if labeled:
        better, worse = mcnemar_mid_p(closer, farther) < _LEVEL, mcnemar_mid_p(farther, closer) < _LEVEL
        outcome = "got better" if better else "got worse" if worse else "shows no clear change"
        yield f"agreement with people, on {count_text(labeled, 'anchor')}, {outcome}"


def _model_notes(anchors: AnchorSet, start: int) -> Iterator[str]:
    """Yield the models or system fingerprints that the provider reported since a round, but never before."""
    for kind, lists in (
        ("models", [[draw.models for draw in draws.values()] for draws in anchors.draws]),
        ("system fingerprints", [[draw.system_fingerprints for draw in draws.values()] for draws in anchors.draws]),
    ):
        before, since = (
            {name for draws in part for names in draws for name in names} for part in (lists[:start], lists[start:])
        )
        if before and (new := since - before):
            shown = (join_limited(sorted(map(repr, names)), _NAMES_SHOWN, ", ") for names in (new, before))
            yield f"the provider reports other {kind}: {' after '.join(shown)}"
