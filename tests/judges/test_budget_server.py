"""A budget holds, by the bill of a real server: whatever is under way at once, in several processes, over kills and resumes."""

import asyncio
import json
import random
import shutil
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from judgekit.errors import RejectedError
from judgekit.jobs.api import run
from judgekit.judges.judge import Judge
from judgekit.judges.layers import open_spending
from judgekit.judges.limits.budget import Budget
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.providers.price import Price
from judgekit.judges.redis.address import RedisAddress
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

LIMIT = 1.0
PRICE = Price(1, 10)
LONGEST = 30_000
"""Tokens of a reply: as many as a reasoning model may take."""


class Bill:
    """The bill of a provider, which charges for each request it receives, whether or not its reply arrives."""

    def __init__(self, *, heeds_limits: bool = True) -> None:
        self.usd = 0.0
        self.limits: list[int] = []
        self.answer = ANSWER
        self._heeds_limits = heeds_limits
        self._random = random.Random(7)  # noqa: S311 - no secret

    async def __call__(self, body):
        sent = sum(len(turn["content"].encode()) for turn in body["messages"])
        sent = int(self._random.uniform(0.2, 1) * sent)  # a token has one byte, or several
        wanted = min(int(self._random.lognormvariate(7, 1.5)), LONGEST)
        limit = body["max_tokens"]
        made = min(wanted, limit) if self._heeds_limits else wanted
        self.limits.append(limit)
        self.usd += (sent * PRICE.input + made * PRICE.output) / 1e6
        await asyncio.sleep(self._random.uniform(0.002, 0.02))
        choice = {
            "message": {"role": "assistant", "content": self.answer},
            "finish_reason": "stop" if made == wanted else "length",
        }
        usage = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
        return 200, {}, {"choices": [choice], "usage": usage}


ANSWER = json.dumps({"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]})


@pytest.fixture
def bill(server):
    made = Bill()
    server.script = [made]
    return made


def judge(url, **settings):
    settings = {"price": PRICE, "budget": Budget(usd=LIMIT), "cache_mode": "off", "timeout": 20} | settings
    return Judge("openai/judge-1", base_url=url, **settings)


def samples(start=0):
    talk = ([HumanMessage(f"Please, number {number}"), AIMessage("Done")] for number in count(start))
    return (Sample.of(one, id=str(number)) for number, one in enumerate(talk))


@pytest.mark.parametrize("at_once", [1, 64])
def test_a_run_is_never_charged_more_than_its_budget_and_uses_most_of_it(server, bill, at_once):
    asked = judge(server.url, concurrency=at_once)
    found = run(
        (one for one, _ in zip(samples(), range(500), strict=False)),
        [AgentGoalAccuracyWithoutReference(asked)],
        concurrency=at_once,
    )
    assert "would exceed the budget of $1" in found.stop_reason
    assert LIMIT * 0.75 < bill.usd <= LIMIT
    assert {8192} <= set(bill.limits) <= {8192, 16384}  # a reply that was cut off is asked for with more room
    assert at_once > 1 or 16384 in bill.limits
    assert found.summary["agent_goal_accuracy_without_reference"].cost_usd == pytest.approx(bill.usd)


@pytest.mark.parametrize("at_once", [1, 64])
def test_questions_that_are_asked_together_share_the_budget(server, bill, at_once):
    asked = judge(server.url, concurrency=at_once, together=True)
    goals = [AgentGoalAccuracyWithoutReference(asked, name=name) for name in ("a", "b", "c")]
    bill.answer = json.dumps({f"q{number}": json.loads(ANSWER) for number in (1, 2, 3)})
    found = run((one for one, _ in zip(samples(), range(500), strict=False)), goals, concurrency=at_once)
    assert "would exceed the budget of $1" in found.stop_reason
    assert LIMIT * 0.7 < bill.usd <= LIMIT
    assert {3 * 8192} <= set(bill.limits) <= {3 * 8192, 8192, 16384}
    assert sum(line.cost_usd for line in found.summary) == pytest.approx(bill.usd)


class DecisionBill(Bill):
    """The bill of a decision model, for input and for what it writes to its cache."""

    async def __call__(self, body):
        sent = sum(len(turn["content"].encode()) for turn in body["input"]) + len(str(body["questions"]))
        sent = int(self._random.uniform(0.2, 0.9) * sent)
        written = int(self._random.uniform(0, 1) * sent)
        self.usd += (sent * WRITTEN.input + written * (WRITTEN.written - WRITTEN.input)) / 1e6
        await asyncio.sleep(self._random.uniform(0.002, 0.02))
        details = {"cached_tokens": 0, "cache_write_tokens": written}
        usage = {"input_tokens": sent, "input_tokens_details": details, "output_tokens": 3, "total_tokens": sent + 3}
        answers = [
            {**ACHIEVED, "name": question["name"], "probabilities": [{"value": "achieved", "probability": 1}]}
            for question in body["questions"]
        ]
        usage["output_tokens_details"] = {"reasoning_tokens": 0}
        return 200, {}, {"answers": answers, "model": "m", "usage": usage}


WRITTEN = Price(10, 0, written=12.5)
ACHIEVED = {"type": "choice", "choice": "achieved", "confidence": 1.0}


@pytest.mark.parametrize("at_once", [1, 64])
def test_a_decision_model_is_never_charged_more_than_its_budget(server, at_once):
    bill = DecisionBill()
    server.script = [bill]
    asked = Judge(
        "openai-decisions/m",
        base_url=server.url,
        price=WRITTEN,
        budget=Budget(usd=LIMIT),
        concurrency=at_once,
        cache_mode="off",
    )
    goals = [AgentGoalAccuracyWithoutReference(asked, name=name) for name in ("a", "b", "c")]
    found = run((one for one, _ in zip(samples(), range(500), strict=False)), goals, concurrency=at_once)
    assert "would exceed the budget of $1" in found.stop_reason
    assert LIMIT * 0.7 < bill.usd <= LIMIT
    assert sum(line.cost_usd for line in found.summary) == pytest.approx(bill.usd)


def test_a_server_that_ignores_the_limit_passes_the_budget_by_what_was_under_way(server, bill):
    bill._heeds_limits = False
    asked = judge(server.url, concurrency=8)
    found = run(
        (one for one, _ in zip(samples(), range(500), strict=False)),
        [AgentGoalAccuracyWithoutReference(asked)],
        concurrency=8,
    )
    assert found.stop_reason
    assert LIMIT * 0.75 < bill.usd <= LIMIT + 8 * (LONGEST - 8192) * PRICE.output / 1e6


def test_usage_of_zero_is_unknown_and_the_budget_charges_what_it_reserved(server):
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0}
    server.script = [server.says(ANSWER, usage=usage)]
    found = run(
        (one for one, _ in zip(samples(), range(300), strict=False)),
        [AgentGoalAccuracyWithoutReference(judge(server.url, budget=Budget(usd=0.3)))],
    )
    assert "would exceed the budget of $0.3" in found.stop_reason
    assert 1 <= len(server.requests) <= 4
    assert "tokens unknown, cost unknown" in str(found)


NAMES = ["max_tokens", "max_completion_tokens"]
MESSAGES = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    "instead.",
    "max_completion_tokens": "Unrecognized request argument supplied: max_completion_tokens",
}


