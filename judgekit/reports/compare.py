"""Two runs over the same samples: which scorers got better or worse from one to the other, and how sure that is."""

import html
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judgekit.aggregates.total import Total, total_of
from judgekit.errors import ConfigError, listed
from judgekit.reports.terminal import Unpadded, printable, quoting, table
from judgekit.runs.answers import Answers, Reported, named, quoted, shares
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord, differences

if TYPE_CHECKING:
    from judgekit.reports.paired import Numbers, Outcome, Pairs, ScoredPairs, Unpaired, Values
    from judgekit.stats.intervals import Interval
    from judgekit.stats.units import Units

Verdict: TypeAlias = Literal["better", "worse", "no evidence", "unchanged", "not compared"]

_ALPHA = 0.05
_ROUNDING = 1e-9
"""Values that are no further apart are equal."""
_DRAWS = 1_000
_PAIRS_REDRAWN = 2_000
_NAMED = 3
_COLUMNS = ("scorer", "verdict", "A", "B", "B - A", "95 % interval", "p (Holm)")
_WIDTH = 140


class Change(NamedTuple):
    """The scores of one sample by one scorer, in both runs."""

    a: Row
    b: Row


class Overall(NamedTuple):
    """What the scores of the pairs come to in each run, for a scorer whose scores do not come to their mean.

    ``interval`` is that of the difference, by a bootstrap that draws pairs, or groups of them, whole. ``note`` says why
    something is ``None``.
    """

    name: str
    a: float | None
    b: float | None
    interval: "Interval | None"
    note: str = ""

    def __str__(self) -> str:
        if self.a is None or self.b is None:
            return f"{self.name}: {self.note}"
        sure = self.note if self.interval is None else f"{_between(self.interval)} by {self.interval.method}"
        return (
            f"over the pairs, {self.name} is {self.a:.3f} in A and {self.b:.3f} in B, {self.b - self.a:+z.3f} ({sure})"
        )


