"""Comparisons of judges, for a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding

from judgekit.analysis.compare_judges import ClosenessTest, Flip, JudgeComparison, JudgePair
from judgekit.analysis.difference import format_outcomes
from judgekit.analysis.findings import left_out_lines
from judgekit.errors import count_text
from judgekit.reports.audit import format_verdict, sample_grid
from judgekit.runs.answers import UNREPORTED, format_shares, quote_name, reported_names
from judgekit.runs.intervals import Estimate
from judgekit.terminal import WithoutTrailingBlanks, escaped_text, recorded_text, text_table

_ALPHA = 0.05
_NAMES_SHOWN = 2  # figures of agreement in a table; the JSON has all


def show_judges(comparison: JudgeComparison, show: int, console: Console) -> None:
    """Print each judge's speed, its agreement with other judges and with people, and ``show`` flips of each pair."""
    for columns, rows in (judge_table(comparison), judge_pair_table(comparison)):
        console.print(text_table(columns, rows))
    for line in comparison_notes(comparison):
        console.print(escaped_text(line))
    for pair in comparison.pairs if show else ():
        if pair.flips:
            shown = f", {show:,} of them shown" if show < len(pair.flips) else ""
            console.print()
            console.print(escaped_text(f"{_names(pair)}, {len(pair.flips):,} flipped{shown}:"))
            with recorded_text(console):
                grid = sample_grid(_flip(pair, flip) for flip in pair.flips[:show])
                console.print(WithoutTrailingBlanks(Padding(grid, (0, 0, 0, 2))))


def judge_table(comparison: JudgeComparison) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the heads of a table and a row for each judge: seconds per request, and agreement with people."""
    names = _figures([judge.human_agreement for judge in comparison.judges])
    rows = [
        (
            judge.judge,
            "-" if judge.seconds is None else f"{judge.seconds:.2f}",
            *((f"{judge.labeled:,}", *_cells(names, judge.human_agreement)) if names else ()),
        )
        for judge in comparison.judges
    ]
    human_columns = ("labeled", *(f"{name} with people" for name in names)) if names else ()
    return ("judge", "seconds per request", *human_columns), rows


def judge_pair_table(comparison: JudgeComparison) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the heads of a table and a row for each pair of judges: number of flips, and agreement."""
    names = _figures([pair.agreement for pair in comparison.pairs])
    rows = [
        (_names(pair), f"{pair.sample_count:,}", f"{len(pair.flips):,}", *_cells(names, pair.agreement))
        for pair in comparison.pairs
    ]
    return ("judges", "n", "flips", *names), rows


def comparison_notes(comparison: JudgeComparison) -> Iterator[str]:
    """Yield the lines below the tables, such as which models answered."""
    for side in comparison.judges:
        for judge, models in side.reported_models.items():
            reported = Counter({name or None: times for name, times in models.items()})
            answered = f"answered as {format_shares(reported)}" if reported_names(reported) else UNREPORTED
            yield f"{'' if side.judge == judge else f'{side.judge}: '}{quote_name(judge)} {answered}"
        if side.fell_back:
            answers = ", ".join(f"{model} {times:,}" for model, times in side.answered.items())
            yield f"{side.judge}: its fallback judged {count_text(side.fell_back, 'sample')}, and is compared on these; answers by {answers}"
    for pair in comparison.pairs:
        if pair.excluded:
            excluded = (
                ((left_out.a or "missing", left_out.b or "missing"), left_out.samples) for left_out in pair.excluded
            )
            outcomes = ", ".join(format_outcomes(outcome, (pair.a, pair.b), "by", times) for outcome, times in excluded)
            yield f"{_names(pair)}: not compared: {sum(left_out.samples for left_out in pair.excluded):,} ({outcomes})"
        if pair.closeness is not None:
            yield f"{_names(pair)}, compared with people: {_closer(pair, pair.closeness)}"
    lost: dict[str, list[str]] = {}
    for side in comparison.judges:
        for line in left_out_lines(side.unused_labels):
            lost.setdefault(line, []).append(side.judge)
    for line, judges in lost.items():
        yield line if len(judges) == len(comparison.judges) else f"{' and '.join(judges)}: {line}"


def _names(pair: JudgePair) -> str:
    return f"{pair.a} and {pair.b}"


def _figures(agreements: Sequence[Mapping[str, Estimate]]) -> Sequence[str]:
    return [*dict.fromkeys(name for agreement in agreements for name in agreement)][:_NAMES_SHOWN]


def _cells(names: Sequence[str], figures: Mapping[str, Estimate]) -> Iterator[str]:
    return (str(figures[name]) if name in figures else "-" for name in names)


def _closer(pair: JudgePair, test: ClosenessTest) -> str:
    is_right = test.test == "exact McNemar"
    has, of, is_better = (
        ("is right on", "on", "is right") if is_right else ("has a mean closeness of", "of", "is closer")
    )
    adjusted = f" ({test.p_holm:.2g} adjusted for all pairs)" if test.p_holm != test.p else ""
    verdict = "no evidence that one is better"
    if test.p_holm < _ALPHA:
        verdict = f"{pair.b if test.b > test.a else pair.a} is better"
    return (
        f"of n={test.sample_count:,}, {pair.a} {has} {test.a:.1%}, {pair.b} {of} {test.b:.1%}; "
        f"{pair.a} alone {is_better} on {test.a_closer:,}, {pair.b} alone on {test.b_closer:,}; "
        f"p {test.p:.2g}{adjusted} by {test.test}: {verdict}"
    )


def _flip(pair: JudgePair, flip: Flip) -> tuple[str, Sequence[str]]:
    lines = [
        format_verdict(judge, side.label, side.value, side.reason)
        for judge, side in ((pair.a, flip.a), (pair.b, flip.b))
    ]
    if flip.human_value is not None:
        lines.append(format_verdict("people", None, flip.human_value))
    return f"#{flip.index} {flip.sample_id}", lines