def picky(server, *refused):
    """A server that refuses some names of the output limit."""

    def answer(body):
        for name in refused:
            if name in body:
                return 400, {}, {"error": {"message": MESSAGES[name], "type": "invalid_request_error"}}
        return server.says(ANSWER)

    return answer


def test_a_server_that_refuses_max_tokens_is_sent_the_other_name_from_then_on(server):
    server.script = [picky(server, "max_tokens")]
    asked = AgentGoalAccuracyWithoutReference(judge(server.url))
    for sample, _ in zip(samples(), range(3), strict=False):  # each in an event loop of its own
        assert asked.score(sample).status == "scored"
    sent = [[name for name in NAMES if name in request.body] for request in server.requests]
    assert sent == [["max_tokens"], *[["max_completion_tokens"]] * 3]
    assert {request.body[name] for request, [name] in zip(server.requests, sent, strict=True)} == {8192}


def test_a_server_that_refuses_both_names_is_sent_each_once_and_then_the_judge_stops(server):
    server.script = [picky(server, *NAMES)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgekit.judges.providers.openai._OPENAI", ("127.0.0.1",))
        patch.setattr("judgekit.judges.structured_output._FIRST_REQUEST_SECONDS", 30)
        found = run(
            (one for one, _ in zip(samples(), range(50), strict=False)),
            [AgentGoalAccuracyWithoutReference(judge(server.url))],
        )
    assert "3 requests were rejected alike" in found.stop_reason
    assert len(server.requests) == 4


def test_a_limit_that_the_user_set_is_not_renamed(server):
    server.script = [picky(server, "max_tokens")]
    asked = AgentGoalAccuracyWithoutReference(judge(server.url, params={"max_tokens": 100}))
    with pytest.raises(RejectedError):
        asked.score(next(samples()))
    assert len(server.requests) == 1


WORK = """
import sys
from itertools import islice
from pathlib import Path
sys.path.insert(0, {folder!r})
from judgekit.errors import BudgetError
from test_budget_server import AgentGoalAccuracyWithoutReference, Budget, judge, run, samples

if __name__ == "__main__":
    url, at_once, start = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    asked = judge(url, concurrency=at_once, budget=Budget(usd=1.0, name="team"))
    scored = islice(samples(start), 500)
    try:
        print(run(scored, [AgentGoalAccuracyWithoutReference(asked)], concurrency=at_once).stop_reason)
    except BudgetError as error:  # the others had spent it all before the first request of this one
        print(error)
"""


@pytest.fixture
def working(server, forked):
    """Starts processes that share a named budget."""
    starts = count(step=10_000)
    Path("work.py").write_text(WORK.format(folder=str(Path(__file__).parent)))

    def start(at_once):
        return forked("python", "work.py", server.url, at_once, next(starts))

    return start


@pytest.mark.processes
def test_three_processes_share_a_named_budget(bill, working):
    ends = [process.communicate(timeout=60) for process in [working(32) for _ in range(3)]]
    assert all("would exceed the budget 'team' of $1" in out for out, _ in ends), ends
    assert LIMIT * 0.75 < bill.usd <= LIMIT


@pytest.mark.processes
def test_what_a_killed_process_had_under_way_is_charged(bill, working):
    at_once = 4
    killed = [working(at_once) for _ in range(2)]
    began = time.monotonic()
    while bill.usd < LIMIT / 3:
        assert time.monotonic() - began < 30
        time.sleep(0.001)
    for process in killed:
        process.kill()
        process.wait()
    out, err = working(at_once).communicate(timeout=120)
    assert "would exceed the budget 'team' of $1" in out, err
    reserved = 2 * at_once * 16384 * PRICE.output / 1e6
    assert max(LIMIT * 0.75 - reserved, LIMIT / 3) < bill.usd <= LIMIT


EXIT = """
import asyncio, sys
sys.path.insert(0, {folder!r})
from test_budget_server import AgentGoalAccuracyWithoutReference, Budget, judge, samples

asked = judge(sys.argv[1], budget=Budget(usd=1.0, name="team"))
loop = asyncio.new_event_loop()
loop.run_until_complete(AgentGoalAccuracyWithoutReference(asked).ascore(next(samples())))
loop.close()
"""


@pytest.mark.processes
def test_a_process_that_exits_at_once_is_charged_what_it_used(server, bill):
    script = EXIT.format(folder=str(Path(__file__).parent))
    subprocess.run([sys.executable, "-c", script, server.url], check=True, timeout=60)  # noqa: S603
    (spent,) = SQLiteSpending(Path(".judgekit/budgets.sqlite")).by_budget().values()
    assert 0 < spent.usd == pytest.approx(bill.usd)


@pytest.fixture(params=["sqlite", "redis"])
def cache(request, tmp_path):
    """A cache that processes share, in a file or in Redis; their budgets are beside it."""
    if request.param == "sqlite":
        yield tmp_path / "cache.sqlite"
        return
    if (program := shutil.which("redis-server")) is None:
        pytest.skip("needs redis-server")
    words = (program, "--port", "0", "--unixsocket", tmp_path / "redis.sock", "--dir", tmp_path, "--save", "")
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL)  # noqa: S603 - the server
    wait_until((tmp_path / "redis.sock").exists)
    yield RedisAddress(f"unix://{tmp_path}/redis.sock?db=0")
    process.kill()
    process.wait()


