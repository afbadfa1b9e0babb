"""Gates on the difference between two runs."""

import pytest

from judgekit import Run, Sample, Score, run, scorer
from judgekit.analysis.compare import compare
from judgekit.errors import ConfigError


@scorer
def told(sample: Sample) -> Score:
    value = sample.metadata["told"]
    return Score.skipped("told", "nothing is told") if value is None else Score.scored("told", value)


@scorer(name="told.p")
def other(sample: Sample) -> float:
    return 1.0


def runs(before: list[float | None], after: list[float | None]) -> tuple[Run, Run]:
    a, b = (
        run([Sample(id=f"s{n}", metadata={"told": one}) for n, one in enumerate(values)], [told, other])
        for values in (before, after)
    )
    return a, b


ONES = [1.0] * 10
FALL = [*[0.0] * 7, *[1.0] * 3]  # 7 of 10 fall: p is 2 / 2**7 = 0.015625; of two scorers Holm's is twice that
MOST = [*ONES, *ONES]


def test_a_difference_is_held_against_bounds():
    cases = [
            ("told.difference >= -0.7", ONES, FALL, True, "found -0.7 (10 pairs)"),
            ("told.difference > -70%", ONES, FALL, False, "found -70% (10 pairs)"),
            ("told.difference == 0", ONES, ONES, True, "found 0 (10 pairs)"),
            # -7/12 ± 2.201 * sqrt((9 - 49/12) / 11 / 12), by hand, and no difference is below -1
            ("told.difference.lower >= -0.02", ONES, FALL, False, "found -1 (adjusted t, 10 pairs)"),
            ("told.difference.upper >= 0", ONES, FALL, False, "found -0.159 (adjusted t, 10 pairs)"),
            ("told.p <= 0.02", ONES, FALL, True, "found 0.0156 (exact McNemar, 10 pairs)"),
            ("told.p_holm <= 0.02", ONES, FALL, False, "found 0.0312 (exact McNemar, 10 pairs)"),
            ("told.p.difference == 0", ONES, FALL, True, "found 0 (10 pairs)"),
            ("told.worse <= 7", ONES, FALL, True, "found 7 (of 10 pairs)"),
            ("told.worse < 70%", ONES, FALL, False, "found 70% (7 of 10 pairs)"),
            ("told.better == 7", FALL, ONES, True, "found 7 (of 10 pairs)"),
            ("told.pairs >= 10", MOST, FALL, True, "found 10 (of 20 samples)"),
            ("told.pairs >= 90%", MOST, FALL, False, "found 50% (10 of 20 samples)"),
            ("told.pairs >= 90%", FALL, MOST, False, "found 50% (10 of 20 samples)"),
            ("told.pairs >= 90%", [None, *ONES], [1, *ONES], True, "found 90.9% (10 of 11 samples)"),
            ("told.worse <= 0%", [None], [1], False, "no sample has a value in both runs"),
            ("told.worse <= 0", [None], [1], False, "no sample has a value in both runs"),
            ("told.pairs >= 1", [None], [1], False, "found 0 (of 1 samples)"),
            ("told.difference >= -1", [None], [1], False, "no sample has a value in both runs"),
            ("told.p >= 0", [None], [1], False, "no sample has a value in both runs"),
            ("told.difference.lower >= -1", [1], [1], False, "there is no interval: the pairs are too few, or all of one group (1 pair)"),
        ]  # fmt: skip
    for gate, before, after, met, found in cases:
        results = compare(*runs(before, after), gates=[gate]).gates
        (result,) = results.gates
        assert (result.met, result.value_text) == (met, found)
        assert results.met is met
        assert str(result) == f"{'met' if met else 'not met'}: {gate}: {found}"


def test_without_gates_all_are_met():
    assert compare(*runs(ONES, FALL)).gates.met


def test_what_is_no_gate_is_refused_with_its_place_and_the_choices():
    cases = [
        ("told >= 0.9", "column 5: expected . and one of difference, difference.lower,"),
        ("told.lower >= 0", "column 6: no number of told is called 'lower'"),
        ("told.diference >= 0", "column 6: no number of told is called 'diference'. Did you mean 'difference'?"),
        ("tol.difference >= 0", "column 1: no scorer of both runs is called 'tol'. Did you mean 'told'?"),
        ("pairs >= 9", "column 1: no scorer of both runs is called 'pairs'"),
        ("told.difference 0", "column 1: expected one of >=, >, <=, <, =="),
        ("told.difference >= low", "column 20: expected a number, or a share such as 1%, found 'low'"),
        ("told.difference.lower >= -2", "column 26: difference.lower is from -1 to 1, found '-2'; -2% would be -0.02"),
        ("told.p <= 5", "column 11: p is from 0 to 1, found '5'; 5% would be 0.05"),
        ("told.worse <= 0.5", "column 15: worse is a whole number of samples, or a share that ends in %"),
    ]
    for gate, said in cases:
        with pytest.raises(ConfigError) as refused:
            compare(*runs(ONES, FALL), gates=[gate])
        assert said in str(refused.value)
        assert "a gate looks like 'tool_call_f1.difference.lower >= -0.02'" in str(refused.value)
