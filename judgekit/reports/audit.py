"""What an audit finds, in words and figures, and how a terminal shows it."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from judgekit.audits.findings import Audit, Disagreement, Guarantee, Noise, Opinion, People, ScorerAudit
from judgekit.errors import number_of
from judgekit.reports.corrected import Demand, good_enough
from judgekit.reports.terminal import Unpadded, between, cut, harmless, printable, quoting, rounded
from judgekit.runs.receipts import Drawn, Figure

_DRAWN: Mapping[Drawn, str] = {
    "all": "all samples that the judge scored were labelled",
    "random": "drawn at random from the run",
    "stratified": "drawn at random within each verdict of the judge, with known probabilities",
    "convenience": "picked by hand",
    "unknown": "nobody says how they were chosen",
    "elsewhere": "samples of another run",
}
_BIAS = {
    "length": "length: how the judge's error goes with the length of what it read, as a rank correlation; above 0, it favours what is long",
    "position": "position: the share of pairs whose verdict turns with the order in which the two are shown",
}
_ROOMY = 90
"""Columns of a terminal on which the figures of all parts can stand below each other."""
_STEP = Decimal("0.000001")
"""Of a confidence."""
_CLASSES_SHOWN = 12
_CLASS_SHOWN = 24
_REASON_SHOWN = 300
_MANY = 1_000


class Part(NamedTuple):
    """A part of what is found of a scorer: figures by name, what there is to say of them, and why others are refused."""

    name: str
    figures: Mapping[str, Figure] = {}
    told: tuple[str, ...] = ()
    refused: str = ""


def headline(found: ScorerAudit) -> str:
    """Return the mean as people would have it, and how far they agree with the judge, in a line.

    For example ``corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 of 2 people``.
    """
    corrected = found.correction.corrected
    return f"{'no corrected mean' if corrected is None else f'corrected mean {corrected}'}, {agreed(found)}"


def agreed(found: ScorerAudit) -> str:
    """Return how far people agree with the judge, such as ``kappa .71 [.58, .82], n=120 of 2 people``."""
    if not found.n:
        return "no sample has both a verdict of the judge and a label of people"
    name, figure = next(iter(found.agreement.items()), ("agreement", "undefined"))
    people = "1 person" if found.annotators == 1 else f"{found.annotators:,} people"
    return f"{name} {figure}, n={found.n:,} of {people}"


def parts(found: ScorerAudit) -> list[Part]:
    """All that is found of a scorer but for the confusion and the disagreements; what there is not is left out."""
    made = [
        Part("labels", told=tuple(_labels(found))),
        _mean(found),
        Part("agreement", found.agreement),
        *(_people(people) for people in [found.people] if people),
        Part("bias", found.bias, tuple(_BIAS[name] for name in found.bias if name in _BIAS)),
        *(Part("calibration", {"expected calibration error": one}) for one in [found.calibration] if one),
        *(_noise(noise) for noise in [found.noise] if noise),
        *(_guarantee(guarantee) for guarantee in [found.guarantee] if guarantee),
        Part("notes", told=tuple(found.notes)),
    ]
    return [part for part in made if part.figures or part.told or part.refused]


def _labels(found: ScorerAudit) -> Iterator[str]:
    if found.n:
        both = f"{number_of(found.n, 'sample')} on which people and the judge both decide"
        yield f"{number_of(found.labels, 'label')}, {both}; {_DRAWN[found.drawn]}"
    yield from left_out(found.left_out)


def left_out(counts: Mapping[str, int]) -> Iterator[str]:
    """Labels that could not be used, a line for each reason."""
    for why, times in counts.items():
        yield f"{number_of(times, 'label')} left out: {why}"


def _mean(found: ScorerAudit) -> Part:
    correction = found.correction
    figures = {"raw, by the judge": found.raw}
    told: list[str] = []
    if correction.corrected is not None:
        figures[f"corrected, {correction.method}"] = correction.corrected
        if correction.worth is not None:
            told.append(f"tells as much as {correction.worth:,.0f} labels would alone, without the judge")
        if correction.assumes:
            told.append(f"assumes: {correction.assumes}")
    return Part("mean", figures, tuple(told), f"not corrected: {correction.refused}" if correction.refused else "")


def _people(people: People) -> Part:
    among = f"of {number_of(people.samples, 'sample')} with labels of two people or more"
    return Part("among people", people.agreement, tuple(filter(None, (among, people.alternative))))


def _noise(noise: Noise) -> Part:
    most = f" of at most {noise.most:,}" if noise.most > noise.draws else ""
    told = [f"of {number_of(noise.samples, 'sample')} with several draws, {noise.draws:,} draws{most} in all"]
    if total := sum(noise.components.values()):
        shares = ", ".join(f"{name} {part / total:.0%}" for name, part in noise.components.items())
        told.append(f"variance of a single verdict {total:.3f}: {shares}")
    return Part("noise", {"flip rate": noise.flip_rate, "near the threshold": noise.near}, (*told, *noise.advice))


def _guarantee(guarantee: Guarantee) -> Part:
    figures = {"share of verdicts kept": guarantee.kept, "of these, people say otherwise": guarantee.risk}
    promise = (
        f"people say otherwise of at most {guarantee.alpha * 100:g}% of the verdicts, "
        f"with a probability of {(1 - guarantee.delta) * 100:g}%"
    )
    shown = {name: one for name, one in figures.items() if one is not None}
    if guarantee.threshold is None:
        return Part("guarantee", shown, refused=f"not promised that {promise}: {guarantee.refused}")
    least = Decimal(str(guarantee.threshold)).quantize(
        _STEP, ROUND_FLOOR
    )  # rounded up it would leave out its own verdicts
    return Part("guarantee", shown, (f"where the confidence is at least {float(least):g}, {promise}",))


def show_audit(audit: Audit, show: int, on: Console, demands: Mapping[str, Demand] = {}) -> None:
    """Print the findings of an audit for each judged scorer, with its ``show`` worst disagreements.

    ``demands`` gives, by scorer, the bound that its corrected mean is checked against.
    """
    by = f", by {', '.join(audit.sources)}" if audit.sources else ""
    on.print(harmless(f"audit of run {audit.run}{by}"))
    for line in left_out(audit.unmatched):
        on.print(harmless(line), style="yellow")
    if not audit.scorers:
        on.print("the run has no scorer that asks a judge")
    for found in audit.scorers:
        on.print()
        head = Text.assemble((printable(found.scorer), "bold"), "  ", printable(headline(found)), overflow="fold")
        on.print(Unpadded(head))
        on.print(Unpadded(harmless(good_enough(found.correction, demands.get(found.scorer, Demand())))))
        on.print()
        on.print(Unpadded(_grid(_parts(found, on.width))))
        if disagreements := found.disagreements[:show]:
            of = len(found.disagreements)
            told = f"the worst {show:,} of {of:,}" if of > show else f"all {of:,}, the worst first"
            with quoting(on):
                on.print(Unpadded(_grid([("disagreements", (told, _disagreements(disagreements)))])))


def _grid(rows: Iterable[tuple[str, Iterable[RenderableType]]]) -> RenderableType:
    """Lines below each other, the names of their parts on the left."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim", min_width=len("disagreements"))
    grid.add_column()
    for name, lines in rows:
        grid.add_row(name, Group(*lines, ""))
    return grid