def wait_until(holds):
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < 30
        time.sleep(0.001)


QUEUED = """
import sys
from itertools import islice
sys.path.insert(0, {folder!r})
from test_budget_server import AgentGoalAccuracyWithoutReference, Budget, judge, run, samples

if __name__ == "__main__":
    url, cache, start = sys.argv[1:]
    limits = {{"concurrency": 4, "budget": Budget(requests=300, name="team"), "price": None}}
    asked = judge(url, cache=cache, cache_mode="read_write", timeout=60, **limits)
    scored = islice(samples(int(start)), 400)
    print(run(scored, [AgentGoalAccuracyWithoutReference(asked)], concurrency=64).stop_reason)
"""


@pytest.mark.processes
@pytest.mark.parametrize(("replies", "killed_at", "unsent"), [(100, 108, 0), (1_000, 150, 8)])
def test_killed_processes_are_charged_what_they_sent_and_the_next_spends_the_rest(
    server, forked, cache, replies, killed_at, unsent
):
    """What waits for its turn reserves nothing. Only what is about to be sent, at most as much as is sent at once, may
    be charged without being sent.
    """

    async def reply(_body):
        if len(server.requests) > replies:
            return b"", "hang"
        await asyncio.sleep(0.1)
        return server.says(ANSWER)

    server.script, starts = [reply], count(step=10_000)
    Path("queued.py").write_text(QUEUED.format(folder=str(Path(__file__).parent)))
    killed = [forked("python", "queued.py", server.url, cache, next(starts)) for _ in range(2)]
    wait_until(lambda: len(server.requests) >= killed_at)
    time.sleep(0.0 if unsent else 0.5)
    for process in killed:
        process.kill()
    for process in killed:
        process.wait()
    assert server.all_closed()
    sent = len(server.requests)
    with closing(open_spending(cache)) as spending:
        assert sent <= spending.amount("named team").requests <= sent + unsent
        left = 300 - spending.amount("named team").requests
        server.script = [server.says(ANSWER)]
        out, err = forked("python", "queued.py", server.url, cache, next(starts)).communicate(timeout=120)
        assert "would exceed the budget 'team' of 300 requests" in out, err
        assert len(server.requests) == sent + left
