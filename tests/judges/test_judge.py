"""Judges from end to end: over a real server, from a script, and from what is kept."""

import asyncio
import copy
import gc
import json
import threading
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from judgekit import run
from judgekit.errors import (
    AuthenticationError,
    BudgetError,
    ContextError,
    JudgeDownError,
    JudgeError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RefusalError,
    RejectedError,
    ReplayError,
    ReplyError,
)
from judgekit.formats.reading import read
from judgekit.judges.cache.replies import RecordedReply, ReplyDatabase
from judgekit.judges.judge import Judge, Judgment
from judgekit.judges.limits.budget import Budget
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.request import Reply
from judgekit.judges.schema import strict_schema
from judgekit.judges.scripted import ScriptedClient, ScriptedJudge
from judgekit.score import JudgeCall, independent_repeat, ledger, outage_memory
from judgekit.scorers.failure_analysis import FailureAnalysis
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.topic import TopicAdherence
from judgekit.traces.message import Usage
from judgekit.traces.sample import Sample

pytestmark = pytest.mark.usefixtures("no_waits")

GOAL = load_prompt("agent_goal_without_reference")


class Opinion(BaseModel):
    """What a judge says in these tests."""

    reason: str
    verdict: Literal["yes", "no"]


YES = {"reason": "It is so.", "verdict": "yes"}
VERSION = GOAL.version(strict_schema(Opinion))


@pytest.fixture
def asked(sample):
    """The judgment of a judge on the sample, in a loop of its own."""
    return lambda judge, **options: asyncio.run(ask(judge, sample, **options))


async def ask(judge: Judge, sample: Sample, repeat: int = 0, **options: Any) -> Judgment[Opinion]:
    with independent_repeat(repeat, 1_000):
        return await judge.ask(GOAL, sample, Opinion, **options)


@pytest.fixture
def local(server):
    """A judge that asks the server; without a cache, unless one is named."""

    def judge(**settings: Any) -> Judge:
        mode = "read_write" if "cache" in settings else "off"
        return Judge("openai/judge-1", **({"base_url": server.url, "cache_mode": mode} | settings))

    return judge


def without_time(calls):
    return [call.model_copy(update={"seconds": 0.0, "exchange": None}) for call in calls]


def call(**changes):
    return JudgeCall(**{"judge": "openai/judge-1", "prompt": VERSION} | changes)


PAID = {
    "model": "judge-1-2026-11-20",
    "system_fingerprint": "fp_1",
    "usage": Usage(input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30),
    "cost_usd": (1000 * 2 + 50 * 8) / 1e6,
    "saved_usd": 0.0,
}
PRICE = Price(input=2, output=8)


# One question


def test_a_good_reply_is_one_request_one_answer_and_one_call_with_its_cost(server, local, asked, sample):
    server.script = [server.says(YES)]
    judgment = asked(local(price=PRICE, params={"temperature": 0}))
    assert judgment.answer == Opinion(reason="It is so.", verdict="yes")
    assert without_time(judgment.calls) == [call(**PAID)]
    assert 0 < judgment.calls[0].seconds < 5
    [received] = server.requests
    assert received.body == {
        "model": "judge-1",
        "messages": [turn._asdict() for turn in GOAL.fill(sample).messages],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": strict_schema(Opinion), "strict": True},
        },
        "temperature": 0,
    }


BROKEN = [
    pytest.param(
        '{"reason": "", "verdict": "maybe"}',
        "verdict: Input should be 'yes' or 'no', found 'maybe'",
        id="verdict that is none",
    ),
    pytest.param('{"reason": "\\ud800", "verdict": "yes"}', "the record: Invalid JSON", id="lone surrogate"),
]


@pytest.mark.parametrize(("broken", "problem"), BROKEN)
def test_a_broken_reply_is_shown_back_once_with_its_problem_and_may_be_mended(
    server, local, asked, sample, broken, problem
):
    server.script = [server.says(broken), server.says(YES)]
    judgment = asked(local(price=PRICE))
    assert judgment.answer == Opinion(**YES)
    assert without_time(judgment.calls) == [call(**PAID, error="ReplyError"), call(**PAID)]
    first, second = (received.body for received in server.requests)
    assert second["messages"][:-2] == first["messages"] == [turn._asdict() for turn in GOAL.fill(sample).messages]
    reply, complaint = second["messages"][-2:]
    assert reply == {"role": "assistant", "content": broken}
    assert complaint["role"] == "user"
    assert complaint["content"].startswith(f"That reply cannot be used: {problem}")
    assert complaint["content"].endswith("\nAnswer the question again, with one JSON object.")
    assert {**second, "messages": []} == {**first, "messages": []}


