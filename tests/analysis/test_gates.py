"""Gates."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgekit import AIMessage, Run, Sample
from judgekit.analysis.gates import Gate, check_gates
from judgekit.errors import ConfigError
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import Usage

ABSTAINED = Score.abstained("f1", "undecided")
PRECISE = Estimate(value=0.8, low=0.72, high=0.91)
FAILED = Score.failed("f1", "broken", error="OverloadError")
SKIPPED = Score.skipped("f1", "no reference")


def scored(*values: float) -> list[Score]:
    return [Score.scored("f1", value) for value in values]


def binary(ones: int, of: int) -> list[Score]:
    return scored(*[1.0] * ones, *[0.0] * (of - ones))


def test_a_gate_names_a_scorer_a_field_and_a_bound():
    cases = [
        ("f1 >= 0.9", ("f1", "value", ">=", 0.9, False)),
        ("f1>=.9", ("f1", "value", ">=", 0.9, False)),
        ("  f1.lower  <  70 % ", ("f1", "lower", "<", 0.7, True)),
        ("f1.failed <= 1%", ("f1", "failed", "<=", 0.01, True)),
        ("failed == 0", (None, "failed", "==", 0, False)),
        ("coverage > 0.5", (None, "coverage", ">", 0.5, True)),
        ("a.b c:d=1.upper <= 1e-1", ("a.b c:d=1", "upper", "<=", 0.1, False)),
        ("a.b c:d=1 >= 1", ("a.b c:d=1", "value", ">=", 1, False)),
        ("x<y.cost_usd <= 5", ("x<y", "cost_usd", "<=", 5, False)),
        ("f1.min >= 50%", ("f1", "min", ">=", 0.5, True)),
        ("f1.corrected > 70%", ("f1", "corrected", ">", 0.7, True)),
        ("a.b c:d=1.corrected.lower >= 0.7", ("a.b c:d=1", "corrected.lower", ">=", 0.7, False)),
    ]
    for text, read in cases:
        gate = Gate.parse(text, ["f1", "a.b c:d=1", "x<y"])
        assert (gate.scorer, gate.field, gate.operator, pytest.approx(gate.bound), gate.is_share) == read
        assert gate.text == text.strip()


def test_a_text_in_place_of_a_list_is_refused(run_of):
    with pytest.raises(ConfigError, match=r"gates are a list of texts: check_gates\(run, \['f1 >= 0.9'\]\)"):
        check_gates(run_of(scored(1.0)), "f1 >= 0.9")


def test_a_bound_beyond_the_scale_is_named(run_of):
    (gate,) = check_gates(run_of(scored(1.0, 1.0)), ["f1 > 90"]).gates
    assert not gate.met
    assert gate.explanation.endswith("; f1 is from 0 to 1, and 90% would be 0.9")


def test_what_is_no_gate_is_refused_with_its_place_and_the_choices():
    cases = [
        ("tool_cal_f1 >= 0.9", "column 1: no scorer of the run is called 'tool_cal_f1'. Did you mean 'tool_call_f1'?"),
        (
            "tool_cal_f1.lower >= 1",
            "column 1: no scorer of the run is called 'tool_cal_f1'. Did you mean 'tool_call_f1'?",
        ),
        ("tool_call_f1.lowr >= 1", "column 14: no number of tool_call_f1 is called 'lowr'. Did you mean 'lower'?"),
        (
            "tool_call_f1.n.lower >= 1",
            "column 14: no number of tool_call_f1 is called 'n.lower'. Did you mean 'lower'?",
        ),
        (
            "tool_call_f1.corected.lower >= 1",
            "column 14: no number of tool_call_f1 is called 'corected.lower'. Did you",
        ),
        ("tool_cal_f1.corrected.lower > 1", "column 1: no scorer of the run is called 'tool_cal_f1'. Did you mean"),
        ("min >= 0.5", "column 1: no scorer of the run is called 'min'"),
        ("lower >= 0.5", "column 1: no scorer of the run is called 'lower'"),
        (">= 0.5", "column 1: no scorer of the run is called ''"),
        ("", "column 1: expected one of >=, >, <=, <, == between a name and a number"),
        ("tool_call_f1 0.9", "column 1: expected one of >="),
        ("tool_call_f1 = 0.9", "column 14: expected one of >="),
        ("tool_call_f1 => 0.9", "column 14: expected one of >="),
        ("tool_call_f1 != 0.9", "column 14: expected one of >="),
        ("tool_call_f1 >= high", "column 17: expected a number, or a share such as 1%, found 'high'"),
        ("tool_call_f1 >= ", "column 17: expected a number, or a share such as 1%, found ''"),
        ("tool_call_f1 >= nan", "column 17: expected a number"),
        ("tool_call_f1 >= 1 percent", "column 17: expected a number"),
        ("failed <= 0.01", "column 11: failed is a whole number of samples, or a share that ends in %"),
        ("n >= 90%", "column 6: n is a number of samples, not a share"),
        ("cost_usd <= 5%", "column 13: cost_usd is in US dollars, not a share"),
        ("coverage >= 90", "column 13: coverage is from 0 to 1, found '90'; 90% would be 0.9"),
        ("tool_call_f1.min >= -1", "column 21: min is from 0 to 1, found '-1'"),
        ("failed <= 110%", "column 11: failed is from 0 to 1, found '110%'; a gate"),
    ]
    for text, said in cases:
        with pytest.raises(ConfigError, match=r"looks like 'tool_call_f1 >= 0\.9'") as refused:
            Gate.parse(text, ["tool_call_f1"])
        assert f"gate {text!r}, {said}" in str(refused.value)


@pytest.mark.parametrize(("text", "names"), [("failed <= 1%", ["failed"]), ("a.n >= 1", ["a", "a.n"])])
def test_a_name_that_means_two_things_is_refused(text, names):
    with pytest.raises(ConfigError, match="is ambiguous"):
        Gate.parse(text, names)


@given(st.text(min_size=1).map(str.strip).filter(bool), st.sampled_from([">=", ">", "<=", "<", "=="]))
def test_a_scorer_may_have_any_name_that_does_not_end_like_an_operator(name, operator):
    if name[-1] in "<>=!" or name in {"n", "coverage", "skipped", "failed", "abstained", "cost_usd"}:
        return
    assert (Gate.parse(f"{name} {operator} 1", [name]).scorer, Gate.parse(f"{name}.n > 1", [name]).field) == (name, "n")


def test_numbers_are_held_against_bounds_as_people_read_them(run_of):
    cases = [
            ("f1 >= 0.9", binary(90, 100), True, "found 0.9 (n=100 of 100)"),
            ("f1 > 0.9", binary(90, 100), False, "found 0.9 (n=100 of 100)"),
            ("f1 >= 0.9", binary(89, 100), False, "found 0.89 (n=100 of 100)"),
            ("f1 >= 0.3", scored(0.1, 0.2, 0.6), True, "found 0.3 (n=3 of 3)"),  # 0.29999999999999993
            ("f1 == 0.3", scored(0.1, 0.2, 0.6), True, "found 0.3 (n=3 of 3)"),
            ("f1 < 0.3", scored(0.1, 0.2, 0.6), False, "found 0.3 (n=3 of 3)"),
            ("f1 >= 0.9", scored(0.89996), False, "found 0.89996 (n=1 of 1)"),  # and not 0.9
            ("f1 >= 90%", scored(0.8996), False, "found 89.96% (n=1 of 1)"),
            ("f1.lower >= 0.8", binary(90, 100), True, "found 0.826 (Wilson, n=100 of 100)"),  # Wilson: 0.826 to 0.945
            ("f1.upper < 94.5%", binary(90, 100), True, "found 94.48% (Wilson, n=100 of 100)"),
            ("f1.lower >= 0.1", scored(0.5), False, "f1 has no interval: there are too few values, values of only one group, or too many to resample (n=1 of 1)"),
            ("f1 >= 0", [FAILED, SKIPPED], False, "f1 has no value: nothing was scored (n=0 of 2; 1 skipped, 1 failed (1 OverloadError))"),
            ("f1.n >= 2", [*scored(1, 1), SKIPPED], True, "found 2 of 3"),
            ("f1.coverage >= 66%", [*scored(1, 1), SKIPPED], True, "found 2 of 3, 66.7%"),
            ("f1.coverage >= 66.7%", [*scored(1, 1), SKIPPED], False, "found 2 of 3, 66.67%"),
            ("failed <= 1%", [FAILED, *scored(*[1] * 99)], True, "found 1 of 100, 1%"),
            ("failed < 1%", [FAILED, *scored(*[1] * 99)], False, "found 1 of 100, 1%"),
            ("failed <= 1%", [FAILED, *scored(*[1] * 98)], False, "found 1 of 99, 1.01%"),
            ("failed <= 2", [FAILED, FAILED, SKIPPED, ABSTAINED], True, "found 2 of 4"),
            ("skipped == 1", [FAILED, FAILED, SKIPPED, ABSTAINED], True, "found 1 of 4"),
            ("abstained == 25%", [FAILED, FAILED, SKIPPED, ABSTAINED], True, "found 1 of 4, 25%"),
            ("cost_usd <= 5", scored(1), True, "found $0"),
        ]  # fmt: skip
    for text, scores, met, found in cases:
        (result,) = check_gates(run_of(scores), [text]).gates
        assert (result.met, result.value_text, result.text) == (met, found, text)
        assert str(result) == f"{'met' if met else 'not met'}: {text}: {found}"


def test_a_gate_on_the_lowest_value_names_its_sample_and_counts_those_that_are_too_low(run_of):
    cases = [
            ("f1.min >= 0.5", scored(0.75, 0.5, 1), True, "found 0.5 (sample #1 's1', n=3 of 3)"),
            ("f1.min >= 0.5", scored(0.4, 0.2, 1, 0.2), False, "found 0.2 (sample #1 's1', n=4 of 4); below 0.5: 3 of 4 scored samples"),
            ("f1.min >= 0.9", scored(0.7 + 0.2, 1), True, "found 0.9 (sample #0 's0', n=2 of 2)"),  # 0.8999999999999999
            ("f1.min >= 0.9", scored(0.89996, 1), False, "found 0.89996 (sample #0 's0', n=2 of 2); below 0.9: 1 of 2 scored samples"),
            ("f1.min > 50%", scored(1, 0.5, 0.5), False, "found 50% (sample #1 's1', n=3 of 3); not above 50%: 2 of 3 scored samples"),
            ("f1.min < 0.5", scored(1, 0.5), False, "found 0.5 (sample #1 's1', n=2 of 2)"),
            ("f1.min == 1", scored(1, 1), True, "found 1 (sample #0 's0', n=2 of 2)"),
            ("f1.min >= 0.5", [SKIPPED, ABSTAINED, *scored(0.75), FAILED], True, "found 0.75 (sample #2 's2', n=1 of 4; 1 skipped, 1 failed (1 OverloadError), 1 abstained)"),
            ("f1.min >= 0", [SKIPPED, FAILED], False, "f1 has no value: nothing was scored (n=0 of 2; 1 skipped, 1 failed (1 OverloadError))"),
        ]  # fmt: skip
    for text, scores, met, said in cases:
        (result,) = check_gates(run_of(scores), [text], min_coverage=0).gates
        assert str(result) == f"{'met' if met else 'not met'}: {text}: {said}"
        lowest = (
            min((one.value, at) for at, one in enumerate(scores) if one.value is not None)[1] if "#" in said else None
        )
        assert result.sample == lowest


@given(st.lists(st.integers(0, 10).map(lambda tenths: tenths / 10), min_size=1, max_size=20), st.integers(0, 10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_gate_on_the_lowest_value_is_one_on_each_sample(run_of, values, tenths):
    (result,) = check_gates(run_of(scored(*values)), [f"f1.min >= {tenths / 10}"]).gates
    below = sum(value < tenths / 10 for value in values)
    assert result.met is (below == 0)
    assert result.reason == (f"below {tenths / 10:g}: {below} of {len(values)} scored samples" if below else "")


def test_the_lowest_of_too_few_of_the_samples_meets_no_gate_and_an_id_steers_no_terminal(run_of):
    samples = [Sample.of([AIMessage("Hi")], id=f"\x1b[2J{number}") for number in range(2)]
    run = run_of([*scored(0.25), SKIPPED], samples=samples)
    low, fine = check_gates(run, ["f1.min >= 0.5", "f1.min >= 0"], min_coverage=0.9).gates
    few = "only 1 of 2 samples were scored, and min_coverage is 90%"
    assert (low.met, low.reason) == (False, f"below 0.5: 1 of 1 scored samples; {few}")
    assert (fine.met, fine.reason) == (False, few)
    assert "sample #0 '\\x1b[2J0'" in low.value_text


def test_a_cost_that_is_unknown_meets_no_gate(run_of):
    used = Usage(input_tokens=1, output_tokens=1)
    for price, met, found in (
        (1.5, True, "found $2"),
        (1.75, False, "found $2.25"),
        (None, False, "the cost is unknown: "),
    ):
        calls = [JudgeCall(judge="j", prompt="p", usage=used, cost_usd=usd) for usd in (0.5, price)]
        (result,) = check_gates(
            run_of([Score.scored("f1", 1, calls=[call]) for call in calls]), ["cost_usd <= 2"]
        ).gates
        assert (result.met, result.value_text.startswith(found)) == (met, True)


@pytest.mark.parametrize(
    ("text", "correction", "met", "found"),
    [
        ("f1.corrected.lower >= 0.7", Correction(method="PPI++", corrected=PRECISE), True, "found 0.72 (PPI++)"),
        ("f1.corrected >= 0.7", Correction(method="PPI++", corrected=PRECISE, assumptions="luck"), True, "found 0.8 (PPI++; assumes: luck)"),
        ("f1.corrected.upper <= 0.9", Correction(method="PPI++", corrected=PRECISE), False, "found 0.91 (PPI++)"),
        ("f1.corrected < 0.8", Correction(method="PPI++", corrected=PRECISE), False, "found 0.8 (PPI++)"),
        ("f1.corrected >= 0", Correction(unavailable_reason="too few"), False, "f1 has no corrected value: too few"),
        ("f1.corrected.lower >= 0", Correction(corrected=Estimate(value=1)), False, "f1 has a corrected value without an interval"),
    ],
)  # fmt: skip
def test_a_corrected_mean_is_held_against_bounds_as_any_other(text, correction, met, found, run_of):
    run = run_of(scored(1, 1))
    gate = Gate.parse(text, ["f1"])
    result = gate.result(run.summary, {}, {"f1": correction})
    assert (result.met, result.value_text) == (met, found)
    thin = gate.result(run.summary, {"f1": "only 1 of 9"}, {"f1": correction})
    assert (thin.met, thin.reason) == (False, "only 1 of 9")


def test_what_asks_no_judge_has_no_corrected_mean(run_of):
    (result,) = check_gates(run_of(scored(1, 1)), ["f1.corrected >= 0"]).gates
    assert (result.met, result.value_text) == (False, "f1 has no corrected value: it asks no judge")


def test_without_a_scorer_a_gate_is_on_all_scores_of_the_run(run_of):
    run = run_of([FAILED, *scored(1)], [Score.scored("b", 1), Score.skipped("b", "x")])
    results = check_gates(run, ["failed <= 25%", "failed < 1", "n == 2", "coverage >= 50%", "f1.failed == 50%"]).gates
    assert [result.met for result in results] == [True, False, True, True, True]


def test_of_no_scores_at_all_there_is_no_share(run_of):
    run = run_of(scored(1))
    run.store._db.execute("DELETE FROM scores")
    results = check_gates(Run(run.store, run.record), ["failed <= 1%", "f1 >= 0", "failed == 0"]).gates
    assert [(result.met, result.value_text) for result in results] == [
        (False, "there are no scores"),
        (False, "f1 has no value: nothing was scored (n=0 of 1; 1 missing)"),
        (True, "found 0 of 1"),
    ]


def test_the_interval_of_what_is_no_mean_is_the_bootstrap(run_of):
    def of_domain(domain: str, value: float) -> Score:
        return Score.scored("f1", value, details={"domain": domain}, aggregate="macro_mean")

    scores = [of_domain("a", 1), of_domain("a", 0.5), of_domain("b", 0.75), of_domain("b", 0.25)]
    (result,) = check_gates(run_of(scores), ["f1.lower >= 0"]).gates
    assert result.met
    assert "(bootstrap, n=4 of 4)" in result.value_text


def test_a_number_of_too_few_of_the_samples_is_flagged_and_meets_no_gate(run_of):
    for min_coverage, scores, met in (
        (0.9, [*scored(*[1] * 9), SKIPPED], True),
        (0.9, [*scored(*[1] * 89), *[SKIPPED] * 11], False),
        (0.9, [*scored(*[1] * 8), SKIPPED, FAILED], False),
        (0, [*scored(1), *[ABSTAINED] * 9], True),
    ):
        found = check_gates(run_of(scores), ["f1 >= 0.5", "f1.lower >= 0.1", "f1.n >= 1"], min_coverage=min_coverage)
        assert [gate.met for gate in found.gates] == [met, met, True]
        assert found.met is met
        assert ("f1" in found.low_coverage) is not met
        if not met:
            of = f"only {sum(one.status == 'scored' for one in scores)} of {len(scores)} samples were scored"
            assert found.low_coverage["f1"] == found.gates[0].reason == f"{of}, and min_coverage is 90%"
            assert str(found.gates[0]).endswith(found.low_coverage["f1"])


def test_only_a_gate_on_failed_decides_how_many_failed_scores_there_may_be(run_of):
    run = run_of([FAILED], [Score.failed("b", "x")], [Score.skipped("c", "x")])
    for gates, undecided in (
        ([], ["f1", "b"]),
        (["f1 >= 0"], ["f1", "b"]),
        (["failed <= 100%"], []),
        (["f1.failed <= 5"], ["b"]),
        (["f1.failed <= 0", "b.failed <= 0"], []),
    ):
        found = check_gates(run, gates)
        assert list(found.undecided) == undecided
        failures = [f"no gate covers the failures of {', '.join(undecided)}"] if gates and undecided else []
        assert list(found.notes) == [*failures, "c scored none of 1 sample: 1 skipped: x"]


def test_a_scorer_that_scored_no_sample_is_named_unless_a_gate_on_coverage_allows_it(run_of):
    run = run_of([SKIPPED, SKIPPED])
    for gate in ("f1.failed <= 5", "f1.skipped <= 5", "f1.coverage >= 0", "skipped <= 5", "n >= 0"):
        unmeasured = ["f1"] if gate == "f1.failed <= 5" else []
        assert list(check_gates(run, [gate]).unmeasured) == unmeasured, gate
    assert list(check_gates(run, []).notes) == ["f1 scored none of 2 samples: 2 skipped: no reference"]
    assert not check_gates(run_of([SKIPPED, *scored(0)]), []).unmeasured


def test_abstentions_alone_measure_nothing_and_failures_alone_are_only_undecided(run_of):
    reason = "f1 scored none of 2 samples: 1 skipped: no reference; 1 abstained: undecided"
    assert check_gates(run_of([SKIPPED, ABSTAINED]), []).unmeasured == {"f1": reason}
    found = check_gates(run_of([FAILED]), [])
    assert (found.unmeasured, list(found.undecided)) == ({}, ["f1"])


@pytest.mark.parametrize(
    ("gates", "skipped", "met"),
    [
        (["f1 >= 0.5"], 1, True),
        (["f1 >= 0.5"], 2, False),
        (["f1.lower >= 0", "f1.min >= 1"], 2, False),
        (["f1 >= 0.5", "f1.skipped <= 2"], 2, True),
        (["f1 >= 0.5", "coverage >= 10%"], 2, True),
    ],
)
def test_a_gate_on_a_number_needs_half_of_the_samples_unless_another_one_limits_them(gates, skipped, met, run_of):
    found = check_gates(run_of([*scored(1), *[SKIPPED] * skipped]), gates)
    assert (found.gates[-1 if len(gates) > 1 and not met else 0].met, not found.low_coverage) == (met, met)
    if not met:
        few = "only 1 of 3 samples were scored, which is less than half; if that is enough, set min_coverage"
        assert found.low_coverage == {"f1": few}
    assert check_gates(run_of([*scored(1), *[SKIPPED] * skipped]), gates, min_coverage=0).low_coverage == {}
