"""The failures of a run as issues: sorted, counted, corrected, followed over runs."""

import json
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanLabel, HumanMessage, Sample, ToolCall, ToolCallF1, add_labels, run
from judgekit.errors import ConfigError, StoreError
from judgekit.failures.finding import find_failures
from judgekit.stats.wilson import wilson
from tests.failures.conftest import failing, sorting

FORGOT = [f"forgot the fee of order {number}" for number in range(6)]
TWICE = [f"paid twice for order {number}" for number in range(5)]


def counts(report):
    return {issue.issue.name: len(issue.failures) for issue in report.issues}


def states(report):
    return {issue.issue.name: issue.state for issue in report.issues}


def test_without_a_judge_failures_are_told_apart_by_label_and_place(analyzed):
    analyses = {**failing(["a", "b"]), **failing(["c"], where="pay", first=2), **failing(["d"], "forgot", first=3)}
    analyses |= dict.fromkeys(["s4", "s5", "s6", "s7", "s8", "s9"])
    report = find_failures(analyzed(analyses))
    assert counts(report) == {"missing_call at refund": 2, "forgot at refund": 1, "missing_call at pay": 1}
    first = report.issues[0]
    interval = wilson(2, 10)
    assert (first.share.value, first.share.low, first.share.high) == (0.2, interval.low, interval.high)
    assert [(failure.message, failure.quote) for failure in first.failures] == [(2, "Done.")] * 2
    assert first.fix == "instructions: say more about refund"
    assert report.unseen == 2 / 4  # two issues were seen once, of four failures
    assert report.headline().startswith("4 of 10 samples failed visibly: 3 issues (3 new)")


def test_a_run_without_the_analysis_says_how_to_add_it(analyzed):
    run = analyzed(failing(["a"]))
    with pytest.raises(ConfigError, match=r"run 1 has no scores of other; judgekit score 1 --scorer other"):
        find_failures(run, scorer="other")


def test_a_judge_groups_many_failures_of_a_cell_and_is_not_asked_again(analyzed):
    run = analyzed(failing([*FORGOT, *TWICE, "lonely"]))
    judge = sorting()
    report = find_failures(run, judge=judge)
    assert counts(report) == {"forgot it is": 6, "paid it is": 5, "missing_call at refund": 1}
    assert [issue.stability for issue in report.issues] == [1, 1, None]
    assert len(judge.requests) == 3  # one for each order
    assert counts(find_failures(run, judge=judge)) == counts(report) == counts(find_failures(run))
    assert len(judge.requests) == 3


def test_few_failures_of_a_cell_are_not_worth_a_question(analyzed):
    judge = sorting()
    assert counts(find_failures(analyzed(failing(FORGOT)), judge=judge)) == {"missing_call at refund": 6}
    assert not judge.requests


def test_issues_have_a_life(analyzed):
    judge = sorting()
    first = find_failures(analyzed(failing([*FORGOT, *TWICE])), judge=judge)
    ids = {issue.issue.name: issue.issue.id for issue in first.issues}
    assert set(states(first).values()) == {"new"}
    first.edit({ids["forgot it is"]: "fixed", ids["paid it is"]: "rejected"}, {ids["paid it is"]: "Not ours"})
    second = find_failures(analyzed(failing([*FORGOT[:2], *TWICE[:1], "rude words"])), judge=judge)
    assert states(second) == {"forgot it is": "back", "Not ours": "rejected", "rude words": "new"}
    third = find_failures(analyzed(failing([*FORGOT[:2], *TWICE[:1], "rude words"])), judge=judge)
    assert states(third) == {"forgot it is": "known", "Not ours": "rejected", "rude words": "known"}
    assert states(find_failures(second.run)) == states(second)
    assert {issue.issue.id for issue in third.issues} >= set(ids.values())


def test_an_older_run_that_is_looked_at_later_is_the_first_to_have_an_issue(analyzed):
    older, newer = analyzed(failing(["a"])), analyzed(failing(["a"]))
    assert states(find_failures(newer)) == {"missing_call at refund": "new"}
    assert states(find_failures(older)) == {"missing_call at refund": "new"}
    assert states(find_failures(newer)) == {"missing_call at refund": "known"}


def test_groups_of_a_cell_that_was_known_before_are_not_called_new(analyzed):
    find_failures(analyzed(failing(FORGOT)), judge=sorting())
    report = find_failures(analyzed(failing([*FORGOT, *TWICE])), judge=sorting())
    assert set(states(report).values()) == {"known"}


def test_failures_of_a_cell_with_several_issues_are_unsorted_without_a_judge(analyzed):
    find_failures(analyzed(failing([*FORGOT, *TWICE])), judge=sorting())
    run = analyzed(failing(FORGOT[:2]))
    report = find_failures(run)
    assert states(report) == {"missing_call at refund, not matched yet": "unsorted"}
    assert report.notes == ["missing_call at refund: 2 failures not matched with its 2 issues; name a judge"]
    assert counts(find_failures(run, judge=sorting())) == {"forgot it is": 2}