def test_a_reply_that_stays_broken_is_an_error_that_keeps_its_text(server, local, asked):
    server.script = [server.says('{"first": 1}'), server.says('{"second": 2}'), server.says(YES)]
    with (
        ledger() as calls,
        pytest.raises(ReplyError, match=r"reason: Field required.*; verdict: Field required") as info,
    ):
        asked(local(price=PRICE))
    assert info.value.text == '{"second": 2}'
    assert without_time(calls) == [call(**PAID, error="ReplyError")] * 2
    assert len(server.requests) == 2


def test_what_the_check_of_a_scorer_refuses_is_shown_back_too(asked):
    judge = ScriptedJudge([YES, YES | {"verdict": "no"}])

    def check(answer, _):
        if answer.verdict == "yes":
            raise ValueError("says yes to everything")

    assert asked(judge, check=check).answer.verdict == "no"
    assert "That reply cannot be used: says yes to everything\n" in judge.requests[1].messages[-1].content


# Loops and threads


def test_one_judge_serves_many_loops_and_closes_its_connections_with_each(server, local, asked):
    server.script = [server.says(YES)]
    judge = local()
    for loop in (1, 2, 3):
        assert asked(judge).answer.verdict == "yes"
        assert server.all_closed()
        assert server.opened == loop
    assert len(judge._clients) == 0  # nor are the loops kept
    gc.collect()  # what was left open would be warned of now
    assert len(server.requests) == 3


def test_one_judge_serves_threads_with_loops_of_their_own(server, local, sample, tmp_path):
    server.script = [server.says(YES)]
    judge = local(cache=tmp_path / "cache.sqlite", budget=Budget(requests=8))
    ready, found = threading.Barrier(2), []

    async def ask_from(first):
        ready.wait(5)
        repeats = range(first, first + 4)
        return await asyncio.gather(*(ask(judge, sample, repeat) for repeat in repeats))

    threads = [threading.Thread(target=lambda n=n: found.extend(asyncio.run(ask_from(n)))) for n in (0, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [judgment.answer.verdict for judgment in found] == ["yes"] * 8
    assert len(server.requests) == 8
    assert server.all_closed()
    gc.collect()


def test_a_judge_that_is_forgotten_in_a_running_loop_closes_its_connections(server, local, sample):
    server.script = [server.says(YES)]

    async def ask():
        await local().ask(GOAL, sample, Opinion)
        return await asyncio.to_thread(server.all_closed)

    gc.disable()  # it is closed at once, and not when somebody cleans up
    try:
        assert asyncio.run(ask())
    finally:
        gc.enable()


# What is kept


@pytest.fixture
def cached(tmp_path):
    return tmp_path / "cache.sqlite"


def judge_of(client, cached, **settings):
    return Judge(**{"model": "any/m", "base_url": "https://one.test", "client": client, "cache": cached} | settings)


@pytest.mark.parametrize(
    "settings", [{}, {"timeout": 1}, {"attempts": 1}, {"concurrency": 1}, {"price": PRICE}], ids=str
)
def test_another_judge_that_would_ask_the_same_is_answered_from_the_cache_at_no_cost(cached, asked, settings):
    client = ScriptedClient([YES])
    asked(judge_of(client, cached))
    judgment = asked(judge_of(client, cached, budget=Budget(requests=0), **settings))
    assert judgment.answer == Opinion(**YES)
    assert tuple(without_time(judgment.calls)) == (
        JudgeCall(judge="any/m", prompt=VERSION, model="script", cached=True, cost_usd=0.0),
    )
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "other/m"},
        {"model": "any/n"},
        {"base_url": "https://two.test"},
        {"base_url": None},
        {"params": {"temperature": 0}},
        {"cache_mode": "refresh"},
        {"cache_mode": "off"},
    ],
    ids=str,
)
def test_another_judge_asks_for_itself(cached, asked, settings):
    client = ScriptedClient([YES, YES | {"verdict": "no"}])
    asked(judge_of(client, cached))
    assert asked(judge_of(client, cached, **settings)).answer.verdict == "no"
    assert len(client.requests) == 2


