"""Scorers of flaws that code finds."""

import pytest

from judgekit.errors import ConfigError
from judgekit.jobs.api import run
from judgekit.score import Score
from judgekit.scorers.behavior import MaxToolErrorRate
from judgekit.scorers.flaws import ClaimsWithoutCall, ErrorsIgnored, InventedArguments, NeverSays, Unfinished
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

ASKED = HumanMessage("Cancel my order, please.")
ANSWERED = Sample.of([ASKED, AIMessage("Which one?")])
FLAWED = Sample.of(
    [
        ASKED,
        AIMessage(tool_calls=[ToolCall("cancel_order", {"order_id": "W-12345"}, id="1")]),
        ToolMessage("Error: gone", tool_call_id="1"),
        AIMessage("I have cancelled your order."),
        AIMessage(tool_calls=[ToolCall("get_order", {"order_id": "W-12345"}, id="2")]),
    ]
)


@pytest.mark.parametrize(
    ("scorer", "value", "label", "reason"),
    [
        (
            ErrorsIgnored(error_pattern="^Error"),
            0,
            "error_ignored",
            "message 3: the error of 'cancel_order' is neither",
        ),
        (
            InventedArguments(),
            0,
            "invented_arguments",
            "message 2: 'cancel_order' got order_id = 'W-12345', which stands",
        ),
        (Unfinished(), 0, "stopped_early", "message 5: the conversation ends with a call without a result"),
        (ClaimsWithoutCall(), 1, None, "none"),
        (NeverSays(r"(?i)\bHAVE\b"), 0, "said", "message 4: says 'have'"),
    ],
)
def test_a_score_names_the_first_flaw_and_holds_all(scorer, value, label, reason):
    score = scorer.score(FLAWED)
    assert (score.value, score.label) == (value, label)
    assert score.reason.startswith(reason)
    assert [flaw["label"] for flaw in score.details["flaws"]] == [label] * (1 - value)
    assert score.details["places"] >= 1


@pytest.mark.parametrize("scorer", [ErrorsIgnored(), InventedArguments(), ClaimsWithoutCall()])
def test_where_nothing_could_go_wrong_it_is_skipped(scorer):
    for sample in (ANSWERED, Sample(id="empty")):
        assert scorer.score(sample).status == "skipped"
    assert Unfinished().score(ANSWERED).value == 1


def test_a_pattern_tells_errors_where_the_recording_does_not():
    assert ErrorsIgnored().score(FLAWED).status == "skipped"
    assert MaxToolErrorRate(0.5).score(FLAWED).status == "skipped"
    known = MaxToolErrorRate(0.5, error_pattern="^Error").score(FLAWED)
    assert (known.value, known.details["number"], known.warnings) == (0, 1, ())
    for scorer in (ErrorsIgnored, MaxToolErrorRate):
        with pytest.raises(ConfigError, match=r"pattern: '\(' is not a valid regular expression"):
            scorer(**({} if scorer is ErrorsIgnored else {"budget": 0.1}), error_pattern="(")


def test_a_pattern_that_takes_too_long_is_a_failed_score():
    slow = Sample.of(
        [ASKED, AIMessage(tool_calls=[ToolCall("a", id="1")]), ToolMessage("a" * 5_000 + "!", tool_call_id="1")]
    )
    [row] = run([slow], [ErrorsIgnored(error_pattern="(a|aa)+$")])
    assert (row.score.status, row.score.error) == ("failed", "TimeoutError")


def test_what_the_agent_never_says_is_looked_for_in_all_of_its_messages_and_in_nobody_elses():
    child = Trace(messages=[ASKED, AIMessage("As an AI, no.")])
    sample = Sample(id="s", trace=Trace(messages=[*ANSWERED.trace.messages, AIMessage("Done.")], children=[child]))
    assert NeverSays("As an AI", scope="tree").score(sample).details["flaws"][0]["reason"] == "says 'As an AI'"
    assert NeverSays("Cancel|1").score(sample).value == 1
    silent = Sample.of(FLAWED.trace.messages[:3])
    assert NeverSays("W-12345|Error").score(silent) == Score.skipped("never_says", "the agent says nothing")
