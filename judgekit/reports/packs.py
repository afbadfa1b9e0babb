"""The list of a run's samples, and these samples in packs, which the page of a report reads on demand."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from judgekit.reports.detail import sample_detail
from judgekit.reports.listing import Listing
from judgekit.runs.audit_records import Correction
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import JudgeExchange

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

    def packs(self) -> Iterator[bytes]:
        """Yield the listed samples in packs, as compressed JSON."""
        for start in range(0, len(self.listing.entries), SAMPLES_IN_PACK):
            yield self.pack(start // SAMPLES_IN_PACK)

    def pack(self, at: int) -> bytes:
        """Return one of the packs, from 0; field by field, since similar values compress well if adjacent."""
        numbers = [entry.number for entry in self.listing.entries[at * SAMPLES_IN_PACK : (at + 1) * SAMPLES_IN_PACK]]
        details = sample_details(self.run, numbers)
        return _compressed({name: [detail[name] for detail in details] for name in details[0]} if details else {})


def sample_details(run: Run, numbers: Sequence[int]) -> list[dict[str, JsonValue]]:
    """Return everything to show of samples, given by their numbers."""
    store, names = run.store, [scorer.name for scorer in run.scorers]
    rows: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in store.rows(run.number, numbers=numbers):
        rows[row.index].append(row)
    replies: dict[int, dict[tuple[str, int], JudgeExchange]] = {number: {} for number in numbers}
    for number, scorer, call, reply in store.exchanges(run.number, numbers):
        replies[number][scorer, call] = reply
    kept = dict(store.conversations(run.number, numbers=numbers))
    return [sample_detail(names, rows[at], kept.get(at), replies[at]) for at in numbers]


def _compressed(content: JsonValue) -> bytes:
    return zlib.compress(to_json(content), _LEVEL)
