"""What the conversations of a run took."""

from datetime import UTC, datetime, timedelta
from statistics import fmean, median

import pytest
from pydantic import JsonValue

from judgekit.formats.reading import read
from judgekit.runs.usage import ConversationUsage, UsageStatistic, UsageTotals, agent_of
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def usages(*traces: Trace) -> UsageTotals:
    found = UsageTotals()
    for usage in filter(None, (ConversationUsage.of(Sample(id="s", trace=trace)) for trace in traces)):
        found.add(usage)
    return found


def test_without_conversations_there_is_nothing_to_tell():
    assert str(usages()) == ""
    assert str(usages(Trace())) == ""


def test_each_number_is_told_with_its_mean_its_median_and_of_how_many_it_is_known():
    call = AIMessage(tool_calls=[ToolCall("a")])
    results = [ToolMessage("x", is_error=True), *[ToolMessage("x", is_error=False)] * 3, ToolMessage("x")]
    found = usages(
        Trace(messages=[call, call, *results], usage=Usage(input_tokens=5_000, output_tokens=120), cost_usd=0.0125),
        Trace(messages=[call], started_at=NOON, ended_at=NOON + timedelta(seconds=8.1)),
        Trace(messages=[HumanMessage("Hi")]),
    )
    assert found.statistics == [
        UsageStatistic("agent messages", 1, 1, 3),
        UsageStatistic("tool calls", 1, 1, 3),
        UsageStatistic("tokens", 5_120, 5_120, 1),
        UsageStatistic("US dollars", 0.0125, 0.0125, 1),
        UsageStatistic("seconds", 8.1, 8.1, 1),
    ]
    assert str(found) == (
        "3 conversations. Per conversation, mean (median): 1 (1) agent message, 1 (1) tool call, "
        "5,120 (5,120) tokens (known for 1), 0.0125 (0.0125) US dollars (known for 1), 8.1 (8.1) seconds (known for 1). "
        "4 tool results (25% errors); 1 conversation repeats a call."
    )


@pytest.mark.parametrize("wrong", [10**400, -1])
def test_a_number_that_cannot_be_does_no_harm(wrong):
    found = usages(Trace(messages=[AIMessage("Hi")], usage=Usage(input_tokens=wrong, output_tokens=1)))
    assert "tokens" not in {figure.name for figure in found.statistics}


def calling(*arguments: object) -> Trace:
    return Trace(messages=[AIMessage(tool_calls=[ToolCall("a", {"x": one}) for one in arguments])])


def test_a_conversation_with_calls_that_were_made_before_counts_once():
    found = usages(calling(1, 1, 1), calling(1, 2), Trace(messages=[HumanMessage("Hi")], children=[calling(2, 2)]))
    assert (found.conversations, found.with_repeated_calls) == (3, 2)
    assert str(found).endswith("2 conversations repeat a call.")


def test_arguments_that_no_json_holds_repeat_nothing_and_do_no_harm():
    found = usages(calling(10**5000, 10**5000), calling(1, 1))
    assert (found.conversations, found.with_repeated_calls) == (2, 1)
    assert found.statistics[1] == UsageStatistic("tool calls", 2, 2, 2)


def test_the_numbers_of_real_recordings_are_those_of_their_conversations(shared_data):
    traces = [one.trace for one in read(shared_data / "traces" / "tau2" / "gpt-4.1_airline_default_1trials.json")]
    figures = {figure.name: figure for figure in usages(*traces).statistics}
    calls = [len(trace.tool_calls()) for trace in traces]
    assert figures["tool calls"] == UsageStatistic(
        "tool calls", pytest.approx(fmean(calls)), median(calls), len(traces)
    )
    costs = [trace.cost_usd for trace in traces]
    assert figures["US dollars"][1:] == pytest.approx((fmean(costs), median(costs), len(traces)))


def test_conversations_that_were_read_with_warnings_are_counted():
    noted = Trace(messages=[HumanMessage("Hi")], warnings=[TraceWarning("a"), TraceWarning("b")])
    found = usages(noted, Trace(messages=[HumanMessage("Hi")]), noted)
    assert str(found).endswith("tool calls. 2 conversations read with warnings (see judgekit inspect).")


def test_versions_of_an_agent_are_agents_of_their_own_also_where_they_are_numbers():
    first, second = (
        Sample.of([AIMessage("Hi")], metadata={"agent": {"name": "bot", "version": version, "note": ""}})
        for version in (2, 3)
    )
    assert (agent_of(first), agent_of(second)) == ("bot 2", "bot 3")


def test_ungrouped_conversations_of_one_session_or_user_are_counted():
    def told(*samples: Sample) -> str:
        found = UsageTotals()
        for usage in filter(None, map(ConversationUsage.of, samples)):
            found.add(usage)
        return str(found)

    def of(group: str | None = None, metadata: JsonObject | None = None, **traced: JsonValue) -> Sample:
        trace = Trace(messages=[HumanMessage("Hi")], metadata=traced)
        return Sample(id="s", trace=trace, group=group, metadata=metadata or {})

    shared = (
        " 3 of 4 conversations have the session or user of another and no group, so intervals count them as independent"
    )
    assert shared in told(of(sessionId="a"), of(sessionId="a"), of(metadata={"sessionId": "a"}), of(sessionId="b"))
    assert " 2 of 2 conversations have the" in told(of(user_id=7, session_id="a"), of(user_id=7, session_id="b"))
    assert "no group" not in told(of("g", sessionId="a"), of("g", sessionId="a"), of(sessionId="a"), of(), of())
