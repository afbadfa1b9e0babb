"""Comparisons of two runs on the same samples: which scorers improved or got worse, and how certain this is."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.text import Text

from judgekit.analysis.comparability import check_references, comparison_warnings
from judgekit.analysis.corrected_difference import DifferenceCorrection, correct_difference
from judgekit.analysis.difference import Difference, PairedGains, PairedNumbers, compare_scorer
from judgekit.analysis.difference_gates import DIFFERENCE_FIELDS, difference_gate_result
from judgekit.analysis.findings import left_out_lines
from judgekit.analysis.gates import Gate, GateResults
from judgekit.analysis.labels import HumanLabel, labels_by_scorer
from judgekit.analysis.losses import Loss, new_losses
from judgekit.analysis.sample_pairs import SamplePairs, UnpairedSamples
from judgekit.analysis.stored_labels import combine_labels
from judgekit.errors import ConfigError, join_limited
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.stats.comparison import holm
from judgekit.terminal import printable, text_table

_COLUMNS = ("scorer", "verdict", "A", "B", "B - A", "95 % interval", "p (Holm)")
_WIDTH = 140


class ChangedScore(NamedTuple):
    """The rows of one sample and scorer in both runs."""

    a: Row
    b: Row


@dataclass(frozen=True, eq=False)
class Comparison:
    """The differences of run B from run A, the baseline; ``print`` shows one line for each scorer.

    Attributes:
        a: The baseline.
        b: The run that is compared with it.
        scorers: The differences of the scorers that are in both runs, by name.
        gates: The results of the gates.
        pairs: The number of samples in both runs, paired by id.
        paired: The sample numbers of these pairs.
        gains: By scorer, the gains of the pairs that have values in both runs.
        unpaired_a: The other samples of A.
        unpaired_b: The other samples of B.
        warnings: Reasons why a difference may not be what it seems.
    """

    a: Run
    b: Run
    scorers: tuple[Difference, ...]
    gates: GateResults
    pairs: int
    paired: PairedNumbers = field(repr=False)
    gains: Mapping[str, PairedGains] = field(repr=False)
    unpaired_a: UnpairedSamples
    unpaired_b: UnpairedSamples
    warnings: tuple[str, ...]

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.scorers)

    def __getitem__(self, scorer: str) -> Difference:
        return {difference.scorer: difference for difference in self.scorers}[scorer]

    def worse(self, scorer: str, limit: int) -> list[ChangedScore]:
        """Return the scores that are lower in B, largest losses first.

        Args:
            scorer: The name of a scorer in both runs.
            limit: The maximum number of samples.

        Raises:
            KeyError: The runs do not share such a scorer.
        """
        return self._rows(scorer, self.gains[scorer].worse, limit)

    def better(self, scorer: str, limit: int) -> list[ChangedScore]:
        """Return the scores that are higher in B, largest gains first.

        Args:
            scorer: The name of a scorer in both runs.
            limit: The maximum number of samples.

        Raises:
            KeyError: The runs do not share such a scorer.
        """
        return self._rows(scorer, self.gains[scorer].better, limit)

    def new_losses(self, scorer: str) -> Sequence[Loss]:
        """Return the losses of tool calls that samples which got worse have in B and not in A; see `losses`."""
        return new_losses(self.worse(scorer, self[scorer].worse))

    def gone_losses(self, scorer: str) -> Sequence[Loss]:
        """Return the losses of tool calls that samples which got better have in A and not in B, with their numbers in A."""
        return new_losses((change.b, change.a) for change in self.better(scorer, self[scorer].better))

    def changed(self, limit: int) -> set[int]:
        """Return the numbers in B of the samples that changed most: up to ``limit`` losses and gains for each scorer."""
        changed = (numbers for gains in self.gains.values() for numbers in (gains.worse, gains.better))
        return {number for numbers in changed for number in numbers.b[:limit].tolist()}

    def _rows(self, scorer: str, changed: PairedNumbers, limit: int) -> list[ChangedScore]:
        sides = list(zip(changed.a[:limit].tolist(), changed.b[:limit].tolist(), strict=True))
        before, after = (
            _rows_by_number(self.a, scorer, {a for a, _ in sides}),
            _rows_by_number(self.b, scorer, {b for _, b in sides}),
        )
        return [ChangedScore(before[a], after[b]) for a, b in sides]

    @property
    def contradictions(self) -> Sequence[str]:
        """A sentence for each scorer whose judge and labels differ in the sign or in what is decided."""
        return [difference.contradiction for difference in self.scorers if difference.contradiction]

    @property
    def heading(self) -> str:
        """The numbers of both runs, and how many samples are paired."""
        sides = (("A", self.a), ("B", self.b))
        runs = (f"{name} is run {run.number} ({run.started_at:%Y-%m-%d %H:%M})" for name, run in sides)
        return f"{', '.join(runs)}; {self.pairs:,} samples are in both"

    def notes(self) -> Iterator[str]:
        """Yield the lines below the table: notes on each scorer, samples without a counterpart, and warnings."""
        for difference in self.scorers:
            for line in difference.notes():
                yield f"{difference.scorer}: {line}"
        methods = dict.fromkeys(difference.method for difference in self.scorers if difference.test)
        for method in methods:
            yield f"p by {method}: {', '.join(difference.scorer for difference in self.scorers if difference.method == method)}"
        yield from _unpaired("A", self.unpaired_a)
        yield from _unpaired("B", self.unpaired_b)
        for warning in self.warnings:
            yield f"warning: {warning}"

    def __rich__(self) -> RenderableType:
        lines = (Text(printable(line)) for line in self.notes())
        return Group(
            *(Text(printable(line), style="bold") for line in self.contradictions),
            Text(printable(self.heading)),
            text_table(_COLUMNS, (row for difference in self.scorers for row in difference.table_rows()), words=2),
            *lines,
        )

    def __str__(self) -> str:
        out = io.StringIO()
        Console(file=out, width=_WIDTH, color_system=None, force_jupyter=False, force_terminal=False).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 - notebooks call it
        printer.text(str(self))

    def as_json(self, show: int = 0) -> JsonValue:
        """Return the comparison as JSON, with ``show`` losses and gains for each scorer."""
        return {
            "a": _run_json(self.a, self.unpaired_a),
            "b": _run_json(self.b, self.unpaired_b),
            "pairs": self.pairs,
            "contradictions": list(self.contradictions),
            "warnings": list(self.warnings),
            "gates": [gate._asdict() for gate in self.gates.gates],
            "scorers": [
                {
                    **difference.as_json(),
                    "losses": [_change_json(change) for change in self.worse(difference.scorer, show)],
                    "gains": [_change_json(change) for change in self.better(difference.scorer, show)],
                    "new_losses": [loss.as_json() for loss in self.new_losses(difference.scorer)],
                    "gone_losses": [loss.as_json() for loss in self.gone_losses(difference.scorer)],
                }
                for difference in self.scorers
            ],
        }


def compare(
    a: Run,
    b: Run,
    *,
    gates: Iterable[str] = (),
    labels: Iterable[HumanLabel] = (),
    allow_changed_references: bool = False,
) -> Comparison:
    """Compare run B with run A, the baseline.

    Samples are paired by id, and scorers by name. Samples that share their id are paired in order if each names its
    group: within a group, read the mean, not single pairs.

    Args:
        a: The baseline.
        b: The run to compare with it.
        gates: Conditions on the difference, such as ``tool_call_f1.difference.lower >= -0.02``.
        labels: Human labels on samples of A, of B or of both, each with its ``run``, by which differences are corrected,
            together with those stored with either run; the corrected difference then gives the verdict.
        allow_changed_references: Whether to warn, instead of raising an error, if pairs are scored against different
            references or tasks.

    Raises:
        ConfigError: The runs have no scorer or no sample in common, a gate cannot be read or refers to something that
            does not exist, references or tasks differ, or a label names no run or another scorer.
        TraceError: A scorer does not know a label.
    """
    names = [record.name for record in a.scorers if record.name in {other.name for other in b.scorers}]
    if not names:
        scorers = (
            f"{side} has {join_limited((record.name for record in run.scorers), separator=', ') or 'none'}"
            for side, run in (("A", a), ("B", b))
        )
        raise ConfigError(f"runs {a.number} (A) and {b.number} (B) have no scorer in common: {'; '.join(scorers)}")
    parsed = [Gate.parse(text, names, DIFFERENCE_FIELDS) for text in gates]
    given = list(labels)
    labels_by_scorer(given, a, b, names)  # raises an error if a label is of neither run
    combined, left_out = _with_stored(given, a, b, names)
    labeled = labels_by_scorer(combined, a, b, names)
    pairs = SamplePairs.of(a, b, names)
    if not len(pairs):
        left = (*_unpaired("A", pairs.unpaired_a), *_unpaired("B", pairs.unpaired_b))
        raise ConfigError(
            f"runs {a.number} (A) and {b.number} (B) have no sample in common, by id: {'; '.join(left) or 'they are empty'}"
        )
    if not allow_changed_references:
        check_references(a, b, pairs)
    compared = {name: compare_scorer(name, pairs.scored(name)) for name in names}
    corrections = {name: correct_difference(a, b, name, pairs.scored(name), given) for name, given in labeled.items()}
    differences = _adjusted({name: difference for name, (difference, _) in compared.items()}, corrections)
    audited = {name for run in (a, b) for name, status in run.audits.items() if status.record} if parsed else ()
    samples = max(len(pairs.side_a), len(pairs.side_b))
    results = [
        difference_gate_result(
            gate,
            differences[gate.scorer or ""],
            samples,
            pairs.damaged_scores.get(gate.scorer or "", 0),
            is_audited=gate.scorer in audited,
        )
        for gate in parsed
    ]
    return Comparison(
        a,
        b,
        tuple(differences.values()),
        GateResults(results),
        len(pairs),
        PairedNumbers(*pairs.sample_numbers),
        {name: gains for name, (_, gains) in compared.items()},
        pairs.unpaired_a,
        pairs.unpaired_b,
        (*comparison_warnings(a, b, names, pairs), *left_out_lines(left_out)),
    )


def _with_stored(
    given: Sequence[HumanLabel], a: Run, b: Run, scorers: Sequence[str]
) -> tuple[Sequence[HumanLabel], Counter[str]]:
    """Return labels with those stored with two runs, unless these are one or have one number, and the number left out."""
    if a.number == b.number and (a.recordings == b.recordings or None in {a.recordings, b.recordings}):
        return given, Counter()
    is_same = a.recordings is not None and a.recordings == b.recordings
    on_each = {
        run: [label for label in given if is_same or label.run != other.number] for run, other in ((a, b), (b, a))
    }
    first, second = (combine_labels(run, labels) for run, labels in on_each.items())
    combined = dict.fromkeys((*first.labels, *second.labels))
    return [label for label in combined if label.scorer in scorers], first.left_out | second.left_out


def _adjusted(
    differences: Mapping[str, Difference], corrections: Mapping[str, DifferenceCorrection]
) -> Mapping[str, Difference]:
    """Return differences with their corrections, and p adjusted for the number of scorers.

    Verdicts hold together, so the p of each scorer's leading verdict counts. By the judge alone, that of each judge does.
    """
    own = {name: difference.p for name, difference in differences.items()}
    corrected = {name: correction.p for name, correction in corrections.items() if correction.p is not None}
    alone, leading = (dict(zip(p, holm(list(p.values())), strict=True)) for p in (own, own | corrected))
    return {
        name: replace(
            difference,
            p_holm=(alone if name in corrected else leading)[name],
            correction=replace(corrections[name], p_holm=leading[name] if name in corrected else None)
            if name in corrections
            else None,
        )
        for name, difference in differences.items()
    }


def _rows_by_number(run: Run, scorer: str, numbers: AbstractSet[int]) -> dict[int, Row]:
    return {row.index: row for row in run.rows(scorer=scorer, numbers=numbers)}


def _run_json(run: Run, unpaired: UnpairedSamples) -> JsonValue:
    return {
        "run": run.number,
        "started_at": run.started_at.isoformat(),
        "unmatched": unpaired.unmatched,
        "duplicates": unpaired.duplicates,
    }


def _change_json(change: ChangedScore) -> JsonValue:
    return {
        "sample_id": change.a.sample_id,
        **{
            side: {"index": row.index, "value": row.score.value, "reason": row.score.reason}
            for side, row in change._asdict().items()
        },
    }


def _unpaired(run: str, unpaired: UnpairedSamples) -> Iterator[str]:
    if unpaired.unmatched:
        more = ", ..." if unpaired.unmatched > len(unpaired.examples) else ""
        yield f"samples only in {run}: {unpaired.unmatched:,} ({', '.join(map(repr, unpaired.examples))}{more})"
    if unpaired.duplicates:
        yield (
            f"samples of {run} that are not paired: {unpaired.duplicates:,} (others have the same id, and no group marks "
            "them as trials of one task)"
        )