def test_over_twenty_runs_with_renames_no_issue_is_lost_or_doubled(analyzed):
    judge = sorting()
    names = set()
    for number in range(20):
        report = find_failures(analyzed(failing([*FORGOT, *TWICE])), judge=judge)
        assert sorted(counts(report).values()) == [5, 6]
        ids = [issue.issue.id for issue in report.issues]
        report.edit({}, {ids[number % 2]: f"name {number}"})
        names.add(tuple(sorted(ids)))
    assert len(names) == 1
    file = json.loads(report.path.read_text())
    assert sorted(issue["name"] for issue in file["issues"]) == ["name 18", "name 19"]


def test_a_plan_keeps_nothing(analyzed):
    report = find_failures(analyzed(failing(["a"])), keep=False)
    assert counts(report) == {"missing_call at refund": 1}
    assert not report.path.exists()


def test_failed_analyses_are_left_out_and_told(analyzed):
    report = find_failures(analyzed({**failing(["a"]), "s1": ("broken", "", ""), "s2": None}))
    assert (report.samples, report.left_out, report.failed) == (2, 1, 1)
    assert "1 sample not analyzed" in report.headline()


def test_the_name_of_the_agent_tells_files_apart(analyzed):
    assert find_failures(analyzed(failing(["a"]), agent="Bot 1")).path.name == "Bot_1.failure_analysis.json"
    assert find_failures(analyzed(failing(["a"]))).path.name == "agent.failure_analysis.json"
    with pytest.raises(StoreError, match=r"holds issues of 'Bot 1' found by 'failure_analysis'"):
        find_failures(analyzed(failing(["a"]), agent="Bot.1"))


def test_a_file_that_somebody_broke_is_left_alone(analyzed):
    run = analyzed(failing(["a"]))
    path = find_failures(run).path
    for content in ("{", "[]", '{"agent": "agent", "scorer": "failure_analysis", "issues": [{"id": "../x"}]}'):
        path.write_text(content)
        with pytest.raises(StoreError, match=r"not a valid file of issues"):
            find_failures(run)
        assert path.read_text() == content


def test_shares_are_corrected_by_what_people_say_of_the_analysis(analyzed):
    """People agree with nine of ten failures of a kind, and disagree with all of another."""
    analyses = {**failing(["a"] * 20), **failing(["b"] * 20, where="pay", first=20)}
    analyses |= {f"s{at}": ("none_visible", "", "") for at in range(40, 60)}
    run = analyzed(analyses)
    labels = [
        HumanLabel(sample=name, scorer="failure_analysis", value=float(at >= 18)) for at, name in enumerate(analyses)
    ]
    add_labels(run, labels)
    report = find_failures(run)
    shares = {
        issue.issue.where: (issue.share.value, round(issue.corrected.corrected.value, 3)) for issue in report.issues
    }
    assert shares == {"refund": (20 / 60, 18 / 60), "pay": (20 / 60, 0)}


def test_another_label_by_people_takes_a_sample_out_of_an_issue(analyzed):
    """Where only some samples were analyzed, shares are still of all of them."""
    analyses = {**failing(["a"] * 12), **failing(["b"] * 12, "forgot", first=12)}
    analyses |= {f"s{at}": None for at in range(24, 48)}
    run = analyzed(analyses)
    labels = [HumanLabel(sample=f"s{at}", scorer="failure_analysis", value=0.0) for at in range(24)]
    add_labels(run, labels)
    report = find_failures(run)
    assert [issue.corrected.corrected.value for issue in report.issues] == [12 / 48, 12 / 48]
    assert "24 of 48 samples were analyzed" in report.issues[0].corrected.assumptions


def test_without_an_analysis_what_tool_scorers_lost_is_shown(tmp_path):
    samples = [
        Sample.of(
            [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall("pay", {"by": by})])],
            reference_tool_calls=[ToolCall("pay", {"by": "card"})],
        )
        for by in ("card", "cash", "cash")
    ]
    report = find_failures(run(samples, [ToolCallF1()], store=tmp_path / "runs.sqlite"))
    (loss,) = report.losses["tool_call_f1"]
    assert str(loss) == 'pay: by got "cash", expected "card" (2 of 3 samples)'
    assert report.headline() == "no sample was analyzed"
    assert report.notes == [
        "run 1 has no scores of failure_analysis; judgekit score 1 --scorer failure_analysis --judge ... adds them"
    ]


def test_a_run_without_text_still_counts_what_failed(tmp_path, monkeypatch, analyzed):
    monkeypatch.chdir(tmp_path)
    Path("judgekit.toml").write_text("store_text = false")
    run = analyzed(failing([*FORGOT, *TWICE]), config="judgekit.toml")
    judge = sorting()
    report = find_failures(run, judge=judge)
    assert counts(report) == {"missing_call at an unknown place": 11}
    assert {failure.message for issue in report.issues for failure in issue.failures} == {None}
    assert not judge.requests
