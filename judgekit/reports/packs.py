"""What the page of a report reads on demand: the list of a run's samples, and these samples in packs."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import JsonValue
from pydantic_core import to_json

from judgekit.reports.detail import sample_detail
from judgekit.reports.listing import Listing
from judgekit.runs.audit_records import Correction
from judgekit.runs.results import Run

Part = TypeVar("Part")

SAMPLES_IN_PACK = 16
"""The page relies on this number."""
_LEVEL = 3  # of zlib, whose default takes three times as long and makes pages 8 % smaller


class ReportSide(NamedTuple):
    """A run with its listed samples; ``b`` is the reported run, ``a`` its baseline."""

    name: str
    run: Run
    listing: Listing
    corrections: Mapping[str, Correction]

    @property
    def scorers(self) -> list[str]:
        """The names of the scorers."""
        return [scorer.name for scorer in self.run.scorers]

    def list_json(self) -> bytes:
        """Return the list of samples as compressed JSON."""
        return _compressed(self.listing.columns(self.scorers))

    def packs(self, only: int | None = None) -> Iterator[bytes]:
        """Yield the listed samples in packs as compressed JSON, or only the pack with a number, from 0."""
        first, last = (0, None) if only is None else (only * SAMPLES_IN_PACK, (only + 1) * SAMPLES_IN_PACK)
        numbers = [entry.number for entry in self.listing.entries[first:last]]
        pack: list[dict[str, JsonValue]] = []
        for detail in _details(self.run, self.scorers, numbers):
            pack.append(detail)
            if len(pack) == SAMPLES_IN_PACK:
                yield _columns(pack)
                pack = []
        if pack:
            yield _columns(pack)


def _details(run: Run, names: Sequence[str], numbers: Sequence[int]) -> Iterator[dict[str, JsonValue]]:
    """Yield everything to show of the samples with these numbers, in order."""
    lost = run.store.damaged(run.number, numbers)
    damaged: dict[int, dict[tuple[str, int], None]] = {}
    for number, scorer, call in lost.exchanges:
        damaged.setdefault(number, {})[scorer, call] = None
    grouped = zip(
        numbers,
        _grouped(numbers, ((row.index, row) for row in run.rows(numbers=numbers))),
        _grouped(numbers, run.conversations(numbers=numbers)),
        _grouped(
            numbers, ((number, (scorer, call, reply)) for number, scorer, call, reply in run.exchanges(numbers=numbers))
        ),
        strict=True,
    )
    for number, rows, kept, replies in grouped:
        exchanges = damaged.get(number, {}) | {(scorer, call): reply for scorer, call, reply in replies}
        is_damaged = number in lost.conversations
        yield sample_detail(names, rows, kept[0] if kept else None, exchanges, is_damaged=is_damaged)


def _grouped(numbers: Sequence[int], pairs: Iterator[tuple[int, Part]]) -> Iterator[list[Part]]:
    """Yield the parts of each of these numbers; both come in ascending order."""
    waiting = next(pairs, None)
    for number in numbers:
        here: list[Part] = []
        while waiting is not None and waiting[0] <= number:
            if waiting[0] == number:
                here.append(waiting[1])
            waiting = next(pairs, None)
        yield here


def _columns(pack: Sequence[Mapping[str, JsonValue]]) -> bytes:
    """Return samples field by field, since similar values compress well if adjacent."""
    return _compressed({name: [detail[name] for detail in pack] for name in pack[0]})


def _compressed(content: JsonValue) -> bytes:
    return zlib.compress(to_json(content), _LEVEL)
