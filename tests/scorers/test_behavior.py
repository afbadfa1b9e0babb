"""Scorers with a budget."""

import re
from datetime import UTC, datetime, timedelta
from math import inf, nan

import pytest

from judgekit.behavior import (
    MaxCost,
    MaxMessages,
    MaxRepeatedCalls,
    MaxSeconds,
    MaxTokens,
    MaxToolCalls,
    MaxToolErrorRate,
)
from judgekit.errors import ConfigError
from judgekit.jobs.api import run
from judgekit.score import Score
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SEARCH = AIMessage(tool_calls=[ToolCall("search", {"query": "x"})])
SAMPLE = Sample(
    id="one",
    trace=Trace(
        messages=[
            HumanMessage("Find x."),
            SEARCH,
            ToolMessage("no", is_error=True),
            SEARCH,
            *[ToolMessage("yes", is_error=False)] * 3,
            AIMessage("Found."),
        ],
        usage=Usage(input_tokens=12_000, output_tokens=345),
        cost_usd=0.0125,
        started_at=NOON,
        ended_at=NOON + timedelta(seconds=7.5),
    ),
)
SILENT = Sample.of([HumanMessage("Hi"), AIMessage("Hi")])
KINDS = [
    (MaxTokens, 12_345, "12,345 tokens"),
    (MaxCost, 0.0125, "$0.0125"),
    (MaxSeconds, 7.5, "7.5 seconds"),
    (MaxToolCalls, 2, "tool calls: 2"),
    (MaxMessages, 3, "agent messages: 3"),
    (MaxToolErrorRate, 0.25, "share of tool results that are errors: 0.25"),
    (MaxRepeatedCalls, 1, "repeated tool calls: 1"),
]


def test_a_number_within_the_budget_scores_1_and_one_beyond_it_0():
    for kind, number, told in KINDS:
        for budget, value in ((number, 1), (min(1.5 * number, kind._maximum), 1), (number / 2, 0), (0, 0)):
            found = kind(budget).score(SAMPLE)
            assert (found.scorer, found.value, found.aggregate) == (kind.name, value, "within_budget")
            assert found.details == {"number": number, "budget": budget}
            assert found.reason.startswith(f"{told}, budget ")


@pytest.mark.parametrize(
    ("scorer", "why"),
    [
        (MaxTokens(9), "neither the trace nor every agent message reports input and output tokens"),
        (MaxCost(9), "the recording does not report its cost"),
        (MaxSeconds(9), "the recording has neither start and end times nor times of its first and last message"),
        (MaxToolErrorRate(0.5), "no tool result records whether it is an error"),
    ],
)  # fmt: skip
def test_what_the_recording_does_not_say_is_skipped(scorer, why):
    assert scorer.score(SILENT) == Score.skipped(scorer.name, why)


def test_results_that_do_not_say_whether_they_failed_are_told():
    called = AIMessage(tool_calls=[ToolCall("f", id="1"), ToolCall("f", id="2")])
    results = [ToolMessage("x", tool_call_id="1", is_error=False), ToolMessage("Error: y", tool_call_id="2")]
    score = MaxToolErrorRate(0.1).score(Sample.of([called, *results]))
    warning = "some tool results do not record whether they are errors, and do not count"
    assert (score.value, score.details["number"], score.warnings) == (1, 0, (warning,))
    assert not MaxToolErrorRate(0.1).score(Sample.of([called, results[0]])).warnings


def test_what_is_counted_may_be_none():
    assert MaxToolCalls(0).score(SILENT).value == MaxRepeatedCalls().score(SILENT).value == 1
    assert MaxRepeatedCalls().score(SAMPLE).value == 0


def test_a_budget_that_is_none_is_an_error():
    for kind, _, _ in KINDS:
        for wrong in [-1, nan, True, "5", None]:
            message = f"budget must be a number from 0 to {kind._maximum:g}, found {wrong!r}"
            with pytest.raises(ConfigError, match=re.escape(message)):
                kind(wrong)


def test_a_share_is_none_above_1():
    with pytest.raises(ConfigError, match=re.escape("budget must be a number from 0 to 1, found 5")):
        MaxToolErrorRate(5)
    assert MaxTokens(inf).score(SAMPLE).value == 1


def test_a_budget_is_part_of_the_signature_and_a_scorer_may_have_a_name():
    assert signature(MaxTokens(1)) != signature(MaxTokens(2))
    assert MaxTokens(1, name="frugal").score(SAMPLE).scorer == "frugal"


def test_sums_of_cents_are_within_a_budget_that_they_miss_by_rounding_alone():
    for cost, value in ((0.1 + 0.2, 1), (0.1 * 3, 1), (0.3, 1), (0.300001, 0)):
        assert (
            MaxCost(0.3).score(Sample(id="one", trace=Trace(messages=[AIMessage("Hi")], cost_usd=cost))).value == value
        )
    assert MaxTokens(12_344).score(SAMPLE).value == 0
    assert MaxCost(0).score(SAMPLE).value == 0


def test_arguments_that_no_json_holds_fail_the_sample_and_no_other():
    huge = Sample.of([AIMessage(tool_calls=[ToolCall("a", {"x": 10**5000})] * 2)])
    found = run([huge, SAMPLE], [MaxRepeatedCalls(1)])
    assert [row.score.status for row in found] == ["failed", "scored"]
    assert (found.usage.conversations, found.usage.with_repeated_calls) == (2, 1)
