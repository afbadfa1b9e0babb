"""A run in a few lines: each scorer's number, the samples behind it, and what it cost."""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from math import isfinite

from judgekit.aggregates.total import PackedScores
from judgekit.errors import join_limited, unknown_name_message
from judgekit.runs.rows import Row
from judgekit.runs.summary_text import REASON_SHOWN, ScorerSummary, one_line
from judgekit.traces.rendering import quoted_name

_RECORDED = 8
_SLICES = 50  # a label with more values tells samples apart, not kinds of samples
_NAMES_SLICED = 100
_NAMED = 8


@dataclass
class Summary:
    """A summary with one line for each scorer, in the order of their first scores."""

    scorers: dict[str, ScorerSummary] = field(default_factory=dict[str, ScorerSummary])
    _slices: "dict[str, dict[str, Summary] | None]" = field(
        default_factory=dict[str, "dict[str, Summary] | None"], repr=False
    )

    def add(self, row: Row) -> None:
        """Count one score."""
        score = row.score
        packed = None if score.value is None or score.aggregate == "mean" else PackedScores.pack(score)
        if (line := self.scorers.get(score.scorer)) is None:
            line = self.scorers[score.scorer] = ScorerSummary(score.scorer)
        line.add(row, packed)
        if score.value is None:
            line.add_reason(score.status, score.label or score.reason or "no reason given")
        if row.domain is not None:
            self._slice("domain", row.domain, row, packed)
        for name, value in row.labels.items():
            if name != "domain" or row.domain is None:  # a sample must not count twice
                self._slice(name, str(value), row, packed)

    def _slice(self, name: str, value: str, row: Row, packed: bytes | None) -> None:
        if name not in self._slices and len(self._slices) == _NAMES_SLICED:
            return
        values = self._slices.setdefault(name, {})
        if values is not None and value not in values and len(values) == _SLICES:
            values = self._slices[name] = None
        if values is not None:
            part = values.setdefault(value, Summary())
            scorer = row.score.scorer
            part.scorers.setdefault(scorer, ScorerSummary(scorer)).add(row, packed)

    def with_audits(self, audited: Mapping[str, str]) -> "Summary":
        """Return the summary with the audit status of each judge."""
        lines = {name: copy(line) for name, line in self.scorers.items()}
        for name, line in lines.items():
            line.audited = audited.get(name, "")
        return replace(self, scorers=lines)

    @property
    def slices(self) -> "Mapping[str, Mapping[str, Summary]]":
        """Summaries of parts of the samples, by domain and by each label.

        Names with one value or with too many are left out, and so are names after the first hundred.
        """
        return {name: values for name, values in self._slices.items() if values is not None and len(values) > 1}

    @property
    def prices(self) -> str:
        """The lists behind the costs, such as ``prices: litellm 1.106.2``; empty if there are none."""
        lists = sorted({price_list for line in self for price_list in line.price_lists})
        return f"prices: {', '.join(lists)}" if lists else ""

    @property
    def imported(self) -> str:
        """The means, or most frequent values, of labels that came with the recordings; empty if there are none.

        Labels with more than 50 values are left out, and so are names after the first hundred.
        """
        labels: list[str] = []
        for name, parts in self._slices.items():
            if name == "domain" or parts is None:
                continue
            counts = {value: max((line.total for line in part), default=0) for value, part in parts.items()}
            numbers = {value: _recorded_number(value) for value in counts}
            n = sum(counts.values())
            if None not in numbers.values():
                mean = sum((numbers[value] or 0.0) * count for value, count in counts.items()) / n
                figures = f"mean {mean:.3f}"
            else:
                most = Counter(counts).most_common(_NAMED)
                figures = ", ".join(f"{quoted_name(value)} {count / n:.0%}" for value, count in most)
            labels.append(f"{one_line(name)} {figures} (n={n:,})")
        return f"imported with the samples: {join_limited(labels, _RECORDED)}" if labels else ""

    def __iter__(self) -> Iterator[ScorerSummary]:
        return iter(self.scorers.values())

    def __getitem__(self, scorer: str) -> ScorerSummary:
        if scorer not in self.scorers:
            raise KeyError(unknown_name_message("scorer of the summary", scorer, self.scorers))
        return self.scorers[scorer]

    def __str__(self) -> str:
        width = max(map(len, self.scorers), default=0)
        lines = [f"{line.scorer:<{width}}  {'  '.join(line.parts())}" for line in self]
        for line in self:
            lines += [f"{line.scorer}: {note}" for note in line.notes()]
            lines += [
                f"{line.scorer}: {times}: {one_line(reason, REASON_SHOWN)}" for times, reason in line.unscored_reasons()
            ]
        return "\n".join(lines) or "no scores"


def _recorded_number(value: str) -> float | None:
    """Return the finite number of a label's text, with 1 for True; ``None`` if it is none."""
    try:
        number = float({"True": "1", "False": "0"}.get(value, value))
    except ValueError:
        return None
    return number if isfinite(number) else None
