"""What changed between the issues of two runs: new, back, more, less and gone."""

import random

import pytest

from judgekit.errors import ConfigError
from judgekit.failures.comparison import compare_failures
from judgekit.failures.finding import find_failures
from judgekit.failures.gates import check_failure_gates
from judgekit.stats.comparison import holm, mcnemar
from tests.failures.conftest import failing, sorting


def of_labels(labels):
    """Return analyses of samples by the label of each; ``None`` for those that did not fail."""
    return {f"s{at}": label and (label, "refund", label) for at, label in enumerate(labels)}


def changes(analyzed, before, after):
    first = find_failures(analyzed(of_labels(before)))
    second = find_failures(analyzed(of_labels(after)))
    return {change.issue.label: change for change in compare_failures(first, second)}


def test_each_change_has_its_word_and_its_p(analyzed):
    before = ["forgot"] * 12 + ["drifted"] * 3 + ["repeated"] * 8 + [None] * 37
    after = [None] * 12 + ["drifted"] * 4 + [None] * 7 + ["misunderstood"] * 2 + [None] * 35
    compared = changes(analyzed, before, after)
    kinds = {label: change.kind for label, change in compared.items()}
    assert kinds == {"forgot": "gone", "drifted": "no evidence", "repeated": "gone", "misunderstood": "new"}
    p = {"drifted": mcnemar(0, 1), "misunderstood": mcnemar(0, 2), "forgot": mcnemar(12, 0), "repeated": mcnemar(8, 0)}
    adjusted = dict(zip(p, holm([*p.values()]), strict=True))
    assert {label: change.p_holm for label, change in compared.items()} == pytest.approx(adjusted)
    assert (compared["forgot"].a, compared["forgot"].b, compared["forgot"].difference) == (12, 0, -12 / 60)


def test_more_and_less_need_evidence(analyzed):
    before = ["forgot"] * 20 + ["drifted"] * 2 + [None] * 38
    compared = changes(analyzed, before, ["forgot"] * 2 + ["drifted"] * 20 + [None] * 38)
    assert {label: change.kind for label, change in compared.items()} == {"forgot": "less", "drifted": "more"}


def test_an_issue_is_gone_only_if_its_samples_were_analyzed_again(analyzed):
    compared = changes(analyzed, ["forgot"] * 3 + [None] * 3, [None] * 2)
    assert compared["forgot"].kind == "no evidence"
    assert "1 sample not analyzed again" in str(compared["forgot"])


def test_a_fixed_issue_that_is_seen_again_is_back_and_a_rejected_one_is_left_out(analyzed):
    first = find_failures(analyzed(of_labels(["forgot", "drifted"])))
    ids = {issue.issue.label: issue.issue.id for issue in first.issues}
    first.edit({ids["forgot"]: "fixed", ids["drifted"]: "rejected"}, {})
    second = find_failures(analyzed(of_labels([None, None])))
    third = find_failures(analyzed(of_labels(["forgot", "drifted"])))
    assert [(change.issue.label, change.kind) for change in compare_failures(second, third)] == [("forgot", "back")]


def test_gates_count_new_issues_and_those_that_are_back_and_samples_by_label(analyzed):
    first = find_failures(analyzed(of_labels(["forgot", "drifted", None, None])))
    ids = {issue.issue.label: issue.issue.id for issue in first.issues}
    first.edit({ids["forgot"]: "fixed", ids["drifted"]: "rejected"}, {})
    report = find_failures(analyzed(of_labels(["forgot", "drifted", "repeated", None])))
    gates = ["failures.new <= 0", "failures.new <= 1", "failures.back <= 0"]
    results = check_failure_gates(report, gates).gates
    assert [gate.met for gate in results] == [False, True, False]
    assert results[0].value_text == f"found 1 (repeated at refund ({report.in_state('new')[0].issue.id}))"
    by_label = check_failure_gates(report, ["failures.forgot <= 2%", "failures.forgot <= 1", "failures.drifted <= 0"])
    assert [gate.met for gate in by_label.gates] == [False, True, True]  # a rejected issue counts in none
    assert by_label.gates[0].value_text == "found 25% (1 of 4 samples)"
    with pytest.raises(ConfigError, match=r"no number of failures is called 'newer'. Did you mean 'new'\?"):
        check_failure_gates(report, ["failures.newer <= 0"])


def test_a_gate_that_cannot_be_decided_is_not_met(analyzed):
    judge = sorting()
    find_failures(analyzed(failing([*["forgot it"] * 5, *["paid twice"] * 5])), judge=judge)
    unsorted = find_failures(analyzed(failing(["forgot it"])))
    (gate,) = check_failure_gates(unsorted, ["failures.new <= 0"]).gates
    assert not gate.met
    assert gate.reason == "1 failure not matched with known issues yet: name a judge"
    left_out = find_failures(analyzed({**failing(["forgot it"]), "s1": ("broken", "", "")}), judge=judge)
    (gate,) = check_failure_gates(left_out, ["failures.back <= 0"]).gates
    assert not gate.met
    assert gate.reason == "1 sample not analyzed: judgekit resume 3 --retry-failed"


@pytest.mark.simulations
def test_the_interval_of_a_change_covers_the_true_one(analyzed):
    """Shares of 0.2 and 0.3, half of the failures in the same samples, 60 pairs."""
    dice = random.Random(1)  # noqa: S311 - a simulation
    covered, rounds = 0, 60
    for _ in range(rounds):
        draws = [dice.random() for _ in range(60)]
        before = ["forgot" if draw < 0.2 else None for draw in draws]
        after = ["forgot" if 0.1 < draw < 0.4 else None for draw in draws]
        change = changes(analyzed, before, after)["forgot"]
        covered += change.interval.low <= 0.1 <= change.interval.high
    assert covered >= 0.9 * rounds
