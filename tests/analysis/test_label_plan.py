"""Plans of labels, against the published formula, the audits that follow them, and what cannot be planned."""

import pytest

from judgekit.analysis.audit import audit
from judgekit.analysis.label_plan import plan_labels
from judgekit.errors import ConfigError
from judgekit.score import Score
from tests.analysis.conftest import drawn_from, imperfect

pytestmark = pytest.mark.usefixtures("quick")


def said(n):
    return imperfect(n, 0.7, 0.9, 0.8)


GATES = ("corrected >= 0.7", "corrected.lower >= 0.7", "corrected.upper <= 0.9")


def test_a_plan_is_that_of_the_formula(judged):
    """0.21 x 0.64 / ((0.05 / 1.96)**2 - 0.21 x 0.36 / 1000) = 233.8, and 323 by the textbook."""
    plan = plan_labels(judged(said(1_000)[1]), "tone", half_width=0.05, agreement=0.6, mean=0.7)
    assert (plan.labels, plan.labels_alone, plan.draw_count, plan.samples) == (234, 323, 258, 1_000)
    assert list(plan.lines()) == [
        "labels of tone in run 1, for a corrected mean within 0.05 of people's",
        "planned with a mean of 0.70 (given) and an agreement of 0.60 (given)",
        "234 labels drawn at random from the 1,000 scored samples; without the judge, 323",
        "next: judgekit label 1 --scorer tone --n 258 -o sheet.html (a tenth may be left blank)",
    ]


def test_at_least_as_many_are_drawn_as_a_corrected_mean_needs(judged):
    plan = plan_labels(judged(said(1_000)[1]), "tone", half_width=0.3, agreement=0.9)
    assert (plan.labels, plan.labels_alone, plan.draw_count) == (10, 10, 11)


def test_what_an_audit_found_is_planned_with(judged, tmp_path):
    truth, verdicts = said(400)
    run = judged(verdicts, store=tmp_path / "runs.sqlite")
    (tone,) = audit(run, drawn_from(run, truth, 80)).scorers
    plan = plan_labels(run, "tone", half_width=0.06)
    assert plan.agreement == (tone.agreement["kappa"].low, "the lower bound of kappa in the audit of run 1")
    assert plan.mean == (tone.correction.corrected.value, "corrected")


def test_a_gate_on_a_bound_takes_more_labels_than_on_the_mean_and_a_useful_judge_saves_some(judged, monkeypatch):
    monkeypatch.setattr("judgekit.stats.label_planning._DRAWS", 100)
    run = judged(said(500)[1])
    plans = [plan_labels(run, "tone", gate=f"tone.{gate}", agreement=0.6, mean=0.8) for gate in GATES]
    assert [plan.aim for plan in plans] == [f"tone.{gate}, met with a probability of 80%" for gate in GATES]
    on_mean, *on_bounds = plans
    assert on_mean.labels == 10
    assert all(30 < plan.labels < plan.labels_alone < 200 for plan in on_bounds)


def test_samples_of_one_group_tell_less(judged):
    truth = [one for one in said(100)[0] for _ in range(5)]
    together = judged(truth, groups=[f"g{number // 5}" for number in range(500)])
    plan = plan_labels(together, "tone", half_width=0.12, agreement=0.6)
    alone = plan_labels(judged(truth), "tone", half_width=0.12, agreement=0.6)
    assert plan.design_effect == pytest.approx(5, rel=0.02)
    assert alone.design_effect == 1
    assert plan.labels > 5 * alone.labels
    assert any("5.1 of them tell as much as an independent one" in line for line in plan.lines())


def test_too_few_samples_are_said_to_be(judged):
    plan = plan_labels(judged(said(60)[1]), "tone", half_width=0.03, agreement=0.6)
    assert (plan.labels, plan.draw_count) == (None, None)
    assert list(plan.lines())[-1].startswith(
        "even a label of each of the 60 scored samples leaves too wide an interval; record more"
    )


def test_with_confidence_sure_and_unsure_verdicts_may_be_drawn_apart(judged):
    scores = [Score.scored("tone", one, confidence=0.9) for one in said(200)[1]]
    plan = plan_labels(judged(scores), "tone", half_width=0.1, agreement=0.6)
    assert any(line.endswith("--by-verdict") for line in plan.lines())


def test_what_cannot_be_planned_is_refused(judged):
    cases = [
        ({}, "pass --half-width or --gate, which says what the labels are for"),
        (
            {"half_width": 0.1, "gate": "tone.corrected >= 0.1"},
            "pass --half-width or --gate, which says what the labels",
        ),
        ({"half_width": 0.6}, "half_width must be between 0 and 0.5, found 0.6"),
        ({"half_width": 0.1, "agreement": -0.1}, "agreement must be between 0 and 1"),
        ({"gate": "tone >= 0.1"}, "expected a gate on tone.corrected"),
        ({"gate": "tone.corrected == 0.1"}, "expected a gate on tone.corrected"),
        ({"gate": "tone.corrected >= 0.99", "mean": 0.7}, "a mean of 0.7 .given. does not meet tone.corrected >= 0.99"),
        ({"gate": "tone.corrected.upper <= 0.3", "mean": 0.7}, "a mean of 0.7 .given. does not meet"),
        ({"half_width": 0.1}, "tone: not audited; assume an agreement with people .--agreement 0.6"),
    ]
    for asked, told in cases:
        with pytest.raises(ConfigError, match=told):
            plan_labels(judged(said(100)[1]), "tone", **asked)


def test_a_scorer_that_is_not_there_or_scored_nothing_is_refused(judged):
    with pytest.raises(ConfigError, match="scorer of the run that asks a judge"):
        plan_labels(judged([1.0]), "other", half_width=0.1)
    with pytest.raises(ConfigError, match="tone scored no sample of run 1"):
        plan_labels(judged([Score.skipped("tone", "no")]), "tone", half_width=0.1)
