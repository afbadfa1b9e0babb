"""What a server that others made thinks of this client: llmock breaks replies on purpose and judges who retries how.

Its verdict finds fault with retries that come too early, too often, or where they cannot help.
"""

import pytest

from judgekit.errors import AuthenticationError, ModelError
from judgekit.jobs.api import run
from judgekit.judges.judge import Judge
from judgekit.judges.scripted import ScriptedJudge
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

llmock = pytest.importorskip("llmock.pytest_plugin")
testing = pytest.importorskip("llmock.testing")
chaos = pytest.importorskip("llmock.chaos")

pytestmark = pytest.mark.processes


@pytest.fixture
def running():
    with testing.LLMockServer() as started:
        yield started


@pytest.fixture
def provider(running):
    """A server that answers well until it is told otherwise."""
    return llmock.LLMock(running)


@pytest.fixture
def judge(provider):
    return lambda **settings: Judge("openai/judge-model", base_url=provider.base_url(), **settings)


def scored(judge, samples):
    """A run over so many conversations, of which none is like another."""
    said = [(f"What is {number} and {number}?", f"It is {2 * number}.") for number in range(samples)]
    spoken = [Sample.of([HumanMessage(question), AIMessage(answer)]) for question, answer in said]
    return run(spoken, [AgentGoalAccuracyWithoutReference(judge)])


def statuses(provider):
    return [request.status for request in provider.requests]


def failures(found):
    return [row.score.reason for row in found if row.score.status != "scored"]


def test_a_question_is_asked_once(provider, judge):
    for row in scored(judge(), 24):
        assert (row.score.status, row.score.value) == ("scored", 1.0)
        assert [one.error for one in row.score.calls] == [None]
        assert row.score.calls[0].usage.input_tokens > 0
    assert statuses(provider) == [200] * 24
    provider.assert_resilient(strict=True)


# Overload


def test_all_wait_when_one_is_told_to(running, provider, judge):
    running.state.chaos = chaos.ChaosSettings(latency_ms=100)
    provider.rate_limit(times=2, retry_after=1)
    assert failures(scored(judge(concurrency=2), 12)) == []
    assert sorted(statuses(provider)) == [200] * 12 + [429] * 2
    provider.assert_resilient(strict=True)
    told = min(request.ended_at for request in provider.requests if request.status == 429)
    waited = [request.started_at - told for request in provider.requests]
    assert [seconds for seconds in waited if 0.3 < seconds < 0.95] == []  # what is on its way comes before
    assert max(waited) > 0.95


def test_an_outage_is_outlasted(provider, judge):
    provider.fail(503, times=9, retry_after=0.2).fail(500, times=9).fail(529, times=3, retry_after=0.2)
    assert failures(scored(judge(attempts=8), 24)) == []
    assert len(statuses(provider)) == 24 + 21
    provider.assert_resilient()


# Quotas


# What no retry can help


@pytest.mark.parametrize(
    ("status", "error"), [(401, AuthenticationError), (403, AuthenticationError), (404, ModelError)]
)
def test_a_key_that_is_refused_and_a_model_that_is_not_there_end_the_run(provider, judge, status, error):
    provider.fail(status, times=None)
    with pytest.raises(error, match=f"HTTP {status}"):
        scored(judge(cache_mode="off"), 24)
    # An account may have other models, so one more request may go before the run has stopped.
    assert len(statuses(provider)) <= (2 if error is ModelError else 1)
    provider.assert_resilient(strict=True)


@pytest.mark.parametrize("status", [400, 422])
def test_a_request_that_is_rejected_is_not_sent_again_and_three_alike_stop_the_judge(provider, judge, status):
    provider.fail(status, times=None)
    assert [row.score.error for row in scored(judge(), 24)] == ["RejectedError"] * 2
    assert statuses(provider) == [status] * 3
    provider.assert_resilient(strict=True)


def test_a_conversation_that_is_too_long_is_shown_to_another_judge(provider, judge, goal):
    provider.limits(context_window=10)
    other = ScriptedJudge({"agent_goal_without_reference": {"goals": [goal | {"evidence": [2]}]}})
    found = scored(judge(fallback=(other,)), 24)
    assert failures(found) == []
    assert [[one.error for one in row.score.calls] for row in found] == [["ContextError", None]] * 24
    assert statuses(provider) == [400] * 24
    provider.assert_resilient(strict=True)
