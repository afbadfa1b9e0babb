"""The outermost layer: what is answered is not asked again."""

import asyncio
import gc

import pytest

from judgekit.errors import (
    FilterError,
    JudgeError,
    OverloadError,
    RefusalError,
    ReplayError,
    ReplyError,
    TruncatedError,
)
from judgekit.judges.cache import Cache, Replay
from judgekit.judges.client import Reply
from judgekit.judges.replies import CachedReplies, Recorded, RecordedReplies
from judgekit.score import JudgeCall, ledger
from judgekit.traces.message import Usage

REPLY = Reply(text="fine", model="m", usage=Usage(input_tokens=3), cost_usd=0.1)
REMEMBERED = JudgeCall(
    judge="openai/judge-1", prompt="goodness@12345678", cached=True, usage=Usage(input_tokens=3), cost_usd=0.0
)


@pytest.fixture
def kept(tmp_path):
    replies = CachedReplies(tmp_path / "cache.sqlite")
    yield replies
    replies.close()


def unacceptable(_):
    raise ValueError("good: is missing")


def test_an_answered_question_is_not_asked_again_and_costs_nothing(stub, kept, question):
    asked = stub([REPLY])
    cache = Cache(asked, kept, "read_write")
    with ledger() as calls:
        assert asyncio.run(cache.complete(question())) == REPLY
        assert calls == []  # who asks writes down what it costs
        assert asyncio.run(cache.complete(question())) == REPLY
    assert calls == [REMEMBERED]
    assert len(asked.requests) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "azure"},
        {"base_url": "https://other.test/v1"},
        {"model": "judge-2"},
        {"params": {}},
        {"messages": ()},
        {"schema_name": "badness"},
        {"schema": {}},
        {"draw": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_question_is_asked(stub, kept, question, changes):
    asked = stub([REPLY, Reply(text="other")])
    cache = Cache(asked, kept, "read_write")
    assert asyncio.run(cache.complete(question())).text == "fine"
    assert asyncio.run(cache.complete(question(**changes))).text == "other"
    assert asyncio.run(cache.complete(question())).text == "fine"
    assert asked.requests == [question(), question(**changes)]


def test_refresh_asks_again_and_keeps_the_new_reply(stub, kept, question):
    kept.put(question(), REPLY)
    asked = stub([Reply(text="second"), Reply(text="third")])
    assert [asyncio.run(Cache(asked, kept, "refresh").complete(question())).text for _ in range(2)] == [
        "second",
        "third",
    ]
    assert asyncio.run(Cache(asked, kept, "read_write").complete(question())).text == "third"
    assert len(asked.requests) == 2


@pytest.mark.parametrize(
    "error",
    [
        OverloadError("busy"),
        RefusalError("no"),
        FilterError("no"),
        TruncatedError("cut"),
        ReplyError("broken", text="{"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_failed_is_not_kept(stub, kept, question, error):
    cache = Cache(stub([error, REPLY]), kept, "read_write")
    with pytest.raises(type(error)):
        asyncio.run(cache.complete(question()))
    assert kept.get(question().key) is None
    assert asyncio.run(cache.complete(question())) == REPLY


def test_a_kept_reply_that_no_longer_fits_is_an_error_with_its_text(stub, kept, question):
    kept.put(question(), REPLY)
    asked = stub()
    with ledger() as calls, pytest.raises(ReplyError, match=r"kept for this request .* good: is missing") as info:
        asyncio.run(Cache(asked, kept, "read_write").complete(question(accept=unacceptable)))
    assert info.value.text == "fine"
    assert asked.requests == calls == []


# Single flight


def gated(stub, *lines):
    """A stub that answers when its gate is opened."""
    return stub(list(lines) or [REPLY], gate=asyncio.Event())


async def started(cache, requests):
    """Asks all at once, each with a ledger of its own, and waits until what is to be sent has been sent."""

    async def ask(request):
        with ledger() as calls:
            try:
                return await cache.complete(request), calls
            except JudgeError as error:
                return error, calls

    tasks = [asyncio.create_task(ask(request)) for request in requests]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("mode", ["read_write", "refresh"])
def test_equal_questions_at_once_are_one_request_that_is_paid_once(stub, kept, question, mode):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, kept, mode), [question() for _ in range(50)])
        asked.gate.set()
        return await asyncio.gather(*tasks)

    first, *others = asyncio.run(ask())
    assert len(asked.requests) == 1
    assert first == (REPLY, [])
    assert others == [(REPLY, [REMEMBERED])] * 49


def test_different_questions_at_once_do_not_wait_for_each_other(stub, kept, question):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, kept, "read_write"), [question(draw=draw) for draw in range(9)])
        at_once = asked.under_way
        asked.gate.set()
        await asyncio.gather(*tasks)
        return at_once

    assert asyncio.run(ask()) == 9


@pytest.mark.parametrize("cancelled", [0, 1, 4])
def test_a_waiter_that_is_cancelled_leaves_the_others_their_reply(stub, kept, question, cancelled):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, kept, "read_write"), [question() for _ in range(5)])
        tasks.pop(cancelled).cancel()
        await asyncio.sleep(0)
        asked.gate.set()
        return await asyncio.gather(*tasks)

    assert [reply for reply, _ in asyncio.run(ask())] == [REPLY] * 4
    assert len(asked.requests) == 1


