"""A dry run: what would be asked, and nothing is."""

import pytest

from judgekit import run
from judgekit.judges.judge import Judge
from judgekit.judges.providers.price import Price
from judgekit.score import planning
from judgekit.scorers.goal import AgentGoalAccuracyWithReference
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample


def planned(judge: Judge, *samples: Sample):
    with planning():
        return scored(judge, *samples)


def scored(judge: Judge, *samples: Sample):
    found = run(samples, [AgentGoalAccuracyWithReference(judge)])
    return found, found.summary["agent_goal_accuracy_with_reference"]


def booking(name: str) -> Sample:
    return Sample.of([HumanMessage(f"Book it for {name}."), AIMessage("Done.")], reference="It is booked.")


def test_a_request_that_is_not_kept_is_counted_with_its_likely_tokens_and_cost(server, sample):
    judge = Judge("openai/m", base_url=server.url, price=Price(1, 10), params={"max_tokens": 200})
    found, line = planned(judge, sample)
    assert [row.score.error for row in found] == ["PlannedError"]
    assert (line.requests, line.cached) == (1, 0)
    sent = next(iter(found)).score.calls[0].usage
    assert sent.output_tokens == 200
    assert line.tokens == sent.input_tokens + 200
    assert line.cost_usd == pytest.approx((sent.input_tokens * 1 + 200 * 10) / 1e6)
    assert server.requests == []


def test_a_request_that_is_kept_is_free_and_its_score_is_known(server, sample, achieved, tmp_path):
    server.script = [server.says(achieved)]
    settings = {"base_url": server.url, "cache": tmp_path / "cache.sqlite", "price": Price(1, 1)}
    scored(Judge("openai/m", **settings), sample)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
    found, line = planned(Judge("openai/m", **settings), sample, booking("Ann"))
    assert [(row.score.status, row.score.value) for row in found] == [("scored", 1.0), ("failed", None)]
    assert (line.requests, line.cached) == (1, 1)
    assert len(server.requests) == 1
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("mode", ["refresh", "off"])
def test_replies_that_would_not_be_used_are_no_help(mode, server, sample, achieved, tmp_path):
    server.script = [server.says(achieved)]
    settings = {"base_url": server.url, "cache": tmp_path / "cache.sqlite"}
    scored(Judge("openai/m", **settings), sample)
    _, line = planned(Judge("openai/m", cache_mode=mode, **settings), sample)
    assert (line.requests, line.cached) == (1, 0)


def test_nothing_is_made_and_no_key_is_needed(tmp_path):
    judge = Judge("openai/m", cache=tmp_path / "new" / "cache.sqlite")
    _, line = planned(judge, booking("Ann"))
    assert (line.requests, line.cost_usd) == (1, None)
    assert list(tmp_path.iterdir()) == []


def test_equal_requests_are_counted_once():
    _, line = planned(Judge("openai/m"), booking("Ann"), booking("Ann"), booking("Bo"))
    assert (line.requests, line.cached) == (2, 1)
