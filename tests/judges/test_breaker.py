"""The layer that stops asking a server that cannot be reached."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import (
    AuthenticationError,
    JudgeDownError,
    LostError,
    ModelError,
    OverloadError,
    RefusalError,
    UnreachableError,
)
from judgekit.jobs.api import arun, run
from judgekit.judges.judge import Judge
from judgekit.judges.limits.budget import Budget
from judgekit.judges.limits.rate_limit import Account, Limits, RateLimit
from judgekit.judges.request import Reply
from judgekit.judges.retry import Circuit, Retry
from judgekit.judges.scripted import ScriptedJudge
from judgekit.judges.structured_output import SchemaSupport, StructuredOutput
from judgekit.score import outage_memory
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import scorer
from judgekit.traces.sample import Sample

REPLY = Reply(text="fine")
GONE = UnreachableError("openai/judge-1 at http://judge.test/v1: refused")
DOWN = "the judge is down: start its server, or check its base_url. "


@dataclass
class Server:
    """Ends attempts, in the order in which they come, as it is told to; notes when each came."""

    ends: list[Reply | Exception]
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    async def complete(self, request, /):
        end = self.ends[min(len(self.times), len(self.ends) - 1)]
        self.times.append(time.monotonic())
        await asyncio.sleep(self.seconds)
        if isinstance(end, Exception):
            raise end
        return end

    async def aclose(self) -> None: ...


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("judgekit.judges.retry._FIRST_WAIT", 0.01)
    monkeypatch.setattr("judgekit.judges.retry._backoff", lambda _: 0.0)


def at_once(question, number, breaker):
    """What becomes of so many requests, in one run."""

    async def ask():
        with outage_memory():
            return await asyncio.gather(
                *(breaker.complete(question(repeat=repeat)) for repeat in range(number)), return_exceptions=True
            )

    return asyncio.run(asyncio.wait_for(ask(), 20))


@pytest.mark.parametrize("attempts", [1, 2, 4])
@pytest.mark.parametrize("number", [1, 32])
def test_one_request_tries_again_for_all_and_if_it_never_connects_the_judge_is_down(question, attempts, number):
    server = Server([GONE], seconds=0.001)
    ends = at_once(question, number, Retry(server, Circuit(), attempts))
    assert {type(end) for end in ends} == {JudgeDownError}
    assert len(server.times) == number + attempts - 1
    tried = "tried once" if attempts == 1 else f"tried {attempts} times in 0."
    assert {str(end).startswith(f"{DOWN}{GONE}; {tried}") for end in ends} == {True}


def test_waits_double_up_to_a_minute(question, monkeypatch):
    monkeypatch.setattr("judgekit.judges.retry.MAX_RETRY_AFTER_SECONDS", 0.03)
    server = Server([GONE])
    at_once(question, 1, Retry(server, Circuit(), 5))
    gaps = [later - sooner for sooner, later in zip(server.times, server.times[1:], strict=False)]
    assert [gap >= wait for gap, wait in zip(gaps, [0.01, 0.02, 0.03, 0.03], strict=True)] == [True] * 4


@pytest.mark.parametrize("failures", [1, 3])
def test_a_server_that_comes_back_in_time_answers_all(question, failures):
    number = 32  # they all fail at the same instant: one event
    server = Server([*[GONE] * (number + failures - 1), REPLY], seconds=0.001)
    assert at_once(question, number, Retry(server, Circuit(), 4)) == [REPLY] * number
    assert len(server.times) == number + failures + number - 1


@pytest.mark.parametrize("end", [REPLY, OverloadError("busy"), RefusalError("no")], ids=str)
def test_while_others_get_through_a_request_that_does_not_fails_alone(question, end):
    """Some connections are refused, and the server answers on others."""
    circuit = Circuit()
    refused, answered = Server([GONE]), Server([end], seconds=0.015)

    async def ask():
        with outage_memory():
            lost = asyncio.create_task(Retry(refused, circuit, 4).complete(question()))
            while not lost.done():
                found = await asyncio.gather(Retry(answered, circuit, 1).complete(question()), return_exceptions=True)
            with pytest.raises(UnreachableError) as info:
                await lost
            again = await Retry(Server([REPLY]), circuit, 4).complete(question())
            return found, type(info.value), again

    assert asyncio.run(ask()) == ([end], UnreachableError, REPLY)


def test_a_reply_that_is_lost_while_a_server_dies_is_no_sign_of_life(question):
    circuit = Circuit()

    async def ask():
        lost = Retry(Server([LostError("gone")], seconds=0.015), circuit, 1)
        refused = Retry(Server([GONE]), circuit, 4)
        return await asyncio.gather(lost.complete(question()), refused.complete(question()), return_exceptions=True)

    assert [type(end) for end in asyncio.run(ask())] == [LostError, JudgeDownError]


def test_a_server_that_stops_listening_and_answers_what_it_has_fails_no_score(question):
    """The request that was refused first is tried again, since the answer to another was a sign of life."""
    circuit = Circuit()
    slow, refused = Server([REPLY], seconds=0.015), Server([GONE])

    async def ask():
        asking = (Retry(one, circuit, 4).complete(question()) for one in (slow, refused))
        return await asyncio.gather(*asking, return_exceptions=True)

    assert [type(end) for end in asyncio.run(ask())] == [Reply, JudgeDownError]
    assert len(refused.times) == 8


def test_nothing_is_sent_any_more_in_this_run_and_the_next_run_tries_again(question):
    server, circuit = Server([*[GONE] * 2, REPLY]), Circuit()
    breaker = Retry(server, circuit, 2)

    async def ask():
        with outage_memory():
            for _ in range(5):
                with pytest.raises(JudgeDownError, match="tried 2 times"):
                    await breaker.complete(question())
        assert len(server.times) == 2
        with outage_memory():
            return await breaker.complete(question())

    assert asyncio.run(ask()) == REPLY


def test_a_request_that_is_canceled_while_it_tries_leaves_that_to_another(question):
    server, circuit = Server([*[GONE] * 3, REPLY]), Circuit()
    breaker = Retry(server, circuit, 4)

    async def ask():
        first, *others = (asyncio.create_task(breaker.complete(question(repeat=repeat))) for repeat in range(3))
        await asyncio.sleep(0.005)
        assert circuit.probe is not None
        others.pop().cancel()  # it waits, and its end is nobody else's
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.wait_for(*others, 5)

    assert asyncio.run(ask()) == REPLY
    assert circuit.probe is None


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.sampled_from([REPLY, GONE, RefusalError("no")]), min_size=1, max_size=40),
    st.integers(1, 8),
    st.integers(1, 4),
)
def test_whatever_a_server_does_all_requests_end_and_nobody_waits_for_ever(question, ends, number, attempts):
    server, circuit = Server(ends), Circuit()
    breaker = Retry(server, circuit, attempts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgekit.judges.retry._FIRST_WAIT", 0.0)
        found = at_once(question, number, breaker)
    assert {type(end) for end in found} <= {Reply, RefusalError, UnreachableError, JudgeDownError}
    assert circuit.probe is None
    assert len(server.times) <= number * attempts**2  # a series after each of its own
    if GONE not in ends:
        assert JudgeDownError not in {type(end) for end in found}
        assert len(server.times) == number


@pytest.mark.parametrize(("requests", "tokens"), [(None, None), (6, None), (None, 60)])
def test_those_that_wait_for_a_place_send_nothing_while_a_server_cannot_be_reached(question, requests, tokens):
    server, account = Server([GONE], seconds=0.005), Account()
    account.add_limits(Limits(100, requests, tokens))
    started = time.monotonic()
    ends = at_once(question, 200, Retry(RateLimit(StructuredOutput(server, SchemaSupport()), account), Circuit(), 4))
    assert {type(end) for end in ends} == {JudgeDownError}
    assert len(server.times) == 1 + 3  # the first one, and its attempts to reconnect
    assert time.monotonic() - started < 20  # what never reaches the server is given back to the minute


# With real sockets.


GOAL = AgentGoalAccuracyWithoutReference


@pytest.fixture
def dead(free_port):
    """A judge whose server is not there; settings replace its own."""
    url = f"http://127.0.0.1:{free_port}/v1"
    return lambda **changes: Judge("openai/judge-1", **{"base_url": url, "cache_mode": "off", **changes})


def copies(sample, number):
    return [sample.model_copy(update={"id": str(index)}) for index in range(number)]


@scorer
def fine(sample: Sample) -> float:
    return 1.0


def in_an_own_loop(*given, **settings):
    return asyncio.run(arun(*given, **settings))


@pytest.mark.parametrize("running", [run, in_an_own_loop])
def test_a_run_with_no_judge_left_ends_at_once(dead, sample, running):
    taken = []

    def reading():
        for one in copies(sample, 1_000):
            taken.append(one)
            yield one

    with pytest.raises(JudgeDownError) as info:  # nothing was scored, so that there is no run
        running(reading(), [GOAL(dead())], concurrency=32)
    assert len(taken) == 32
    assert str(info.value).startswith(f"{DOWN}openai/judge-1 at {dead().base_url}: ConnectionRefusedError: ")
    assert "tried 4 times in 0." in str(info.value)
    assert str(info.value).startswith("the judge is down: start its server, or check its base_url. ")


@pytest.mark.parametrize("running", [run, in_an_own_loop])
def test_a_run_whose_last_judge_dies_is_stopped_and_what_it_did_not_score_is_missing(sample, achieved, running):
    judge = ScriptedJudge([*[achieved] * 5, *[GONE] * 100], attempts=2)
    found = running(copies(sample, 50), [GOAL(judge)], concurrency=1)
    [line] = found.summary
    assert (line.counts, line.missing, len(judge.requests)) == ({"scored": 5}, 45, 7)
    assert found.stop_reason.startswith(f"{DOWN}{GONE}; tried 2 times in 0.")


def test_scorers_without_that_judge_go_on_to_the_end(dead, sample, server, achieved):
    server.script = [server.says(achieved)]
    other = Judge("openai/judge-2", base_url=server.url, cache_mode="off")
    scorers = [
        GOAL(dead(), name="dead"),
        fine,
        GOAL(other, name="alive"),
        Repeat(GOAL(dead()), repeats=2, name="dead_too"),
    ]
    found = run(copies(sample, 50), scorers, concurrency=8)
    assert found.stop_reason.count("is down") == 1
    counts = {line.scorer: (line.counts["scored"], line.counts["failed"], line.missing) for line in found.summary}
    assert counts == {"dead": (0, 0, 50), "fine": (50, 0, 0), "alive": (50, 0, 0), "dead_too": (0, 0, 50)}


def test_a_fallback_that_answers_takes_over_and_the_first_judge_is_sent_nothing_more(dead, sample, server, achieved):
    server.script = [server.says(achieved)]
    other = Judge("openai/judge-2", base_url=server.url, cache_mode="off")
    judge = dead(fallback=[other])
    found = run(copies(sample, 100), [GOAL(judge)], concurrency=8)
    assert (found.stop_reason, found.summary[GOAL(judge).name].counts["scored"]) == ("", 100)
    line = found.summary[GOAL(judge).name]
    assert (line.requests, line.judges, len(server.requests)) == (100, {"openai/judge-2": 100}, 100)
    attempts = [call for row in found for call in row.score.calls if call.error is not None]
    assert {(call.judge, call.error) for call in attempts} == {("openai/judge-1", "UnreachableError")}
    assert len(attempts) <= 8 + 3


def test_a_fallback_that_is_down_does_not_stop_a_judge_that_is_busy(dead, sample, server):
    server.script = [(503, {}, {})]
    busy = Judge("openai/judge-2", base_url=server.url, cache_mode="off", attempts=1, fallback=[dead()])
    found = run(copies(sample, 3), [GOAL(busy)])
    assert (found.stop_reason, [row.score.error for row in found]) == ("", ["OverloadError"] * 3)


def test_a_budget_of_requests_is_not_spent_on_connections_that_fail(dead, sample):
    judge = dead(budget=Budget(requests=1))
    for _ in range(3):
        with pytest.raises(JudgeDownError):
            GOAL(judge).score(sample)


def test_a_judge_that_rejects_three_requests_alike_is_sent_no_more_and_the_run_says_why(server, sample, monkeypatch):
    monkeypatch.setattr("judgekit.judges.structured_output._FIRST_REQUEST_SECONDS", 30)
    server.script = [(400, {}, {"error": {"message": "Unsupported parameter: 'top_k' is not supported"}})]
    asked = GOAL(Judge("openai/judge-1", base_url=server.url, cache_mode="off"))
    found = run(copies(sample, 200), [asked, fine], concurrency=32)
    assert len(server.requests) == 3
    assert "Unsupported parameter: 'top_k'" in found.stop_reason
    assert "Unsupported parameter: 'top_k'" in str(found)
    counts = found.summary[asked.name].counts
    assert (counts["failed"], found.summary["fine"].counts["scored"]) == (2, 200)


@pytest.mark.parametrize("status", [401, 404, 405])
def test_a_key_or_a_model_that_is_not_there_is_asked_for_once_and_leaves_no_run(
    server, sample, status, tmp_path, monkeypatch
):
    monkeypatch.setattr("judgekit.judges.structured_output._FIRST_REQUEST_SECONDS", 30)
    server.script = [(status, {}, {"error": {"message": "no"}})]
    with pytest.raises((AuthenticationError, ModelError)) as info:
        run(
            copies(sample, 200),
            [GOAL(Judge("openai/judge-1", base_url=server.url, cache_mode="off"))],
            store=tmp_path / "runs.sqlite",
        )
    assert len(server.requests) == 1
    assert not getattr(info.value, "__notes__", [])  # nothing was saved
