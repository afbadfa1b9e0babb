"""``--json``: what commands show, as JSON, and nothing else on stdout."""

import json
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, PromptScorer, Sample, ScriptedJudge, load_prompt, run
from judgekit.runs.store import DEFAULT_RUNS_PATH

F1 = ("--scorer", "tool_call_f1")


@pytest.fixture
def printed(cli):
    """Runs a command with ``--json``, and returns what it prints on stdout, which is all of it."""

    def call(*words: object, code: int = 0):
        ended = cli(*words, "--json")
        assert ended.code == code, ended.err
        return json.loads(ended.out)

    return call


def test_a_run_is_printed_with_its_scorers_gates_and_lowest_scores(printed, conversations):
    found = printed("run", conversations(3), *F1, "--show", 2, "--gate", "tool_call_f1 >= 0.9", code=1)
    (scorer,) = found["scorers"]
    assert (found["number"], found["state"], found["samples"]) == (1, "ended", 3)
    assert (scorer["name"], scorer["n"], scorer["counts"]["scored"]) == ("tool_call_f1", 3, 3)
    assert [len(scorer["shown"]), scorer["shown"][0]["reason"] != ""] == [2, True]
    assert (found["gates_met"], found["gates"][0]["met"]) == (False, False)
    assert printed("resume", 1, code=1)["scorers"][0]["value"] == scorer["value"]
    assert [each["name"] for each in printed("score", 1, "--scorer", "max_messages:9", code=1)["scorers"]] == [
        "tool_call_f1",
        "max_messages",
    ]


def test_the_file_of_a_run_is_what_is_printed_of_it(cli, printed, conversations):
    cli("run", conversations(2), *F1, "-o", "run.json")
    assert json.loads(Path("run.json").read_text()) == printed("runs", 1)
    (listed,) = printed("runs")["runs"]
    assert (listed["number"], listed["scorers"][0]["name"]) == (1, "tool_call_f1")


def test_runs_are_compared_inspected_and_planned_in_json(cli, printed, conversations):
    path = conversations(4)
    cli("run", path, "--scorer", "max_messages:1,as=size", "-o", "run.html")
    cli("run", path, "--scorer", "max_messages:2,as=size")
    compared = printed("compare", 1, 2, "-o", "compared.json")
    assert compared == json.loads(Path("compared.json").read_text())
    assert compared["pairs"] == 4
    assert printed("inspect", path)["conversations"] == 4
    planned = printed("run", path, "--scorer", "topic_adherence", "--judge", "openai/a", "--dry-run")
    assert (planned["requests"], planned["scorers"][0]["skipped"]) == (0, {"the sample has no reference_topics": 4})


def test_an_audit_says_which_gates_its_corrected_mean_meets(cli, printed):
    judge = ScriptedJudge(lambda _: {"reason": "", "evidence": [], "verdict": "fitting"})
    samples = [Sample.of([HumanMessage(f"Hi {at}"), AIMessage("Ho")], id=f"s{at}") for at in range(30)]
    run(samples, [PromptScorer(load_prompt("tone"), judge)], store=DEFAULT_RUNS_PATH)
    rows = "".join(f"s{at},tone,{'fitting' if at % 5 else 'lacking'}\n" for at in range(30))
    Path("labels.csv").write_text(f"sample,scorer,value\n{rows}")
    found = printed("audit", 1, "--labels", "labels.csv", "-o", "audit.json")
    assert found["gates"]["tone"]["met"] is None
    assert 0.5 < found["gates"]["tone"]["reach"] < 0.8
    assert found == json.loads(Path("audit.json").read_text())
    assert printed("runs", 1)["scorers"][0]["gate"] == found["gates"]["tone"]


def test_a_diagnosis_is_printed_as_json(printed):
    (found,) = printed("doctor", "--judge", "openai/a", code=1)
    assert (found["judge"], found["diagnosis"]["key"]) == ("openai/a", "missing")
