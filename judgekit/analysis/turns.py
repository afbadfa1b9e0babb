"""The agreement of a judge with people on single turns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import Row
from judgekit.traces.tree import MessageNumber


class TurnVerdicts(NamedTuple):
    """Whether a turn passed by a person and by the judge (``None``: it does not count), and the unit of its sample."""

    human: bool | None
    judge: bool | None
    unit: str | None


def passes(turn_value: float | None) -> bool | None:
    """Return whether a turn with this value passed; ``None`` if it has no value."""
    return None if turn_value is None else turn_value >= 0.5


def judged_turns(row: Row) -> Mapping[MessageNumber, Mapping[str, float | None]]:
    """Return what a judge said of each turn of a sample, by the number of its first message."""
    rows = cast("Iterable[Mapping[str, float | None]]", row.score.details.get("turns") or ())
    return {cast("MessageNumber", turn["message"]): turn for turn in rows}


def turn_counts(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    """Return the number of each turn, of the samples in which it passed, and of those in which it has a value."""
    passed: dict[int, list[bool]] = {}
    for turn in (turn for row in rows for turn in judged_turns(row).values()):
        if (verdict := passes(turn["value"])) is not None:
            passed.setdefault(int(turn["turn"] or 0), []).append(verdict)
    return [(number, sum(verdicts), len(verdicts)) for number, verdicts in sorted(passed.items())]


def turn_agreement(pairs: Sequence[TurnVerdicts]) -> dict[str, Estimate]:
    """Return how often people and the judge agree on whether turns passed, by name."""
    hits = {
        "same verdict on a turn": [(float(pair.human == pair.judge), pair.unit) for pair in pairs],
        "bad turns found": [(float(pair.judge is False), pair.unit) for pair in pairs if pair.human is False],
        "false alarms on good turns": [(float(pair.judge is False), pair.unit) for pair in pairs if pair.human],
    }
    return {what: Estimate.mean([hit for hit, _ in of], [unit for _, unit in of]) for what, of in hits.items() if of}
