"""Failure analysis on the command line, with a judge on a server."""

from pathlib import Path

import pytest

from judgekit.runs.results import Run


@pytest.fixture
def analyzing(judging):
    """A judge of goals and of failures, where the call of every second conversation is wrong."""
    achieved = judging.answer

    def answer(conversation: str) -> dict:
        if "What went wrong in this conversation" not in conversation:
            return achieved(conversation)
        number = judging.number(conversation)
        return {
            "expected": "tool_0 is called.",
            "candidates": [
                {
                    "message": 2,
                    "quote": f"tool_{number}",
                    "wrong": "another tool",
                    "label": "wrong_tool",
                    "repaired": False,
                    "decisive": "yes",
                }
            ],
            "roots": [{"message": 2, "symptom": "another tool is called than the one that was asked for"}],
            "reason": "So nothing was done.",
            "fix": {"where": "tool_description", "change": "Say what the tool does."},
            "label": "wrong_tool",
            "verdict": "failed",
        }

    judging.answer = answer
    return judging


GOALS = ("--scorer", "agent_goal_accuracy_without_reference")
ANALYSIS = ("--scorer", "failure_analysis")


def analyses(run: Run) -> list[tuple[str, str | None]]:
    return [(row.score.status, row.score.label) for row in run.rows(scorer="failure_analysis")]


def asked_what_went_wrong(judging) -> int:
    return sum(times for text, times in judging.asked.items() if "What went wrong" in text)


def test_a_run_analyzes_what_its_other_scorers_call_failed(cli, analyzing, conversations):
    path = conversations(4)
    planned = cli("run", path, *GOALS, *ANALYSIS, "--dry-run")
    assert (planned.code, planned.table["failure_analysis"][0]) == (0, "4")
    ended = cli("run", path, *ANALYSIS, *GOALS)
    assert (ended.code, ended.err.count("error")) == (0, 0)
    assert "failure_analysis: 2 of 4 samples failed visibly (50.0%)" in ended.out
    assert analyses(Run.stored()) == [("skipped", "not_failed"), ("scored", "wrong_tool")] * 2
    assert asked_what_went_wrong(analyzing) == 2
    [request] = [text for text in analyzing.asked if "What went wrong" in text and "tool_3" in text]
    assert '"reason":"the call was made","scorer":"agent_goal_accuracy_without_reference","value":0.0' in request


def test_options_name_the_scorers_that_decide_and_a_file_of_labels(cli, analyzing, conversations):
    path = conversations(4)
    Path("labels.toml").write_text('[tools]\nwrong_tool = "another tool than ours"\n')
    spec = "failure_analysis:of=tool_call_f1,labels=labels.toml"
    assert cli("run", path, "--scorer", "tool_call_f1", *GOALS, "--scorer", spec).code == 0
    assert analyses(Run.stored()) == [("skipped", "not_failed"), *[("scored", "wrong_tool")] * 3]
    assert any("another tool than ours" in text for text in analyzing.asked)
    Path("labels.toml").write_text("[tools]\n")
    ended = cli("run", path, *GOALS, "--scorer", spec)
    assert ended.code == 2
    assert "failure_analysis: labels: labels.toml: expected 1 to 100 labels" in ended.err
    ended = cli("run", path, *GOALS, "--scorer", 'failure_analysis:of=["tool_f1"]')
    assert ended.code == 2
    assert "no scorer for failure_analysis to follow is called 'tool_f1'" in ended.err
    assert cli("run", path, *ANALYSIS).code == 2


def test_judges_are_compared_by_it_on_all_samples_alone(cli, analyzing, conversations):
    path = conversations(4)
    judges = ("--judge", "default", "--judge", "again")
    Path("judgekit.toml").write_text(
        Path("judgekit.toml").read_text() + f'[judges.again]\nmodel = "openai/other"\nbase_url = "{analyzing.url}"\n'
    )
    refused = cli("compare-judges", path, *judges, *ANALYSIS)
    assert refused.code == 2
    assert "looks at what other scorers call failed: add one, or set of='all'" in refused.err
    assert cli("compare-judges", path, *judges, "--scorer", "failure_analysis:of=all").code == 0
