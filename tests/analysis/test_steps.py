"""How often an analysis of failures finds the messages that people marked."""

from typing import ClassVar

import pytest

from judgekit import HumanLabel, Sample, Score, audit, load_prompt, run
from judgekit.runs.intervals import Estimate
from judgekit.stats.wilson import wilson
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.trace import Trace


class Analysis:
    """An analysis that says what is written down: a label, the messages of its roots, and those of its candidates."""

    name = "failure_analysis"
    prompts = (load_prompt("tone"),)
    label_values: ClassVar = {"forgot": 0.0, "drifted": 0.0, "wrong_tool": 0.0, "none_visible": 1.0}
    label_groups: ClassVar = {"forgot": "course", "drifted": "course", "wrong_tool": "tools"}
    says: ClassVar = {
        "a": ("forgot", [2], [2, 4]),
        "b": ("forgot", [4], [2, 4]),
        "c": ("drifted", ["2.1.3"], ["2.1.3"]),
        "d": ("none_visible", [], []),
        "e": ("forgot", [2, 6], [2, 6]),
        "f": ("wrong_tool", [2], [2]),
        "g": ("none_visible", [], []),
    }

    async def ascore(self, sample):
        label, roots, candidates = self.says[sample.id]
        details = {
            "roots": [{"message": number, "label": label} for number in roots],
            "candidates": [{"message": number} for number in candidates],
        }
        return Score.scored(self.name, float(not roots), label=label, details=details)


def label(sample, value, message=None, annotator=None):
    return HumanLabel(sample=sample, scorer="failure_analysis", value=value, message=message, annotator=annotator)


@pytest.fixture
def analyzed():
    child = Trace(messages=[AIMessage("Look")] * 4, metadata={"call_id": "1"})
    call = AIMessage(tool_calls=[ToolCall("ask", {}, id="1")])
    traces = [
        Trace(messages=[HumanMessage(f"Hi, {name}"), call, *[AIMessage("Hello")] * 4], children=[child])
        for name in Analysis.says
    ]
    return run([Sample(id=name, trace=trace) for name, trace in zip(Analysis.says, traces, strict=True)], [Analysis()])


def test_steps_and_labels_are_counted_as_by_hand(analyzed):
    labels = [
        label("a", "forgot", 2),  # exact
        label("b", "drifted", 3),  # one off, another label of the group
        label("c", "wrong_tool", "2.1.4"),  # one off within a sub-agent, another group
        label("d", "forgot", 5),  # the judge sees nothing
        label("e", "forgot", 6),  # the second root
        label("f", "none_visible"),  # a false alarm
        label("g", "none_visible"),
    ]
    (findings,) = audit(analyzed, labels).scorers

    def share(hits, n):
        low, high, method = wilson(hits, n)
        return Estimate(value=hits / n, low=low, high=high, method=method)

    assert findings.steps == {
        "exact step": share(1, 5),
        "within one step": share(3, 5),
        "a root among the marked steps": share(2, 5),
        "a candidate among them": share(2, 5),
        "exact step, by a constant": share(1, 5),
        "false alarms on sound samples": share(1, 2),
        "same label": share(2, 5),
        "same group of labels": share(3, 5),
    }
    assert findings.notes[-1] == (
        "5 failed samples with a marked message, 5 with a label, 2 sound; a constant always names message 2"
    )


def test_people_who_mark_different_messages_share_the_sample(analyzed):
    labels = [label("a", "forgot", 2, "Ana"), label("a", "drifted", 4, "Bo"), label("b", 0.0, 4, "Ana")]
    (findings,) = audit(analyzed, labels).scorers
    assert {name: figure.value for name, figure in findings.steps.items()} == {
        "exact step": 0.75,
        "within one step": 0.75,
        "a root among the marked steps": 0.75,
        "a candidate among them": 1,
        "exact step, by a constant": 0.75,
        "same label": 0.5,
        "same group of labels": 1,
    }


def test_a_marked_message_that_does_not_exist_is_left_out_and_reported(analyzed):
    labels = [label("a", "forgot", 2), label("b", "forgot", 99), label("c", "drifted", "2.1.9")]
    (findings,) = audit(analyzed, labels).scorers
    assert findings.steps["exact step"].value == 1
    assert [*findings.notes[-2:]] == [
        "marked messages that do not exist, which are left out: message 99 of 'b'; message 2.1.9 of 'c'",
        "1 failed sample with a marked message, 3 with a label, 0 sound; a constant always names message 2",
    ]


def test_without_a_marked_message_there_is_nothing_to_find(analyzed):
    (findings,) = audit(analyzed, [label("a", "forgot"), label("g", "none_visible", 2)]).scorers
    assert findings.steps == {}