@pytest.mark.parametrize("line", [REPLY, OverloadError("busy")], ids=["reply", "error"])
def test_a_request_whose_waiters_are_all_cancelled_ends_quietly_and_its_reply_is_kept(stub, kept, question, line):
    asked = gated(stub, line)

    async def ask():
        cache = Cache(asked, kept, "read_write")
        tasks = await started(cache, [question() for _ in range(3)])
        for task in tasks:
            task.cancel()
        assert [type(end) for end in await asyncio.gather(*tasks, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 3
        asked.gate.set()
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(ask())
    gc.collect()  # an exception that nobody saw is reported when its task is forgotten
    assert kept.get(question().key) == (REPLY if line is REPLY else None)


def test_a_loop_that_ends_while_a_request_is_under_way_ends_quietly(stub, kept, question):
    async def ask():
        await started(Cache(gated(stub), kept, "read_write"), [question()] * 2)

    asyncio.run(ask())
    gc.collect()
    assert kept.get(question().key) is None


def test_a_shared_request_that_fails_fails_all_waiters_and_the_next_one_asks_again(stub, kept, question):
    asked = gated(stub, OverloadError("busy"), REPLY)

    async def ask():
        cache = Cache(asked, kept, "read_write")
        tasks = await started(cache, [question() for _ in range(5)])
        asked.gate.set()
        ends = await asyncio.gather(*tasks)
        return ends, await cache.complete(question())

    ends, later = asyncio.run(ask())
    assert [type(error) for error, _ in ends] == [OverloadError] * 5
    assert later == REPLY
    assert len(asked.requests) == 2


def test_a_waiter_that_checks_more_than_the_one_who_asked_does_not_get_what_it_would_refuse(stub, kept, question):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, kept, "read_write"), [question(), question(accept=unacceptable)])
        asked.gate.set()
        return await asyncio.gather(*tasks)

    (first, _), (second, calls) = asyncio.run(ask())
    assert first == REPLY
    assert isinstance(second, ReplyError)
    assert second.text == "fine"
    assert calls == []


# Replay


@pytest.fixture(params=["sqlite", "jsonl"])
def recorded(request, tmp_path, question):
    """One reply in a file of each kind."""
    path = tmp_path / f"replies.{request.param}"
    if request.param == "jsonl":
        about = Recorded(about="By hand.").model_dump_json(exclude_unset=True)
        line = Recorded(key=question().key, digests=question().digests, reply=REPLY).model_dump_json()
        path.write_text(f"{about}\n{line}\n")
        replies = RecordedReplies(path)
    else:
        replies = CachedReplies(path)
        replies.put(question(), REPLY)
    yield replies
    replies.close()


def test_replay_answers_from_what_is_kept_at_no_cost(recorded, question):
    with ledger() as calls:
        assert asyncio.run(Replay(recorded).complete(question())) == REPLY
    assert calls == [REMEMBERED]


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"model": "judge-2"}, "model"),
        ({"params": {}}, "params"),
        ({"draw": 3, "base_url": "?"}, "base_url, draw"),
        ({"messages": ()}, "messages, messages[0] (system), messages[1] (user)"),
    ],
    ids=["model", "params", "two parts", "messages"],
)
def test_a_question_that_is_not_kept_is_an_error_that_names_what_differs(recorded, question, changes, differs):
    with ledger() as calls, pytest.raises(ReplayError) as info:
        asyncio.run(Replay(recorded).complete(question(**changes)))
    assert str(info.value) == (
        "no reply is recorded for this request of goodness@12345678, and replay sends none; "
        f"the nearest recorded request differs in {differs}"
    )
    assert calls == []


def test_the_nearest_is_the_recorded_request_that_differs_in_the_fewest_parts(kept, question):
    for far in ({"model": "x", "params": {}}, {"draw": 1}, {"model": "y", "schema": {}, "base_url": "?"}):
        kept.put(question(**far), REPLY)
    with pytest.raises(ReplayError, match=r"differs in draw$"):
        asyncio.run(Replay(kept).complete(question()))


def test_where_nothing_is_kept_replay_says_so(kept, question):
    with pytest.raises(ReplayError, match=r"replay sends none; nothing is recorded at all$"):
        asyncio.run(Replay(kept).complete(question()))


def test_a_recorded_reply_that_no_longer_fits_is_an_error_with_its_text(recorded, question):
    with pytest.raises(ReplyError, match=r"kept for this request .* good: is missing") as info:
        asyncio.run(Replay(recorded).complete(question(accept=unacceptable)))
    assert info.value.text == "fine"


def test_closing_closes_the_file_and_what_is_inside(stub, tmp_path):
    inner = stub()
    for layer in (
        Cache(inner, CachedReplies(tmp_path / "a.sqlite"), "read_write"),
        Replay(CachedReplies(tmp_path / "b.sqlite")),
    ):
        asyncio.run(layer.aclose())
        with pytest.raises(Exception, match="closed database"):
            layer.replies.get("key")
    assert inner.closed == 1