def test_a_broken_reply_is_not_kept_and_the_mended_one_is_that_of_both_requests(cached, asked):
    client = ScriptedClient(["{", YES])
    judge = judge_of(client, cached)
    assert asked(judge).answer == asked(judge).answer == Opinion(**YES)
    assert [len(request.messages) for request in client.requests] == [2, 4]
    assert sorted(map(len, kept_in(cached))) == sorted(len(request.digests) for request in client.requests)
    assert asked(judge_of(client, cached, cache_mode="replay")).answer == Opinion(**YES)


def kept_in(path):
    replies = ReplyDatabase(path)
    digests = [line.digests for line in replies.recorded()]
    replies.close()
    return digests


def test_the_cache_is_where_the_work_is_done_and_not_for_git(server, asked, tmp_path):
    server.script = [server.says(YES)]
    asked(Judge("openai/judge-1", base_url=server.url))
    assert sorted(path.name for path in (tmp_path / ".judgekit").iterdir()) == [".gitignore", "cache.sqlite"]


# Replay


@pytest.mark.parametrize("suffix", ["sqlite", "jsonl"])
def test_replay_answers_for_a_provider_that_nobody_knows_without_a_key(asked, tmp_path, suffix):
    path = tmp_path / f"replies.{suffix}"
    client = ScriptedClient([YES])
    asked(Judge("nobody/m", client=client, cache=tmp_path / "replies.sqlite"))
    if suffix == "jsonl":
        [request] = client.requests
        reply = Reply(text=json.dumps(YES))
        path.write_text(RecordedReply(key=request.key, digests=request.digests, reply=reply).model_dump_json())
    judge = Judge("nobody/m", client=client, cache=path, cache_mode="replay")
    judge.check()
    judgment = asked(judge)
    assert judgment.answer == Opinion(**YES)
    assert len(client.requests) == 1
    assert [(one.cached, one.cost_usd) for one in judgment.calls] == [(True, 0.0)]
    with pytest.raises(ReplayError, match=r"the nearest recorded request differs in repeat$"):
        asked(judge, repeat=1)