@dataclass(frozen=True)
class Difference:
    """How the scores of one scorer differ from A to B. Above 0 says that B is better.

    Attributes:
        scorer: Its name.
        pairs: Samples that have a value in both runs; all that follows is of these.
        left_out: Samples that are in both runs and have no value in one of them, by what became of them in A and in B.
        a: The mean of A.
        b: The mean of B.
        interval: The 95 % interval of the mean difference; with groups, the clustered one.
        test: ``exact McNemar`` where all values are 0 or 1 and no group has two pairs, else ``sign-flip permutation``.
        p: The two-sided p of that test.
        p_holm: It, adjusted for the number of scorers.
        detectable: The smallest true difference that so many pairs, differing as these do, would have shown with a
            probability of 80 %, this scorer alone being tested at 0.05.
        better: Pairs whose value is higher in B.
        worse: Pairs whose value is lower in B.
        overall: What else the scores come to, such as corpus BLEU.
    """

    scorer: str
    pairs: int
    left_out: "Mapping[tuple[Outcome, Outcome], int]"
    a: float | None = None
    b: float | None = None
    interval: "Interval | None" = None
    test: str = ""
    p: float | None = None
    p_holm: float | None = None
    detectable: float | None = None
    better: int = 0
    worse: int = 0
    overall: Overall | None = None

    @property
    def difference(self) -> float | None:
        """The mean of B less that of A."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def verdict(self) -> Verdict:
        """What B is: better or worse where the adjusted p is under 0.05."""
        if self.p_holm is None or self.difference is None:
            return "not compared"
        if not self.better + self.worse:
            return "unchanged"
        if self.p_holm >= _ALPHA:
            return "no evidence"
        return "better" if self.difference > 0 else "worse"

    @property
    def method(self) -> str:
        """How p and the interval were found."""
        return self.test if self.interval is None else f"{self.test}, interval by {self.interval.method}"

    def told(self) -> Iterator[str]:
        """What there is to say beside the numbers: a line each."""
        yield "; ".join((self._counted(), *self._in_doubt()))
        if self.left_out:
            outcomes = ", ".join(_told(*pair, times) for pair, times in self.left_out.items())
            yield f"pairs that are not compared: {sum(self.left_out.values()):,} ({outcomes})"
        if self.overall is not None:
            other = "; the table is of the mean of single scores, which is another number"
            yield f"{self.overall}{other if self._has_another_number else ''}"

    def _counted(self) -> str:
        if not self.pairs:
            return "no sample has a value in both runs"
        equal = self.pairs - self.better - self.worse
        return f"of {self.pairs:,} pairs {self.better:,} better, {self.worse:,} worse, {equal:,} equal"

    @property
    def _has_another_number(self) -> bool:
        """Whether the scores come to other than their mean, as a share within a budget and accuracy do not."""
        both = () if self.overall is None else ((self.overall.a, self.a), (self.overall.b, self.b))
        return any(one is not None and mean is not None and abs(one - mean) > _ROUNDING for one, mean in both)

    def _in_doubt(self) -> Iterator[str]:
        """What a high p does not say."""
        if self.verdict != "no evidence":
            return
        yield "no evidence of a difference"
        if self.p is not None and self.p < _ALPHA:
            yield f"p is {_chance(self.p)} before Holm's adjustment for the number of scorers"
        elif self.interval is not None and not self.interval.low <= 0 <= self.interval.high:
            yield f"the interval, which is approximate, is beside 0, but p, by which it is decided, is {_chance(self.p or 0)}"
        if self.detectable is None or self.detectable > 1:
            yield "there are too few pairs to show any, those of one group counting once"
        else:
            yield f"one of {self.detectable:.2g} or more would likely have been shown"

    def cells(self) -> tuple[str, ...]:
        """Its line of a table, in which - stands for what there is not."""
        if self.a is None or self.b is None:
            numbers = ["-"] * 5
        else:
            numbers = [f"{self.a:.3f}", f"{self.b:.3f}", f"{self.b - self.a:+z.3f}"]
            numbers += ["-" if self.interval is None else _between(self.interval)]
            numbers += ["-" if self.p_holm is None else _chance(self.p_holm)]
        return self.scorer, self.verdict, *numbers


class Paired(NamedTuple):
    """Of pairs of samples, their numbers in A and in B."""

    a: "Numbers"
    b: "Numbers"


@dataclass(frozen=True, eq=False)
class Comparison:
    """How run B differs from run A, the baseline; ``print`` shows a line a scorer.

    Attributes:
        a: The baseline.
        b: What is compared with it.
        scorers: The scorers of both runs, paired by name.
        pairs: Samples of both runs, paired by id.
        paired: Which they are, by their numbers.
        unpaired_a: The other samples of A.
        unpaired_b: The other samples of B.
        warnings: What may make a difference another than it seems.
    """

    a: Run
    b: Run
    scorers: tuple[Difference, ...]
    pairs: int
    paired: Paired = field(repr=False)
    unpaired_a: "Unpaired"
    unpaired_b: "Unpaired"
    warnings: tuple[str, ...]
    _worse: Mapping[str, Paired] = field(repr=False)
    _better: Mapping[str, Paired] = field(repr=False)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.scorers)

    def __getitem__(self, scorer: str) -> Difference:
        return {one.scorer: one for one in self.scorers}[scorer]

    def worse(self, scorer: str, most: int) -> list[Change]:
        """The scores of the samples that a scorer gives a lower value in B, the largest losses first."""
        return self._rows(scorer, self._worse[scorer], most)

    def better(self, scorer: str, most: int) -> list[Change]:
        """The scores of the samples that a scorer gives a higher value in B, the largest gains first."""
        return self._rows(scorer, self._better[scorer], most)

    def changed(self, most: int) -> set[int]:
        """The numbers in B of the samples that got worse and better most, so many of each by each scorer."""
        return {
            number for found in (*self._worse.values(), *self._better.values()) for number in found.b[:most].tolist()
        }

    def _rows(self, scorer: str, changed: Paired, most: int) -> list[Change]:
        sides = list(zip(changed.a[:most].tolist(), changed.b[:most].tolist(), strict=True))
        before, after = _found(self.a, scorer, {a for a, _ in sides}), _found(self.b, scorer, {b for _, b in sides})
        return [Change(before[a], after[b]) for a, b in sides]

    @property
    def head(self) -> str:
        """Which runs these are, and how many samples are paired."""
        runs = (f"{name} is run {run.number} of {run.started_at:%Y-%m-%d %H:%M}" for name, run in self._sides)
        return f"{', '.join(runs)}; {self.pairs:,} samples are in both"

    @property
    def _sides(self) -> tuple[tuple[str, Run], ...]:
        return ("A", self.a), ("B", self.b)

    def told(self) -> Iterator[str]:
        """What there is to say below the table: of each scorer, of samples without a counterpart, and the warnings."""
        for one in self.scorers:
            for line in one.told():
                yield f"{one.scorer}: {line}"
        methods = dict.fromkeys(one.method for one in self.scorers if one.test)
        for method in methods:
            yield f"p by {method}: {', '.join(one.scorer for one in self.scorers if one.method == method)}"
        yield from _unpaired("A", self.unpaired_a)
        yield from _unpaired("B", self.unpaired_b)
        for warning in self.warnings:
            yield f"warning: {warning}"

    def __rich__(self) -> RenderableType:
        lines = (Text(printable(line)) for line in self.told())
        return Group(
            Text(printable(self.head)), table(_COLUMNS, (one.cells() for one in self.scorers), words=2), *lines
        )

    def __str__(self) -> str:
        out = io.StringIO()
        Console(file=out, width=_WIDTH, color_system=None, force_jupyter=False, force_terminal=False).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def _repr_html_(self) -> str:
        def row(kind: str, cells: Iterable[str]) -> str:
            return f"<tr>{''.join(f'<{kind}>{_escaped(cell)}</{kind}>' for cell in cells)}</tr>"

        lines = "".join(row("td", one.cells()) for one in self.scorers)
        told = "".join(f"<li>{_escaped(line)}</li>" for line in self.told())
        return (
            f"<p>{_escaped(self.head)}</p><table><thead>{row('th', _COLUMNS)}</thead><tbody>{lines}</tbody></table>"
            f"<ul>{told}</ul>"
        )

    def as_json(self, show: int = 0) -> JsonValue:
        """All of it for other programs, with ``show`` samples that got worse and better by each scorer."""
        return {
            "a": _run_json(self.a, self.unpaired_a),
            "b": _run_json(self.b, self.unpaired_b),
            "pairs": self.pairs,
            "warnings": list(self.warnings),
            "scorers": [
                {
                    **_json(one),
                    "losses": [_change_json(change) for change in self.worse(one.scorer, show)],
                    "gains": [_change_json(change) for change in self.better(one.scorer, show)],
                }
                for one in self.scorers
            ],
        }


def compare(a: Run, b: Run) -> Comparison:
    """Compares run B with run A, the baseline.

    Samples are paired by id, and scorers by name. Samples that share their id are paired in their order if each names its
    group: what is said of the mean depends on the sum of a group alone.

    Raises:
        ConfigError: They have no scorer or no sample in common.
    """
    from judgekit.reports.paired import Pairs  # noqa: PLC0415 - it loads numpy, as does all that is loaded below
    from judgekit.stats.comparison import holm  # noqa: PLC0415

    names = [one.name for one in a.scorers if one.name in {other.name for other in b.scorers}]
    if not names:
        known = (f"{side} has {_named(one.name for one in run.scorers)}" for side, run in (("A", a), ("B", b)))
        raise ConfigError(f"runs {a.number} (A) and {b.number} (B) have no scorer in common: {'; '.join(known)}")
    pairs = Pairs.of(a, b, names)
    if not len(pairs):
        left = (*_unpaired("A", pairs.unpaired_a), *_unpaired("B", pairs.unpaired_b))
        raise ConfigError(
            f"runs {a.number} (A) and {b.number} (B) have no sample in common, by id: {'; '.join(left) or 'they are empty'}"
        )
    compared = {name: _compared(name, pairs.scored(name)) for name in names}
    adjusted = holm([difference.p for difference, _, _ in compared.values()])
    return Comparison(
        a,
        b,
        tuple(replace(one, p_holm=p) for (one, _, _), p in zip(compared.values(), adjusted, strict=True)),
        len(pairs),
        Paired(*pairs.numbers),
        pairs.unpaired_a,
        pairs.unpaired_b,
        (
            *_of_runs(a, b),
            *_of_scorers(a, b, names),
            *_of_answers(pairs.answers_a, pairs.answers_b),
            *_of_inputs(a, b),
            *_of_pairs(pairs),
        ),
        {name: worse for name, (_, worse, _) in compared.items()},
        {name: better for name, (_, _, better) in compared.items()},
    )


def _compared(scorer: str, pairs: "ScoredPairs") -> tuple[Difference, Paired, Paired]:
    """What one scorer says, before it is known how many others say something too, and who got worse and better."""
    import numpy as np  # noqa: PLC0415

    from judgekit.stats.comparison import mcnemar, paired_interval, sign_flip  # noqa: PLC0415
    from judgekit.stats.units import Units  # noqa: PLC0415

    gains = pairs.b - pairs.a
    gains[np.abs(gains) <= _ROUNDING] = 0
    worse, better = int((gains < 0).sum()), int((gains > 0).sum())
    losers, winners = np.argsort(gains, kind="stable")[:worse], np.argsort(-gains, kind="stable")[:better]
    difference = Difference(scorer, len(gains), pairs.left_out)
    if len(gains):
        units = Units.of(gains, pairs.groups)
        if units.codes is None and np.isin((pairs.a, pairs.b), (0, 1)).all():
            test, p = "exact McNemar", mcnemar(worse, better)
        else:
            test, p = "sign-flip permutation", sign_flip(gains, pairs.groups)
        difference = replace(
            difference,
            a=float(pairs.a.mean()),
            b=float(pairs.b.mean()),
            interval=paired_interval(gains, pairs.groups),
            test=test,
            p=p,
            detectable=_detectable(units),
            better=better,
            worse=worse,
            overall=_overall(pairs),
        )
    return (
        difference,
        Paired(pairs.numbers_a[losers], pairs.numbers_b[losers]),
        Paired(pairs.numbers_a[winners], pairs.numbers_b[winners]),
    )


def _detectable(units: "Units") -> float | None:
    """What both the spread of the differences and the least p that so many of them can have allow to be shown."""
    from judgekit.stats.comparison import detectable_difference, least_by_signs  # noqa: PLC0415

    if (least := least_by_signs(units)) is None:
        return None
    return max(least, detectable_difference(units.standard_error() or 0.0, len(units) - 1) or 0.0)


def _overall(pairs: "ScoredPairs") -> Overall | None:
    """What the scores come to, if it is not their mean."""
    from judgekit.stats.intervals import bootstrap  # noqa: PLC0415

    names = {"mean" if one is None else one.aggregate for one in (*pairs.scores_a, *pairs.scores_b)}
    if names == {"mean"}:
        return None
    if len(names) > 1:
        return Overall("undefined", None, None, None, f"the scores come to different things: {_named(sorted(names))}")
    (name,) = names

    def totals(places: Iterable[int]) -> tuple[Total, Total]:
        a, b = ([one for place in places if (one := side[place])] for side in (pairs.scores_a, pairs.scores_b))
        return total_of(name, a), total_of(name, b)

    def gain(drawn: "Values") -> float:
        a, b = (total.value for total in totals([int(place) for place in drawn]))
        return nan if a is None or b is None else b - a

    everything = range(len(pairs.groups))
    a, b = totals(everything)
    if a.value is None or b.value is None:
        return Overall(a.name, a.value, b.value, None, a.note if a.value is None else b.note)
    if len(everything) > _PAIRS_REDRAWN:
        return Overall(
            a.name, a.value, b.value, None, f"no interval: over {_PAIRS_REDRAWN:,} pairs take too long to redraw"
        )
    interval = bootstrap(everything, pairs.groups, statistic=gain, draws=_DRAWS)
    return Overall(
        a.name, a.value, b.value, interval, "" if interval else "no interval: pairs that are drawn again say too little"
    )


def _of_runs(a: Run, b: Run) -> Iterator[str]:
    if a.number == b.number and (a.store is b.store or (a.store.path is not None and a.store.path == b.store.path)):
        yield "A and B are the same run"
    for name, run in (("A", a), ("B", b)):
        if run.stopped:
            yield f"{name} was stopped early ({run.stopped}): only what was scored until then is compared"
        elif run.ended_at is None:
            yield f"{name} has not ended: it is under way or broke off, and only what was scored until then is compared"
        yield from (f"{name}: {note}" for note in run.record.notes)


def _of_scorers(a: Run, b: Run, names: Collection[str]) -> Iterator[str]:
    before, after = ({one.name: one for one in run.scorers} for run in (a, b))
    for name in names:
        yield from _of_scorer(before[name], after[name])
    for side, here in (("A", before), ("B", after)):
        if alone := [name for name in here if name not in names]:
            yield f"scorers of {side} alone are not compared: {_named(alone)}"


def _of_scorer(before: ScorerRecord, after: ScorerRecord) -> Iterator[str]:
    if before.signature is None or after.signature is None:
        known = before if before.signature is None else after
        yield f"{before.name}: it cannot be told whether both runs scored in the same way: {known.identity}"
    elif before.signature != after.signature:
        told = listed(differences(before.identity, after.identity), _NAMED)
        yield f"{before.name}: the runs did not score in the same way, so that the scorer may make the difference: {told}"


def _of_answers(a: Answers, b: Answers) -> Iterator[str]:
    """Whether each judge answered as the same models in both runs, as far as its provider reports them."""
    models, fingerprints = (a.models, b.models), (a.fingerprints, b.fingerprints)
    for judge in models[0]:
        if judge not in models[1]:
            continue
        before, after = (side[judge] for side in models)
        runs_before, runs_after = (side[judge] for side in fingerprints)
        if _differ(before, after):
            told = f"A {shares(before)}; B {shares(after)}"
            yield (
                f"{quoted(judge)} did not answer as the same models in both runs, so that the judge may make the "
                f"difference: {told}"
            )
        elif before[None] or after[None]:
            sides = (("A", before), ("B", after))
            lacking = (f"{one[None]:,} of {one.total():,} answers in {side}" for side, one in sides if one[None])
            yield (
                f"{quoted(judge)}: its provider reported no model for {' and '.join(lacking)}, so that a change behind "
                "this name would not show"
            )
        elif _differ(runs_before, runs_after):
            yield (
                f"{quoted(judge)} answered as the same models with different system fingerprints, so that its provider may "
                f"have changed how it runs them: A {shares(runs_before)}; B {shares(runs_after)}"
            )


def _differ(a: Reported, b: Reported) -> bool:
    """Whether other names were reported in B; nobody can tell where one of them has none."""
    names = named(a), named(b)
    return all(names) and names[0] != names[1]


def _of_inputs(a: Run, b: Run) -> Iterator[str]:
    before, after = ({one.sha256: one.path for one in run.inputs} for run in (a, b))
    if before.keys() != after.keys():
        read = (
            f"{side} read {_named(f'{path} ({sha256[:8]})' for sha256, path in here.items())}"
            for side, here in (("A", before), ("B", after))
        )
        yield f"the recordings are not the same, which is as it should be after a change of the agent: {', '.join(read)}"


def _of_pairs(pairs: "Pairs") -> Iterator[str]:
    if pairs.regrouped:
        yield f"pairs of one group in A and of another in B, where that of A holds: {pairs.regrouped:,}"
    if pairs.displaced:
        yield f"pairs of one domain in A and of another in B, whose ids may be the same by chance: {pairs.displaced:,}"
    if pairs.in_order:
        yield (
            f"pairs of trials that share their id, and are paired in their order: {pairs.in_order:,}; which of them are "
            "better or worse is a matter of chance"
        )
    if pairs.by_place:
        yield "all ids are places in a file, counted from 0: if samples have no other id, both files must have one order"


def _found(run: Run, scorer: str, numbers: AbstractSet[int]) -> dict[int, Row]:
    return {row.index: row for row in run.rows(scorer=scorer, numbers=numbers)}


def show_changes(comparison: Comparison, most: int, on: Console) -> None:
    """The samples that got worse and better most by each scorer, with the reasons of both runs."""
    for one in comparison:
        for kind, count, find in (("worse", one.worse, comparison.worse), ("better", one.better, comparison.better)):
            if changes := find(one.scorer, most):
                shown = f", the {len(changes):,} that changed most" if len(changes) < count else ""
                on.print(f"\n{printable(one.scorer)}, {count:,} {kind} in B{shown}:")
                grid = Table.grid(padding=(0, 2))
                for change in changes:
                    for side, row in zip("AB", change, strict=True):
                        cells = (row.sample_id if side == "A" else "", row.score.reason or "no reason given")
                        grid.add_row(
                            Text(printable(cells[0])), f"{side} {row.score.value:.2f}", Text(printable(cells[1]))
                        )
                with quoting(on):
                    on.print(Unpadded(Padding(grid, (0, 0, 0, 2))))


def _run_json(run: Run, unpaired: "Unpaired") -> JsonValue:
    return {
        "run": run.number,
        "started_at": run.started_at.isoformat(),
        "alone": unpaired.alone,
        "repeated": unpaired.repeated,
    }


def _json(one: Difference) -> dict[str, JsonValue]:
    overall = one.overall
    return {
        "scorer": one.scorer,
        "verdict": one.verdict,
        "pairs": one.pairs,
        "a": one.a,
        "b": one.b,
        "difference": one.difference,
        "interval": _interval_json(one.interval),
        "test": one.test,
        "p": one.p,
        "p_holm": one.p_holm,
        "detectable": one.detectable,
        "better": one.better,
        "worse": one.worse,
        "left_out": [{"a": a, "b": b, "samples": times} for (a, b), times in one.left_out.items()],
        "overall": None if overall is None else {**overall._asdict(), "interval": _interval_json(overall.interval)},
    }


def _interval_json(interval: "Interval | None") -> JsonValue:
    return None if interval is None else interval._asdict()


def _change_json(change: Change) -> JsonValue:
    return {
        "sample_id": change.a.sample_id,
        **{
            side: {"index": row.index, "value": row.score.value, "reason": row.score.reason}
            for side, row in change._asdict().items()
        },
    }


def _told(a: "Outcome", b: "Outcome", times: int) -> str:
    if a == b:
        return f"{times:,} {a} in both"
    sides = [f"{outcome} in {side}" for side, outcome in (("A", a), ("B", b)) if outcome != "scored"]
    return f"{times:,} {' and '.join(sides)}"


def _between(interval: "Interval") -> str:
    return f"{interval.low:+z.3f} to {interval.high:+z.3f}"


def _chance(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:#.3g}"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _named(names: Iterable[str]) -> str:
    return listed(names, _NAMED, ", ") or "none"


def _unpaired(run: str, unpaired: "Unpaired") -> Iterator[str]:
    if unpaired.alone:
        more = ", ..." if unpaired.alone > len(unpaired.examples) else ""
        yield f"samples in {run} alone: {unpaired.alone:,} ({', '.join(map(repr, unpaired.examples))}{more})"
    if unpaired.repeated:
        yield (
            f"samples of {run} that are not paired: {unpaired.repeated:,} (others have the same id, and they name no group "
            "that would make them trials of one task)"
        )