def _parts(found: ScorerAudit, room: int) -> Iterator[tuple[str, Iterable[RenderableType]]]:
    made = parts(found)
    width = max(cell_len(printable(name)) for part in made for name in part.figures) if room >= _ROOMY else 0
    for part in made:
        yield part.name, _part(part, width)
        if part.name == "agreement" and found.confusion:
            yield "confusion", [_confusion(found.confusion)]


def _part(part: Part, width: int) -> Iterator[RenderableType]:
    """Figures in columns that stand below those of other parts, and what there is to say of them."""
    if part.figures:
        figures = Table.grid(padding=(0, 2, 0, 0))
        figures.add_column(min_width=width, no_wrap=True)
        figures.add_column(justify="right", no_wrap=True, min_width=len("-0.123"))
        figures.add_column(no_wrap=True)
        figures.add_column(style="dim")
        for name, figure in part.figures.items():
            figures.add_row(harmless(name), rounded(figure.value), between(figure), harmless(figure.method))
        yield figures
    if part.refused:
        yield Text(printable(part.refused), "yellow", overflow="fold")
    yield from map(harmless, part.told)


def _confusion(counts: Mapping[str, Mapping[str, float]]) -> RenderableType:
    """Counts by what people say, down, and the judge, across."""
    names = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    shown = names[:_CLASSES_SHOWN]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_row(
        Text("people down, the judge across", "dim"),
        *(Text(cut(printable(name), _CLASS_SHOWN), "dim") for name in shown),
    )
    for name in shown:
        grid.add_row(
            cut(printable(name), _CLASS_SHOWN), *(_count(counts.get(name, {}).get(other, 0)) for other in shown)
        )
    for column in grid.columns[1:]:
        column.justify = "right"
    more = len(names) - len(shown)
    return Group(grid, f"and {more} more labels") if more else grid


def _count(times: float) -> str:
    """A count, with a decimal or two where samples on which people differ are shared among several."""
    return f"{round(times, 2):,g}" if times < _MANY else f"{times:,.0f}"


def _disagreements(disagreements: Iterable[Disagreement]) -> RenderableType:
    return by_sample(
        (
            f"#{one.index} {one.sample_id}",
            [said("the judge", one.label, one.judged, one.reason), *map(_opinion, one.opinions)],
        )
        for one in disagreements
    )


def by_sample(told: Iterable[tuple[str, Iterable[str]]]) -> RenderableType:
    """Samples below each other, with lines on the right of each."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(ratio=1)
    grid.add_column(ratio=3)
    for sample, lines in told:
        grid.add_row(harmless(sample), Group(*map(harmless, lines)))
    return grid


def _opinion(one: Opinion) -> str:
    return said(one.annotator or "a person", one.label, one.value, one.reason)


def said(who: str, label: str | None, value: float | None, reason: str = "") -> str:
    """What a judge or a person says of a sample, and why, in a line."""
    worth = "does not apply" if value is None else f"{value:.2f}"
    is_number = value is not None and label == f"{value:g}"
    verdict = worth if label is None or is_number else f"{label} ({worth})"
    return f"{who}: {verdict}{': ' if reason else ''}{cut(reason, _REASON_SHOWN)}"