def test_the_shipped_replies_answer_every_question_about_the_shipped_conversations(examples):
    """A changed word in a prompt, or in the rendering, shows here: see examples/rekey_replies.py."""
    judge = Judge("demo/handwritten", cache=examples / "replies.jsonl", cache_mode="replay")
    scorers = [TopicAdherence(judge), AgentGoalAccuracyWithReference(judge), AgentGoalAccuracyWithoutReference(judge)]
    scored = run(
        read(examples / "conversations.jsonl"), [ToolCallAccuracy(), ToolCallF1(), *scorers, FailureAnalysis(judge)]
    )
    scores = [row.score for row in scored]
    assert [score.reason for score in scores if score.status == "failed"] == []
    calls = [one for score in scores for one in score.calls]
    assert len(calls) == 48
    assert all(one.cached and one.cost_usd == 0.0 and one.error is None for one in calls)
    lines = (examples / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    recorded = [RecordedReply.model_validate_json(line) for line in lines]
    assert sorted(one.prompt for one in calls) == sorted(one.prompt for one in recorded if one.reply)


# Limits and keys


def test_the_limit_counts_over_loops_and_cached_replies_are_free(server, local, asked, cached):
    server.script = [server.says(YES)]
    judge = local(cache=cached, budget=Budget(requests=2))
    for repeat in (0, 1, 0, 1):
        asked(judge, repeat=repeat)
    with ledger() as calls, pytest.raises(BudgetError, match="budget of 2 requests"):
        asked(judge, repeat=2)
    assert calls == []
    assert asked(judge, repeat=1).calls[0].cached
    assert len(server.requests) == 2


def test_a_missing_key_is_an_error_before_any_request(server, local, asked):
    judge = local(api_key_env="MY_KEY")
    for use in (judge.check, lambda: asked(judge)):
        with pytest.raises(AuthenticationError, match=f"no key for {server.url}: set the environment variable MY_KEY$"):
            use()
    with pytest.raises(
        AuthenticationError, match=r"no key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY$"
    ):
        Judge("openai/judge-model").check()
    assert server.requests == []


@pytest.mark.parametrize(("api_key_env", "sent"), [(None, "Bearer no-key"), ("MY_KEY", "Bearer sk-own")])
def test_a_server_of_ones_own_is_sent_the_key_that_is_named_for_it_and_no_other(
    server, local, asked, monkeypatch, api_key_env, sent
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
    monkeypatch.setenv("MY_KEY", "sk-own\n")
    server.script = [server.says(YES)]
    judge = local(api_key_env=api_key_env)
    judge.check()
    asked(judge)
    [received] = server.requests
    assert received.headers["authorization"] == sent
    assert "sk-provider" not in str(received)


@pytest.mark.parametrize("status", [200, 400, 401, 429])
def test_the_key_is_nowhere_but_in_the_request(server, local, asked, monkeypatch, cached, status):
    monkeypatch.setenv("MY_KEY", "sk-very-private")
    judge = local(api_key_env="MY_KEY", cache=cached, attempts=1)
    server.script = [server.says(YES), (status, {}, {"error": {"message": "What is sk-very-private?"}})]
    asked(judge)
    with ledger() as calls, pytest.raises(JudgeError, match="What is") as info:
        asked(judge, repeat=1)
    assert "sk-very-private" in server.requests[1].headers["authorization"]
    assert "sk-very-private" not in f"{judge!r} {judge} {judge.model_dump()} {info.value} {calls}"
    for file in cached.parent.iterdir():
        assert b"sk-very-private" not in file.read_bytes()


# Names and copies


COPIES = {
    "model_copy": lambda judge: judge.model_copy(),
    "deep model_copy": lambda judge: judge.model_copy(deep=True),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_shares_no_client_and_no_count_with_the_original(server, local, sample, make):
    server.script = [server.says(YES)]
    judge = local(budget=Budget(requests=1))

    async def ask():
        copied = make(judge)
        await judge.ask(GOAL, sample, Opinion)
        await copied.ask(GOAL, sample, Opinion)
        return copied

    copied = asyncio.run(ask())
    assert (len(server.requests), server.opened) == (2, 2)
    assert dict(copied) == dict(judge)
    assert server.all_closed()


def test_a_copy_with_another_setting_asks_by_it_and_the_original_does_not(server, free_port, local, asked):
    server.script = [server.says(YES)]
    judge = local(attempts=1)
    asked(judge)
    moved = judge.model_copy(update={"base_url": f"http://127.0.0.1:{free_port}/v1"})
    with pytest.raises(JudgeDownError, match=f"127.0.0.1:{free_port}"):
        asked(moved)
    asked(judge)
    assert len(server.requests) == 2


# Others in its place


SPENT = (429, {"retry-after": "86400"}, {"error": {"message": "Tomorrow."}})
BUSY = (503, {"retry-after": "0"}, {"error": {"message": "Out of order."}})
TOO_LONG = (400, {}, {"error": {"message": "Too long.", "code": "context_length_exceeded"}})


@pytest.mark.parametrize(
    ("line", "error"), [(BUSY, "OverloadError"), (TOO_LONG, "ContextError"), (SPENT, "QuotaError")]
)
def test_another_judge_answers_where_the_first_cannot_and_both_are_named(server, local, asked, line, error):
    server.script = [line, server.says(YES)]
    other = Judge("openai/judge-2", base_url=server.url, cache_mode="off", price=PRICE)
    judgment = asked(local(attempts=1, fallback=[other]))
    assert judgment.answer.verdict == "yes"
    assert [(one.judge, one.error) for one in judgment.calls] == [("openai/judge-1", error), ("openai/judge-2", None)]
    assert judgment.calls[1].cost_usd == PAID["cost_usd"]
    assert [received.body["model"] for received in server.requests] == ["judge-1", "judge-2"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ((400, {}, {"error": {"message": "No."}}), RejectedError),
        ((401, {}, {}), AuthenticationError),
        ((200, {}, {"choices": [{"message": {"refusal": "No."}}]}), RefusalError),
    ],
)
def test_no_other_judge_is_asked_where_it_would_be_another_verdict(server, local, asked, line, error):
    server.script = [line]
    other = ScriptedJudge([YES])
    with pytest.raises(error):
        asked(local(fallback=[other]))
    assert other.requests == []


def test_judges_fall_back_in_turn_and_the_last_says_why(asked):
    errors = [OverloadError("first"), RateLimitError("second"), ContextError("third")]
    third, second = ScriptedJudge([errors[2]]), ScriptedJudge([errors[1]])
    with ledger() as calls, pytest.raises(ContextError, match="third"):
        asked(ScriptedJudge([errors[0]], fallback=[second, third]))
    assert [one.error for one in calls] == ["OverloadError", "RateLimitError", "ContextError"]


def test_a_spent_quota_is_found_out_once_in_a_run_and_a_spent_budget_has_no_fallback(server, local, asked, sample):
    server.script = [SPENT, server.says(YES)]
    other = Judge("openai/judge-2", base_url=server.url, cache_mode="off")
    judge = local(fallback=[other])

    async def ask():
        with outage_memory():
            return [await judge.ask(GOAL, sample, Opinion) for _ in range(3)]

    assert [one.answer.verdict for one in asyncio.run(ask())] == ["yes"] * 3
    assert [received.body["model"] for received in server.requests] == ["judge-1", "judge-2", "judge-2", "judge-2"]
    with pytest.raises(BudgetError):
        asked(local(budget=Budget(requests=0), fallback=[other]))
    spent = other.model_copy(update={"budget": Budget(requests=0)})
    server.script = [SPENT]
    with pytest.raises(QuotaError, match=r"Tomorrow.*; .*budget of 0 requests"):
        asked(local(fallback=[spent]))
    server.script = [BUSY]
    with pytest.raises(OverloadError):  # the next question may be answered
        asked(local(attempts=1, fallback=[spent]))


def test_an_own_output_limit_is_sent_where_a_budget_needs_one_and_params_set_none(server, local, asked):
    server.script = [server.says(YES)]
    for settings in (
        {},
        {"budget": Budget(requests=9)},
        {"budget": Budget(tokens=10**6)},
        {"budget": Budget(usd=1), "price": PRICE, "max_output_tokens": 77},
        {"budget": Budget(tokens=10**6), "params": {"max_tokens": 55}},
    ):
        asked(local(**settings))
    assert [received.body.get("max_tokens") for received in server.requests] == [None, None, 8192, 77, 55]


def test_what_a_fallback_answered_is_kept_as_its_own(server, local, asked, cached):
    server.script = [BUSY, server.says(YES), BUSY]
    other = Judge("openai/judge-2", base_url=server.url, cache=cached)
    judge = local(attempts=1, cache=cached, fallback=[other])
    assert [[one.cached for one in asked(judge).calls] for _ in range(2)] == [[False, False], [False, True]]
    assert len(server.requests) == 3  # the first judge is asked first, each time


# How sure it was


class _Own(ScriptedClient):
    identity = "v1"


@pytest.mark.parametrize(
    "change",
    [
        lambda judge: judge.params.update(seed=2),
        lambda judge: judge.params["extra"]["tags"].append("b"),
        lambda judge: judge.headers.update({"x-team": "red"}),
        lambda judge: setattr(judge.client, "identity", "v2"),
    ],
    ids=["seed", "nested", "header", "identity"],
)
def test_settings_that_change_in_place_are_those_of_the_next_request(sample, change):
    def judge():
        settings = {"params": {"seed": 1, "extra": {"tags": ["a"]}}, "headers": {"x-team": "blue"}, "query": {"v": "1"}}
        return Judge("openai/judge-1", client=_Own({}), budget=Budget(tokens=9_000), **settings)

    def request(judge):
        return judge.build_request(GOAL, sample, Opinion)

    def parts(request):
        return request.key, request.digests, request.params, request.key_parts, request.max_output_tokens

    one, fresh = judge(), judge()
    not_read_yet = request(one)
    before = parts(request(one))
    before_change = copy.deepcopy(before)
    assert parts(request(one)) == before
    change(one)
    change(fresh)
    after = parts(request(one))
    assert after[0] != before[0]
    assert after == parts(request(fresh))
    assert parts(not_read_yet) == before_change
    assert parts(request(judge())) == before_change


def test_repeats_have_seeds_of_their_own(sample):
    judge = Judge("openai/judge-1", params={"seed": 7})
    with independent_repeat(2, 5):
        assert judge.build_request(GOAL, sample, Opinion).params == {"seed": 9}
