"""Summaries of parts of the samples, merged: they are the summary of all of them."""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.runs.rows import DAMAGED_ROW, Row
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import JudgeCall, Score
from judgekit.stats.wilson import Interval
from judgekit.traces.message import Usage

CLOSE = 1e-9
LABELS = ("a", "b", "c")


def call(cost: float | None = 0.01, **more: object) -> JudgeCall:
    usage = Usage(input_tokens=10, output_tokens=5)
    return JudgeCall(judge="openai/x", model="m", prompt="p@1", usage=usage, cost_usd=cost, **more)


def mean_score(draw: random.Random) -> Score:
    kind = draw.random()
    if kind < 0.1:
        return Score.skipped("mean", draw.choice(["no reference", "no topics"]))
    if kind < 0.2:
        return Score.failed("mean", "broken", error=draw.choice(["RejectedError", DAMAGED_ROW]))
    warnings = ("cut",) if draw.random() < 0.2 else ()
    return Score.scored("mean", draw.random(), label=draw.choice(LABELS), calls=(call(),), warnings=warnings)


def scores(draw: random.Random) -> list[Score]:
    true, predicted = draw.choice(LABELS), draw.choice((*LABELS, ""))
    details = {"measure": "f1_macro", "true": true, "predicted": predicted}
    blue = {
        "metric": "bleu", "corpus_signature": "s", "correct": [draw.randrange(9) for _ in range(4)], "total": [9, 8, 7, 6],
        "response_length": 9, "reference_length": draw.randrange(5, 15), "smooth": "exp",
    }  # fmt: skip
    return [
        mean_score(draw),
        Score.scored("binary", float(draw.random() < 0.7), calls=(call(None if draw.random() < 0.01 else 0.01),)),
        Score.scored("classes", float(true == predicted), details=details, aggregate="classification"),
        Score.scored("bleu", draw.random(), details=blue, aggregate="corpus_bleu"),
    ]


def rows(seed: int, count: int, *, grouped: bool = True, names: int = 1) -> list[Row]:
    draw = random.Random(seed)  # noqa: S311 - data, no secrets
    made: list[Row] = []
    for index in range(count):
        group = f"task {draw.randrange(count // 3 + 1)}" if grouped and draw.random() < 0.9 else None
        labels = {f"label {number}": draw.choice(LABELS) for number in range(names)}
        known = {"group": group, "domain": draw.choice(["shop", "bank"]), "labels": labels}
        made += [Row(index=index, sample_id=f"s{index}", score=score, **known) for score in scores(draw)]
    return made


def summary_of(found: Iterable[Row]) -> Summary:
    summary = Summary(
        {name: ScorerSummary(name, f"signature of {name}") for name in ("mean", "binary", "classes", "bleu")}
    )
    for row in found:
        summary.add(row)
    return summary


def cut(found: Sequence[Row], places: Sequence[int]) -> list[list[Row]]:
    """The rows in parts; all rows of a sample are in one."""
    edges = [0, *sorted(places), len(found) // 4]
    return [list(found[4 * first : 4 * last]) for first, last in pairwise(edges)]


def assert_close(one: Interval | None, other: Interval | None) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=CLOSE)
        assert one.method == other.method


def assert_same(one: Summary, other: Summary) -> None:
    assert list(one.scorers) == list(other.scorers)
    for line, same in zip(one, other, strict=True):
        assert line.value == pytest.approx(same.value, abs=CLOSE)
        assert_close(line.interval, same.interval)
        if line.overall is not None and same.overall is not None:
            assert line.overall.table == same.overall.table
            assert line.overall.metrics == pytest.approx(same.overall.metrics, abs=CLOSE)
        assert line.trials == same.trials
        assert (line.cost_usd is None) == (same.cost_usd is None)
        assert (line.cost_usd or 0) == pytest.approx(same.cost_usd or 0, abs=CLOSE)
        for name in ("counts", "errors", "labels", "warnings", "reasons", "answers", "requests", "cached", "tokens"):
            assert getattr(line, name) == getattr(same, name), name
        assert (line.damaged_samples, line.price_lists, line.missing) == (
            same.damaged_samples,
            same.price_lists,
            same.missing,
        )
        assert list(line.notes()) == list(same.notes())
        assert list(line.unscored_reasons()) == list(same.unscored_reasons())
    assert one.slices.keys() == other.slices.keys()
    for name, values in one.slices.items():
        assert values.keys() == other.slices[name].keys()
        for value, part in values.items():
            assert_same(part, other.slices[name][value])


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(0, 10**6), st.integers(0, 24), st.lists(st.integers(0, 24), max_size=5), st.booleans())
def test_merged_parts_are_the_whole(seed, count, places, grouped):
    found = rows(seed, count, grouped=grouped)
    parts = cut(found, [min(place, count) for place in places])
    assert_same(Summary.merged(map(summary_of, parts)), summary_of(found))


def test_merging_is_associative_and_nothing_is_neutral():
    one, two, three = map(summary_of, cut(rows(1, 30), [9, 20]))
    left = Summary.merged([Summary.merged([one, two]), three])
    assert_close(left["mean"].bootstrap(), summary_of(rows(1, 30))["mean"].bootstrap())
    right = Summary.merged([one, Summary.merged([two, three])])
    assert_same(left, right)
    assert_same(Summary.merged([summary_of([]), one]), one)
    assert list(Summary.merged([])) == []


def test_what_is_unknown_in_a_part_is_unknown_in_the_whole():
    known, unknown = (
        summary_of([Row(index=0, sample_id="a", score=Score.scored("mean", 1.0, calls=(call(cost),)))])
        for cost in (0.5, None)
    )
    merged = Summary.merged([known, unknown])["mean"]
    assert (merged.cost_usd, merged.requests) == (None, 2)
    known["mean"].qualifier, unknown["mean"].qualifier = "about ", "at least "
    known["mean"].missing = unknown["mean"].missing = 2
    assert "2 of at least 6" in Summary.merged([known, unknown])["mean"].coverage()


def test_other_scorers_are_not_merged():
    one, other = Summary({"s": ScorerSummary("s", "1")}), Summary({"s": ScorerSummary("s", "2")})
    with pytest.raises(ConfigError, match=r"different scorers cannot be merged: s \(1\) and s \(2\)"):
        Summary.merged([one, other])
    with pytest.raises(ConfigError, match=r"different scorers cannot be merged: \['s'\] and \['t'\]"):
        Summary.merged([one, Summary({"t": ScorerSummary("t", "1")})])


def test_slices_that_a_part_has_left_out_are_left_out():
    """A name with too many values in all parts together, and names of which a part may not have counted all samples."""
    values = [
        Row(
            index=index,
            sample_id=f"s{index}",
            score=Score.scored("mean", 1.0),
            labels={"x": f"v{index}", "y": index % 2},
        )
        for index in range(60)
    ]
    merged = Summary.merged(summary_of(values[first : first + 20]) for first in (0, 20, 40))
    assert merged.slices.keys() == summary_of(values).slices.keys() == {"y"}
    many = [
        Row(
            index=60,
            sample_id="m",
            score=Score.scored("mean", 1.0),
            labels={f"n{number}": "x" for number in range(120)} | {"y": 1},
        )
    ]
    assert merged.unmerged_slices == set()
    merged = Summary.merged([summary_of(values), summary_of(many)])
    assert "y" not in merged.slices
    assert merged.unmerged_slices == {"y"}
    assert str(merged).splitlines()[-1] == "slices left out, since a part has too many labels to count all: y"
    assert Summary.merged([merged, summary_of(values)]).unmerged_slices == {"y"}
