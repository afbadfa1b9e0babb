"""The cheaper tier: asked for, not always granted, and paid for as the reply says."""

import pytest

from judgekit.errors import ConfigError
from judgekit.jobs.api import plan, run
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.settings import JudgeSettings
from judgekit.scorers.prompted import PromptScorer
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

GOOD = {"reason": "r", "evidence": [1], "verdict": "yes"}
ASKED = Prompt("good", "Good?", ("conversation",), "", "You judge.", "Good?", scale=(("yes", 1.0), ("no", 0.0)))
SAMPLES = [Sample.of([HumanMessage(f"Hi {number}"), AIMessage("Hello")], id=str(number)) for number in range(4)]
PRICE = Price(2, 8, 0.5, flex=Price(1, 4, 0.5))
FULL = (600 * 2 + 400 * 0.5 + 50 * 8) / 1e6
FLEX = (600 * 1 + 400 * 0.5 + 50 * 4) / 1e6
NO_CAPACITY = (429, {"retry-after": "30"}, {"error": {"code": "resource_unavailable", "message": "No capacity"}})


def judge(server, **settings):
    return Judge("openai/judge", base_url=server.url, price=PRICE, tier="flex", **settings)


def score(server, **settings):
    scored = run(SAMPLES, [PromptScorer(ASKED, judge(server, **settings))], concurrency=1)
    return scored, scored.summary["good"]


def test_the_price_is_that_of_the_tier_that_the_reply_names(server):
    tiers = ["flex", "default", None, "priority"]
    server.script = [server.says(GOOD, service_tier=tier) for tier in tiers]
    scored, line = score(server)
    assert [request.body["service_tier"] for request in server.requests] == ["flex"] * 4
    calls = [call for row in scored for call in row.score.calls]
    assert [call.tier for call in calls] == ["flex", "full", "full", "full"]
    assert [call.cost_usd for call in calls] == [*map(pytest.approx, (FLEX, FULL, FULL)), None]
    assert "3 of 4 requests for the flex tier had to pay the full price" in list(line.notes())


def test_where_there_is_no_capacity_the_request_is_sent_at_the_full_price_at_once(server):
    granted = server.says(GOOD, service_tier="flex")
    server.script = [NO_CAPACITY, server.says(GOOD, service_tier="default"), granted]
    scored, line = score(server, attempts=1)
    assert [request.body.get("service_tier") for request in server.requests] == ["flex", None, "flex", "flex", "flex"]
    first = next(iter(scored))
    assert [call.error for call in first.score.calls] == ["FlexUnavailableError", None]
    assert line.cost_usd == pytest.approx(FULL + 3 * FLEX)
    assert line.counts["scored"] == 4
    assert "1 of 4 requests for the flex tier had to pay the full price" in list(line.notes())


def test_a_server_without_capacity_that_was_not_asked_for_flex_is_overloaded(server):
    server.script = [NO_CAPACITY]
    plain = PromptScorer(ASKED, Judge("openai/judge", base_url=server.url, attempts=1))
    line = run(SAMPLES[:1], [plain]).summary["good"]
    assert line.errors == {"FlexUnavailableError": 1}
    assert len(server.requests) == 1


def test_a_budget_reserves_the_full_price_until_the_tier_is_known(server):
    server.script = [server.says(GOOD, service_tier="flex")]
    limits = {"params": {"max_tokens": 50}, "cache_mode": "off"}
    scored, _ = score(server, budget={"usd": 100}, **limits)
    assert len(server.requests) == 4
    most = 4 * FLEX + FULL  # what has been paid is counted as billed, so that more fit than at the full price
    server.requests.clear()
    scored, line = score(server, budget={"usd": most}, **limits)
    assert line.cost_usd <= most
    assert 0 < len(server.requests) < 4
    assert scored.stop_reason


def test_a_plan_has_both_prices(server):
    planned = plan(SAMPLES, [PromptScorer(ASKED, judge(server))])
    assert planned.cost_usd is not None
    assert planned.flex_cost_usd == pytest.approx(planned.cost_usd / 2)
    assert any("if the flex tier has capacity for all requests" in note for note in planned.notes())
    default = plan(SAMPLES, [PromptScorer(ASKED, Judge("openai/judge", base_url=server.url, price=PRICE))])
    assert default.flex_cost_usd is None
    assert server.requests == []


def test_a_reply_may_take_fifteen_minutes_unless_a_time_is_set():
    assert JudgeSettings("openai/judge").attempt_seconds == 60
    assert JudgeSettings("openai/judge", tier="flex").attempt_seconds == 900
    assert JudgeSettings("openai/judge", tier="flex", timeout=60).attempt_seconds == 60


def test_the_tier_changes_no_verdict(server):
    server.script = [server.says(GOOD, service_tier="flex")]
    score(server)
    plain = Judge("openai/judge", base_url=server.url, price=PRICE)
    assert run(SAMPLES, [PromptScorer(ASKED, plain)]).summary["good"].cached == 4
    assert plain == judge(server)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"price": Price(2, 8)}, r"tier='flex' has a price of its own: price = \{..., flex"),
        ({"params": {"service_tier": "auto"}}, "params.service_tier and tier='flex' contradict each other"),
        ({"tier": "cheap"}, "tier: "),
    ],
)
def test_contradictions_are_found_when_a_judge_is_configured(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        Judge("openai/judge", **{"tier": "flex", **settings})
