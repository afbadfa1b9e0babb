"""A run as test cases."""

import xml.etree.ElementTree as ET

import pytest

from judgekit import AIMessage, Sample
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.reports.junit import junit_report
from judgekit.runs.results import Run
from judgekit.score import JudgeCall, Score

CALLS = [JudgeCall(judge="j", prompt="p", seconds=0.75), JudgeCall(judge="j", prompt="p", seconds=0.5)]
SCORES = [
    Score.scored("f1", 0.25, reason="one of four", calls=CALLS),
    Score.skipped("f1", "no reference"),
    Score.failed("f1", "too slow", error="OverloadError"),
    Score.abstained("f1", "undecided", label="cannot_tell"),
]
OUTCOMES = {"skipped", "error", "failure", "system-out"}
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": ({"skipped", "timestamp", "time"}, {"name", "tests", "failures", "errors"}, {"testcase"}),
    "testcase": ({"time", "classname"}, {"name"}, OUTCOMES),
    "system-out": (set(), set(), set()),
    **dict.fromkeys(("skipped", "error", "failure"), ({"type", "message"}, set(), set())),
}
"""Of each element of Jenkins' junit-10.xsd: attributes that it may have, those that it must have, and what is in it."""


def parsed(run: Run, gates: GateResults | None = None) -> ET.Element:
    root = ET.fromstring("".join(junit_report(run, gates or GateResults())).encode())  # noqa: S314 - it is our own
    for element in root.iter():
        may, must, within = ALLOWED[element.tag]
        assert must <= set(element.attrib) <= must | may
        assert {child.tag for child in element} <= within
    for suite in [root, *root]:
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name, -1)) in (sum(case.find(tag) is not None for case in cases), -1)
    return root


def test_a_sample_is_a_case_and_its_status_the_outcome(run_of):
    (suite,) = parsed(run_of(SCORES))
    assert suite.get("name") == "f1"
    assert [(case.get("classname"), case.get("name")) for case in suite] == [
        ("f1", f"s{number}") for number in range(4)
    ]
    scored, skipped, failed, abstained = (case[0] for case in suite)
    assert (scored.tag, scored.text) == ("system-out", "0.25: one of four")
    assert (skipped.tag, skipped.get("message")) == ("skipped", "skipped: no reference")
    assert (failed.tag, failed.attrib) == ("error", {"type": "OverloadError", "message": "too slow"})
    assert (abstained.tag, abstained.get("message")) == ("skipped", "abstained: cannot_tell: undecided")
    assert [case.get("time") for case in suite] == ["1.250", None, None, None]


def test_a_gate_that_is_not_met_is_a_failure_and_says_what_was_found(run_of):
    run = run_of(SCORES)
    *_, suite = parsed(run, check_gates(run, ["f1 > 0.2", "f1 >= 0.9"], min_coverage=0))
    assert [case.get("name") for case in suite] == ["f1 > 0.2", "f1 >= 0.9"]
    met, failed = suite
    assert len(met) == 0
    assert failed[0].get("message").startswith("not met: f1 >= 0.9: found 0.25 (n=1 of 4; ")


def test_a_run_that_was_stopped_is_an_error(run_of):
    run = run_of(SCORES)
    stopped = Run(run.store, run.record.model_copy(update={"stop_reason": "the budget is spent"}))
    *_, suite = parsed(stopped, check_gates(run, ["f1 > 0.2"], min_coverage=0))
    assert [case.get("name") for case in suite] == ["f1 > 0.2", "all samples"]
    assert suite[1][0].get("message") == "stopped early (the budget is spent)"


def test_what_could_not_be_read_is_an_error(run_of):
    run = run_of(SCORES)
    (gates,) = parsed(Run(run.store, run.record.model_copy(update={"notes": ("1 record could not be read",)})))[1:]
    assert [(case.get("name"), case[0].tag, case[0].get("message")) for case in gates] == [
        ("all samples", "error", "1 record could not be read")
    ]


def test_each_scorer_has_a_suite_also_one_without_a_score(run_of):
    run = run_of(SCORES, [Score.scored("b", 1)] * 4)
    run.store._db.execute("DELETE FROM scores WHERE scorer = 1")
    assert [(suite.get("name"), len(suite)) for suite in parsed(Run(run.store, run.record))] == [("f1", 4), ("b", 0)]


def test_cases_of_samples_with_one_id_have_names_of_their_own(run_of):
    samples = [Sample.of([AIMessage("Hi")], id=name) for name in ("a", "b", "a", "c")]
    (suite,) = parsed(run_of(SCORES, samples=samples))
    assert [case.get("name") for case in suite] == ["a [0]", "b", "a [2]", "c"]


@pytest.mark.parametrize("text", ['</testcase><testcase name="x"/>', "&lol; ]]> <!--", "\0\x1b[2J\ufffe", "\"'\n\t"])
def test_hostile_text_is_text(text, run_of):
    scores = [
        Score.scored(f"s{text}", 1, reason=text),
        Score.failed(f"s{text}", text, error=text),
        Score.skipped(f"s{text}", text),
    ]
    samples = [Sample.of([AIMessage("Hi")], id=f"{text}{number}") for number in range(3)]
    (suite,) = parsed(run_of(scores, samples=samples))
    assert len(suite) == 3
    shown = suite[0].get("name")
    assert all(part in shown for part in text.split() if part.isascii() and part.isprintable())
